/* SPDX-License-Identifier: MIT */
#include "search/replan.h"

#include "core/plan_check.h"
#include "core/plan_moves.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define GIB (UINT64_C(1) << 30)
#define EFFORT 20000

static struct search_options options_of(void)
{
    struct search_options options;

    search_options_init(&options);
    options.effort = EFFORT;
    return options;
}

static int finish(struct plan *plan, const struct oracle *oracle,
                  struct arena *arena, struct err *err)
{
    plan_derive_kinds(plan);
    if (plan_price(plan, oracle, arena, err))
        return -1;
    return plan_check(plan, err);
}

/* A free plan of the problem. */
static int search(struct plan *plan, const struct problem *problem,
                  const struct oracle *oracle, struct arena *arena,
                  struct err *err)
{
    struct search_options options = options_of();

    *plan = (struct plan){.problem = *problem};
    if (search_full(plan, oracle, &options, arena, err))
        return -1;
    return finish(plan, oracle, arena, err);
}

static int replan(struct plan *plan, const struct problem *problem,
                  const struct plan *from, uint64_t limit_bytes,
                  const struct oracle *oracle, struct arena *arena,
                  struct err *err)
{
    struct search_options options = options_of();

    *plan = (struct plan){.problem = *problem};
    if (search_replan(plan, from, limit_bytes, oracle, &options, arena, err))
        return -1;
    return finish(plan, oracle, arena, err);
}

static uint64_t moved(const struct plan *from, const struct plan *to,
                      struct arena *arena)
{
    struct plan_moves moves;

    plan_moves_find(&moves, from, to, arena);
    return moves.bytes.moved;
}

/* Four tables of which the first three stand on GPU 0, the fourth nowhere. */
static struct plan crowded(struct problem *problem, const struct oracle *oracle,
                           struct arena *arena)
{
    struct plan from = {.problem = *problem};
    struct err err = {0};

    from.problem.n_tables = 3;
    from.shards = ARENA_NEW(arena, struct shard, 3);
    for (uint32_t t = 0; t < 3; t++)
        from.shards[from.n_shards++] = shard_whole(problem, t, 0);
    ok(!finish(&from, oracle, arena, &err), "the old plan: %s", err.msg);
    return from;
}

static void check_by_hand(void)
{
    const uint64_t rows[] = {1000, 1000, 1000, 1000};
    const uint32_t dims[] = {16, 16, 16, 16};
    const uint64_t one = 1000 * 17 * 4; /* weights and a state a row */
    struct err err = {0};
    struct problem problem;
    struct oracle oracle;
    struct arena arena;
    struct plan from, plan;

    arena_init(&arena);
    fake_problem(&problem, rows, dims, 4, 2, GIB, &arena);
    problem.kinds = SHARD_TABLE;
    oracle = fake_oracle(&problem);
    from = crowded(&problem, &oracle, &arena);
    ok(!replan(&plan, &problem, &from, 0, &oracle, &arena, &err),
       "nothing may move: %s", err.msg);
    is_i64((int64_t)moved(&from, &plan, &arena), 0, "and nothing does");
    is_i64(plan.shards[3].device, 1, "the new table goes where nothing is");
    ok(!replan(&plan, &problem, &from, one, &oracle, &arena, &err),
       "one may move: %s", err.msg);
    is_i64((int64_t)moved(&from, &plan, &arena), (int64_t)one, "one does");
    is_near(plan.devices[0].compute_ms, plan.devices[1].compute_ms, 1e-12,
            "and both GPUs are even");
    is_str(plan.search, "replan", "the search has a name");
    ok(!replan(&plan, &problem, &from, NO_MOVE_LIMIT, &oracle, &arena, &err),
       "all may move: %s", err.msg);
    is_i64((int64_t)moved(&from, &plan, &arena), (int64_t)one,
           "what gains nothing stays");
    arena_release(&arena);
}

