/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_RANK_LAW_H
#define NEUROSHARD_CORE_RANK_LAW_H

#include "core/table.h"

/*
 * How the look-ups of a batch fall to a table's rows, from the hottest on, rank
 * 0: by its Zipf exponent, or by its histogram as index streams realise it
 * (device/stream.h): hot rows have their look-ups in every batch, those that a
 * batch uses once or twice are drawn from all others.
 */

/* Ranks whose probabilities are summed one by one; beyond they change so slowly
 * that an integral does. */
#define LAW_EXACT_RANKS 128
/* Rows in these bins and above stay hot from batch to batch. */
#define LAW_FIRST_HOT_BIN 2
#define LAW_MAX_RUNS (2 * REUSE_BINS + 1)

struct rank_law {
    bool has_bins;
    double n_rows;
    double alpha, sum;                 /* p(r) = (r + 1)^-alpha / sum */
    double exact[LAW_EXACT_RANKS + 1]; /* before each: sum of p */
    /* Runs of ranks that are alike, of bins: where they begin, and the share of
     * the look-ups that is of those before; [n_runs] is the end. */
    uint32_t n_runs;
    double first_rank[LAW_MAX_RUNS + 1], before[LAW_MAX_RUNS + 1];
    bool has_cold; /* the last run: any of its rows, n_cold[k] of them k + 1
                      times */
    double n_cold[LAW_FIRST_HOT_BIN], n_lookups;
};

/* Of a batch of so many look-ups, which only bins hang on. */
void law_init(struct rank_law *law, const struct table *table,
              double n_lookups);
/* The share of the look-ups that is of the ranks below this one. */
double law_before(const struct rank_law *law, double rank);
/* That of one rank. */
double law_of_rank(const struct rank_law *law, uint32_t rank);

/* What is left of the uses of a row where each of `limit` local batches, among
 * which they fall at random, has its id but once: limit (1 - exp(-count /
 * limit)); all where the limit is 0. */
double law_uses(double count, double limit);
/* What is left so of all uses of these ranks in a batch of so many look-ups; of
 * bins in the batch that the law is of. */
double law_sum_uses(const struct rank_law *law, double n_lookups, double begin,
                    double end, double limit);
/* The limit that leaves such a share of the uses of all; 0 where that is all.
 * Some 100 microseconds. */
double law_limit(const struct rank_law *law, double n_lookups, double kept);

/* Adds how many of the rows of these ranks are expected in each bin of the
 * histogram of reuse, in a batch of so many look-ups; of bins in the batch that
 * the law is of. */
void law_add_rows(const struct rank_law *law, double n_lookups, double begin,
                  double end, double rows[REUSE_BINS]);

/*
 * How a histogram of shares becomes whole rows and look-ups: `unique[k]` rows
 * are looked up `lookups[k]` times together, each of them floor or ceil of the
 * mean. With c_k = reuse_bin_count(k):
 *  1. U = round(n_lookups * sum(bins) / sum(bins * c)) unique rows, at least
 *     one and at most n_rows; shared out to the bins by largest remainder
 *     (ties to the smaller bin).
 *  2. A bin starts with unique * c look-ups. What is missing or too much is
 *     added or taken from the hottest bin down, as far as every row stays in
 *     its bin.
 *  3. Where that does not suffice (a few look-ups for many bins), rows are
 *     taken down to one look-up each, or the hottest occupied bin gets the
 *     rest: then rows leave their bins, but U and the total still hold.
 *  4. Where n_rows cuts U short, look-ups are shared out in proportion to
 *     unique * c instead: every row is hotter than the histogram says.
 */
void law_apportion(const double bins[REUSE_BINS], uint64_t n_lookups,
                   uint64_t n_rows, uint64_t unique[REUSE_BINS],
                   uint64_t lookups[REUSE_BINS]);

#endif
