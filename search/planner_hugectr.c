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
    double hotness;   /* cost of the look-ups of the whole table */
    double exchange;  /* cost of a piece beside its look-ups */
    uint32_t n_cuts;  /* pieces; 0: replicated */
    uint64_t bytes;   /* of a piece, the largest */
    uint32_t *places; /* [n_gpus]: GPUs of its pieces, ascending */
    uint32_t n_placed;
};

struct planner {
    const struct problem *problem; /* not owned */
    const struct oracle *oracle;   /* not owned; prices the plan */
    uint32_t n_gpus;
    struct cut_table *tables; /* [n_tables] */
    double *cost;             /* [n_gpus] */
    uint64_t *room_bytes;     /* [n_gpus]: beside the replicas */
    uint64_t *free_bytes;     /* [n_gpus] */
    struct ranked *order;     /* [n_tables] */
    struct shard *best;       /* [n_best], in the plan's arena */
    size_t n_best;
    double best_cost; /* INFINITY while there is none */
    uint64_t n_rounds;
};

/* How a table may be cut in n pieces: rows, unless they cannot be priced. */
static enum shard_kind kind_of_cut(const struct planner *planner, uint32_t t,
                                   uint32_t n)
{
    const struct table *table = &planner->problem->tables[t];
    const struct oracle *oracle = planner->oracle;
    unsigned kinds = table->kinds & planner->problem->kinds & oracle->kinds;
    bool rows_are_priced =
        oracle->row_cut == ROW_CUT_ANY || n == planner->n_gpus;

    if (n <= 1)
        return (enum shard_kind)(kinds & SHARD_TABLE);
    if ((kinds & SHARD_ROW) && rows_are_priced && table->num_embeddings >= n &&
        (table->num_embeddings - 1) / ((table->num_embeddings - 1) / n + 1) ==
            n - 1)
        return SHARD_ROW;
    return (kinds & SHARD_COLUMN) && table->dim % (4 * n) == 0 &&
                   table->dim / n >= problem_min_width(planner->problem)
               ? SHARD_COLUMN
               : 0;
}

