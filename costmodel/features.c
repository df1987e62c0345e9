/* SPDX-License-Identifier: MIT */
#include "costmodel/features.h"

#include <math.h>
#include <string.h>

#define KIB 1024.0
#define MIB 1048576.0

/* Only names are stored in files. */
enum {
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
    N_FEATURES,
    TOTAL_TABLES = N_FEATURES,
    TOTAL_BAGS,
    TOTAL_ROWS,
    TOTAL_LOOKUPS,
    TOTAL_UNIQUE,
    TOTAL_STATE_ROWS,
    TOTAL_GATHER,
    TOTAL_UNIQUE_BYTES,
    TOTAL_OUTPUT,
    TOTAL_OVER_32, /* columns */
    TOTAL_OVER_64,
    TOTAL_OVER_128,
    TOTAL_OVER_256,
    N_ALL
};
_Static_assert(N_FEATURES <= MAX_FEATURES && N_ALL - N_FEATURES <= MAX_TOTALS,
               "a set has room for all");

static const char *const names[N_ALL] = {
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
    "log2_batch", "weight_bytes", "has_state",
    /* totals */
    "tables", "bags", "rows", "lookups", "unique", "state_rows", "gather_kib",
    "unique_kib", "output_kib", "over_32", "over_64", "over_128", "over_256"};

struct table_use *use_tables(const struct problem *problem, double batch,
                             struct arena *arena)
{
    struct table_use *use =
        ARENA_NEW(arena, struct table_use, problem->n_tables);

    for (size_t i = 0; i < problem->n_tables; i++) {
        const struct table *table = &problem->tables[i];

        use[i].n_unique =
            table_reuse(table, table->pooling_factor * batch, use[i].bins);
    }
    return use;
}

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
    for (unsigned id = begin; id < end; id++, set->n++) {
        set->at[set->n].id = id;
        set->at[set->n].name = names[id];
    }
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
    add_range(set, FEATURE_LOG_DIM, FEATURE_LOG_POOLING);
    add_range(set, FEATURE_LOG_POOLING + 1, N_FEATURES);
}

void total_set_standard(struct feature_set *set)
{
    set->n = 0;
    add_range(set, N_FEATURES, N_ALL);
}

/* The one of that name, of those from begin to end. */
static bool add_name(struct feature_set *set, const char *name, unsigned begin,
                     unsigned end)
{
    while (begin < end && strcmp(names[begin], name) != 0)
        begin++;
    for (unsigned i = 0; i < set->n; i++)
        if (set->at[i].id == begin)
            return false;
    if (begin == end)
        return false;
    add_range(set, begin, begin + 1);
    return true;
}

bool feature_set_add(struct feature_set *set, const char *name)
{
    return add_name(set, name, 0, N_FEATURES);
}

bool total_set_add(struct feature_set *set, const char *name)
{
    return add_name(set, name, N_FEATURES, N_ALL);
}

void feature_scale(struct feature *feature, const double *x, size_t n,
                   double still_frac)
{
    double sum = 0, square = 0, variance;

    feature->min = INFINITY;
    feature->max = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        sum += x[i];
        square += x[i] * x[i];
        feature->min = fmin(feature->min, x[i]);
        feature->max = fmax(feature->max, x[i]);
    }
    feature->mean = sum / (double)n;
    square /= (double)n;
    variance = square - feature->mean * feature->mean;
    feature->std = variance > still_frac * square ? sqrt(variance) : 1;
}

static void fill_shares(double *all, const double *bins)
{
    double lookups = 0;

    for (unsigned k = 0; k < REUSE_BINS; k++)
        lookups += bins[k] * reuse_bin_count(k);
    for (unsigned k = 0; k < REUSE_BINS; k++)
        all[FEATURE_SHARE + k] =
            lookups > 0 ? bins[k] * reuse_bin_count(k) / lookups : 0;
}

static void fill_features(double *all, const struct feature_input *input)
{
    const double gather = input->n_lookups * input->row_bytes / MIB;
    const double unique = input->n_unique * input->row_bytes / MIB;

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
}

static void fill_totals(double *all, const struct feature_input *input)
{
    const bool has_state = input->optimizer != OPTIMIZER_SGD;

    all[TOTAL_TABLES] = 1;
    all[TOTAL_BAGS] = input->n_outputs;
    all[TOTAL_ROWS] = input->n_rows;
    all[TOTAL_LOOKUPS] = input->n_lookups;
    all[TOTAL_UNIQUE] = input->n_unique;
    all[TOTAL_STATE_ROWS] = has_state ? input->n_unique : 0;
    all[TOTAL_GATHER] = input->n_lookups * input->row_bytes / KIB;
    all[TOTAL_UNIQUE_BYTES] = input->n_unique * input->row_bytes / KIB;
    all[TOTAL_OUTPUT] = input->n_outputs * input->dim * sizeof(float) / KIB;
    all[TOTAL_OVER_32] = input->dim > 32;
    all[TOTAL_OVER_64] = input->dim > 64;
    all[TOTAL_OVER_128] = input->dim > 128;
    all[TOTAL_OVER_256] = input->dim > 256;
}

void feature_set_fill(const struct feature_set *set,
                      const struct feature_input *input, double *out)
{
    double all[N_ALL];

    if (set->n && set->at[0].id >= N_FEATURES)
        fill_totals(all, input);
    else
        fill_features(all, input);
    for (unsigned i = 0; i < set->n; i++)
        out[i] = all[set->at[i].id];
}
