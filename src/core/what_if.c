/* SPDX-License-Identifier: MIT */
#include "core/what_if.h"

#include "core/cache_use.h"
#include "core/canonical.h"
#include "core/memory.h"

#include <string.h>

/* Sums the vectors of the shards of each device, table by table in canonical
 * order. So the sums have the same bits for any order of the table list. */
static void sum_up(struct what_if *what_if)
{
    const struct plan *plan = what_if->plan;
    const struct problem *problem = &plan->problem;
    const size_t n = problem->n_tables, width = what_if->oracle->width;
    uint32_t *order = mem_alloc(n, sizeof(*order));
    size_t *n_of = mem_alloc(n, sizeof(*n_of)), pos = 0;
    size_t *next_of = mem_alloc(n, sizeof(*next_of));
    struct shard *shards = mem_alloc(plan->n_shards, sizeof(*shards));
    double *vectors = mem_alloc(plan->n_shards * width, sizeof(*vectors));

    tables_canonical_order(problem->tables, n, order);
    for (size_t i = 0; i < plan->n_shards; i++)
        n_of[plan->shards[i].table]++;
    for (size_t k = 0; k < n; k++) {
        next_of[order[k]] = pos;
        pos += n_of[order[k]];
    }
    for (size_t i = 0; i < plan->n_shards; i++) {
        pos = next_of[plan->shards[i].table]++;
        shards[pos] = plan->shards[i];
        memcpy(vectors + pos * width, what_if->vectors + i * width,
               width * sizeof(*vectors));
    }
    oracle_add_shards(what_if->oracle, shards, vectors, plan->n_shards, 1,
                      what_if->sums);
    mem_free(vectors);
    mem_free(shards);
    mem_free(next_of);
    mem_free(n_of);
    mem_free(order);
}

/* Returns true if two shards are the same piece of a table and have equal
 * embeddings. The device matters only to row blocks. */
static bool are_same_piece(const struct problem *problem, const struct shard *a,
                           const struct shard *b)
{
    return a->table == b->table && a->kind == b->kind && a->tier == b->tier &&
           a->row_begin == b->row_begin && a->row_end == b->row_end &&
           a->col_begin == b->col_begin && a->col_end == b->col_end &&
           (!shard_cuts_rows(a->kind) ||
            shard_row_ranks(problem, a) == shard_row_ranks(problem, b));
}

static bool begins_run(const struct oracle *oracle, const struct shard *shards,
                       size_t i)
{
    return !i || !are_same_piece(oracle->problem, &shards[i - 1], &shards[i]);
}

/* Fills vectors[n][width] with the embeddings of n shards. Embeds a run of
 * equal pieces, such as the replicas of a table, only once. */
static void embed(const struct oracle *oracle, const struct shard *shards,
                  size_t n, double *vectors)
{
    const size_t width = oracle->width;
    struct shard *first;
    size_t n_runs = 0;

    for (size_t i = 0; i < n; i++)
        n_runs += begins_run(oracle, shards, i);
    first = mem_alloc(n_runs, sizeof(*first));
    n_runs = 0;
    for (size_t i = 0; i < n; i++)
        if (begins_run(oracle, shards, i))
            first[n_runs++] = shards[i];
    oracle->ops->embed(oracle, first, n_runs, vectors);
    mem_free(first);
    for (size_t i = n; i > n_runs; i--) {
        memcpy(vectors + (i - 1) * width, vectors + (n_runs - 1) * width,
               width * sizeof(*vectors));
        n_runs -= begins_run(oracle, shards, i - 1);
    }
}

/* Sets the misses of the plan's caches in the sums. */
static void set_misses(struct what_if *what_if)
{
    const struct oracle *oracle = what_if->oracle;
    double *lanes = what_if->sums + oracle->tier_lane;
    struct cache_pools pools;
    struct pool_use *uses;

    cache_pools_init(&pools, what_if->plan);
    uses = mem_alloc(pools.n, sizeof(*uses));
    pools_use(what_if->plan, &pools, oracle->curves, uses);
    for (size_t p = 0; p < pools.n; p++) {
        double *device = lanes + pools.pools[p].device * (size_t)oracle->width;

        device[ORACLE_TIER_KNOWN] = 1;
        device[ORACLE_TIER_MISSED] += uses[p].fill_bytes;
    }
    mem_free(uses);
    cache_pools_release(&pools);
}

/* The caches of a device whose shards change are not known. */
static void forget_misses(const struct oracle *oracle,
                          const struct shard *shards, size_t n, double *sums)
{
    for (size_t i = 0; i < n && oracle->prices_tiers; i++)
        sums[shards[i].device * (size_t)oracle->width + oracle->tier_lane +
             ORACLE_TIER_KNOWN] = 0;
}

