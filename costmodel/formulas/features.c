/* SPDX-License-Identifier: MIT */
#include "costmodel/formulas/features.h"

#include "core/rank_law.h"

#include <math.h>
#include <string.h>

#define KIB 1024.0
#define MIB 1048576.0
/* Ratio of variance to mean square below which a feature, or the logarithm of a
 * total, counts as constant. */
#define STILL_FEATURE_FRAC 1e-12
#define STILL_TOTAL_FRAC 1e-9

/* Lists all features after the bins and their shares, and all totals. Each
 * entry has the name, which is the only part that files store, and the value
 * for an `input`. The published features come first. log1p_pooling is only used
 * by older files. */
#define FEATURES(FEATURE)                                                   \
    FEATURE(dim, input->dim)                                                \
    FEATURE(pooling_factor, input->pooling_factor)                          \
    FEATURE(row, input->n_rows)                                             \
    FEATURE(log1p_pooling, log1p(input->pooling_factor))                    \
    FEATURE(log2_dim, log2(input->dim))                                     \
    FEATURE(log1p_rows, log1p(input->n_rows))                               \
    FEATURE(log1p_lookups, log1p(input->n_lookups))                         \
    FEATURE(log1p_unique, log1p(input->n_unique))                           \
    FEATURE(unique_share,                                                   \
            input->n_lookups > 0 ? input->n_unique / input->n_lookups : 0)  \
    FEATURE(gather_mib, gather_bytes(input) / MIB)                          \
    FEATURE(unique_mib, unique_bytes(input) / MIB)                          \
    FEATURE(output_mib, output_bytes(input) / MIB)                          \
    FEATURE(log1p_gather_mib, log1p(gather_bytes(input) / MIB))             \
    FEATURE(log1p_unique_mib, log1p(unique_bytes(input) / MIB))             \
    FEATURE(log1p_table_mib, log1p(input->n_rows * input->row_bytes / MIB)) \
    FEATURE(log2_batch, log2(fmax(input->batch, 1)))                        \
    FEATURE(weight_bytes, precision_bytes(input->precision))                \
    FEATURE(has_state, has_state(input))                                    \
    FEATURE(forward_dram, input->parts[0])                                  \
    FEATURE(forward_l2, input->parts[1])                                    \
    FEATURE(forward_issue, input->parts[2])                                 \
    FEATURE(backward_memory, input->parts[3])                               \
    FEATURE(backward_issue, input->parts[4])                                \
    FEATURE(hot_issue, input->parts[5])

#define TOTALS(TOTAL)                                         \
    TOTAL(tables, 1)                                          \
    TOTAL(bags, input->n_outputs)                             \
    TOTAL(rows, input->n_rows)                                \
    TOTAL(lookups, input->n_lookups)                          \
    TOTAL(unique, input->n_unique)                            \
    TOTAL(state_rows, has_state(input) ? input->n_unique : 0) \
    TOTAL(gather_kib, gather_bytes(input) / KIB)              \
    TOTAL(unique_kib, unique_bytes(input) / KIB)              \
    TOTAL(gather_lines, row_lines(input) * input->n_lookups)  \
    TOTAL(unique_lines, row_lines(input) * input->n_unique)   \
    TOTAL(output_kib, output_bytes(input) / KIB)              \
    TOTAL(over_32, input->dim > 32)                           \
    TOTAL(over_64, input->dim > 64)                           \
    TOTAL(over_128, input->dim > 128)                         \
    TOTAL(over_256, input->dim > 256)

#define ID(name, value) ID_##name,
#define NAME(name, value) #name,
#define VALUE(name, value) (value),

static const char *const names[] = {
    /* shares of unique rows, by how often a row is used */
    "bin_0", "bin_1", "bin_2", "bin_3", "bin_4", "bin_5", "bin_6", "bin_7",
    "bin_8", "bin_9", "bin_10", "bin_11", "bin_12", "bin_13", "bin_14",
    "bin_15", "bin_16",
    /* shares of the lookups that go to the rows of each bin */
    "share_0", "share_1", "share_2", "share_3", "share_4", "share_5", "share_6",
    "share_7", "share_8", "share_9", "share_10", "share_11", "share_12",
    "share_13", "share_14", "share_15", "share_16",
    FEATURES(NAME) TOTALS(NAME)};