/* Piece i of the table, cut in n; or where that is 0 a replica. */
static struct shard piece_of(const struct planner *planner, uint32_t t,
                             uint32_t n, uint32_t i, uint32_t gpu)
{
    return rival_piece(planner->problem, t,
                       n ? kind_of_cut(planner, t, n) : SHARD_REPLICATE, i,
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
    struct shard first = piece_of(planner, t, n, 0, 0);

    planner->tables[t].n_cuts = n;
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
    uint64_t bytes;

    cut(planner, t, 0);
    bytes = planner->tables[t].bytes;
    for (uint32_t g = 0; g < planner->n_gpus; g++) {
        if (bytes > planner->room_bytes[g])
            return -1;
        planner->room_bytes[g] -= bytes;
    }
    return 0;
}

static bool holds(const struct cut_table *table, uint32_t gpu)
{
    for (uint32_t i = 0; i < table->n_placed; i++)
        if (table->places[i] == gpu)
            return true;
    return false;
}

static bool place_piece(struct planner *planner, struct cut_table *table)
{
    uint32_t best = planner->n_gpus, at;

    for (uint32_t g = 0; g < planner->n_gpus; g++)
        if (table->bytes <= planner->free_bytes[g] &&
            (best == planner->n_gpus ||
             planner->cost[g] < planner->cost[best]) &&
            !holds(table, g))
            best = g;
    if (best == planner->n_gpus)
        return false;
    for (at = table->n_placed++; at && table->places[at - 1] > best; at--)
        table->places[at] = table->places[at - 1];
    table->places[at] = best;
    planner->free_bytes[best] -= table->bytes;
    planner->cost[best] += table->hotness / table->n_cuts + table->exchange;
    return true;
}

/* Keeps the shards of what stands now where its most loaded GPU is the least
 * loaded yet. */
static void keep_if_best(struct planner *planner)
{
    double most = 0;

    for (uint32_t g = 0; g < planner->n_gpus; g++)
        most = fmax(most, planner->cost[g]);
    if (!(most < planner->best_cost))
        return;
    planner->best_cost = most;
    planner->n_best = 0;
    for (uint32_t t = 0; t < planner->problem->n_tables; t++) {
        const struct cut_table *table = &planner->tables[t];

        for (uint32_t i = 0; i < table->n_cuts; i++)
            planner->best[planner->n_best++] =
                piece_of(planner, t, table->n_cuts, i, table->places[i]);
        for (uint32_t g = 0; !table->n_cuts && g < planner->n_gpus; g++)
            planner->best[planner->n_best++] = piece_of(planner, t, 0, 0, g);
    }
}

/* Places all, the table of the hottest pieces first, of equal ones the last in
 * the list; n_tables, or a table of which a piece has room nowhere. Of those
 * placed, *hottest gets the hottest that can be cut again, or n_tables. */
static uint32_t place_all(struct planner *planner, uint32_t *hottest)
{
    uint32_t n_tables = (uint32_t)planner->problem->n_tables;

    memcpy(planner->free_bytes, planner->room_bytes,
           planner->n_gpus * sizeof(*planner->free_bytes));
    memset(planner->cost, 0, planner->n_gpus * sizeof(*planner->cost));
    for (uint32_t t = 0; t < n_tables; t++)
        planner->order[t] = (struct ranked){
            -planner->tables[t].hotness / fmax(1, planner->tables[t].n_cuts),
            n_tables - 1 - t};
    ranked_sort(planner->order, n_tables);
    *hottest = n_tables;
    for (uint32_t i = 0; i < n_tables; i++) {
        uint32_t t = n_tables - 1 - planner->order[i].idx;
        struct cut_table *table = &planner->tables[t];

        for (table->n_placed = 0; table->n_placed < table->n_cuts;)
            if (!place_piece(planner, table))
                return t;
        if (*hottest == n_tables && table->n_cuts &&
            more_cuts(planner, t, table->n_cuts))
            *hottest = t;
    }
    return n_tables;
}

static void plan_in_rounds(struct planner *planner)
{
    uint32_t n_tables = (uint32_t)planner->problem->n_tables;

    for (int round = 0; round < MAX_ROUNDS; round++) {
        uint32_t t, stuck = place_all(planner, &t), n;

        planner->n_rounds++;
        if (stuck == n_tables)
            keep_if_best(planner);
        else
            t = stuck;
        if (t == n_tables)
            return;
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
    uint32_t n_tables = (uint32_t)planner->problem->n_tables, hottest;

    for (uint32_t t = 0; t < n_tables; t++) {
        if (!kind_of_cut(planner, t, planner->n_gpus))
            return;
        cut(planner, t, planner->n_gpus);
    }
    planner->n_rounds++;
    if (place_all(planner, &hottest) == n_tables)
        keep_if_best(planner);
}

static void planner_init(struct planner *planner, const struct problem *problem,
                         const struct oracle *oracle, struct arena *arena)
{
    const struct cluster *cluster = &problem->cluster;
    uint32_t n = cluster->n_devices;

    *planner = (struct planner){
        .problem = problem,
        .oracle = oracle,
        .n_gpus = n,
        .tables = ARENA_NEW(arena, struct cut_table, problem->n_tables),
        .cost = ARENA_NEW(arena, double, n),
        .room_bytes = ARENA_NEW(arena, uint64_t, n),
        .free_bytes = ARENA_NEW(arena, uint64_t, n),
        .order = ARENA_NEW(arena, struct ranked, problem->n_tables),
        .best_cost = INFINITY};
    for (uint32_t g = 0; g < n; g++)
        planner->room_bytes[g] = cluster_room_bytes(cluster, g);
    for (size_t t = 0; t < problem->n_tables; t++) {
        const struct table *table = &problem->tables[t];
        double width = table->dim / FULL_WIDTH;

        planner->tables[t].hotness = table->pooling_factor * width;
        planner->tables[t].exchange = PIECE_COST * width;
        planner->tables[t].places = ARENA_NEW(arena, uint32_t, n);
    }
}

/* Replicas, and one piece, or as few as may be, of each other table. */
static int start(struct planner *planner, struct err *err)
{
    for (uint32_t t = 0; t < planner->problem->n_tables; t++) {
        const char *name = planner->problem->tables[t].name;
        uint32_t n = 1;

        if (is_replicated(planner, t)) {
            if (replicate(planner, t))
                return err_set(
                    err, ERR_NO_PLAN,
                    "no plan was found: HugeCTR's planner replicates "
                    "table '%s', for which there is no room",
                    name);
            continue;
        }
        if (!kind_of_cut(planner, t, 1))
            n = more_cuts(planner, t, 1);
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

int rival_hugectr(struct plan *plan, const struct contender *self,
                  const struct contender_inputs *inputs, struct arena *arena,
                  struct arena *scratch, struct err *err)
{
    struct planner planner;

    (void)self;
    planner_init(&planner, &plan->problem, inputs->oracle, scratch);
    planner.best =
        ARENA_NEW(arena, struct shard, plan->problem.n_tables * planner.n_gpus);
    plan_evenly(&planner);
    if (start(&planner, err))
        return -1;
    plan_in_rounds(&planner);
    if (isinf(planner.best_cost))
        return err_set(err, ERR_NO_PLAN,
                       "no plan was found: none of HugeCTR's planner does");
    plan->n_shards = planner.n_best;
    plan->shards = planner.best;
    plan->n_evaluations = planner.n_rounds;
    return 0;
}
