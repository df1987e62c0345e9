/* SPDX-License-Identifier: MIT */
/*
 * TorchRec's planner: every table has one option for each sharding type. A
 * proposal takes an option of each table, the partitioner places it, and the
 * one whose slowest rank is the fastest wins. The greedy proposer starts at
 * each table's best option, by the largest shard or by the sum of the shards,
 * and ever again moves the table with the largest shard in memory on to its
 * next best. The uniform one takes one type for all.
 *
 * The partitioner is greedy: first what goes on all ranks (replicas, rows over
 * all), then the tables by their storage, largest first: each shard to the
 * least loaded rank that has room, or the whole table to the least loaded host
 * that has.
 */
#include "search/search.h"

#include "base/clock.h"
#include "base/ranked.h"
#include "search/choices.h"

#include <math.h>
#include <string.h>

/* In the order in which TorchRec lists them, which breaks ties. */
static const struct sharding_type {
    enum shard_kind kind;
    bool on_host; /* all shards of a table on the ranks of one host */
} sharding_types[] = {
    {SHARD_REPLICATE, false}, /* data-parallel */
    {SHARD_TABLE, false},     /* table-wise */
    {SHARD_COLUMN, false},    /* column-wise */
    {SHARD_COLUMN, true},     /* table-column-wise */
    {SHARD_ROW, false},       /* row-wise */
    {SHARD_ROW, true},        /* table-row-wise */
};
#define N_SHARDING_TYPES (sizeof sharding_types / sizeof *sharding_types)

/* One way to cut one table. The costs of a type are alike for its shards, and
 * so are the sizes, but for the rest that blocks of rows leave. */
struct sharding_option {
    enum shard_kind kind;
    bool on_host;
    bool is_in_order;  /* shard i on the i-th of its ranks */
    uint32_t n_shards; /* as TorchRec counts them: some may have no rows; 0: the
                          table cannot be cut so */
    uint32_t n_full;   /* those with as many rows as there may be */
    double ms;         /* of a shard, also of one without rows */
    struct size {
        uint64_t bytes; /* what it takes, counted as everywhere here */
        double storage; /* as TorchRec reckons it, which it sorts by */
    } full, rest;       /* of the one behind those, if it has rows */
    double all_storage; /* of all its shards */
};

/* A table's options by sharding type, and which one is proposed. */
struct candidate {
    struct sharding_option options[N_SHARDING_TYPES];
    struct ranked order[N_SHARDING_TYPES]; /* the proposer's */
    uint32_t n_options, current;           /* place in the order */
    const struct sharding_option *proposed;
    uint32_t *placement; /* ranks of its shards */
};

struct planner {
    struct placing *placing;      /* not owned; its loads are ms */
    struct candidate *candidates; /* [n_tables] */
    uint32_t n_local;             /* ranks of a host */
    struct filling *kept;         /* [n_ranks]: to go back to */
    struct ranked *hosts;         /* by load */
    double most_load;             /* of what stands */
    size_t most_shards;           /* that the plan has room for */
    double end_ms;                /* of the clock */
};

/* --- options --- */

/* Equal parts of at least TORCHREC_MIN_COLUMNS and --min-width, whole vectors
 * of four; one of all columns where there are none such. */
static uint32_t n_column_shards(uint32_t dim, uint32_t min_width)
{
    for (uint32_t columns = (uint32_t)max_u64(min_width, TORCHREC_MIN_COLUMNS);
         columns < dim; columns += TABLE_COLUMN_STEP)
        if (dim % columns == 0)
            return dim / columns;
    return 1;
}

/* Cuts the table by the type; false where there is nothing to cut, or where
 * sequences are not cut so. */