void what_if_init(struct what_if *what_if, const struct plan *plan,
                  const struct oracle *oracle)
{
    size_t n = plan->problem.cluster.n_devices, width = oracle->width;
    struct arena *arena = &what_if->arena;

    *what_if = (struct what_if){.plan = plan, .oracle = oracle};
    what_if->vectors = ARENA_NEW(arena, double, plan->n_shards *width);
    what_if->sums = ARENA_NEW(arena, double, n *width);
    what_if->step_sums = ARENA_NEW(arena, double, n *width);
    what_if->edited_bytes = ARENA_NEW(arena, uint64_t, n);
    what_if->compute_ms = ARENA_NEW(arena, double, n);
    what_if->bwd_comm_ms = ARENA_NEW(arena, double, n);
    what_if->fwd_comm_ms = ARENA_NEW(arena, double, n);
    oracle_empty_sums(oracle, what_if->sums);
    embed(oracle, plan->shards, plan->n_shards, what_if->vectors);
    sum_up(what_if);
    if (oracle->prices_tiers && plan_has_caches(plan))
        set_misses(what_if);
}

void what_if_release(struct what_if *what_if)
{
    arena_release(&what_if->arena);
    *what_if = (struct what_if){0};
}

double what_if_step(struct what_if *what_if, const struct edit *edit)
{
    const struct oracle *oracle = what_if->oracle;
    const size_t n = what_if->plan->problem.cluster.n_devices;
    const size_t width = oracle->width, n_gone = edit->n_gone;
    double *vectors =
        mem_alloc(max_u64(n_gone, edit->n_come) * width, sizeof(double));
    struct shard *gone = mem_alloc(n_gone, sizeof(*gone));
    double total_ms;

    memcpy(what_if->step_sums, what_if->sums, n * width * sizeof(double));
    for (size_t i = 0; i < n_gone; i++) {
        gone[i] = what_if->plan->shards[edit->gone[i]];
        memcpy(vectors + i * width, what_if->vectors + edit->gone[i] * width,
               width * sizeof(*vectors));
    }
    oracle_add_shards(oracle, gone, vectors, n_gone, -1, what_if->step_sums);
    embed(oracle, edit->come, edit->n_come, vectors);
    oracle_add_shards(oracle, edit->come, vectors, edit->n_come, 1,
                      what_if->step_sums);
    forget_misses(oracle, gone, n_gone, what_if->step_sums);
    forget_misses(oracle, edit->come, edit->n_come, what_if->step_sums);
    mem_free(vectors);
    mem_free(gone);
    oracle->ops->compute(oracle, what_if->step_sums, n, what_if->compute_ms);
    oracle->ops->comm(oracle, 1, what_if->step_sums, what_if->compute_ms,
                      what_if->fwd_comm_ms, what_if->bwd_comm_ms);
    total_ms = oracle_total_ms(n, what_if->compute_ms, what_if->bwd_comm_ms,
                               what_if->fwd_comm_ms);
    return isfinite(total_ms) ? total_ms : INFINITY;
}

const double *what_if_without(const struct plan *plan,
                              const struct oracle *oracle, struct arena *arena)
{
    double *step_ms = ARENA_NEW(arena, double, plan->problem.n_tables);
    size_t *gone = mem_alloc(plan->n_shards, sizeof(*gone));
    struct edit edit = {.gone = gone};
    struct what_if what_if;

    what_if_init(&what_if, plan, oracle);
    for (size_t i = 0; i < plan->n_shards; i++) {
        const uint32_t table = plan->shards[i].table;

        gone[edit.n_gone++] = i;
        if (i + 1 < plan->n_shards && plan->shards[i + 1].table == table)
            continue;
        step_ms[table] = what_if_step(&what_if, &edit);
        edit.n_gone = 0;
    }
    what_if_release(&what_if);
    mem_free(gone);
    return step_ms;
}

/* Checks only the devices that get a shard by the edit. */
bool what_if_fits(struct what_if *what_if, const struct edit *edit)
{
    const struct plan *plan = what_if->plan;
    uint64_t *bytes = what_if->edited_bytes;
    bool fits = true;

    for (size_t i = 0; i < edit->n_come; i++)
        bytes[edit->come[i].device] =
            plan->devices[edit->come[i].device].memory.total;
    for (size_t i = 0; i < edit->n_gone; i++) {
        const struct shard *shard = &plan->shards[edit->gone[i]];

        bytes[shard->device] -= shard_memory(&plan->problem, shard).total;
    }
    for (size_t i = 0; i < edit->n_come; i++) {
        uint32_t r = edit->come[i].device;

        bytes[r] = saturating_add(
            bytes[r], shard_memory(&plan->problem, &edit->come[i]).total);
        fits &= bytes[r] <= plan->problem.cluster.memory_bytes[r];
    }
    return fits;
}
