/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_DRAWN_PLANS_H
#define NEUROSHARD_TESTS_DRAWN_PLANS_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "core/plan.h"

/* Draws random TorchRec plans and prints them in each of TorchRec's formats.
 * All drawn data live in `arena`. Include in one file only. */

static struct arena arena;
static struct rng rng;

#define MAX_TABLES 24
#define MAX_RANKS 16

/* A random job. Its plan is printed, and its members are the expected result of
 * reading it. */
struct drawn {
    uint32_t n_ranks, n_local, n_tables;
    uint64_t batch;
    struct drawn_table {
        char name[16];
        const char *kind, *kind_name;
        uint64_t n_rows;
        uint32_t dim, n_pieces, ranks[MAX_RANKS];
        double pooling, n_poolings;
        uint32_t n_features;
    } tables[MAX_TABLES];
};

/* --- jobs --- */

static const char *const kind_names[][2] = {{"TW", "table_wise"},
                                            {"CW", "column_wise"},
                                            {"RW", "row_wise"},
                                            {"DP", "data_parallel"},
                                            {"TWRW", "table_row_wise"}};

static void draw_table(struct drawn_table *table, const struct drawn *job,
                       uint32_t i)
{
    const uint32_t k = rng_draw(&rng, 5), w = job->n_ranks;
    const uint32_t host = rng_draw(&rng, w / job->n_local) * job->n_local;

    *table = (struct drawn_table){.kind = kind_names[k][0],
                                  .kind_name = kind_names[k][1],
                                  .n_rows = 1000 + rng_draw(&rng, 1u << 20),
                                  .dim = 16u << rng_draw(&rng, 4),
                                  .pooling = (1 + rng_draw(&rng, 400)) / 4.0,
                                  .n_features = 1 + rng_draw(&rng, 3)};
    snprintf(table->name, sizeof(table->name), "t_%u", i);
    table->n_poolings = table->n_features * (1 + rng_draw(&rng, 2));
    table->n_pieces = k == 0   ? 1
                      : k == 1 ? 1 + rng_draw(&rng, w < 4 ? w : 4)
                      : k == 4 ? job->n_local
                               : w;
    if (k == 1 && table->n_pieces == 3)
        table->n_pieces = 2;
    for (uint32_t p = 0; p < table->n_pieces; p++)
        table->ranks[p] = k == 0   ? rng_draw(&rng, w)
                          : k == 1 ? (host + p) % w
                          : k == 4 ? host + p
                                   : p;
}

static void draw_job(struct drawn *job)
{
    job->n_local = 1u << rng_draw(&rng, 3);
    job->n_ranks = job->n_local * (1 + rng_draw(&rng, 4));
    job->n_tables = 2 + rng_draw(&rng, MAX_TABLES - 1);
    job->batch = 1 + rng_draw(&rng, 4096);
    for (uint32_t i = 0; i < job->n_tables; i++)
        draw_table(&job->tables[i], job, i);
}

/* Returns the rows and columns of piece `p` of the table. */
static struct shard piece_of(const struct drawn_table *table, uint32_t p)
{
    const uint64_t step = (table->n_rows - 1) / table->n_pieces + 1;
    struct shard shard = {.row_end = table->n_rows, .col_end = table->dim};

    if (!strcmp(table->kind, "CW")) {
        shard.col_begin = p * (table->dim / table->n_pieces);
        shard.col_end = (p + 1) * (table->dim / table->n_pieces);
    } else if (strstr(table->kind, "RW")) {
        shard.row_begin = min_u64(p * step, table->n_rows);
        shard.row_end = min_u64((p + 1) * step, table->n_rows);
    }
    return shard;
}

static void add_piece(struct buf *out, const char *name, struct shard shard,
                      uint32_t rank)
{
    if (shard.row_begin < shard.row_end)
        buf_printf(out, "%s %llu:%llu x %u:%u @%u\n", name,
                   (unsigned long long)shard.row_begin,
                   (unsigned long long)shard.row_end, shard.col_begin,
                   shard.col_end, rank);
}

static void add_table(struct buf *out, const char *name, uint64_t n_rows,
                      uint32_t dim, double look_ups, double n_outputs)
{
    buf_printf(out, "%s %llu x %u, %.4g, %.4g\n", name,
               (unsigned long long)n_rows, dim, look_ups, n_outputs);
}

static const char *keep(struct buf *out)
{
    const char *text;

    buf_add(out, "", 0);
    text = arena_strdup(&arena, out->data);
    buf_release(out);
    return text;
}

/* Returns the expected result of reading the job's plan. has_list: the reader
 * also gets the table list. */