static bool cut(struct sharding_option *option, const struct planner *planner,
                const struct table *table, const struct sharding_type *type)
{
    const struct placing *placing = planner->placing;
    const bool is_in_order = type->kind & (SHARD_ROW | SHARD_REPLICATE);
    const uint32_t n = type->on_host ? planner->n_local : placing->n_devices;
    const uint64_t n_rows = table->num_embeddings;

    *option = (struct sharding_option){type->kind, type->on_host, is_in_order,
                                       .n_shards = is_in_order ? n : 1};
    if (type->kind == SHARD_COLUMN)
        option->n_shards = n_column_shards(
            table->dim, table_least_width(placing->problem, table));
    if (type->kind == SHARD_COLUMN && option->n_shards == 1)
        option->kind = SHARD_TABLE;
    option->n_full = option->n_shards;
    if (type->kind == SHARD_ROW)
        option->n_full = (uint32_t)(n_rows / ((n_rows - 1) / n + 1));
    if (type->kind == SHARD_ROW && planner->n_local < placing->n_devices &&
        table->rows_over == (type->on_host ? ROWS_OVER_ALL : ROWS_OVER_HOST))
        return false;
    return !(type->on_host && table->output == OUTPUT_SEQUENCE) &&
           (!is_in_order || (n > 1 && (type->kind != SHARD_ROW || n_rows > 1)));
}

/* TorchRec reckons weights, state, and the indices and outputs of a batch,
 * those in the precision of the weights. */
static struct size size_of(const struct problem *problem,
                           const struct shard *shard,
                           const struct sharding_option *option)
{
    const struct table *table = &problem->tables[shard->table];
    const double by_row = 1.0 / table->dim;
    const double state_of_a_byte[N_OPTIMIZERS] = {
        [OPTIMIZER_ROWWISE_ADAGRAD] = by_row,
        [OPTIMIZER_ADAGRAD] = 1,
        [OPTIMIZER_ADAM] = 2,
        [OPTIMIZER_ADAMA] = 2,
        [OPTIMIZER_LAMB] = 2,
        [OPTIMIZER_PARTIAL_ROWWISE_ADAM] = 1 + by_row,
        [OPTIMIZER_PARTIAL_ROWWISE_LAMB] = 1 + by_row};
    double batch = (double)problem->batch;
    double rows = (double)(shard->row_end - shard->row_begin);
    double columns = shard->col_end - shard->col_begin;
    double element_bytes = precision_bytes(table->precision);
    double weight_bytes = rows * columns * element_bytes;
    double lookups = table->pooling_factor * batch;
    double vectors = fmin(table->num_outputs, table->pooling_factor) * batch;

    if (option->is_in_order)
        lookups /= option->n_shards;
    if (option->kind == SHARD_REPLICATE)
        vectors /= option->n_shards;
    if (table->output == OUTPUT_SEQUENCE)
        vectors = lookups;
    return (struct size){
        shard_memory(problem, shard).total,
        weight_bytes + ceil(weight_bytes * state_of_a_byte[table->optimizer]) +
            ceil(lookups * PROBLEM_ID_BYTES) +
            ceil(vectors * columns * element_bytes)};
}

/* Cuts the table in each way there is, and prices it. */
static int list_options(struct planner *planner, uint32_t t, struct err *err)
{
    struct placing *placing = planner->placing;
    const struct problem *problem = placing->problem;
    const struct table *table = &problem->tables[t];
    const struct oracle *oracle = placing->inputs->torchrec;
    const unsigned kinds = placing_kinds(placing, t) & oracle->kinds;
    struct candidate *candidate = &planner->candidates[t];
    double *vector = ARENA_NEW(&placing->scratch, double, oracle->width);
    uint64_t n_shards = 0;

    for (uint32_t i = 0; i < N_SHARDING_TYPES; i++) {
        struct sharding_option *option = &candidate->options[i];
        struct shard first, rest;

        if (!cut(option, planner, table, &sharding_types[i]) ||
            !(option->kind & kinds)) {
            option->n_shards = 0;
            continue;
        }
        first = rival_piece(problem, t, option->kind, 0, option->n_shards, 0);
        rest = rival_piece(problem, t, option->kind, option->n_full,
                           option->n_shards, 0);
        oracle->ops->embed(oracle, &first, 1, vector);
        option->ms = parts_alone_ms(oracle, vector);
        option->full = size_of(problem, &first, option);
        if (option->n_full < option->n_shards && rest.row_begin < rest.row_end)
            option->rest = size_of(problem, &rest, option);
        option->all_storage =
            option->n_full * option->full.storage + option->rest.storage;
        candidate->order[candidate->n_options++].idx = i;
        n_shards = max_u64(n_shards, option->n_shards);
    }
    if (!n_shards)
        return err_set(
            err, ERR_NO_PLAN,
            "no plan was found: TorchRec's planner has no sharding type "
            "for table '%s'",
            table->name);
    candidate->placement = ARENA_NEW(&placing->scratch, uint32_t, n_shards);
    return 0;
}