static void check_too_little(void)
{
    const uint64_t rows[] = {1000, 1000};
    const uint32_t dims[] = {16, 16};
    struct err err = {0};
    struct problem problem;
    struct oracle oracle;
    struct arena arena;
    struct plan from = {0}, plan;

    arena_init(&arena);
    fake_problem(&problem, rows, dims, 2, 2, GIB, &arena);
    problem.kinds = SHARD_TABLE;
    oracle = fake_oracle(&problem);
    from.problem = problem;
    from.shards = ARENA_NEW(&arena, struct shard, 2);
    from.n_shards = 2;
    from.shards[0] = shard_whole(&problem, 0, 0);
    from.shards[1] = shard_whole(&problem, 1, 0);
    problem.cluster.memory_bytes[0] = problem.cluster.memory_bytes[1] = 100000;
    ok(replan(&plan, &problem, &from, 1000, &oracle, &arena, &err) &&
           err.code == ERR_NO_PLAN,
       "the GPU has less memory now, so one table must go");
    is_str(err.msg,
           "no plan was found that moves at most 1000 B; the least movement "
           "found that will do is 66.4 KiB",
           "the least movement is told");
    arena_release(&arena);
}

/* Fewer or more GPUs, a table less, other loads; random oracles. */
static void change(struct problem *problem, const struct problem *old,
                   struct rng *rng, struct arena *arena)
{
    uint32_t n = 1 + (uint32_t)rng_below(rng, 6);
    uint64_t most = 0;

    *problem = *old;
    problem->tables = ARENA_NEW(arena, struct table, old->n_tables + 1);
    memcpy(problem->tables, old->tables, old->n_tables * sizeof(struct table));
    for (size_t t = 0; t < old->n_tables; t++)
        problem->tables[t].pooling_factor *= 0.5 + rng_uniform(rng);
    if (rng_below(rng, 2)) {
        problem->tables[0].name = "another";
        problem->tables[0].dim = 64;
    }
    for (uint32_t r = 0; r < old->cluster.n_devices; r++)
        most += old->cluster.memory_bytes[r];
    fake_cluster(problem, n, 4 * most / n + 1000, arena);
}

static void check_random(void)
{
    size_t n = 0, n_stay = 0, n_bad = 0, n_over = 0, n_worse = 0, n_none = 0,
           n_moved = 0;

    for (uint64_t seed = 0; seed < 60; seed++) {
        struct random_oracle old_oracle, oracle;
        struct problem old, problem;
        struct plan from, plan, free_plan;
        struct arena arena;
        struct err err = {0};
        struct rng rng;
        uint64_t limit, least;

        arena_init(&arena);
        rng_init(&rng, seed, 7);
        fake_random(&old, &rng, 3, &arena);
        random_oracle_init(&old_oracle, &old, &rng);
        change(&problem, &old, &rng, &arena);
        oracle = old_oracle;
        oracle.base.problem = &problem;
        if (search(&from, &old, &old_oracle.base, &arena, &err)) {
            arena_release(&arena);
            continue;
        }
        n_stay +=
            !replan(&plan, &old, &from, 0, &old_oracle.base, &arena, &err) &&
            !moved(&from, &plan, &arena) &&
            plan.total_ms <= from.total_ms * (1 + 1e-9);
        n++;
        if (search(&free_plan, &problem, &oracle.base, &arena, &err)) {
            arena_release(&arena);
            continue; /* no plan fits */
        }
        if (replan(&plan, &problem, &from, NO_MOVE_LIMIT, &oracle.base, &arena,
                   &err)) {
            n_bad++;
            printf("# seed %" PRIu64 ": %s\n", seed, err.msg);
            arena_release(&arena);
            continue;
        }
        n_worse += plan.total_ms > free_plan.total_ms * (1 + 2e-4);
        least = moved(&from, &plan, &arena);
        n_moved += least > 0;
        limit = (uint64_t)(rng_uniform(&rng) * (double)least);
        if (replan(&plan, &problem, &from, limit, &oracle.base, &arena, &err)) {
            n_none++;
            n_bad += err.code != ERR_NO_PLAN;
        } else if (moved(&from, &plan, &arena) > limit) {
            n_over++;
        }
        arena_release(&arena);
    }
    is_i64((int64_t)n_stay, (int64_t)n,
           "what may not move stays, and costs no more");
    is_i64((int64_t)n_bad, 0, "plans, and they pass plan_check");
    is_i64((int64_t)n_over, 0, "none moves more than it may");
    is_i64((int64_t)n_worse, 0, "without a limit none is worse than free");
    ok(n_moved > 30, "of %zu something moves", n_moved);
    ok(n_none < 20, "only %zu find none within the limit", n_none);
}

int main(void)
{
    check_by_hand();
    check_too_little();
    check_random();
    return tap_done();
}