static const char *truth_of(const struct drawn *job, bool has_list)
{
    struct buf out = {0};

    buf_printf(&out, "%u ranks\n", job->n_ranks);
    if (!has_list)
        buf_printf(&out, "batch %llu\n",
                   (unsigned long long)job->batch * job->n_ranks);
    for (uint32_t t = 0; t < job->n_tables; t++) {
        const struct drawn_table *table = &job->tables[t];

        if (!has_list)
            add_table(&out, table->name, table->n_rows, table->dim,
                      table->pooling * table->n_poolings / table->n_features,
                      table->n_poolings);
        for (uint32_t p = 0; p < table->n_pieces; p++)
            add_piece(&out, table->name, piece_of(table, p), table->ranks[p]);
    }
    return keep(&out);
}

static const char *ranks_text(const struct drawn_table *table, bool is_short)
{
    const uint32_t n = table->n_pieces;
    struct buf out = {0};

    if (is_short && n > 1 && table->ranks[n - 1] == table->ranks[0] + n - 1)
        buf_printf(&out, "%u-%u", table->ranks[0], table->ranks[n - 1]);
    if (!out.len)
        for (uint32_t p = 0; p < n; p++)
            buf_printf(&out, "%s%u", p ? (is_short ? "," : ", ") : "",
                       table->ranks[p]);
    return keep(&out);
}

static void add_ranks(struct buf *out, const struct drawn *job, double *sum)
{
    for (uint32_t r = 0; r < job->n_ranks; r++) {
        const double ms = rng_draw(&rng, 100000) / 1000.0;

        *sum += ms;
        buf_printf(out,
                   "#   %4u   %.3f (%u%%)   0.0 (0%%)   %.3f (1,2,3,4,0)"
                   "   12.5   80.0   ",
                   r, ms / 3, r, ms);
        for (unsigned k = 0; k < 5; k++) {
            unsigned n = 0;

            for (uint32_t t = 0; t < job->n_tables; t++)
                for (uint32_t p = 0; p < job->tables[t].n_pieces; p++)
                    n += job->tables[t].ranks[p] == r &&
                         job->tables[t].kind == kind_names[k][0];
            if (n)
                buf_printf(out, " %s: %u", kind_names[k][0], n);
        }
        buf_printf(out, "   #\n");
    }
}

static void add_rows(struct buf *out, const struct drawn *job, bool is_old)
{
    for (uint32_t t = 0; t < job->n_tables; t++) {
        const struct drawn_table *table = &job->tables[t];

        buf_printf(out,
                   "#   m.ebc.%s   %s   %s   1.5 (1,1,1,1,0)   %.3f   %.1f",
                   table->name, table->kind,
                   strcmp(table->kind, "DP") ? "fused" : "dense",
                   table->pooling, table->n_poolings);
        if (!is_old)
            buf_printf(out, "   %.3f",
                       table->pooling * table->n_poolings / table->n_features);
        buf_printf(out, "   pooled   %u   %u", table->n_features, table->dim);
        if (!is_old && !strcmp(table->kind, "CW"))
            buf_printf(out, " (%u)", table->dim / table->n_pieces);
        buf_printf(out, "   %llu   %s   #\n", (unsigned long long)table->n_rows,
                   ranks_text(table, true));
    }
}

static const char *report_of(const struct drawn *job)
{
    const bool is_old = rng_draw(&rng, 2);
    double sum = 0;
    struct buf out = {0};

    buf_printf(&out,
               "################################################\n"
               "#           --- Planner Statistics ---         #\n"
               "#   Rank   HBM (GB)   DDR (GB)   Perf (ms)   Input (MB)   "
               "Output (MB)   Shards   #\n"
               "#   ----   ----   ----   ----   ----   ----   ----   #\n");
    add_ranks(&out, job, &sum);
    buf_printf(
        &out,
        "#   #\n# Perf: Total perf   #\n#   #\n# Parameter Info:   #\n"
        "#   FQN   Sharding   Compute Kernel   Perf (ms)   %s   Output   "
        "Features   %s   Hash Size   Ranks   #\n"
        "#   ---   ---   ---   ---   ---   ---   #\n",
        is_old ? "Pooling Factor   Num Poolings"
               : "Sum Pooling Factor   Sum Num Poolings   Num Indices",
        is_old ? "Emb Dim" : "Emb Dim (CW Dim)");
    add_rows(&out, job, is_old);
    buf_printf(&out,
               "#   #\n# Batch Size: %llu   #\n#   #\n"
               "# Compute Kernels Count:   #\n#   fused: %u   #\n#   #\n"
               "# Maximum of Prefetch Compute: 0.0 ms on ranks 0-%u   #\n"
               "# Mean Total Perf: %.3f ms   #\n#   #\n"
               "################################################\n",
               (unsigned long long)job->batch, job->n_tables, job->n_ranks - 1,
               sum / job->n_ranks);
    return keep(&out);
}

