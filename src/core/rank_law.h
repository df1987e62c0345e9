/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_RANK_LAW_H
#define NEUROSHARD_CORE_RANK_LAW_H

#include "core/table.h"

/* Distribution of the lookups of a batch over the ranks of a table's rows; the
 * hottest row has rank 0. The distribution follows the table's Zipf exponent or
 * its reuse histogram. A histogram has the same meaning as for index streams
 * (device/stream.h): hot rows get their lookups in every batch, and the rows
 * that a batch uses only once or twice are drawn anew from all other rows for
 * each batch. */

/* Number of hottest ranks whose probabilities are summed one by one. For later
 * ranks, the probability changes so slowly from rank to rank that an integral
 * is accurate enough. */
#define LAW_EXACT_RANKS 128
/* First bin of the reuse histogram whose rows stay the same from batch to
 * batch. */
#define LAW_FIRST_HOT_BIN 2
#define LAW_MAX_RUNS (2 * REUSE_BINS + 1)

struct rank_law {
    bool has_bins;
    double n_rows;
    double alpha, sum; /* probability of rank r: p(r) = (r + 1)^-alpha / sum */
    /* exact[r]: sum of p(q) over the ranks q < r */
    double exact[LAW_EXACT_RANKS + 1];
    /* Runs of ranks with equal probability (only if has_bins). first_rank[i] is
     * the first rank of run i, and before[i] is the share of the lookups that
     * the ranks before run i get together. Index [n_runs] is the end of the
     * last run. */
    uint32_t n_runs;
    double first_rank[LAW_MAX_RUNS + 1], before[LAW_MAX_RUNS + 1];
    /* true: the last run holds the cold rows. For each batch, n_cold[k] of the
     * cold rows are drawn and used k + 1 times. */
    bool has_cold;
    double n_cold[LAW_FIRST_HOT_BIN], n_lookups;
};

/* Initialises *law for a batch of n_lookups lookups. n_lookups is only used if
 * the table has a reuse histogram. */
void law_init(struct rank_law *law, const struct table *table,
              double n_lookups);
/* Returns the share of the lookups that all ranks below `rank` get together. */
double law_before(const struct rank_law *law, double rank);
/* Returns the share of the lookups that the row of this rank gets. */
double law_of_rank(const struct rank_law *law, uint32_t rank);

/* A group of ranks with equal probability: number of rows, and mean number of
 * uses of each row in a batch. */
struct law_group {
    double n_rows, mean;
};
/* Largest number of groups. 2^64 rows need LAW_EXACT_RANKS groups of one rank
 * and 930 groups of successive ranks. */
#define LAW_MAX_GROUPS 1100
/* Splits the ranks begin to end into groups whose probabilities are equal, or
 * so close that all ranks of a group get their mean. Returns the number of
 * groups, for a batch of n_lookups lookups. If law->has_bins is true, the batch
 * is the batch of law_init, and the cold rows are the last group. */
size_t law_split(const struct rank_law *law, double n_lookups, double begin,
                 double end, struct law_group out[LAW_MAX_GROUPS]);

/* Returns the uses of a row after de-duplication of ids within local batches.
 * The `count` uses of the row fall at random into `limit` local batches, and
 * each local batch with a use keeps one use. So the result is
 * limit (1 - exp(-count/limit)). If the limit is 0, returns count. */
double law_uses(double count, double limit);
/* Returns the sum of law_uses over the rows of ranks begin to end, in a batch
 * of n_lookups lookups. If law->has_bins is true, the batch is the batch of
 * law_init. */
double law_sum_uses(const struct rank_law *law, double n_lookups, double begin,
                    double end, double limit);
/* Returns the argument `limit` with which law_uses keeps the share `kept` of
 * the uses of all rows. Returns 0 if `kept` is 1. Takes about 100
 * microseconds. */
double law_limit(const struct rank_law *law, double n_lookups, double kept);

/* Adds to rows[k] the expected number of rows in bin k of the reuse histogram,
 * for each bin k. Counts only the rows of ranks begin to end, in a batch of
 * n_lookups lookups. If law->has_bins is true, the batch is the batch of
 * law_init. */
void law_add_rows(const struct rank_law *law, double n_lookups, double begin,
                  double end, double rows[REUSE_BINS]);

/*
 * Converts a histogram of shares to whole numbers of rows and lookups. The
 * `unique[k]` rows of bin k have `lookups[k]` lookups together. Each of these
 * rows has the floor or the ceiling of the mean, lookups[k] / unique[k].
 * Method, with c_k = reuse_bin_count(k):
 *
 *   1. U = round(n_lookups * sum(bins) / sum(bins * c)) is the number of unique
 *      rows, at least 1 and at most n_rows. It is divided among the bins by
 *      largest remainder (ties to the smaller bin).
 *   2. A bin starts with unique * c lookups. Missing lookups are added, and
 *      excess lookups are removed, beginning with the hottest bin, as long as
 *      every row stays in its bin.
 *   3. If step 2 does not suffice (few lookups for many bins), rows are reduced
 *      to as little as one lookup each, or the hottest occupied bin gets the
 *      remaining lookups. Rows may then leave their bins, but U and the total
 *      number of lookups stay correct.
 *   4. If n_rows limits U, steps 2 and 3 are replaced: the lookups are divided
 *      in proportion to unique * c. Every row is then hotter than in the
 *      histogram.
 */
void law_apportion(const double bins[REUSE_BINS], uint64_t n_lookups,
                   uint64_t n_rows, uint64_t unique[REUSE_BINS],
                   uint64_t lookups[REUSE_BINS]);

/*
 * Reuse of the rows of a table in one batch of n_lookups lookups.
 *
 * Fills `bins` with the reuse histogram. If the table has a histogram, copies
 * it. Otherwise computes one from the Zipf exponent and the number of rows,
 * with Poisson counts: exactly for the first ranks, and in log-spaced buckets
 * of ranks beyond them. Returns the expected number of unique rows, <=
 * min(num_embeddings, n_lookups). If the table has a histogram, this number is
 * n_lookups / mean uses of a row.
 *
 * If n_lookups is 0, or if the table's histogram is all zeros, returns 0 and
 * fills `bins` with zeros. Takes about 50 microseconds for any number of rows.
 */
double table_reuse(const struct table *table, double n_lookups,
                   double bins[REUSE_BINS]);

/* Returns the mean number of uses of a row in bin k of the reuse histogram. It
 * is the middle of the bin: 1, 2, 3, 6, 12 ... 24576. The last bin has no upper
 * end; for it, returns 49152. */
double reuse_bin_count(unsigned k);
/* Returns the bin of the reuse histogram that holds rows with `count` > 0
 * uses. */
unsigned reuse_bin_of(double count);

#endif
