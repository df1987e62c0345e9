/* SPDX-License-Identifier: MIT */
#include "core/load_factors.h"

#include "core/cache_share.h"
#include "core/memory.h"

#include <math.h>

/* Pools of a plan while factors are chosen. */
struct factor_choice {
    struct plan *plan;
    struct cache_pools pools;
    double (*lanes)[CACHE_LANES]; /* [n] sums over the pieces of each pool */
    double *most;   /* [n]: largest factor that the memory of the pool allows */
    double *weight; /* [n]: sum of N_t over the pieces of each pool */
    double *spare;  /* [n]: most x weight - sum of f_t N_t */
};

static double rows_of(const struct factor_choice *choice, uint32_t table)
{
    return (double)choice->plan->problem.tables[table].num_embeddings;
}

static void add_up(struct factor_choice *choice,
                   const struct cache_curve *curves)
{
    const struct plan *plan = choice->plan;
    double piece[CACHE_LANES];

    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        const size_t p = choice->pools.of_shard[i];

        if (p == SIZE_MAX)
            continue;
        cache_embed(piece, &curves[shard->table],
                    (double)(shard->row_end - shard->row_begin) /
                        rows_of(choice, shard->table),
                    (double)pool_row_bytes(&choice->pools.pools[p].key,
                                           shard->col_end - shard->col_begin),
                    0);
        for (unsigned k = 0; k < CACHE_LANES; k++)
            choice->lanes[p][k] += piece[k];
        choice->weight[p] += rows_of(choice, shard->table);
    }
}

/* Divides `bytes` of memory among the pools from `begin` to `end`, those of one
 * device, in whole sets of slots. */
static void share(struct factor_choice *choice, size_t begin, size_t end,
                  double bytes)
{
    const size_t n = end - begin;
    struct cache_demand *demands = mem_alloc(n, sizeof(*demands));
    double *slots = mem_alloc(n, sizeof(*slots));

    for (size_t i = 0; i < n; i++) {
        const struct cache_pool *pool = &choice->pools.pools[begin + i];
        const double *lanes = choice->lanes[begin + i];

        demands[i] = (struct cache_demand){
            lanes + CACHE_ROWS, lanes + CACHE_BYTES,
            (double)(pool_row_bytes(&pool->key, pool->slot_width) +
                     pool_state_bytes(&choice->plan->problem))};
        bytes -= CACHE_SET_SLOTS * demands[i].slot_bytes;
    }
    cache_share(demands, n, CACHE_KNOTS, fmax(bytes, 0), slots);
    for (size_t i = 0; i < n; i++) {
        const double sets = 1 + floor(slots[i] / CACHE_SET_SLOTS);

        choice->most[begin + i] =
            fmin(CACHE_MAX_LOAD_FACTOR,
                 CACHE_SET_SLOTS * sets /
                     (double)choice->pools.pools[begin + i].n_rows);
    }
    mem_free(slots);
    mem_free(demands);
}

static void share_all(struct factor_choice *choice)
{
    const struct plan *plan = choice->plan;
    const uint32_t n_devices = plan->problem.cluster.n_devices;
    const struct cache_pools *pools = &choice->pools;
    uint64_t *rooms = mem_alloc(n_devices, sizeof(*rooms));
    double *used = mem_alloc(n_devices, sizeof(*used));

    problem_room_bytes(&plan->problem, rooms);
    for (size_t i = 0; i < plan->n_shards; i++)
        used[plan->shards[i].device] +=
            (double)shard_memory(&plan->problem, &plan->shards[i]).total;
    for (size_t begin = 0, end; begin < pools->n; begin = end) {
        const uint32_t r = pools->pools[begin].device;

        for (end = begin; end < pools->n && pools->pools[end].device == r;)
            end++;
        share(choice, begin, end, (double)rooms[r] - used[r]);
    }
    mem_free(used);
    mem_free(rooms);
}

/* Raises the factor of the table whose shards are from `begin` to `end` - 1 as
 * far as all its caches allow. */
static void raise_table(struct factor_choice *choice, size_t begin, size_t end)
{
    const uint32_t t = choice->plan->shards[begin].table;
    double *factor = &choice->plan->load_factors[t];
    double more = CACHE_MAX_LOAD_FACTOR - *factor;

    for (size_t i = begin; i < end; i++) {
        const size_t p = choice->pools.of_shard[i];
        double n_pieces = 0;

        for (size_t j = begin; j < end; j++)
            n_pieces += choice->pools.of_shard[j] == p;
        more = fmin(more, choice->spare[p] / (n_pieces * rows_of(choice, t)));
    }
    if (!(more > 0))
        return;
    *factor += more;
    for (size_t i = begin; i < end; i++)
        choice->spare[choice->pools.of_shard[i]] -= more * rows_of(choice, t);
}

/* Calls raise_table for all cached tables. The factors of tables begin at 0, or
 * at the least of their caches if is_least is set. */
static void raise_all(struct factor_choice *choice, bool is_least)
{
    const struct plan *plan = choice->plan;

    for (size_t begin = 0, end; begin < plan->n_shards; begin = end) {
        const uint32_t t = plan->shards[begin].table;
        double least = 1;

        for (end = begin; end < plan->n_shards && plan->shards[end].table == t;)
            end++;
        if (plan->shards[begin].tier != TIER_CACHED)
            continue;
        if (!is_least) {
            raise_table(choice, begin, end);
            continue;
        }
        for (size_t i = begin; i < end; i++)
            least = fmin(least, choice->most[choice->pools.of_shard[i]]);
        plan->load_factors[t] = least;
        for (size_t i = begin; i < end; i++)
            choice->spare[choice->pools.of_shard[i]] -=
                least * rows_of(choice, t);
    }
}

void plan_choose_factors(struct plan *plan, const struct cache_curve *curves,
                         struct arena *arena)
{
    struct factor_choice choice = {.plan = plan};
    size_t n;

    plan->load_factors = NULL;
    if (!plan_has_caches(plan))
        return;
    cache_pools_init(&choice.pools, plan);
    n = choice.pools.n;
    choice.lanes = mem_alloc(n, sizeof(*choice.lanes));
    choice.most = mem_alloc(n, sizeof(*choice.most));
    choice.weight = mem_alloc(n, sizeof(*choice.weight));
    choice.spare = mem_alloc(n, sizeof(*choice.spare));
    plan->load_factors = ARENA_NEW(arena, double, plan->problem.n_tables);
    add_up(&choice, curves);
    share_all(&choice);
    for (size_t p = 0; p < n; p++)
        choice.spare[p] = choice.most[p] * choice.weight[p];
    raise_all(&choice, true);
    raise_all(&choice, false);
    mem_free(choice.spare);
    mem_free(choice.weight);
    mem_free(choice.most);
    mem_free(choice.lanes);
    cache_pools_release(&choice.pools);
}