/* --- the partitioner --- */

/* Whether less loaded, or else lower in its host, or else lower. */
static bool goes_before(const struct planner *planner, uint32_t a, uint32_t b)
{
    const struct filling *ranks = planner->placing->devices;
    uint32_t local_a = a % planner->n_local, local_b = b % planner->n_local;

    if (ranks[a].load != ranks[b].load)
        return ranks[a].load < ranks[b].load;
    return local_a != local_b ? local_a < local_b : a < b;
}

/* What is proposed for the table goes to ranks begin to end: shard i to rank
 * begin + i, or each to the least loaded that has room. False where one has
 * none. */
static bool place(struct planner *planner, const struct candidate *candidate,
                  uint32_t begin, uint32_t end)
{
    const struct sharding_option *option = candidate->proposed;
    struct filling *ranks = planner->placing->devices;

    for (uint32_t i = 0; i < option->n_shards; i++) {
        uint64_t bytes = i < option->n_full    ? option->full.bytes
                         : i == option->n_full ? option->rest.bytes
                                               : 0;
        uint32_t r = option->is_in_order ? begin + i : begin, best = end;

        for (uint32_t last = option->is_in_order ? r + 1 : end; r < last; r++)
            if (bytes <= ranks[r].free_bytes &&
                (best == end || goes_before(planner, r, best)))
                best = r;
        if (best == end)
            return false;
        candidate->placement[i] = best;
        ranks[best].free_bytes -= bytes;
        ranks[best].load += option->ms;
    }
    for (uint32_t i = 0; i < option->n_shards; i++)
        planner->most_load =
            fmax(planner->most_load, ranks[candidate->placement[i]].load);
    return true;
}

/* All shards to the ranks of the least loaded host that has room; or all ranks
 * are as one host. */
static bool place_on_host(struct planner *planner,
                          const struct candidate *candidate)
{
    const uint32_t n_ranks = planner->placing->n_devices;
    uint32_t n = candidate->proposed->on_host ? planner->n_local : n_ranks;

    for (uint32_t h = 0; h < n_ranks / n; h++) {
        planner->hosts[h] = (struct ranked){.idx = h};
        for (uint32_t i = 0; i < n; i++)
            planner->hosts[h].key += planner->placing->devices[h * n + i].load;
    }
    ranked_sort(planner->hosts, n_ranks / n);
    for (uint32_t h = 0; h < n_ranks / n; h++) {
        uint32_t first = planner->hosts[h].idx * n;
        struct filling *ranks = planner->placing->devices + first;

        memcpy(planner->kept, ranks, n * sizeof(*ranks));
        if (place(planner, candidate, first, first + n))
            return true;
        memcpy(ranks, planner->kept, n * sizeof(*ranks));
    }
    return false;
}

/* --- proposals --- */

/* Places the proposal, what goes on all ranks first; its shards are the plan's
 * where every table has room and it is the best. Not where what the ranks have
 * to do in the mean is no better than the best, by more than the order of a sum
 * makes up for; and as loads only grow, one which cannot be is not placed to
 * its end. */
static void try_proposal(struct planner *planner)
{
    struct placing *placing = planner->placing;
    struct plan *plan = placing->plan;
    size_t n_shards = 0;
    double sum_ms = 0;

    plan->n_evaluations++;
    for (uint32_t t = 0; t < placing->n_tables; t++) {
        const struct sharding_option *option = planner->candidates[t].proposed;
        bool is_on_all = option->is_in_order && !option->on_host;

        placing->order[t] =
            (struct ranked){is_on_all ? -INFINITY : -option->all_storage, t};
        n_shards += option->n_shards;
        sum_ms += option->ms * option->n_shards;
    }
    if (sum_ms * (1 - 1e-9) >= placing->least_load * placing->n_devices)
        return;
    placing_begin(placing);
    planner->most_load = 0;
    ranked_sort(placing->order, placing->n_tables);
    for (uint32_t i = 0; i < placing->n_tables; i++)
        if (!place_on_host(planner,
                           &planner->candidates[placing->order[i].idx]) ||
            planner->most_load >= placing->least_load)
            return;
    if (!placing_is_best(placing))
        return;
    if (n_shards > planner->most_shards) {
        planner->most_shards = 2 * n_shards;
        plan->shards =
            ARENA_NEW(placing->arena, struct shard, planner->most_shards);
    }
    for (uint32_t t = 0; t < placing->n_tables; t++) {
        const struct candidate *candidate = &planner->candidates[t];

        for (uint32_t i = 0; i < candidate->proposed->n_shards; i++) {
            struct shard shard = rival_piece(
                placing->problem, t, candidate->proposed->kind, i,
                candidate->proposed->n_shards, candidate->placement[i]);

            if (shard.row_begin < shard.row_end)
                plan->shards[plan->n_shards++] = shard;
        }
    }
}

