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

#include <math.h>
#include <string.h>

/* Columns are cut in equal parts of at least so many. */
#define MIN_COLUMNS 128u
#define INDEX_BYTES 8

/* In the order in which TorchRec lists them, which breaks ties. */
enum sharding_type {
    DATA_PARALLEL,
    TABLE_WISE,
    COLUMN_WISE,
    TABLE_COLUMN_WISE, /* column-wise on one host */
    ROW_WISE,
    TABLE_ROW_WISE, /* row-wise over one host */
    N_SHARDING_TYPES
};

/* One way to cut one table. The costs of a type are alike for its shards, and
 * so are the sizes, but for the rest that blocks of rows leave. */
struct sharding_option {
    enum sharding_type type;
    enum shard_kind kind;
    uint32_t n_shards;   /* as TorchRec counts them: some may have no rows */
    uint32_t n_full;     /* those with as many rows as there may be */
    double ms;           /* of a shard, also of one without rows */
    uint64_t bytes;      /* of a full shard */
    uint64_t rest_bytes; /* of the one behind them, if it has rows */
    /* Likewise what TorchRec takes them to hold, by which it sorts; that
     * they fit is counted as everywhere here. */
    double storage, rest_storage;
};

/* The options of a table, by type, and in the proposer's order. */
struct candidate {
    struct sharding_option options[N_SHARDING_TYPES];
    struct ranked order[N_SHARDING_TYPES];
    uint32_t n_options, current; /* place in the order */
};

struct planner {
    const struct problem *problem;         /* not owned */
    const struct contender_inputs *inputs; /* not owned */
    struct candidate *candidates;          /* [n_tables] */
    uint32_t n_ranks, n_local;             /* of a host */
    uint64_t *free_bytes;                  /* [n_ranks]: left */
    double *ms;                            /* [n_ranks]: loads */
    double *kept_ms;                       /* [n_local]: to go back to */
    uint64_t *kept_bytes;
    struct ranked *hosts;                    /* by load */
    struct ranked *order;                    /* [n_tables] by storage */
    const struct sharding_option **proposal; /* [n_tables] */
    uint32_t **placement;         /* [n_tables]: ranks of its shards */
    struct sharding_option *best; /* [n_tables] */
    double best_ms;               /* INFINITY while there is none */
    double end_ms;                /* of the clock */
    uint64_t n_proposals;
};

/* --- options --- */

/* Equal parts of at least MIN_COLUMNS and --min-width, whole vectors of four;
 * one of all columns where there are none such. */
static uint32_t n_column_shards(uint32_t dim, uint32_t min_width)
{
    for (uint32_t columns = min_width > MIN_COLUMNS ? min_width : MIN_COLUMNS;
         columns < dim; columns += TABLE_COLUMN_STEP)
        if (dim % columns == 0)
            return dim / columns;
    return 1;
}

/* Cuts the table by the type; false where there is nothing to cut. */
static bool cut(struct sharding_option *option, const struct problem *problem,
                uint32_t t, enum sharding_type type)
{
    const struct table *table = &problem->tables[t];
    uint32_t n_ranks = problem->cluster.n_devices;
    uint32_t n_local = cluster_group(&problem->cluster);

    *option = (struct sharding_option){
        .type = type, .kind = SHARD_TABLE, .n_shards = 1};
    switch (type) {
    case DATA_PARALLEL:
        option->kind = SHARD_REPLICATE;
        option->n_shards = n_ranks;
        break;
    case TABLE_WISE:
        break;
    case COLUMN_WISE:
    case TABLE_COLUMN_WISE:
        option->n_shards =
            n_column_shards(table->dim, problem_min_width(problem));
        if (option->n_shards > 1)
            option->kind = SHARD_COLUMN;
        break;
    case ROW_WISE:
    case TABLE_ROW_WISE:
        option->kind = SHARD_ROW;
        option->n_shards = type == ROW_WISE ? n_ranks : n_local;
        break;
    case N_SHARDING_TYPES:
        return false;
    }
    option->n_full = option->n_shards;
    if (option->kind == SHARD_ROW) {
        uint64_t rows = (table->num_embeddings - 1) / option->n_shards + 1;

        option->n_full = (uint32_t)(table->num_embeddings / rows);
        return rows < table->num_embeddings;
    }
    return option->kind != SHARD_REPLICATE || n_ranks > 1;
}

/* Shard i of a table cut that way; no rows for those behind the rest. */
static struct shard shard_of(const struct problem *problem, uint32_t t,
                             const struct sharding_option *option, uint32_t i,
                             uint32_t rank)
{
    return rival_piece(problem, t, option->kind, i, option->n_shards, rank);
}

