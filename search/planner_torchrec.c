/* SPDX-License-Identifier: MIT */
/*
 * TorchRec's planner. Every table has one option for each sharding type. A
 * proposal takes one option of each table. The partitioner places the options
 * of a proposal. The proposal whose slowest rank costs least wins.
 *
 * The greedy proposer starts with the best option of each table. It is run
 * twice: once it ranks options by their largest shard, and once by the sum of
 * their shards. It then repeatedly finds the table with the shard that takes
 * the most memory, and moves this table to its next best option. The uniform
 * proposer takes one sharding type for all tables.
 *
 * The partitioner is greedy. It first places the options that use all ranks:
 * replicas, and rows over all ranks. Then it places the other tables in order
 * of storage, the largest first. Each shard goes to the least loaded rank with
 * room. If the sharding type keeps a table on one host, the whole table goes to
 * the least loaded host with room.
 */
#include "search/planner_torchrec.h"

#include "base/clock.h"
#include "base/ranked.h"
#include "core/cluster.h"
#include "core/memory.h"
#include "search/search_space.h"

#include <math.h>
#include <string.h>

/* Sharding types in TorchRec's order. The order breaks ties. */
static const struct sharding_type {
    enum shard_kind kind;
    bool on_host; /* all shards of a table are on the ranks of one host */
} sharding_types[] = {
    {SHARD_REPLICATE, false}, /* data-parallel */
    {SHARD_TABLE, false},     /* table-wise */
    {SHARD_COLUMN, false},    /* column-wise */
    {SHARD_COLUMN, true},     /* table-column-wise */
    {SHARD_ROW, false},       /* row-wise */
    {SHARD_ROW, true},        /* table-row-wise */
};
#define N_SHARDING_TYPES (sizeof sharding_types / sizeof *sharding_types)

/* One way to cut a table. All shards of an option have the same cost. All
 * shards except the last row block have the same size. */
struct sharding_option {
    enum shard_kind kind;
    bool on_host;
    bool is_in_order; /* whether shard i is on the i-th rank of the table */
    /* Number of shards as TorchRec counts them, including shards without rows.
     * It is 0 if the table cannot be cut in this way. */
    uint32_t n_shards;
    uint32_t n_full; /* number of shards with the full number of rows */
    double ms;       /* cost of one shard, also of a shard without rows */
    /* Storage of a full shard, and storage of the next shard if it has rows.
     * Both follow TorchRec's formula, because TorchRec sorts by storage. */
    double full_storage, rest_storage;
    bool is_weighed; /* whether full_bytes and rest_bytes are set */
    /* Bytes of a full shard, and bytes of the next shard. Both follow the
     * memory model of this program. */
    uint64_t full_bytes, rest_bytes;
    double all_storage; /* storage of all shards, by TorchRec's formula */
};

/* The options of a table by sharding type, and the option that is proposed. */
struct table_options {
    struct sharding_option options[N_SHARDING_TYPES];
    /* options in the order of the proposer */
    struct ranked order[N_SHARDING_TYPES];
    uint32_t n_options, current; /* `current` is a position in `order` */
    struct sharding_option *proposed;
    struct torchrec_placement {
        const struct sharding_option *option;
        uint32_t begin; /* first rank, if the shards are in order */
        /* [n_ranks]: ranks of the shards, if the shards are not in order. */
        uint32_t *ranks;
    } present, best; /* ranks in the present and in the best assignment */
    uint32_t n_ranks;
};

struct torchrec_planner {
    struct placing *placing;          /* not owned; loads are in ms */
    struct table_options *candidates; /* [n_tables] */
    uint32_t n_local;                 /* number of ranks of a host */
    struct filling *kept;             /* [n_ranks]: saved state of each rank */
    struct ranked *hosts;             /* sorted by load */
    /* largest load of a rank in the present assignment */
    double most_load;
    /* time at which the time limit is reached */
    double end_ms;
};

/* --- options --- */

/* Returns the number of equal column shards of a table. Each shard has whole
 * vectors of four columns, and at least TORCHREC_MIN_COLUMNS and --min-width
 * columns. Returns 1, a shard of all columns, if the table cannot be divided in
 * this way. */
static uint32_t n_column_shards(uint32_t dim, uint32_t min_width)
{
    for (uint32_t columns = (uint32_t)max_u64(min_width, TORCHREC_MIN_COLUMNS);
         columns < dim; columns += TABLE_COLUMN_STEP)
        if (dim % columns == 0)
            return dim / columns;
    return 1;
}

/* Cuts the table by the sharding type of the option. Returns false if the table
 * cannot be divided, or if the type does not cut sequence tables. */
