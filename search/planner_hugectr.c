/* SPDX-License-Identifier: MIT */
/*
 * The planner of HugeCTR's DLRM sample. It replicates tables below a certain
 * size. It places the other tables in order of hotness, the hottest pieces
 * first. Each piece goes to the GPU with the least cost, among the GPUs that
 * have room and hold no piece of the same table. Then the hottest table that
 * can be cut is cut into twice as many pieces, and all tables are placed again.
 * This is repeated for twenty rounds. If a piece of a table finds no room, that
 * table is cut next.
 *
 * The cost of a GPU is its lookups per sample plus a fixed amount for the
 * exchange of each piece. In the sample all tables have the same width, so both
 * costs are for that width. In this file both costs are scaled by the width of
 * the table.
 */
#include "search/planner_hugectr.h"

#include "base/ranked.h"
#include "core/memory.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Settings of the DGX H100 runs of the sample. Tables are replicated below 8 MB
 * of weights and optimizer state. The exchange of a piece costs 7 / 4: memory
 * is seven times as fast as the network, and the work ratio is 4. */
#define REPLICATED_BELOW_BYTES 8e6
#define PIECE_COST (7.0 / 4.0)
#define MAX_ROUNDS 20
#define FULL_WIDTH 128.0 /* width of the sample's tables */
/* Largest product of tables and GPUs. With a larger product the planner takes
 * too long. */
#define MAX_PLACES 250000u

struct hugectr_planner {
    struct placing *placing; /* not owned */
    struct cut_table {
        double hotness;  /* cost of the lookups of the whole table */
        double exchange; /* cost of the exchange of one piece */
        uint32_t n_cuts; /* number of pieces; 0 if the table is replicated */
        uint64_t bytes;  /* of the largest piece */
        /* [n_devices]: whether the device has a piece of the table */
        bool *is_on;
    } * tables; /* [n_tables] */
};

/* Returns the kind of shards for n pieces of a table, with n = 0 for replicas.
 * The kind is rows if the oracle prices rows, and columns otherwise. Returns 0
 * if the table cannot be cut into n pieces. */
static enum shard_kind kind_of_cut(const struct placing *placing, uint32_t t,
                                   uint32_t n)
{
    const struct table *table = &placing->problem->tables[t];
    unsigned kinds = placing_kinds(placing, t);
    const uint64_t last_row = table->num_embeddings - 1;

    if (!n)
        return SHARD_REPLICATE;
    if (n == 1)
        return (enum shard_kind)(kinds & SHARD_TABLE);
    assert(n > 1);
    if ((kinds & SHARD_ROW) && table->rows_over != ROWS_OVER_HOST &&
        n <= last_row + 1 && (!table->rows_over || n == placing->n_devices) &&
        (placing->inputs->oracle->row_cut == ROW_CUT_ANY ||
         n == placing->n_devices) &&
        (n - 1) * (last_row / n + 1) <= last_row) /* n blocks all have rows */
        return SHARD_ROW;
    return (kinds & SHARD_COLUMN) && table->dim % (4 * n) == 0 &&
                   table->dim / n >= table_min_width(placing->problem, table)
               ? SHARD_COLUMN
               : 0;
}

/* Returns piece i of the table in its present cut. */
static struct shard piece_of(const struct hugectr_planner *planner, uint32_t t,
                             uint32_t i, uint32_t gpu)
{
    uint32_t n = planner->tables[t].n_cuts;

    return rival_piece(planner->placing->problem, t,
                       kind_of_cut(planner->placing, t, n), i, n ? n : 1, gpu);
}

/* Returns the next higher number of pieces of a table, which is twice as many
 * if possible. Returns 0 if the table cannot be cut into more pieces. */
static uint32_t more_cuts(const struct placing *placing, uint32_t t, uint32_t n)
{
    const uint32_t most = placing->n_devices;

    for (uint32_t more = 2 * n; more > n && more <= most; more *= 2)
        if (kind_of_cut(placing, t, more))
            return more;
    return n < most && kind_of_cut(placing, t, most) ? most : 0;
}

static void cut(struct hugectr_planner *planner, uint32_t t, uint32_t n)
{
    struct shard first;

    planner->tables[t].n_cuts = n;
    first = piece_of(planner, t, 0, 0);
    planner->tables[t].bytes =
        shard_memory(planner->placing->problem, &first).total;
}

/* Places all pieces of a table on different GPUs with room. If the table is
 * replicated, places a replica on every GPU. Returns false if a piece finds no
 * room. */
static bool place_table(const struct placing *placing, struct cut_table *table)
{
    memset(table->is_on, !table->n_cuts, placing->n_devices);
    for (uint32_t i = 0; i < table->n_cuts; i++) {
        struct filling *best = NULL;

        for (uint32_t g = 0; g < placing->n_devices; g++) {
            struct filling *gpu = &placing->devices[g];

            if (table->bytes <= gpu->free_bytes && !table->is_on[g] &&
                (!best || gpu->load < best->load))
                best = gpu;
        }
        if (!best)
            return false;
        table->is_on[best - placing->devices] = true;
        best->free_bytes -= table->bytes;
        best->load += table->hotness / table->n_cuts + table->exchange;
    }
    return true;
}