/* Bytes of state that TorchRec reckons for so many of weights. */
static double state_bytes(const struct table *table, double weight_bytes)
{
    switch (table->optimizer) {
    case OPTIMIZER_SGD:
        return 0;
    case OPTIMIZER_ROWWISE_ADAGRAD:
        return ceil(weight_bytes * (1.0 / table->dim));
    case OPTIMIZER_ADAGRAD:
        return weight_bytes;
    case OPTIMIZER_ADAM:
        return 2 * weight_bytes;
    }
    return 0;
}

/* TorchRec's storage of a shard: weights, state, and the indices and outputs
 * of a batch, those in the precision of the weights. */
static double storage_of(const struct problem *problem,
                         const struct shard *shard,
                         const struct sharding_option *option)
{
    const struct table *table = &problem->tables[shard->table];
    double batch = (double)problem->batch;
    double rows = (double)(shard->row_end - shard->row_begin);
    double columns = shard->col_end - shard->col_begin;
    double element_bytes = precision_bytes(table->precision);
    double weight_bytes = rows * columns * element_bytes;
    double lookups = table->pooling_factor * batch;
    double vectors = fmin(table->num_outputs, table->pooling_factor) * batch;

    if (option->kind == SHARD_ROW || option->kind == SHARD_REPLICATE)
        lookups /= option->n_shards;
    if (option->kind == SHARD_REPLICATE)
        vectors /= option->n_shards;
    if (table->output == OUTPUT_SEQUENCE)
        vectors = lookups;
    return weight_bytes + state_bytes(table, weight_bytes) +
           ceil(lookups * INDEX_BYTES) +
           ceil(vectors * columns * element_bytes);
}

static void price(struct sharding_option *option, const struct planner *planner,
                  uint32_t t)
{
    const struct oracle *oracle = planner->inputs->torchrec;
    struct shard shard = shard_of(planner->problem, t, option, 0, 0);
    double *vector = mem_alloc(oracle->width, sizeof(*vector)), compute_ms;

    oracle->ops->embed(oracle, &shard, 1, vector);
    oracle->ops->compute(oracle, vector, 1, &compute_ms);
    oracle->ops->terms(oracle, vector, &compute_ms, 1, &option->ms);
    mem_free(vector);
    option->bytes = shard_memory(planner->problem, &shard).total;
    option->storage = storage_of(planner->problem, &shard, option);
    if (option->n_full == option->n_shards)
        return;
    shard = shard_of(planner->problem, t, option, option->n_full, 0);
    if (shard.row_begin == shard.row_end)
        return;
    option->rest_bytes = shard_memory(planner->problem, &shard).total;
    option->rest_storage = storage_of(planner->problem, &shard, option);
}

static int list_options(struct planner *planner, uint32_t t,
                        struct arena *arena, struct err *err)
{
    const struct table *table = &planner->problem->tables[t];
    unsigned kinds = table->kinds & planner->problem->kinds &
                     planner->inputs->oracle->kinds &
                     planner->inputs->torchrec->kinds;
    struct candidate *candidate = &planner->candidates[t];
    uint32_t n_shards = 1;

    for (int type = 0; type < N_SHARDING_TYPES; type++) {
        struct sharding_option option;

        if (!cut(&option, planner->problem, t, (enum sharding_type)type) ||
            !(option.kind & kinds))
            continue;
        price(&option, planner, t);
        candidate->options[candidate->n_options++] = option;
        if (option.n_shards > n_shards)
            n_shards = option.n_shards;
    }
    if (!candidate->n_options)
        return err_set(
            err, ERR_NO_PLAN,
            "no plan was found: TorchRec's planner has no sharding type "
            "for table '%s'",
            table->name);
    planner->placement[t] = ARENA_NEW(arena, uint32_t, n_shards);
    return 0;
}

/* --- the partitioner --- */

static uint64_t shard_bytes(const struct sharding_option *option,
                            uint32_t shard)
{
    if (shard < option->n_full)
        return option->bytes;
    return shard == option->n_full ? option->rest_bytes : 0;
}

/* TorchRec's storage of all shards. */
static double all_storage(const struct sharding_option *option)
{
    return option->n_full * option->storage + option->rest_storage;
}

/* Whether less loaded, or else lower in its host, or else lower. */
static bool goes_before(const struct planner *planner, uint32_t a, uint32_t b)
{
    uint32_t local_a = a % planner->n_local, local_b = b % planner->n_local;

    if (planner->ms[a] != planner->ms[b])
        return planner->ms[a] < planner->ms[b];
    return local_a != local_b ? local_a < local_b : a < b;
}

/* Shards of the option go to ranks begin to end: shard i to rank begin + i, or
 * each to the least loaded that has room. False where one has none. */
