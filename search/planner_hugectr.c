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

#include <math.h>
#include <string.h>

/* The settings of its DGX H100 runs: replicated below 8 MB of weights and
 * state, memory seven times as fast as the network, over a work ratio of 4. */
#define REPLICATED_BELOW_BYTES 8e6
#define PIECE_COST (7.0 / 4.0)
#define MAX_ROUNDS 20
#define FULL_WIDTH 128.0 /* of the sample's tables */

struct cut_table {
    double hotness;  /* cost of the look-ups of the whole table */
    double exchange; /* cost of a piece beside its look-ups */
    uint32_t n_cuts; /* pieces; 0: replicated */
    uint64_t bytes;  /* of a piece, the largest */
    bool *is_on;     /* [n_gpus]: has a piece */
};

struct gpu {
    double cost;
    uint64_t free_bytes;
};

struct planner {
    const struct problem *problem; /* not owned */
    const struct oracle *oracle;   /* not owned; prices the plan */
    struct plan *plan;             /* not owned; gets the best one */
    uint32_t n_tables, n_gpus;
    struct cut_table *tables; /* [n_tables] */
    struct gpu *gpus;         /* [n_gpus] */
    uint64_t *room_bytes;     /* [n_gpus] */
    uint64_t replica_bytes;   /* on each */
    struct ranked *order;     /* [n_tables] */
    double best_cost;         /* INFINITY while there is none */
};

/* How a table may be cut in n pieces: rows, unless they cannot be priced. No
 * pieces are replicas. */
static enum shard_kind kind_of_cut(const struct planner *planner, uint32_t t,
                                   uint32_t n)
{
    const struct table *table = &planner->problem->tables[t];
    const struct oracle *oracle = planner->oracle;
    unsigned kinds = table->kinds & planner->problem->kinds & oracle->kinds;
    const uint64_t last_row = table->num_embeddings - 1;

    if (!n)
        return SHARD_REPLICATE;
    if (n == 1)
        return (enum shard_kind)(kinds & SHARD_TABLE);
    if ((kinds & SHARD_ROW) && table->num_embeddings >= n &&
        (oracle->row_cut == ROW_CUT_ANY || n == planner->n_gpus) &&
        (n - 1) * (last_row / n + 1) <= last_row) /* as many blocks */
        return SHARD_ROW;
    return (kinds & SHARD_COLUMN) && table->dim % 4 == 0 &&
                   table->dim / 4 % n == 0 &&
                   table->dim / n >= problem_min_width(planner->problem)
               ? SHARD_COLUMN
               : 0;
}

/* Piece i of the table as it is cut now. */
static struct shard piece_of(const struct planner *planner, uint32_t t,
                             uint32_t i, uint32_t gpu)
{
    uint32_t n = planner->tables[t].n_cuts;

    return rival_piece(planner->problem, t, kind_of_cut(planner, t, n), i,
                       n ? n : 1, gpu);
}

/* The next higher number of pieces, twice as many if possible; 0: none. */
static uint32_t more_cuts(const struct planner *planner, uint32_t t, uint32_t n)
{
    for (uint32_t more = 2 * n; more > n && more <= planner->n_gpus; more *= 2)
        if (kind_of_cut(planner, t, more))
            return more;
    return n < planner->n_gpus && kind_of_cut(planner, t, planner->n_gpus)
               ? planner->n_gpus
               : 0;
}

static void cut(struct planner *planner, uint32_t t, uint32_t n)
{
    struct shard first;

    planner->tables[t].n_cuts = n;
    first = piece_of(planner, t, 0, 0);
    planner->tables[t].bytes = shard_memory(planner->problem, &first).total;
}

static bool is_replicated(const struct planner *planner, uint32_t t)
{
    const struct table *table = &planner->problem->tables[t];
    double bytes = (double)table->num_embeddings * table->dim *
                   precision_bytes(table->precision) *
                   (table->optimizer == OPTIMIZER_SGD ? 1 : 2);

    return bytes < REPLICATED_BELOW_BYTES && planner->n_gpus > 1 &&
           (table->kinds & planner->problem->kinds & planner->oracle->kinds &
            SHARD_REPLICATE);
}

/* Takes the replica's memory from all GPUs; -1 where one has no room. */
static int replicate(struct planner *planner, uint32_t t)
{
    cut(planner, t, 0);
    for (uint32_t g = 0; g < planner->n_gpus; g++)
        if (planner->tables[t].bytes >
            planner->room_bytes[g] - planner->replica_bytes)
            return -1;
    planner->replica_bytes += planner->tables[t].bytes;
    return 0;
}

/* All pieces of a table, each on another GPU, or its replicas, for which there
 * is room; false where a piece has room nowhere. */
static bool place_table(struct planner *planner, struct cut_table *table)
{
    memset(table->is_on, !table->n_cuts, planner->n_gpus);
    for (uint32_t i = 0; i < table->n_cuts; i++) {
        struct gpu *best = NULL;

        for (uint32_t g = 0; g < planner->n_gpus; g++) {
            struct gpu *gpu = &planner->gpus[g];

            if (table->bytes <= gpu->free_bytes && !table->is_on[g] &&
                (!best || gpu->cost < best->cost))
                best = gpu;
        }
        if (!best)
            return false;
        table->is_on[best - planner->gpus] = true;
        best->free_bytes -= table->bytes;
        best->cost += table->hotness / table->n_cuts + table->exchange;
    }
    return true;
}

