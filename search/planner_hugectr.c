/* SPDX-License-Identifier: MIT */
/*
 * The planner of HugeCTR's DLRM sample. Tables below a size are replicated. The
 * others, hottest piece first, go to the GPU with the least cost that has room
 * and no piece of that table; then the hottest table that can be is cut in
 * twice as many pieces, and so on for twenty rounds. A piece that has room
 * nowhere is cut the same way. The cost of a GPU is its look-ups a sample and a
 * fixed amount for each piece's exchange; with one width for all tables as
 * there, both are for that width, so here both are weighed by the width.
 */
#include "search/search.h"

#include "base/ranked.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* The settings of its DGX H100 runs: replicated below 8 MB of weights and
 * state, memory seven times as fast as the network, over a work ratio of 4. */
#define REPLICATED_BELOW_BYTES 8e6
#define PIECE_COST (7.0 / 4.0)
#define MAX_ROUNDS 20
#define FULL_WIDTH 128.0 /* of the sample's tables */
/* Of more tables times GPUs nobody waits for it. */
#define MAX_PLACES 250000u

struct planner {
    struct placing *placing; /* not owned */
    struct cut_table {
        double hotness;  /* cost of the look-ups of the whole table */
        double exchange; /* cost of a piece beside its look-ups */
        uint32_t n_cuts; /* pieces; 0: replicated */
        uint64_t bytes;  /* of a piece, the largest */
        bool *is_on;     /* [n_devices]: has a piece */
    } * tables;          /* [n_tables] */
};

/* How a table may be cut in n pieces: rows, unless they cannot be priced. No
 * pieces are replicas. */
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
        (n - 1) * (last_row / n + 1) <= last_row) /* as many blocks */
        return SHARD_ROW;
    return (kinds & SHARD_COLUMN) && table->dim % (4 * n) == 0 &&
                   table->dim / n >= table_min_width(placing->problem, table)
               ? SHARD_COLUMN
               : 0;
}

/* Piece i of the table as it is cut now. */
static struct shard piece_of(const struct planner *planner, uint32_t t,
                             uint32_t i, uint32_t gpu)
{
    uint32_t n = planner->tables[t].n_cuts;

    return rival_piece(planner->placing->problem, t,
                       kind_of_cut(planner->placing, t, n), i, n ? n : 1, gpu);
}

/* The next higher number of pieces, twice as many if possible; 0: none. */
static uint32_t more_cuts(const struct placing *placing, uint32_t t, uint32_t n)
{
    const uint32_t most = placing->n_devices;

    for (uint32_t more = 2 * n; more > n && more <= most; more *= 2)
        if (kind_of_cut(placing, t, more))
            return more;
    return n < most && kind_of_cut(placing, t, most) ? most : 0;
}

static void cut(struct planner *planner, uint32_t t, uint32_t n)
{
    struct shard first;

    planner->tables[t].n_cuts = n;
    first = piece_of(planner, t, 0, 0);
    planner->tables[t].bytes =
        shard_memory(planner->placing->problem, &first).total;
}

/* All pieces of a table, each on another GPU, or its replicas, for which there
 * is room; false where a piece has room nowhere. */
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

/* Places all, the table of the hottest pieces first, of equal ones the last in
 * the list. Returns which table is to be cut next: one of which a piece has
 * room nowhere, or else the hottest that can be; n_tables: none. */
static uint32_t place_all(struct planner *planner)
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

/* Each table over all GPUs: the plan to be beaten, and the one that takes the
 * least memory. */
static void plan_evenly(struct planner *planner)
{
    const struct placing *placing = planner->placing;

    for (uint32_t t = 0; t < placing->n_tables; t++) {
        if (!kind_of_cut(placing, t, placing->n_devices))
            return;
        cut(planner, t, placing->n_devices);
    }
    (void)place_all(planner);
}

/* Replicas, whose memory is taken from all GPUs for good, and one piece, or as
 * few as may be, of each other table. */
static int start(struct planner *planner, struct err *err)
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
    struct planner planner = {
        placing, ARENA_NEW(&placing->scratch, struct cut_table, n_tables)};

    if (n_tables > MAX_PLACES / n_gpus)
        return err_set(err, ERR_NO_PLAN,
                       "no plan was found: HugeCTR's planner is not asked "
                       "where tables times GPUs are more than %u",
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
               : err_set(err, ERR_NO_PLAN,
                         "no plan was found: none of HugeCTR's planner does");
}