/* Places all tables in order of the hotness of their pieces, the hottest first.
 * If pieces are equally hot, the table that is last in the list comes first.
 * Returns the table to cut next: a table with a piece without room if there is
 * one, or else the hottest table that can be cut. Returns n_tables if no table
 * can be cut. */
static uint32_t place_all(struct hugectr_planner *planner)
{
    struct placing *placing = planner->placing;
    struct plan *plan = placing->plan;
    uint32_t n_tables = placing->n_tables, hottest = n_tables;

    plan->n_evaluations++;
    placing_begin(placing);
    for (uint32_t t = 0; t < n_tables; t++)
        placing->order[t] = (struct ranked){
            -planner->tables[t].hotness / fmax(1, planner->tables[t].n_cuts),
            n_tables - 1 - t};
    ranked_sort(placing->order, n_tables);
    for (uint32_t i = 0; i < n_tables; i++) {
        uint32_t t = n_tables - 1 - placing->order[i].idx;

        if (!place_table(placing, &planner->tables[t]))
            return t;
        if (hottest == n_tables && planner->tables[t].n_cuts &&
            more_cuts(placing, t, planner->tables[t].n_cuts))
            hottest = t;
    }
    if (!placing_is_best(placing))
        return hottest;
    for (uint32_t t = 0; t < n_tables; t++)
        for (uint32_t g = 0, i = 0; g < placing->n_devices; g++)
            if (planner->tables[t].is_on[g])
                plan->shards[plan->n_shards++] = piece_of(planner, t, i++, g);
    return hottest;
}

/* Places each table on all GPUs. The resulting plan takes the least memory, and
 * the rounds of the planner improve on it. */
static void plan_evenly(struct hugectr_planner *planner)
{
    const struct placing *placing = planner->placing;

    for (uint32_t t = 0; t < placing->n_tables; t++) {
        if (!kind_of_cut(placing, t, placing->n_devices))
            return;
        cut(planner, t, placing->n_devices);
    }
    (void)place_all(planner);
}

/* Chooses the first cuts. Replicas are fixed from then on and take memory from
 * all GPUs. Every other table gets one piece, or as few pieces as possible. */
static int start(struct hugectr_planner *planner, struct err *err)
{
    const struct placing *placing = planner->placing;
    uint64_t *room_bytes = placing->room_bytes;

    for (uint32_t t = 0; t < placing->n_tables; t++) {
        const struct table *table = &placing->problem->tables[t];
        double bytes = (double)table->num_embeddings * table->dim *
                       precision_bytes(table->precision) *
                       (table->optimizer == OPTIMIZER_SGD ? 1 : 2);
        bool is_replicated = bytes < REPLICATED_BELOW_BYTES &&
                             placing->n_devices > 1 &&
                             (placing_kinds(placing, t) & SHARD_REPLICATE);
        uint32_t n = kind_of_cut(placing, t, 1) ? 1 : more_cuts(placing, t, 1);

        if (!n && !is_replicated)
            return err_set(
                err, ERR_NO_PLAN,
                "no plan was found: HugeCTR's planner has no way to cut "
                "table '%s'",
                table->name);
        cut(planner, t, is_replicated ? 0 : n);
        for (uint32_t g = 0; is_replicated && g < placing->n_devices; g++) {
            if (planner->tables[t].bytes > room_bytes[g])
                return err_set(
                    err, ERR_NO_PLAN,
                    "no plan was found: HugeCTR's planner replicates "
                    "table '%s', for which there is no room",
                    table->name);
            room_bytes[g] -= planner->tables[t].bytes;
        }
    }
    return 0;
}

int rival_hugectr(struct placing *placing, struct err *err)
{
    uint32_t n_tables = placing->n_tables, n_gpus = placing->n_devices;
    struct hugectr_planner planner = {
        placing, ARENA_NEW(&placing->scratch, struct cut_table, n_tables)};

    if (n_tables > MAX_PLACES / n_gpus)
        return err_set(err, ERR_NO_PLAN,
                       "no plan was found: HugeCTR's planner is not run if "
                       "tables times GPUs exceed %u",
                       MAX_PLACES);
    for (uint32_t t = 0; t < n_tables; t++) {
        const struct table *table = &placing->problem->tables[t];
        double width = table->dim / FULL_WIDTH;

        planner.tables[t] = (struct cut_table){
            .hotness = table->pooling_factor * width,
            .exchange = PIECE_COST * width,
            .is_on = ARENA_NEW(&placing->scratch, bool, n_gpus)};
    }
    placing->plan->shards =
        ARENA_NEW(placing->arena, struct shard, (size_t)n_tables * n_gpus);
    plan_evenly(&planner);
    if (start(&planner, err))
        return -1;
    for (int round = 0; round < MAX_ROUNDS; round++) {
        uint32_t t = place_all(&planner), n = 0;

        if (t < n_tables)
            n = more_cuts(placing, t, planner.tables[t].n_cuts);
        if (!n)
            break;
        cut(&planner, t, n);
    }
    return isfinite(placing->least_load)
               ? 0
               : err_set(
                     err, ERR_NO_PLAN,
                     "no plan was found: HugeCTR's planner has none that fits");
}
