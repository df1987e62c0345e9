/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_FORMULAS_FEATURES_H
#define NEUROSHARD_COSTMODEL_FORMULAS_FEATURES_H

#include "core/problem.h"
#include "core/sample.h"

/*
 * Features and totals that a net takes as input. They are identified by name: a
 * model file lists the names of its features, so a file that was trained with
 * fewer or other features stays readable. Features of one table:
 *
 *     bin_0 .. bin_16    share of the unique rows used (0,1], (1,2] ... times
 *     share_0 .. share_16  share of the lookups that go to those rows
 *     dim, pooling_factor, row     unscaled (the published set)
 *     log2_dim, log1p_rows, log1p_pooling, log1p_lookups
 *     log1p_unique, unique_share   unique rows; unique rows over lookups
 *     gather_mib, unique_mib, output_mib   MiB read by all lookups, in
 *                                unique rows, and written as output
 *     log1p_gather_mib, log1p_unique_mib, log1p_table_mib
 *     log2_batch, weight_bytes, has_state   samples, bytes of a weight, 1 if
 *                                the optimizer keeps a state
 *     forward_dram, forward_l2, forward_issue, backward_memory, backward_issue,
 *     hot_issue                  parts of a roofline, as fractions of the time
 *                                that the table adds to it; 0 without a
 *                                roofline
 *
 * Totals add up over the tables of a device:
 *
 *     tables, bags, rows         bags: vectors written
 *     lookups, unique            in a batch
 *     state_rows                 unique rows with a state of the optimizer
 *     gather_kib, unique_kib, output_kib   KiB read by all lookups, in unique
 *                                rows, and written as output
 *     gather_lines, unique_lines   cache lines of the same rows
 *     over_32 ... over_256       tables with more than 32 ... 256 columns:
 *                                FBGEMM's kernels are compiled for the widest
 *                                table of an operation and are slow for the
 *                                narrow ones next to it
 */

#define ROOFLINE_PARTS 6

/* One table, or a piece of one, in one batch of one device. */
struct feature_input {
    double batch; /* samples */
    enum precision precision;
    enum optimizer optimizer;
    double n_rows;
    double dim;            /* columns of the piece */
    double pooling_factor; /* lookups of a sample */
    double n_lookups;      /* lookups in a batch */
    double n_unique;       /* distinct rows in a batch */
    double n_outputs;      /* vectors written in a batch */
    double row_bytes;      /* bytes of a row of the piece */
    double comm_bytes;     /* bytes of one column of an output vector */
    double bins[REUSE_BINS];
    double parts[ROOFLINE_PARTS]; /* roofline parts; see estimate_fill */
};

/* Fills the input for a table of a measured sample. The output vectors of the
 * sample are fp32. */
void feature_input_of_sample(struct feature_input *input,
                             const struct sample_setting *setting,
                             const struct sample_table *table);

/* Fills the input for a shard. `whole` is the reuse of the whole table over the
 * batch. */
void feature_input_of_shard(struct feature_input *input,
                            const struct problem *problem,
                            const struct shard *shard,
                            const struct table_use *whole, double batch);

/* Returns the least bytes that a training step has to move for a table. They
 * are: indices once, each unique row read and written, outputs written and
 * their gradients read, in fp32. */
double feature_floor_bytes(const struct feature_input *input);

/*
 * Returns the number of lookups that miss the cache. There are n_caches caches
 * of `room` rows each, and the lookups are divided between them. Uses Che's
 * approximation (Che, Tung, Wang 2002): a least-recently-used cache holds the
 * rows of a window of lookups in which `room` different rows occur. The first
 * use of a row in a cache always misses.
 */
double feature_cache_misses(const struct feature_input *input, double room,
                            double n_caches);

/* A feature or a total, and its distribution in the training set. For a total
 * the distribution is that of log2(1 + total). */
struct feature {
    const char *name; /* a constant string */
    unsigned id;      /* private number of the feature */
    double mean, std; /* std > 0 */
    double min, max;  /* NAN if unknown */
    /* Members of totals only; see costmodel/formulas/estimate.h. */
    double rate_ms; /* ms for one unit of the total */
    double power;
};

#define MAX_FEATURES 96
#define MAX_TOTALS 16

/* A set of features, or a set of totals. */
struct feature_set {
    unsigned n;
    struct feature items[MAX_FEATURES];
};

enum feature_choice {
    /* bin_0 .. bin_16, dim, pooling_factor, row: the features of the papers. */
    FEATURES_PUBLISHED,
    FEATURES_STANDARD, /* the features that this program trains with */
    /* Features for a net on a roofline: FEATURES_STANDARD with the bins
     * replaced by parts of the roofline. The parts express the effect of the
     * bins, as cache misses and long runs. */
    FEATURES_ROOFLINE,
    TOTALS_ALL /* all totals that this program knows */
};
void feature_set_init(struct feature_set *set, enum feature_choice choice);
/* Appends a feature (or a total) by name. Only the name and the id of the new
 * entry items[n] are set; its other members keep their values. Returns false if
 * the name is unknown or already in the set. */
bool feature_set_add(struct feature_set *set, const char *name);
bool total_set_add(struct feature_set *set, const char *name);

/* Fits the distributions of the features in the set to n >= 1 rows. A row
 * begins with the values of feature_set_fill; the next row follows after
 * `stride` values. A feature that hardly varies gets the standard deviation
 * 1. */
void feature_set_scale(struct feature_set *set, const double *rows, size_t n,
                       size_t stride);

/* Fills out[set->n] with the features of one table or piece, or with its
 * contributions to the totals. The values are finite for finite input; totals
 * are >= 0. */
void feature_set_fill(const struct feature_set *set,
                      const struct feature_input *input, double *out);

#endif
