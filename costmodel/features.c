/* SPDX-License-Identifier: MIT */
#include "costmodel/features.h"

#include <math.h>
#include <string.h>

#define MIB 1048576.0

/* Numbering of feature_set.ids. Only names are stored in files. */
enum feature {
    FEATURE_BIN,
    FEATURE_SHARE = FEATURE_BIN + REUSE_BINS,
    FEATURE_DIM = FEATURE_SHARE + REUSE_BINS,
    FEATURE_POOLING,
    FEATURE_ROW,
    FEATURE_LOG_DIM,
    FEATURE_LOG_ROWS,
    FEATURE_LOG_POOLING,
    FEATURE_LOG_LOOKUPS,
    FEATURE_LOG_UNIQUE,
    FEATURE_UNIQUE_SHARE,
    FEATURE_GATHER,
    FEATURE_UNIQUE,
    FEATURE_OUTPUT,
    FEATURE_LOG_GATHER,
    FEATURE_LOG_UNIQUE_BYTES,
    FEATURE_LOG_TABLE,
    FEATURE_LOG_BATCH,
    FEATURE_WEIGHT_BYTES,
    FEATURE_HAS_STATE,
    N_FEATURES
};

static const char *const names[N_FEATURES] = {
    /* how often rows are used */
    "bin_0", "bin_1", "bin_2", "bin_3", "bin_4", "bin_5", "bin_6", "bin_7",
    "bin_8", "bin_9", "bin_10", "bin_11", "bin_12", "bin_13", "bin_14",
    "bin_15", "bin_16",
    /* and the look-ups that go there */
    "share_0", "share_1", "share_2", "share_3", "share_4", "share_5", "share_6",
    "share_7", "share_8", "share_9", "share_10", "share_11", "share_12",
    "share_13", "share_14", "share_15", "share_16",
    /* sizes and loads */
    "dim", "pooling_factor", "row", "log2_dim", "log1p_rows", "log1p_pooling",
    "log1p_lookups", "log1p_unique", "unique_share", "gather_mib", "unique_mib",
    "output_mib", "log1p_gather_mib", "log1p_unique_mib", "log1p_table_mib",
    "log2_batch", "weight_bytes", "has_state"};

void feature_input_of_sample(struct feature_input *input,
                             const struct sample_setting *setting,
                             const struct sample_table *table)
{
    input->batch = setting->batch;
    input->precision = setting->precision;
    input->optimizer = setting->optimizer;
    input->n_rows = (double)table->n_rows;
    input->dim = table->dim;
    input->pooling_factor = table->pooling_factor;
    input->n_lookups = table->pooling_factor * setting->batch;
    input->n_unique = table->n_unique;
    input->n_outputs = setting->batch;
    input->row_bytes = input->dim * precision_bytes(setting->precision);
    memcpy(input->bins, table->bins, sizeof(input->bins));
}

double feature_floor_bytes(const struct feature_input *input)
{
    return input->n_lookups * 4 + 2 * input->n_unique * input->row_bytes +
           2 * input->n_outputs * input->dim * sizeof(float);
}

static void add_range(struct feature_set *set, unsigned begin, unsigned end)
{
    for (unsigned id = begin; id < end; id++)
        set->ids[set->n++] = (unsigned char)id;
}

void feature_set_published(struct feature_set *set)
{
    set->n = 0;
    add_range(set, FEATURE_BIN, FEATURE_SHARE);
    add_range(set, FEATURE_DIM, FEATURE_ROW + 1);
}

void feature_set_standard(struct feature_set *set)
{
    set->n = 0;
    add_range(set, FEATURE_SHARE, FEATURE_DIM);
    for (unsigned id = FEATURE_LOG_DIM; id < N_FEATURES; id++)
        if (id != FEATURE_LOG_POOLING)
            add_range(set, id, id + 1);
}

bool feature_set_add(struct feature_set *set, const char *name)
{
    for (unsigned i = 0; i < set->n; i++)
        if (!strcmp(names[set->ids[i]], name))
            return false;
    for (unsigned id = 0; id < N_FEATURES && set->n < MAX_FEATURES; id++)
        if (!strcmp(names[id], name)) {
            set->ids[set->n++] = (unsigned char)id;
            return true;
        }
    return false;
}

const char *feature_set_name(const struct feature_set *set, unsigned i)
{
    return names[set->ids[i]];
}

static void fill_shares(double all[N_FEATURES], const double *bins)
{
    double lookups = 0;

    for (unsigned k = 0; k < REUSE_BINS; k++)
        lookups += bins[k] * reuse_bin_count(k);
    for (unsigned k = 0; k < REUSE_BINS; k++)
        all[FEATURE_SHARE + k] =
            lookups > 0 ? bins[k] * reuse_bin_count(k) / lookups : 0;
}

void feature_set_fill(const struct feature_set *set,
                      const struct feature_input *input, double *out)
{
    const double gather = input->n_lookups * input->row_bytes / MIB;
    const double unique = input->n_unique * input->row_bytes / MIB;
    double all[N_FEATURES];

    memcpy(all + FEATURE_BIN, input->bins, sizeof(input->bins));
    fill_shares(all, input->bins);
    all[FEATURE_DIM] = input->dim;
    all[FEATURE_POOLING] = input->pooling_factor;
    all[FEATURE_ROW] = input->n_rows;
    all[FEATURE_LOG_DIM] = log2(input->dim);
    all[FEATURE_LOG_ROWS] = log1p(input->n_rows);
    all[FEATURE_LOG_POOLING] = log1p(input->pooling_factor);
    all[FEATURE_LOG_LOOKUPS] = log1p(input->n_lookups);
    all[FEATURE_LOG_UNIQUE] = log1p(input->n_unique);
    all[FEATURE_UNIQUE_SHARE] =
        input->n_lookups > 0 ? input->n_unique / input->n_lookups : 0;
    all[FEATURE_GATHER] = gather;
    all[FEATURE_UNIQUE] = unique;
    all[FEATURE_OUTPUT] = input->n_outputs * input->dim * sizeof(float) / MIB;
    all[FEATURE_LOG_GATHER] = log1p(gather);
    all[FEATURE_LOG_UNIQUE_BYTES] = log1p(unique);
    all[FEATURE_LOG_TABLE] = log1p(input->n_rows * input->row_bytes / MIB);
    all[FEATURE_LOG_BATCH] = log2(fmax(input->batch, 1));
    all[FEATURE_WEIGHT_BYTES] = precision_bytes(input->precision);
    all[FEATURE_HAS_STATE] = input->optimizer != OPTIMIZER_SGD;
    for (unsigned i = 0; i < set->n; i++)
        out[i] = all[set->ids[i]];
}
