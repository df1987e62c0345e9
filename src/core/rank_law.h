/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_RANK_LAW_H
#define NEUROSHARD_CORE_RANK_LAW_H

#include "core/table.h"

/* Distribution of the lookups of a batch over the ranks of a table's rows; the
 * hottest row has rank 0. The distribution follows the table's Zipf exponent or
 * its reuse histogram. A histogram is realised as in index streams
 * (device/stream.h): hot rows have their lookups in every batch, and the rows
 * that a batch uses once or twice are drawn from all others. */

/* Number of hottest ranks whose probabilities are summed one by one. From there
 * on, probabilities change so slowly that an integral is accurate enough. */
#define LAW_EXACT_RANKS 128
/* First bin whose rows stay hot from batch to batch. */
#define LAW_FIRST_HOT_BIN 2
#define LAW_MAX_RUNS (2 * REUSE_BINS + 1)

struct rank_law {
    bool has_bins;
    double n_rows;
    double alpha, sum; /* p(r) = (r + 1)^-alpha / sum */
    /* exact[r]: sum of p over the ranks below r */
    double exact[LAW_EXACT_RANKS + 1];
    /* Runs of ranks with equal probability, if has_bins: the first rank of each
     * run, and the share of the lookups that the ranks before it get. Index
     * [n_runs] is the end. */
    uint32_t n_runs;
    double first_rank[LAW_MAX_RUNS + 1], before[LAW_MAX_RUNS + 1];
    /* true: the last run holds the cold rows. Each batch draws n_cold[k] of
     * them to be used k + 1 times. */
    bool has_cold;
    double n_cold[LAW_FIRST_HOT_BIN], n_lookups;
};

/* Initialises *law for a batch of n_lookups lookups. n_lookups only matters if
 * the table has bins. */
void law_init(struct rank_law *law, const struct table *table,
              double n_lookups);
/* Returns the share of the lookups that ranks below `rank` get. */
double law_before(const struct rank_law *law, double rank);
/* Returns the share of the lookups that one rank gets. */
double law_of_rank(const struct rank_law *law, uint32_t rank);

/* Returns the uses of a row after de-duplication of ids within local batches.
 * The `count` uses of the row fall at random into `limit` local batches, and
 * each of these keeps one use: limit (1 - exp(-count/limit)). If the limit is
 * 0, returns count. */
double law_uses(double count, double limit);
/* Returns the sum of law_uses over ranks begin to end in a batch of n_lookups
 * lookups. With has_bins, the batch is the one that the law was initialised
 * with. */
double law_sum_uses(const struct rank_law *law, double n_lookups, double begin,
                    double end, double limit);
/* Returns the limit with which law_uses keeps the share `kept` of all uses; 0
 * if kept is 1. Takes about 100 microseconds. */
double law_limit(const struct rank_law *law, double n_lookups, double kept);

/* Adds to rows[] the expected number of rows of ranks begin to end in each bin
 * of the reuse histogram, in a batch of n_lookups lookups. With has_bins, the
 * batch is the one that the law was initialised with. */
void law_add_rows(const struct rank_law *law, double n_lookups, double begin,
                  double end, double rows[REUSE_BINS]);

/*
 * Converts a histogram of shares to whole rows and lookups: `unique[k]` rows of
 * bin k have `lookups[k]` lookups together, each row the floor or the ceiling
 * of the mean. With c_k = reuse_bin_count(k):
 *
 *   1. U = round(n_lookups * sum(bins) / sum(bins * c)) is the number of unique
 *      rows, at least 1 and at most n_rows. It is divided among the bins by
 *      largest remainder (ties to the smaller bin).
 *   2. A bin starts with unique * c lookups. Lookups that are missing or in
 *      excess are added or removed from the hottest bin down, as long as every
 *      row stays in its bin.
 *   3. If that does not suffice (few lookups for many bins), rows are reduced
 *      to as little as one lookup each, or the hottest occupied bin gets the
 *      rest. Rows then leave their bins, but U and the total still hold.
 *   4. If n_rows limits U, lookups are divided in proportion to unique * c
 *      instead: every row is hotter than the histogram says.
 */
void law_apportion(const double bins[REUSE_BINS], uint64_t n_lookups,
                   uint64_t n_rows, uint64_t unique[REUSE_BINS],
                   uint64_t lookups[REUSE_BINS]);

#endif