static bool place(struct planner *planner, const struct sharding_option *option,
                  uint32_t begin, uint32_t end, bool in_order,
                  uint32_t *placement)
{
    for (uint32_t i = 0; i < option->n_shards; i++) {
        uint64_t bytes = shard_bytes(option, i);
        uint32_t r = in_order ? begin + i : begin, best = end;
        double least = INFINITY;

        for (uint32_t last = in_order ? r + 1 : end; r < last; r++) {
            if (planner->ms[r] > least || bytes > planner->free_bytes[r] ||
                (best < end && !goes_before(planner, r, best)))
                continue;
            least = planner->ms[r];
            best = r;
        }
        if (best == end)
            return false;
        placement[i] = best;
        planner->free_bytes[best] -= bytes;
        planner->ms[best] += option->ms;
    }
    return true;
}

/* All shards to the ranks of the least loaded host that has room. */
static bool place_on_host(struct planner *planner,
                          const struct sharding_option *option,
                          uint32_t *placement)
{
    uint32_t n = planner->n_local, n_hosts = planner->n_ranks / n;

    for (uint32_t h = 0; h < n_hosts; h++) {
        planner->hosts[h] = (struct ranked){.idx = h};
        for (uint32_t i = 0; i < n; i++)
            planner->hosts[h].key += planner->ms[h * n + i];
    }
    ranked_sort(planner->hosts, n_hosts);
    for (uint32_t h = 0; h < n_hosts; h++) {
        uint32_t first = planner->hosts[h].idx * n;

        memcpy(planner->kept_ms, planner->ms + first, n * sizeof(double));
        memcpy(planner->kept_bytes, planner->free_bytes + first,
               n * sizeof(uint64_t));
        if (place(planner, option, first, first + n,
                  option->type == TABLE_ROW_WISE, placement))
            return true;
        memcpy(planner->ms + first, planner->kept_ms, n * sizeof(double));
        memcpy(planner->free_bytes + first, planner->kept_bytes,
               n * sizeof(uint64_t));
    }
    return false;
}

/* Places the proposal; false where a table has no room. Afterwards `ms` has
 * the loads. */
static bool partition(struct planner *planner)
{
    const struct problem *problem = planner->problem;
    uint32_t n = planner->n_ranks, n_sorted = 0;

    for (uint32_t r = 0; r < n; r++) {
        planner->free_bytes[r] = cluster_room_bytes(&problem->cluster, r);
        planner->ms[r] = 0;
    }
    for (uint32_t t = 0; t < problem->n_tables; t++) {
        const struct sharding_option *option = planner->proposal[t];

        if (option->type != DATA_PARALLEL && option->type != ROW_WISE)
            planner->order[n_sorted++] =
                (struct ranked){-all_storage(option), t};
        else if (!place(planner, option, 0, n, true, planner->placement[t]))
            return false;
    }
    ranked_sort(planner->order, n_sorted);
    for (uint32_t i = 0; i < n_sorted; i++) {
        uint32_t t = planner->order[i].idx;
        const struct sharding_option *option = planner->proposal[t];

        if (option->type == TABLE_WISE || option->type == COLUMN_WISE
                ? !place(planner, option, 0, n, false, planner->placement[t])
                : !place_on_host(planner, option, planner->placement[t]))
            return false;
    }
    return true;
}

/* --- proposals --- */

/* Places the proposal and keeps it where it is the best. */
static void try_proposal(struct planner *planner)
{
    uint32_t n = (uint32_t)planner->problem->n_tables;
    double slowest_ms = 0;

    planner->n_proposals++;
    if (!partition(planner))
        return;
    for (uint32_t r = 0; r < planner->n_ranks; r++)
        slowest_ms = fmax(slowest_ms, planner->ms[r]);
    if (!(slowest_ms < planner->best_ms))
        return;
    planner->best_ms = slowest_ms;
    for (uint32_t t = 0; t < n; t++)
        planner->best[t] = *planner->proposal[t];
}

/* Of the tables that have another option, the one with the largest shard by
 * storage, then the largest in all; the first such. n_tables for none. */
static uint32_t largest(const struct planner *planner)
{
    uint32_t n = (uint32_t)planner->problem->n_tables, best = n;

    for (uint32_t t = 0; t < n; t++) {
        const struct candidate *candidate = &planner->candidates[t];
        const struct sharding_option *a = planner->proposal[t], *b;

        if (candidate->current + 1 == candidate->n_options)
            continue;
        if (best < n) {
            b = planner->proposal[best];
            if (a->storage < b->storage ||
                (a->storage == b->storage && all_storage(a) <= all_storage(b)))
                continue;
        }
        best = t;
    }
    return best;
}