/* Of the tables that have another option, the one with the largest shard by
 * storage, then the largest in all; the first such. NULL for none. */
static struct candidate *largest(const struct planner *planner)
{
    struct candidate *best = NULL;

    for (uint32_t t = 0; t < planner->placing->n_tables; t++) {
        struct candidate *candidate = &planner->candidates[t];
        const struct sharding_option *a = candidate->proposed;
        const struct sharding_option *b = best ? best->proposed : NULL;

        if (candidate->current + 1 < candidate->n_options &&
            (!b || a->full.storage > b->full.storage ||
             (a->full.storage == b->full.storage &&
              a->all_storage > b->all_storage)))
            best = candidate;
    }
    return best;
}

/* Why it ends before it is done; NULL where it goes on. */
static const char *stops(const struct planner *planner)
{
    const struct placing *placing = planner->placing;
    const uint64_t limit = placing->inputs->limit_proposals;

    if (limit && placing->plan->n_evaluations >= limit)
        return "proposals";
    return clock_ms() < planner->end_ms ? NULL : "time";
}

/* Best first by the largest shard, or by the sum of all. */
static void propose_greedily(struct planner *planner, bool by_sum)
{
    struct candidate *const begin = planner->candidates, *candidate;
    struct candidate *const end = begin + planner->placing->n_tables;

    for (candidate = begin; candidate < end; candidate++) {
        for (uint32_t i = 0; i < candidate->n_options; i++) {
            const struct sharding_option *option =
                &candidate->options[candidate->order[i].idx];

            candidate->order[i].key =
                option->ms * (by_sum ? option->n_shards : 1);
        }
        ranked_sort(candidate->order, candidate->n_options);
        candidate->current = 0;
    }
    do {
        for (candidate = begin; candidate < end; candidate++)
            candidate->proposed =
                &candidate->options[candidate->order[candidate->current].idx];
        try_proposal(planner);
        candidate = largest(planner);
        if (!candidate)
            break;
        candidate->current++;
    } while (!stops(planner));
}

int rival_torchrec(struct placing *placing, struct err *err)
{
    struct arena *arena = &placing->scratch;
    uint32_t n = placing->n_tables, n_ranks = placing->n_devices;
    const double limit_ms = placing->inputs->limit_ms;
    struct planner planner = {
        .placing = placing,
        .candidates = ARENA_NEW(arena, struct candidate, n),
        .n_local = cluster_group(&placing->problem->cluster),
        .kept = ARENA_NEW(arena, struct filling, n_ranks),
        .hosts = ARENA_NEW(arena, struct ranked, n_ranks),
        .end_ms = limit_ms > 0 ? clock_ms() + limit_ms : INFINITY};

    for (uint32_t t = 0; t < n; t++)
        if (list_options(&planner, t, err))
            return -1;
    propose_greedily(&planner, false);
    propose_greedily(&planner, true);
    for (uint32_t type = 0; type < N_SHARDING_TYPES; type++) {
        bool have_all = true;

        for (uint32_t t = 0; t < n; t++) {
            struct candidate *candidate = &planner.candidates[t];

            candidate->proposed = &candidate->options[type];
            have_all = have_all && candidate->proposed->n_shards;
        }
        if (have_all)
            try_proposal(&planner);
    }
    if (isinf(placing->least_load))
        return err_set(err, ERR_NO_PLAN,
                       "no plan was found: none of TorchRec's %llu proposals "
                       "does",
                       (unsigned long long)placing->plan->n_evaluations);
    if (stops(&planner))
        placing->plan->stopped = stops(&planner);
    return 0;
}
