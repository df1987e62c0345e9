/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_FEATURES_H
#define NEUROSHARD_COSTMODEL_FEATURES_H

#include "core/sample.h"
#include "core/table.h"

#include <stdbool.h>

/*
 * What a net sees of a table, by name. A model file lists the names of its
 * features, so a file trained with fewer or other ones stays readable.
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
 */

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
    double bins[REUSE_BINS];
};

/* A table as it was measured. */
void feature_input_of_sample(struct feature_input *input,
                             const struct sample_setting *setting,
                             const struct sample_table *table);

/* Bytes that a training step touches at the least: indices once, each unique
 * row read and written, outputs written and their gradients read, in fp32. */
double feature_floor_bytes(const struct feature_input *input);

#define MAX_FEATURES 96

struct feature_set {
    unsigned n;
    unsigned char ids[MAX_FEATURES]; /* private numbering */
};

/* bin_0 .. bin_16, dim, pooling_factor, row: what the papers use. */
void feature_set_published(struct feature_set *set);
/* What this program trains with. */
void feature_set_standard(struct feature_set *set);
/* Appends a feature by name; false for an unknown, repeated or surplus one. */
bool feature_set_add(struct feature_set *set, const char *name);
/* Name of the i-th feature of the set; a constant. */
const char *feature_set_name(const struct feature_set *set, unsigned i);

/* out[set->n]; finite for finite input. */
void feature_set_fill(const struct feature_set *set,
                      const struct feature_input *input, double *out);

#endif