/* Best first by the largest shard, or by the sum of all. */
static void propose_greedily(struct planner *planner, bool by_sum)
{
    uint32_t n = (uint32_t)planner->problem->n_tables, t;
    struct candidate *candidate;

    for (t = 0; t < n; t++) {
        candidate = &planner->candidates[t];
        for (uint32_t i = 0; i < candidate->n_options; i++) {
            const struct sharding_option *option = &candidate->options[i];

            candidate->order[i] = (struct ranked){
                option->ms * (by_sum ? option->n_shards : 1), i};
        }
        ranked_sort(candidate->order, candidate->n_options);
        candidate->current = 0;
        planner->proposal[t] = &candidate->options[candidate->order[0].idx];
    }
    do {
        try_proposal(planner);
        t = largest(planner);
        if (t == n)
            break;
        candidate = &planner->candidates[t];
        planner->proposal[t] =
            &candidate->options[candidate->order[++candidate->current].idx];
    } while (clock_ms() < planner->end_ms);
}

static void propose_uniform(struct planner *planner)
{
    uint32_t n = (uint32_t)planner->problem->n_tables;

    for (int type = 0; type < N_SHARDING_TYPES; type++) {
        uint32_t t;

        for (t = 0; t < n; t++) {
            const struct candidate *candidate = &planner->candidates[t];
            uint32_t i = 0;

            while (i < candidate->n_options &&
                   candidate->options[i].type != (enum sharding_type)type)
                i++;
            if (i == candidate->n_options)
                break;
            planner->proposal[t] = &candidate->options[i];
        }
        if (t == n)
            try_proposal(planner);
    }
}

/* Shards of the best proposal, which is placed once more. */
static void fill_shards(struct plan *plan, struct planner *planner,
                        struct arena *arena)
{
    uint32_t n = (uint32_t)planner->problem->n_tables;
    size_t n_shards = 0;

    for (uint32_t t = 0; t < n; t++) {
        planner->proposal[t] = &planner->best[t];
        n_shards += planner->best[t].n_shards;
    }
    if (!partition(planner))
        return; /* cannot be: it was placed before */
    plan->shards = ARENA_NEW(arena, struct shard, n_shards);
    plan->n_shards = 0;
    for (uint32_t t = 0; t < n; t++)
        for (uint32_t i = 0; i < planner->best[t].n_shards; i++) {
            struct shard shard =
                shard_of(planner->problem, t, &planner->best[t], i,
                         planner->placement[t][i]);

            if (shard.row_begin < shard.row_end)
                plan->shards[plan->n_shards++] = shard;
        }
}

static int planner_init(struct planner *planner, const struct problem *problem,
                        const struct contender_inputs *inputs,
                        struct arena *arena, struct err *err)
{
    uint32_t n = (uint32_t)problem->n_tables;
    uint32_t n_ranks = problem->cluster.n_devices;

    *planner = (struct planner){
        .problem = problem,
        .inputs = inputs,
        .candidates = ARENA_NEW(arena, struct candidate, n),
        .n_ranks = n_ranks,
        .n_local = cluster_group(&problem->cluster),
        .free_bytes = ARENA_NEW(arena, uint64_t, n_ranks),
        .ms = ARENA_NEW(arena, double, n_ranks),
        .kept_ms = ARENA_NEW(arena, double, cluster_group(&problem->cluster)),
        .kept_bytes =
            ARENA_NEW(arena, uint64_t, cluster_group(&problem->cluster)),
        .hosts = ARENA_NEW(arena, struct ranked, n_ranks),
        .order = ARENA_NEW(arena, struct ranked, n),
        .proposal = ARENA_NEW(arena, const struct sharding_option *, n),
        .placement = ARENA_NEW(arena, uint32_t *, n),
        .best = ARENA_NEW(arena, struct sharding_option, n),
        .best_ms = INFINITY,
        .end_ms =
            inputs->limit_ms > 0 ? clock_ms() + inputs->limit_ms : INFINITY};
    for (uint32_t t = 0; t < n; t++)
        if (list_options(planner, t, arena, err))
            return -1;
    return 0;
}

int rival_torchrec(struct plan *plan, const struct contender *self,
                   const struct contender_inputs *inputs, struct arena *arena,
                   struct arena *scratch, struct err *err)
{
    struct planner planner;

    (void)self;
    if (planner_init(&planner, &plan->problem, inputs, scratch, err))
        return -1;
    propose_greedily(&planner, false);
    propose_greedily(&planner, true);
    propose_uniform(&planner);
    if (isinf(planner.best_ms))
        return err_set(err, ERR_NO_PLAN,
                       "no plan was found: none of TorchRec's %llu proposals "
                       "does",
                       (unsigned long long)planner.n_proposals);
    fill_shards(plan, &planner, arena);
    if (clock_ms() >= planner.end_ms)
        plan->stopped = "time";
    plan->n_evaluations = planner.n_proposals;
    return 0;
}