/* What stands now is the plan where its most loaded GPU is the least loaded
 * yet. */
static void keep_if_best(struct planner *planner)
{
    struct plan *plan = planner->plan;
    double most = 0;

    for (uint32_t g = 0; g < planner->n_gpus; g++)
        most = fmax(most, planner->gpus[g].cost);
    if (!(most < planner->best_cost))
        return;
    planner->best_cost = most;
    plan->n_shards = 0;
    for (uint32_t t = 0; t < planner->n_tables; t++)
        for (uint32_t g = 0, i = 0; g < planner->n_gpus; g++)
            if (planner->tables[t].is_on[g])
                plan->shards[plan->n_shards++] = piece_of(planner, t, i++, g);
}

/* Places all, the table of the hottest pieces first, of equal ones the last in
 * the list. Returns which table is to be cut next: one of which a piece has
 * room nowhere, or else the hottest that can be; n_tables: none. */
static uint32_t place_all(struct planner *planner)
{
    uint32_t n_tables = planner->n_tables, hottest = n_tables;

    planner->plan->n_evaluations++;
    for (uint32_t g = 0; g < planner->n_gpus; g++)
        planner->gpus[g] =
            (struct gpu){0, planner->room_bytes[g] - planner->replica_bytes};
    for (uint32_t t = 0; t < n_tables; t++)
        planner->order[t] = (struct ranked){
            -planner->tables[t].hotness / fmax(1, planner->tables[t].n_cuts),
            n_tables - 1 - t};
    ranked_sort(planner->order, n_tables);
    for (uint32_t i = 0; i < n_tables; i++) {
        uint32_t t = n_tables - 1 - planner->order[i].idx;
        struct cut_table *table = &planner->tables[t];

        if (!place_table(planner, table))
            return t;
        if (hottest == n_tables && table->n_cuts &&
            more_cuts(planner, t, table->n_cuts))
            hottest = t;
    }
    keep_if_best(planner);
    return hottest;
}

static void plan_in_rounds(struct planner *planner)
{
    for (int round = 0; round < MAX_ROUNDS; round++) {
        uint32_t t = place_all(planner), n = 0;

        if (t < planner->n_tables)
            n = more_cuts(planner, t, planner->tables[t].n_cuts);
        if (!n)
            return;
        cut(planner, t, n);
    }
}

/* Each table over all GPUs: the plan to be beaten, and the one that takes the
 * least memory. */
static void plan_evenly(struct planner *planner)
{
    for (uint32_t t = 0; t < planner->n_tables; t++) {
        if (!kind_of_cut(planner, t, planner->n_gpus))
            return;
        cut(planner, t, planner->n_gpus);
    }
    (void)place_all(planner);
}

/* Replicas, and one piece, or as few as may be, of each other table. */
static int start(struct planner *planner, struct err *err)
{
    for (uint32_t t = 0; t < planner->n_tables; t++) {
        const char *name = planner->problem->tables[t].name;
        uint32_t n = kind_of_cut(planner, t, 1) ? 1 : more_cuts(planner, t, 1);

        if (is_replicated(planner, t)) {
            if (replicate(planner, t))
                return err_set(
                    err, ERR_NO_PLAN,
                    "no plan was found: HugeCTR's planner replicates "
                    "table '%s', for which there is no room",
                    name);
            continue;
        }
        if (!n)
            return err_set(
                err, ERR_NO_PLAN,
                "no plan was found: HugeCTR's planner has no way to cut "
                "table '%s'",
                name);
        cut(planner, t, n);
    }
    return 0;
}

int rival_hugectr(struct plan *plan, const struct contender_inputs *inputs,
                  struct arena *arena, struct arena *scratch, struct err *err)
{
    const struct problem *problem = &plan->problem;
    uint32_t n_tables = (uint32_t)problem->n_tables;
    uint32_t n_gpus = problem->cluster.n_devices;
    struct planner planner = {
        .problem = problem,
        .oracle = inputs->oracle,
        .plan = plan,
        .n_tables = n_tables,
        .n_gpus = n_gpus,
        .tables = ARENA_NEW(scratch, struct cut_table, n_tables),
        .gpus = ARENA_NEW(scratch, struct gpu, n_gpus),
        .room_bytes = ARENA_NEW(scratch, uint64_t, n_gpus),
        .order = ARENA_NEW(scratch, struct ranked, n_tables),
        .best_cost = INFINITY};

    for (uint32_t t = 0; t < n_tables; t++) {
        const struct table *table = &problem->tables[t];
        double width = table->dim / FULL_WIDTH;

        planner.tables[t] =
            (struct cut_table){.hotness = table->pooling_factor * width,
                               .exchange = PIECE_COST * width,
                               .is_on = ARENA_NEW(scratch, bool, n_gpus)};
    }
    problem_room_bytes(problem, planner.room_bytes);
    plan->shards = ARENA_NEW(arena, struct shard, (size_t)n_tables * n_gpus);
    plan_evenly(&planner);
    if (start(&planner, err))
        return -1;
    plan_in_rounds(&planner);
    return isfinite(planner.best_cost)
               ? 0
               : err_set(err, ERR_NO_PLAN,
                         "no plan was found: none of HugeCTR's planner does");
}