static bool cut(struct sharding_option *option,
                const struct torchrec_planner *planner,
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

/* Returns the storage of a shard by TorchRec's formula. It is the sum of the
 * weights, the optimizer state, the indices of a batch, and the outputs of a
 * batch. Outputs have the precision of the weights. */
static double storage_of(const struct problem *problem,
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
    return weight_bytes +
           ceil(weight_bytes * state_of_a_byte[table->optimizer]) +
           ceil(lookups * PROBLEM_ID_BYTES) +
           ceil(vectors * columns * element_bytes);
}

/* Sets shard i of the option. Returns whether the shard has rows. */
static bool shard_of(struct shard *shard,
                     const struct torchrec_planner *planner, uint32_t t,
                     const struct sharding_option *option, uint32_t i)
{
    *shard = rival_piece(planner->placing->problem, t, option->kind, i,
                         option->n_shards, 0);
    return i < option->n_shards && shard->row_begin < shard->row_end;
}

/* Sets the bytes of the shards of an option when the option is first placed.
 * Row blocks count the mean number of lookups, because TorchRec does not know
 * which rows are hot. */
static void weigh(struct sharding_option *option,
                  const struct torchrec_planner *planner, uint32_t t)
{
    struct problem even = *planner->placing->problem;
    struct shard shard;

    if (option->is_weighed)
        return;
    option->is_weighed = true;
    even.hot = NULL;
    if (shard_of(&shard, planner, t, option, 0))
        option->full_bytes = shard_memory(&even, &shard).total;
    if (shard_of(&shard, planner, t, option, option->n_full))
        option->rest_bytes = shard_memory(&even, &shard).total;
}

/* Lists and prices all options of a table. */
static int list_options(struct torchrec_planner *planner, uint32_t t,
                        struct err *err)
{
    struct placing *placing = planner->placing;
    const struct problem *problem = placing->problem;
    const struct table *table = &problem->tables[t];
    const struct oracle *oracle = placing->inputs->torchrec;
    const unsigned kinds = placing_kinds(placing, t) & oracle->kinds;
    struct table_options *candidate = &planner->candidates[t];
    double *vector = ARENA_NEW(&placing->scratch, double, oracle->width);

    for (uint32_t i = 0; i < N_SHARDING_TYPES; i++) {
        struct sharding_option *option = &candidate->options[i];
        struct shard first, rest;

        if (!cut(option, planner, table, &sharding_types[i]) ||
            !(option->kind & kinds)) {
            option->n_shards = 0;
            continue;
        }
        (void)shard_of(&first, planner, t, option, 0);
        oracle->ops->embed(oracle, &first, 1, vector);
        option->ms = space_standalone_ms(oracle, vector);
        option->full_storage = storage_of(problem, &first, option);
        if (shard_of(&rest, planner, t, option, option->n_full))
            option->rest_storage = storage_of(problem, &rest, option);
        option->all_storage =
            option->n_full * option->full_storage + option->rest_storage;
        candidate->order[candidate->n_options++].idx = i;
        if (!option->is_in_order && option->n_shards > candidate->n_ranks)
            candidate->n_ranks = option->n_shards;
    }
    if (!candidate->n_options)
        return err_set(
            err, ERR_NO_PLAN,
            "no plan was found: TorchRec's planner has no sharding type "
            "for table '%s'",
            table->name);
    candidate->present.ranks =
        ARENA_NEW(&placing->scratch, uint32_t, candidate->n_ranks);
    candidate->best.ranks =
        ARENA_NEW(&placing->scratch, uint32_t, candidate->n_ranks);
    return 0;
}

/* --- the partitioner --- */

/* Returns whether rank `a` is preferred to rank `b`. The rank with the smaller
 * load is preferred. Ties go to the rank with the lower index in its host, then
 * to the rank with the lower index. */
static bool goes_before(const struct torchrec_planner *planner, uint32_t a,
                        uint32_t b)
{
    const struct filling *ranks = planner->placing->devices;
    uint32_t local_a = a % planner->n_local, local_b = b % planner->n_local;

    if (ranks[a].load != ranks[b].load)
        return ranks[a].load < ranks[b].load;
    return local_a != local_b ? local_a < local_b : a < b;
}

static uint32_t rank_of(const struct torchrec_placement *pos, uint32_t shard)
{
    return pos->option->is_in_order ? pos->begin + shard : pos->ranks[shard];
}

/* Places the proposed option of a table on the ranks from `begin` to `end` - 1.
 * If the shards are in order, shard i goes to rank begin + i. Otherwise each
 * shard goes to the least loaded rank with room. Returns false if a shard finds
 * no room. */
static bool place(struct torchrec_planner *planner,
                  struct table_options *candidate, uint32_t begin, uint32_t end)
{
    struct sharding_option *option = candidate->proposed;
    struct filling *ranks = planner->placing->devices;

    weigh(option, planner, (uint32_t)(candidate - planner->candidates));
    candidate->present.option = option;
    candidate->present.begin = begin;
    for (uint32_t i = 0; i < option->n_shards; i++) {
        uint64_t bytes = i < option->n_full    ? option->full_bytes
                         : i == option->n_full ? option->rest_bytes
                                               : 0;
        uint32_t r = option->is_in_order ? begin + i : begin, best = end;

        for (uint32_t last = option->is_in_order ? r + 1 : end; r < last; r++)
            if (bytes <= ranks[r].free_bytes &&
                (best == end || goes_before(planner, r, best)))
                best = r;
        if (best == end)
            return false;
        if (!option->is_in_order)
            candidate->present.ranks[i] = best;
        ranks[best].free_bytes -= bytes;
        ranks[best].load += option->ms;
    }
    for (uint32_t i = 0; i < option->n_shards; i++)
        planner->most_load = fmax(planner->most_load,
                                  ranks[rank_of(&candidate->present, i)].load);
    return true;
}

/* Places all shards of a table on the ranks of the least loaded host with room.
 * If the option is not limited to one host, all ranks count as one host. */
static bool place_on_host(struct torchrec_planner *planner,
                          struct table_options *candidate)
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

/* Places the proposal, beginning with the options on all ranks. Keeps the
 * proposal if every table has room and it is the best so far. Returns at once
 * if the mean load of the ranks is not below the largest load of the best
 * proposal. The comparison has a relative tolerance of 1e-9, because the order
 * of the sum changes its rounding. Loads only grow, so placing stops as soon as
 * the proposal can no longer be the best. */
static void try_proposal(struct torchrec_planner *planner)
{
    struct placing *placing = planner->placing;
    double sum_ms = 0;

    placing->plan->n_evaluations++;
    for (uint32_t t = 0; t < placing->n_tables; t++) {
        const struct sharding_option *option = planner->candidates[t].proposed;
        bool is_on_all = option->is_in_order && !option->on_host;

        placing->order[t] =
            (struct ranked){is_on_all ? -INFINITY : -option->all_storage, t};
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
    for (uint32_t t = 0; t < placing->n_tables; t++) {
        struct table_options *candidate = &planner->candidates[t];

        candidate->best.option = candidate->present.option;
        candidate->best.begin = candidate->present.begin;
        memcpy(candidate->best.ranks, candidate->present.ranks,
               candidate->n_ranks * sizeof(uint32_t));
    }
}

/* Writes the shards of the best assignment. A cut over many ranks is stored as
 * its first rank only, because 10,000 tables have 10 million shards. */
static void write_best(struct torchrec_planner *planner)
{
    struct placing *placing = planner->placing;
    struct plan *plan = placing->plan;
    size_t n_shards = 0;

    for (uint32_t t = 0; t < placing->n_tables; t++)
        n_shards += planner->candidates[t].best.option->n_shards;
    plan->shards = ARENA_NEW(placing->arena, struct shard, n_shards);
    for (uint32_t t = 0; t < placing->n_tables; t++) {
        const struct torchrec_placement *best = &planner->candidates[t].best;

        for (uint32_t i = 0; i < best->option->n_shards; i++) {
            struct shard shard =
                rival_piece(placing->problem, t, best->option->kind, i,
                            best->option->n_shards, rank_of(best, i));

            if (shard.row_begin < shard.row_end)
                plan->shards[plan->n_shards++] = shard;
        }
    }
}

/* Returns the table with the largest shard by storage, among the tables that
 * have a further option. Ties go to the table with the largest total storage,
 * then to the first table. Returns NULL if no table has a further option. */
static struct table_options *largest(const struct torchrec_planner *planner)
{
    struct table_options *best = NULL;

    for (uint32_t t = 0; t < planner->placing->n_tables; t++) {
        struct table_options *candidate = &planner->candidates[t];
        const struct sharding_option *a = candidate->proposed;
        const struct sharding_option *b = best ? best->proposed : NULL;

        if (candidate->current + 1 < candidate->n_options &&
            (!b || a->full_storage > b->full_storage ||
             (a->full_storage == b->full_storage &&
              a->all_storage > b->all_storage)))
            best = candidate;
    }
    return best;
}

/* Returns the reason to stop early, or NULL if the search should go on. */
static const char *stops(const struct torchrec_planner *planner)
{
    const struct placing *placing = planner->placing;
    const uint64_t limit = placing->inputs->limit_proposals;

    if (limit && placing->plan->n_evaluations >= limit)
        return "proposals";
    return clock_ms() < planner->end_ms ? NULL : "time";
}

/* Runs the greedy proposer. If by_sum is set, it ranks options by the sum of
 * their shards, and otherwise by their largest shard. */
static void propose_greedily(struct torchrec_planner *planner, bool by_sum)
{
    struct table_options *const begin = planner->candidates, *candidate;
    struct table_options *const end = begin + planner->placing->n_tables;

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
    struct torchrec_planner planner = {
        .placing = placing,
        .candidates = ARENA_NEW(arena, struct table_options, n),
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
            struct table_options *candidate = &planner.candidates[t];

            candidate->proposed = &candidate->options[type];
            have_all = have_all && candidate->proposed->n_shards;
        }
        if (have_all)
            try_proposal(&planner);
    }
    if (isinf(placing->least_load))
        return err_set(
            err, ERR_NO_PLAN,
            "no plan was found: none of TorchRec's %llu proposals fits",
            (unsigned long long)placing->plan->n_evaluations);
    write_best(&planner);
    if (stops(&planner))
        placing->plan->stopped = stops(&planner);
    return 0;
}
