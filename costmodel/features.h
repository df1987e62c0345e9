/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_FEATURES_H
#define NEUROSHARD_COSTMODEL_FEATURES_H

#include "core/problem.h"
#include "core/sample.h"

/*
 * What a net sees, by name. A model file lists the names of its features, so a
 * file trained with fewer or other ones stays readable. Of a table:
 *
 *     bin_0 .. bin_16    share of the unique rows used (0,1], (1,2] ... times
 *     share_0 .. share_16  share of the look-ups that go to those rows
 *     dim, pooling_factor, row     as they are (the published set)
 *     log2_dim, log1p_rows, log1p_pooling, log1p_lookups
 *     log1p_unique, unique_share   unique rows, and over look-ups
 *     gather_mib, unique_mib, output_mib   bytes read, distinct, written, MiB
 *     log1p_gather_mib, log1p_unique_mib, log1p_table_mib
 *     log2_batch, weight_bytes, has_state   samples, bytes a weight, 1 where
 *                                the optimizer keeps a state
 *     forward_dram, forward_l2, forward_issue, backward_memory, backward_issue,
 *     hot_issue                  parts of a roofline, each over what the table
 *                                adds to it; 0 where there is none
 *
 * And totals, facts that add up over the tables of a device:
 *
 *     tables, bags, rows         of a device; bags: vectors written
 *     lookups, unique            a batch
 *     state_rows                 unique rows with a state of the optimizer
 *     gather_kib, unique_kib, output_kib   bytes read, distinct, written
 *     gather_lines, unique_lines   cache lines of those rows
 *     over_32 ... over_256       tables of more columns: FBGEMM's kernels are
 *                                compiled for the widest of an operation, and
 *                                slow for narrow ones beside it
 */

#define ROOFLINE_PARTS 6

/* One table or piece of one, in one batch of one device. */
struct feature_input {
    double batch; /* samples */
    enum precision precision;
    enum optimizer optimizer;
    double n_rows;
    double dim;            /* columns of the piece */
    double pooling_factor; /* look-ups a sample */
    double n_lookups;      /* a batch */
    double n_unique;       /* distinct rows a batch */
    double n_outputs;      /* vectors written a batch */
    double row_bytes;      /* of the piece */
    double comm_bytes;     /* of a column of a vector, as it is written */
    double bins[REUSE_BINS];
    double parts[ROOFLINE_PARTS]; /* as estimate_fill says */
};

/* The reuse of each of the problem's tables over a batch of so many samples, in
 * the arena. */
struct table_use *use_tables(const struct problem *problem, double batch,
                             struct arena *arena);

/* A table as it was measured: its vectors are fp32. */
void feature_input_of_sample(struct feature_input *input,
                             const struct sample_setting *setting,
                             const struct sample_table *table);

/* A shard of a table that is used like this in a batch. */
void feature_input_of_shard(struct feature_input *input,
                            const struct problem *problem,
                            const struct shard *shard,
                            const struct table_use *whole, double batch);

/* Bytes that a training step touches at the least: indices once, each unique
 * row read and written, outputs written and their gradients read, in fp32. */
double feature_floor_bytes(const struct feature_input *input);

/*
 * Look-ups that miss a cache of `room` rows, or one of n_caches that share the
 * look-ups. Che's approximation (Che, Tung, Wang 2002): a least-recently-used
 * cache holds what came within a window in which `room` different rows are
 * seen. The first use of a row in a cache always misses.
 */
double feature_cache_misses(const struct feature_input *input, double room,
                            double n_caches);

/* A feature or a total, and how it was distributed in training: a total by its
 * log2(1 + total). */
struct feature {
    const char *name; /* a constant */
    unsigned id;      /* private numbering */
    double mean, std; /* std > 0 */
    double min, max;  /* or NAN */
    /* Of a total: see costmodel/estimate.h. */
    double rate_ms; /* a unit */
    double power;
};

#define MAX_FEATURES 96
#define MAX_TOTALS 16

/* All of one sort. */
struct feature_set {
    unsigned n;
    struct feature at[MAX_FEATURES];
};

enum feature_choice {
    FEATURES_PUBLISHED, /* bin_0 .. bin_16, dim, pooling_factor, row: what the
                           papers use */
    FEATURES_STANDARD,  /* what this program trains with */
    FEATURES_ROOFLINE,  /* and on a roofline: its parts for the bins, which it
                           knows as cache misses and long runs */
    TOTALS_ALL          /* all totals that this program knows */
};
void feature_set_init(struct feature_set *set, enum feature_choice choice);
/* Appends a feature, or a total, by name, and leaves the rest of at[n] as it
 * is; false for an unknown or repeated one. */
bool feature_set_add(struct feature_set *set, const char *name);
bool total_set_add(struct feature_set *set, const char *name);

/* Fits the distributions to n >= 1 rows, `stride` apart, which begin with what
 * feature_set_fill gives. What hardly changes gets deviation 1. */
void feature_set_scale(struct feature_set *set, const double *rows, size_t n,
                       size_t stride);

/* out[set->n], what one table or piece has or adds; finite for finite input,
 * and totals >= 0. */
void feature_set_fill(const struct feature_set *set,
                      const struct feature_input *input, double *out);

#endif