enum {
    FIRST_SHARE = REUSE_BINS,
    LAST_SHARE = FIRST_SHARE + REUSE_BINS - 1,
    FEATURES(ID) TOTALS(ID) N_ALL
};
_Static_assert(ID_tables <= MAX_FEATURES && N_ALL - ID_tables <= MAX_TOTALS,
               "a set has room for all");

void feature_input_of_sample(struct feature_input *input,
                             const struct sample_setting *setting,
                             const struct sample_table *table)
{
    *input = (struct feature_input){
        .batch = setting->batch,
        .precision = setting->precision,
        .optimizer = setting->optimizer,
        .n_rows = (double)table->n_rows,
        .dim = table->dim,
        .pooling_factor = table->pooling_factor,
        .n_lookups = table->pooling_factor * setting->batch,
        .n_unique = table->n_unique,
        .n_outputs = setting->batch,
        .row_bytes = (double)table->dim * precision_bytes(setting->precision),
        .comm_bytes = sizeof(float)};
    memcpy(input->bins, table->bins, sizeof(input->bins));
}

void feature_input_of_shard(struct feature_input *input,
                            const struct problem *problem,
                            const struct shard *shard,
                            const struct table_use *whole, double batch)
{
    const struct table *table = &problem->tables[shard->table];
    const struct table_use use = shard_use(problem, shard, batch, whole);

    input->batch = batch;
    input->precision = table->precision;
    input->optimizer = table->optimizer;
    input->n_rows = (double)(shard->row_end - shard->row_begin);
    input->dim = shard->col_end - shard->col_begin;
    input->n_lookups = shard_lookups(problem, shard);
    input->pooling_factor = input->n_lookups / batch;
    input->n_unique = use.n_unique;
    input->n_outputs = shard_output_vectors(problem, shard);
    input->row_bytes = input->dim * precision_bytes(table->precision);
    input->comm_bytes = precision_bytes(table->comm_precision);
    memcpy(input->bins, use.bins, sizeof(input->bins));
    memset(input->parts, 0, sizeof(input->parts));
}

double feature_floor_bytes(const struct feature_input *input)
{
    return input->n_lookups * 4 + 2 * input->n_unique * input->row_bytes +
           2 * input->n_outputs * input->dim * sizeof(float);
}

static void add_range(struct feature_set *set, unsigned begin, unsigned end)
{
    for (unsigned id = begin; id < end; id++, set->n++) {
        set->items[set->n].id = id;
        set->items[set->n].name = names[id];
    }
}

void feature_set_init(struct feature_set *set, enum feature_choice choice)
{
    /* two ranges of ids for each choice of features: begin, end, begin, end */
    static const unsigned ranges[][4] = {
        [FEATURES_PUBLISHED] = {0, FIRST_SHARE, ID_dim, ID_row + 1},
        [FEATURES_STANDARD] = {FIRST_SHARE, ID_dim, ID_log2_dim,
                               ID_forward_dram},
        [FEATURES_ROOFLINE] = {ID_log2_dim, ID_tables},
        [TOTALS_ALL] = {ID_tables, N_ALL},
    };

    set->n = 0;
    add_range(set, ranges[choice][0], ranges[choice][1]);
    add_range(set, ranges[choice][2], ranges[choice][3]);
}

/* Appends the feature with this name, if its id is in [begin, end). */
static bool add_name(struct feature_set *set, const char *name, unsigned begin,
                     unsigned end)
{
    while (begin < end && strcmp(names[begin], name) != 0)
        begin++;
    for (unsigned i = 0; i < set->n; i++)
        if (set->items[i].id == begin)
            return false;
    if (begin == end)
        return false;
    add_range(set, begin, begin + 1);
    return true;
}

bool feature_set_add(struct feature_set *set, const char *name)
{
    return add_name(set, name, 0, ID_tables);
}

bool total_set_add(struct feature_set *set, const char *name)
{
    return add_name(set, name, ID_tables, N_ALL);
}

/* Fits the distribution of a feature to n values of x, which are `stride`
 * apart. */