static const char *printed_of(const struct drawn *job)
{
    struct buf out = {0};

    buf_printf(&out, "module: m.ebc\n\n param | sharding type | compute kernel "
                     "| ranks\n------ | ---- | ---- | ----\n");
    for (uint32_t t = 0; t < job->n_tables; t++)
        buf_printf(&out, " %-6s | %s | %s | [%s]\n", job->tables[t].name,
                   job->tables[t].kind_name,
                   strcmp(job->tables[t].kind, "DP") ? "fused" : "dense",
                   ranks_text(&job->tables[t], false));
    buf_printf(&out, "\n param | shard offsets | shard sizes | placement\n"
                     "------ | ---- | ---- | ----\n");
    for (uint32_t t = 0; t < job->n_tables; t++)
        for (uint32_t p = 0;
             strcmp(job->tables[t].kind, "DP") && p < job->tables[t].n_pieces;
             p++) {
            const struct shard shard = piece_of(&job->tables[t], p);

            buf_printf(
                &out, " %-6s | [%llu, %u] | [%llu, %u] | rank:%u/cuda:0\n",
                job->tables[t].name, (unsigned long long)shard.row_begin,
                shard.col_begin,
                (unsigned long long)(shard.row_end - shard.row_begin),
                shard.col_end - shard.col_begin, job->tables[t].ranks[p]);
        }
    return keep(&out);
}

/* Writes the shards of a table as Python's repr, or else as JSON with the
 * members that `fields` names. */
static void add_shards(struct buf *out, const struct drawn_table *table,
                       bool is_repr)
{
    for (uint32_t p = 0; p < table->n_pieces; p++) {
        const struct shard shard = piece_of(table, p);

        buf_printf(out,
                   is_repr ? "%sShardMetadata(shard_offsets=[%llu, %u], "
                             "shard_sizes=[%llu, %u], placement=rank:%u/cuda:0)"
                           : "%s{\"shard_offsets\": [%llu, %u], "
                             "\"shard_sizes\": [%llu, %u], \"placement\": "
                             "\"rank:%u/cuda:0\"}",
                   p ? ", " : "", (unsigned long long)shard.row_begin,
                   shard.col_begin,
                   (unsigned long long)(shard.row_end - shard.row_begin),
                   shard.col_end - shard.col_begin, table->ranks[p]);
    }
}

static const char *repr_of(const struct drawn *job)
{
    struct buf out = {0};

    buf_printf(&out, "{'m.ebc': {");
    for (uint32_t t = 0; t < job->n_tables; t++) {
        const struct drawn_table *table = &job->tables[t];
        const bool is_dp = !strcmp(table->kind, "DP");

        buf_printf(&out,
                   "%s'%s': ParameterSharding(sharding_type='%s', "
                   "compute_kernel='%s', ranks=[%s], sharding_spec=",
                   t ? ", " : "", table->name, table->kind_name,
                   is_dp ? "dense" : "fused", ranks_text(table, false));
        if (is_dp)
            buf_printf(&out, "None");
        else
            buf_printf(&out, "EnumerableShardingSpec(shards=[");
        if (!is_dp)
            add_shards(&out, table, true);
        buf_printf(&out, "%s, cache_params=None)", is_dp ? "" : "])");
    }
    buf_printf(&out, "}}\n");
    return keep(&out);
}

static const char *json_of(const struct drawn *job)
{
    struct buf out = {0};

    buf_printf(&out,
               "{\"world_size\": %u, \"local_world_size\": %u, "
               "\"plan\": {\"m.ebc\": {\n",
               job->n_ranks, job->n_local);
    for (uint32_t t = 0; t < job->n_tables; t++) {
        const struct drawn_table *table = &job->tables[t];
        const bool is_dp = !strcmp(table->kind, "DP");

        buf_printf(&out,
                   "\"%s\": {\"sharding_type\": \"%s\", \"compute_kernel\": "
                   "\"%s\", \"ranks\": [%s]%s",
                   table->name, table->kind_name, is_dp ? "dense" : "fused",
                   ranks_text(table, false), is_dp ? "" : ", \"shards\": [");
        if (!is_dp)
            add_shards(&out, table, false);
        buf_printf(&out, "%s}%s\n", is_dp ? "" : "]",
                   t + 1 < job->n_tables ? "," : "");
    }
    buf_printf(&out, "}}}\n");
    return keep(&out);
}

#endif
