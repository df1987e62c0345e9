/* SPDX-License-Identifier: MIT */
#include "core/table.h"

#include <assert.h>
#include <math.h>
#include <string.h>

const char *const precision_names[] = {"fp32", "fp16", "bf16", "int8", NULL};
const char *const optimizer_names[] = {"sgd",
                                       "rowwise_adagrad",
                                       "adagrad",
                                       "adam",
                                       "adama",
                                       "lamb",
                                       "partial_rowwise_adam",
                                       "partial_rowwise_lamb",
                                       NULL};
const char *const table_output_names[] = {"pooled", "sequence", NULL};
const char *const row_order_names[] = {"hashed", "frequency", "uniform", NULL};
const char *const rows_over_names[] = {"any", "all", "host", NULL};
const char *const tier_names[] = {"hbm", "cached", "host", NULL};
const struct shard_traits shard_traits[N_SHARD_KINDS] = {
    {SHARD_TABLE, "table", "TW", "whole tables", "whole", .made_of = 0},
    {SHARD_COLUMN, "column", "CW", "column pieces", "by columns",
     .cuts_columns = true},
    {SHARD_ROW, "row", "RW", "row pieces", "by rows", .cuts_rows = true},
    {SHARD_GRID, "grid", "GS", "grid pieces", "by rows and columns",
     .cuts_rows = true, .cuts_columns = true, .is_within_group = true,
     .made_of = SHARD_ROW | SHARD_COLUMN},
    {SHARD_REPLICATE, "replicate", "DP", "replicas", "replicated",
     .is_replica = true},
};

void table_init(struct table *table)
{
    *table = (struct table){
        .num_outputs = 1,
        .dedup = 1,
        .forward_factor = 1,
        .backward_factor = 1,
        .optimizer = OPTIMIZER_ROWWISE_ADAGRAD,
        .skew_assumed = true,
        .zipf_alpha = DEFAULT_ZIPF_ALPHA,
        .kinds = SHARD_ALL_KINDS,
        .tiers = ALL_TIERS,
        .device = -1,
    };
}

unsigned table_wrong_reach(const struct table *table)
{
    const double *reach = table->reach, *misses = table->misses;
    const double more = 1 + TABLE_REACH_TOLERANCE;

    for (unsigned k = 0; k < table->n_reach; k++) {
        const double before = k ? misses[k - 1] : reach[0];

        if (!isfinite(reach[k]) || !(misses[k] >= 0) ||
            !(misses[k] <= before * more) ||
            !(reach[k] <= (double)table->num_embeddings * more))
            return k;
        if (k &&
            (!(reach[k] <= (reach[k - 1] + ldexp(before, (int)k - 1)) * more) ||
             !(reach[k] * more >= reach[k - 1] + ldexp(misses[k], (int)k - 1))))
            return k;
    }
    return REACH_WINDOWS;
}

size_t table_module_len(const struct table *table)
{
    const char *dot = strrchr(table->name, '.');

    return dot ? (size_t)(dot - table->name) : 0;
}

bool tables_share_module(const struct table *a, const struct table *b)
{
    const size_t len = table_module_len(a);

    return len == table_module_len(b) && !memcmp(a->name, b->name, len);
}

unsigned precision_bytes(enum precision precision)
{
    static const unsigned bytes[N_PRECISIONS] = {
        [PRECISION_FP32] = 4,
        [PRECISION_FP16] = 2,
        [PRECISION_BF16] = 2,
        [PRECISION_INT8] = 1,
    };

    return bytes[precision];
}

const char *shard_kind_name(enum shard_kind kind)
{
    return kind & SHARD_ALL_KINDS ? shard_traits[shard_kind_idx(kind)].name
                                  : "none";
}

/* Returns the mask of a list of names; bit i stands for names[i]. Returns 0 if
 * any name is unknown. */
static unsigned mask_of_names(const char *text, char separator,
                              const char *const *names, size_t n_names)
{
    unsigned mask = 0;

    for (;; text++) {
        size_t len = strcspn(text, (const char[]){separator, '\0'}), k = 0;

        while (k < n_names &&
               (strlen(names[k]) != len || memcmp(names[k], text, len)))
            k++;
        if (k == n_names)
            return 0;
        mask |= 1u << k;
        text += len;
        if (!*text)
            return mask;
    }
}

unsigned shard_kinds_from_list(const char *text, char separator)
{
    const char *names[N_SHARD_KINDS];

    for (size_t k = 0; k < N_SHARD_KINDS; k++)
        names[k] = shard_traits[k].name;
    return mask_of_names(text, separator, names, N_SHARD_KINDS);
}

unsigned tiers_from_list(const char *text, char separator)
{
    return mask_of_names(text, separator, tier_names, N_TIERS);
}

enum shard_kind shard_kind_of_cuts(bool cuts_rows, bool cuts_columns,
                                   bool is_replica)
{
    size_t k = 0;

    while (k < N_SHARD_KINDS && (shard_traits[k].cuts_rows != cuts_rows ||
                                 shard_traits[k].cuts_columns != cuts_columns ||
                                 shard_traits[k].is_replica != is_replica))
        k++;
    assert(k < N_SHARD_KINDS); /* a replica is never cut */
    return shard_traits[k].kind;
}