static void fit_scale(struct feature *feature, const double *x, size_t n,
                      size_t stride)
{
    const bool is_total = feature->id >= ID_tables;
    const double still_frac = is_total ? STILL_TOTAL_FRAC : STILL_FEATURE_FRAC;
    double sum = 0, square = 0, variance;

    feature->min = INFINITY;
    feature->max = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        const double pos = x[i * stride],
                     value = is_total ? log2(1 + pos) : pos;

        sum += value;
        square += value * value;
        feature->min = fmin(feature->min, value);
        feature->max = fmax(feature->max, value);
    }
    feature->mean = sum / (double)n;
    square /= (double)n;
    variance = square - feature->mean * feature->mean;
    feature->std = variance > still_frac * square ? sqrt(variance) : 1;
}

void feature_set_scale(struct feature_set *set, const double *rows, size_t n,
                       size_t stride)
{
    for (unsigned k = 0; k < set->n; k++)
        fit_scale(&set->items[k], rows + k, n, stride);
}

static void fill_shares(double *shares, const double *bins)
{
    double lookups = 0;

    for (unsigned k = 0; k < REUSE_BINS; k++)
        lookups += bins[k] * reuse_bin_count(k);
    for (unsigned k = 0; k < REUSE_BINS; k++)
        shares[k] = lookups > 0 ? bins[k] * reuse_bin_count(k) / lookups : 0;
}

static double gather_bytes(const struct feature_input *input)
{
    return input->n_lookups * input->row_bytes;
}

static double unique_bytes(const struct feature_input *input)
{
    return input->n_unique * input->row_bytes;
}

static double output_bytes(const struct feature_input *input)
{
    return input->n_outputs * input->dim * sizeof(float);
}

/* Returns the cache lines that a row touches, as the mean over consecutive
 * rows. A row begins at a multiple of the largest power of two that divides its
 * size. */
static double row_lines(const struct feature_input *input)
{
    const unsigned n_bytes = (unsigned)input->row_bytes;

    return 1 + (n_bytes - fmin(n_bytes & -n_bytes, CACHE_LINE)) / CACHE_LINE;
}

static bool has_state(const struct feature_input *input)
{
    return input->optimizer != OPTIMIZER_SGD;
}

void feature_set_fill(const struct feature_set *set,
                      const struct feature_input *input, double *out)
{
    double all[N_ALL];

    if (set->n && set->items[0].id >= ID_tables) {
        const double totals[] = {TOTALS(VALUE)};

        memcpy(all + ID_tables, totals, sizeof(totals));
    } else {
        const double features[] = {FEATURES(VALUE)};

        memcpy(all, input->bins, sizeof(input->bins));
        fill_shares(all + FIRST_SHARE, input->bins);
        memcpy(all + ID_dim, features, sizeof(features));
    }
    for (unsigned i = 0; i < set->n; i++)
        out[i] = all[set->items[i].id];
}

/* Returns the number of distinct rows in `window` lookups of the table. A row
 * of bin k occurs in the window with probability 1 - exp(-count window / N), if
 * it has `count` of the N lookups. */
static double rows_seen(const struct feature_input *input, double window)
{
    double rows = 0;

    for (unsigned k = 0; k < REUSE_BINS; k++)
        rows -= input->bins[k] *
                expm1(-reuse_bin_count(k) * window / input->n_lookups);
    return rows * input->n_unique;
}

double feature_cache_misses(const struct feature_input *input, double room,
                            double n_caches)
{
    const double n_lookups = input->n_lookups;
    double low = 0, high = n_lookups / n_caches, misses = 0;
    const double first_uses = n_caches * rows_seen(input, n_lookups / n_caches);

    if (first_uses <= n_caches * room)
        return fmin(first_uses, n_lookups);
    for (int step = 0; step < 40; step++) {
        double middle = (low + high) / 2;

        if (rows_seen(input, middle) < room)
            low = middle;
        else
            high = middle;
    }
    for (unsigned k = 0; k < REUSE_BINS; k++) {
        double count = reuse_bin_count(k);

        misses += input->n_unique * input->bins[k] * count *
                  exp(-count * low / n_lookups);
    }
    return fmin(fmax(misses, first_uses), n_lookups);
}
