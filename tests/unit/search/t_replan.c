/* SPDX-License-Identifier: MIT */
#include "search/migration.h"

#include "core/plan_moves.h"
#include "core/plan_price.h"
#include "search/front.h"
#include "search/search.h"
#include "tests/judge.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#include <math.h>

#define GIB (UINT64_C(1) << 30)
#define EFFORT 20000

static struct search_options options_of(void)
{
    struct search_options options;

    search_options_init(&options);
    options.effort = EFFORT;
    return options;
}

/* Searches for a plan of the problem without a current plan. */
static int search(struct plan *plan, const struct problem *problem,
                  const struct oracle *oracle, struct arena *arena,
                  struct err *err)
{
    struct search_options options = options_of();

    *plan = (struct plan){.problem = *problem};
    if (search_full(plan, oracle, &options, arena, err))
        return -1;
    return judge_plan(plan, oracle, arena, err);
}

static int replan(struct plan *plan, const struct problem *problem,
                  const struct plan *from, uint64_t limit_bytes,
                  const struct oracle *oracle, struct arena *arena,
                  struct err *err)
{
    struct search_options options = options_of();
    const double begin_ms = clock_ms();

    *plan = (struct plan){.problem = *problem};
    if (search_replan(plan, from, limit_bytes, oracle, &options, NULL, arena,
                      err))
        return -1;
    judge_time(plan, begin_ms);
    return judge_plan(plan, oracle, arena, err);
}

static uint64_t moved(const struct plan *from, const struct plan *to,
                      struct arena *arena)
{
    struct plan_moves moves;

    plan_moves_find(&moves, from, to, arena);
    return moves.bytes.moved;
}

static const uint32_t all_on_gpu_0[6];

/* Four tables: the first three are on GPU 0, the fourth is new. */
static void check_by_hand(void)
{
    const uint64_t one = 1000 * 17 * 4; /* weights and one state per row */
    struct err err = {0};
    struct problem problem;
    struct oracle oracle;
    struct arena arena = {0};
    struct plan from, plan;

    fake_equal_problem(&problem, 4, 2, &arena);
    oracle = fake_oracle(&problem);
    from = fake_whole_plan(&problem, all_on_gpu_0, 3, &arena);
    ok(!judge_plan(&from, &oracle, &arena, &err), "the old plan: %s", err.msg);
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
           "a table whose move gains nothing stays");
    arena_release(&arena);
}

static void check_too_little(void)
{
    struct err err = {0};
    struct problem problem;
    struct oracle oracle;
    struct arena arena = {0};
    struct plan from, plan;

    fake_equal_problem(&problem, 2, 2, &arena);
    oracle = fake_oracle(&problem);
    from = fake_whole_plan(&problem, all_on_gpu_0, 2, &arena);
    problem.cluster.memory_bytes[0] = problem.cluster.memory_bytes[1] = 100000;
    ok(replan(&plan, &problem, &from, 1000, &oracle, &arena, &err) &&
           err.code == ERR_NO_PLAN,
       "the GPU has less memory now, so one table must go");
    is_str(err.msg,
           "no plan was found that moves at most 1000 B; the least movement "
           "found that suffices is 66.4 KiB, 68000 B",
           "the message names the least migration");
    arena_release(&arena);
}

/* The message distinguishes two kinds of bytes that must move: bytes on a GPU
 * that is gone, and rows whose blocks change because there are three ranks
 * instead of two. */
static void check_why_so_much(void)
{
    const struct shard halves[] = {
        {0, SHARD_ROW, 0, 500, 0, 16, 0, TIER_HBM},
        {0, SHARD_ROW, 500, 1000, 0, 16, 1, TIER_HBM}};
    const uint32_t each_on_its_own[] = {0, 1};
    struct random_oracle oracle;
    struct err err = {0};
    struct problem old, problem;
    struct arena arena = {0};
    struct plan from, plan;
    struct rng rng;

    rng_init(&rng, 8, 0);
    fake_equal_problem(&old, 2, 2, &arena);
    from = fake_whole_plan(&old, each_on_its_own, 2, &arena);
    fake_equal_problem(&problem, 2, 1, &arena);
    random_oracle_init(&oracle, &problem, &rng);
    ok(replan(&plan, &problem, &from, 512, &oracle.base, &arena, &err) &&
           err.code == ERR_NO_PLAN,
       "a GPU is gone");
    ok(err.shortage.have_bytes == 512 && err.shortage.need_bytes == 68000,
       "the error has the limit and the least migration");
    is_str(err.msg,
           "no plan was found that moves at most 512 B; the least movement "
           "found that suffices is 66.4 KiB, 68000 B; 66.4 KiB of it are on "
           "GPUs that are gone",
           "the message names the bytes on GPUs that are gone");
    fake_equal_problem(&old, 1, 2, &arena);
    from = fake_plan(&old, halves, 2, &arena);
    fake_equal_problem(&problem, 1, 3, &arena);
    problem.kinds = SHARD_ROW;
    random_oracle_init(&oracle, &problem, &rng);
    oracle.base.row_cut = ROW_CUT_RANKS;
    ok(replan(&plan, &problem, &from, 0, &oracle.base, &arena, &err) &&
           err.code == ERR_NO_PLAN,
       "a GPU more");
    is_str(
        err.msg,
        "no plan was found that moves at most 0 B; the least movement found "
        "that suffices is 33.1 KiB, 33864 B; 33.1 KiB of it are of tables cut "
        "by rows, whose blocks change with the number of rows and of GPUs",
        "cuts rows elsewhere");
    arena_release(&arena);
}

/* Three tables on two GPUs that hold one each: the reason is the same as that
 * of a free search. */
static void check_no_plan(void)
{
    struct search_options options = options_of();
    struct err err = {0}, free_err = {0};
    struct problem problem;
    struct oracle oracle;
    struct arena arena = {0};
    struct plan from, plan;

    fake_equal_problem(&problem, 3, 2, &arena);
    oracle = fake_oracle(&problem);
    from = fake_whole_plan(&problem, all_on_gpu_0, 2, &arena);
    problem.cluster.memory_bytes[0] = problem.cluster.memory_bytes[1] = 113000;
    plan = (struct plan){.problem = problem};
    ok(search_full(&plan, &oracle, &options, &arena, &free_err) &&
           free_err.code == ERR_NO_PLAN,
       "no room");
    ok(replan(&plan, &problem, &from, NO_MOVE_LIMIT, &oracle, &arena, &err) &&
           err.code == ERR_NO_PLAN,
       "even without a limit");
    is_str(err.msg, free_err.msg, "for the same reason");
    arena_release(&arena);
}

/* Row blocks are uneven, to match the memory of the GPUs. A free search cuts
 * evenly and finds no plan, but the current plan is valid. */
static void check_only_stands(void)
{
    const struct shard shards[] = {
        {0, SHARD_ROW, 0, 100, 0, 16, 0, TIER_HBM},
        {0, SHARD_ROW, 100, 1000, 0, 16, 1, TIER_HBM}};
    struct search_options options = options_of();
    struct random_oracle oracle;
    struct err err = {0};
    struct problem problem;
    struct arena arena = {0};
    struct plan from, plan;
    struct rng rng;

    fake_equal_problem(&problem, 1, 2, &arena);
    problem.kinds = SHARD_TABLE | SHARD_ROW;
    problem.cluster.memory_bytes[0] = 100 * 17 * 4;
    problem.cluster.memory_bytes[1] = 900 * 17 * 4;
    rng_init(&rng, 8, 0);
    random_oracle_init(&oracle, &problem, &rng);
    from = fake_plan(&problem, shards, 2, &arena);
    plan = (struct plan){.problem = problem};
    ok(search_full(&plan, &oracle.base, &options, &arena, &err) &&
           err.code == ERR_NO_PLAN,
       "a free search finds no plan: %s", err.msg);
    ok(!replan(&plan, &problem, &from, NO_MOVE_LIMIT, &oracle.base, &arena,
               &err),
       "but the current plan is valid: %s", err.msg);
    is_i64((int64_t)moved(&from, &plan, &arena), 0, "and stays");
    arena_release(&arena);
}

/* Column pieces and row blocks of any size, on any GPU, of tables that grow and
 * shrink. Nothing moves. */
static void check_grown(void)
{
    const uint64_t rows[] = {1000, 1000, 500};
    const uint32_t dims[] = {128, 64, 2048};
    const struct shard old[] = {
        {0, SHARD_COLUMN, 0, 1000, 0, 60, 0, TIER_HBM},
        {0, SHARD_COLUMN, 0, 1000, 60, 100, 2, TIER_HBM},
        {0, SHARD_COLUMN, 0, 1000, 100, 128, 1, TIER_HBM},
        {1, SHARD_GRID, 0, 300, 0, 40, 2, TIER_HBM},
        {1, SHARD_GRID, 300, 1000, 0, 40, 0, TIER_HBM},
        {1, SHARD_GRID, 0, 990, 40, 64, 1, TIER_HBM},
        {1, SHARD_GRID, 990, 1000, 40, 64, 0, TIER_HBM},
        {2, SHARD_COLUMN, 0, 500, 0, 4, 0,
         TIER_HBM}, /* finer than all widths of 2048 */
        {2, SHARD_COLUMN, 0, 500, 4, 2048, 1, TIER_HBM},
    };
    struct problem problem;
    struct random_oracle oracle;
    struct arena arena = {0};
    struct plan from, plan;
    struct rng rng;

    rng_init(&rng, 1, 0);
    fake_problem(&problem, rows, dims, 3, 3, GIB, &arena);
    random_oracle_init(&oracle, &problem, &rng);
    from = fake_plan(&problem, old, 9, &arena);
    for (uint64_t percent = 80; percent <= 120; percent += 5) {
        struct err err = {0};

        problem.tables = ARENA_NEW(&arena, struct table, 3);
        memcpy(problem.tables, from.problem.tables, 3 * sizeof(struct table));
        for (uint32_t t = 0; t < 3; t++)
            problem.tables[t].num_embeddings = rows[t] * percent / 100;
        ok(!replan(&plan, &problem, &from, 0, &oracle.base, &arena, &err),
           "planned with %d %% of the rows: %s", (int)percent, err.msg);
        is_i64((int64_t)moved(&from, &plan, &arena), 0, "nothing moves");
    }
    arena_release(&arena);
}

/* Compares the Pareto front with all points that were ever offered, as long as
 * it has free space. If it is full, only its ends must be as good. No point may
 * be dominated. */
static void check_front(void)
{
    size_t n_wrong = 0, n_full = 0;
    struct rng rng;

    rng_init(&rng, 5, 0);
    for (unsigned round = 0; round < 200; round++) {
        struct front front = {0};
        double best[1000], spread = round % 2 ? 1 : 30;
        uint32_t most = round % 2 ? 300 : 40;

        for (uint32_t b = 0; b < 1000; b++)
            best[b] = INFINITY;
        for (uint32_t i = 0; i < most; i++) {
            uint32_t bytes = (uint32_t)rng_below(&rng, 1000);
            double total_ms = 1000 - bytes + spread * rng_uniform(&rng);
            struct snapshot *room;

            for (uint32_t b = bytes; b < 1000; b++)
                best[b] = fmin(best[b], total_ms);
            room = front_add(&front, bytes, total_ms);
            if (room)
                room->total_ms = total_ms;
        }
        n_full += front.n == FRONT_MAX;
        for (uint32_t i = 1; i < front.n; i++)
            n_wrong += front.points[i].moved_bytes <=
                           front.points[i - 1].moved_bytes ||
                       front.points[i].total_ms >= front.points[i - 1].total_ms;
        for (uint32_t b = 0; b < 1000; b++) {
            const struct snapshot *point = front_within(&front, b);

            if (front.n < FRONT_MAX || b == 999)
                n_wrong += (point ? point->total_ms : INFINITY) != best[b];
            n_wrong += !point && isfinite(best[b]);
        }
        front_thin(&front, 0.01);
        for (uint32_t i = 1; i < front.n; i++)
            n_wrong +=
                front.points[i].total_ms >= 0.99 * front.points[i - 1].total_ms;
        front_release(&front);
    }
    is_i64((int64_t)n_wrong, 0, "fronts are those of all that was offered");
    ok(n_full > 50, "%zu have no room left", n_full);
}

/* All tables are on one GPU. Even without annealing, the path from the free
 * plan to the current plan gives a plan for each number of moved tables. */
static void check_way_back(void)
{
    const uint64_t one = 1000 * 17 * 4;
    struct search_options options = options_of();
    double last_ms = INFINITY;
    struct problem problem;
    struct oracle oracle;
    struct arena arena = {0};
    struct plan from;

    options.effort = 0;
    fake_equal_problem(&problem, 6, 2, &arena);
    oracle = fake_oracle(&problem);
    from = fake_whole_plan(&problem, all_on_gpu_0, 6, &arena);
    for (uint64_t n = 0; n < 5; n++) {
        struct plan plan = {.problem = problem};
        struct replan_report report;
        struct err err = {0};

        ok(!search_replan(&plan, &from, n * one, &oracle, &options, &report,
                          &arena, &err) &&
               !judge_plan(&plan, &oracle, &arena, &err),
           "%d tables may move: %s", (int)n, err.msg);
        is_i64((int64_t)moved(&from, &plan, &arena),
               (int64_t)(n < 3 ? n * one : 3 * one), "and do up to three");
        ok(n > 3 ? plan.total_ms == last_ms : plan.total_ms < last_ms,
           "each for a gain");
        last_ms = plan.total_ms;
        ok(report.n_front == (n ? 4 : 1) && !report.standing.moved_bytes &&
               report.standing.total_ms == report.front[0].total_ms,
           "the first plan of the front is the current plan");
    }
    arena_release(&arena);
}

/* A table whose number of columns changed is placed anew. */
static void check_other_columns(void)
{
    const uint64_t rows[] = {1000, 1000, 1000};
    const uint32_t dims[] = {64, 64, 64};
    const struct shard old[] = {{0, SHARD_COLUMN, 0, 1000, 0, 40, 0, TIER_HBM},
                                {0, SHARD_COLUMN, 0, 1000, 40, 64, 2, TIER_HBM},
                                {1, SHARD_TABLE, 0, 1000, 0, 64, 1, TIER_HBM},
                                {2, SHARD_TABLE, 0, 1000, 0, 64, 2, TIER_HBM}};
    struct err err = {0};
    struct problem problem, now;
    struct oracle oracle;
    struct arena arena = {0};
    struct plan from, plan;

    fake_problem(&problem, rows, dims, 3, 3, GIB, &arena);
    now = problem;
    from = fake_plan(&problem, old, 4, &arena);
    for (uint32_t dim = 32; dim <= 96; dim += 64) {
        now.tables = ARENA_NEW(&arena, struct table, 3);
        memcpy(now.tables, problem.tables, 3 * sizeof(struct table));
        now.tables[0].dim = dim;
        oracle = fake_oracle(&now);
        ok(!replan(&plan, &now, &from, 100000, &oracle, &arena, &err),
           "planned with %u columns: %s", dim, err.msg);
        ok(moved(&from, &plan, &arena) <= 100000, "within the limit");
    }
    arena_release(&arena);
}

/* GPU 0 has 1000 B left, but 20,000 should be free. */
static void check_reserve(void)
{
    const uint64_t rows[] = {1000, 1000, 200};
    const uint32_t dims[] = {16, 16, 16};
    const uint64_t one = 1000 * 16 * 4; /* weights only */
    struct replan_report report;
    struct search_options options = options_of();
    struct err err = {0};
    struct problem problem;
    struct oracle oracle;
    struct arena arena = {0};
    struct plan from, plan;

    fake_problem(&problem, rows, dims, 3, 2, 2 * one + 1000, &arena);
    problem.kinds = SHARD_TABLE;
    oracle = fake_oracle(&problem);
    from = fake_whole_plan(&problem, all_on_gpu_0, 2, &arena);
    problem.cluster.reserve_bytes = ARENA_NEW(&arena, uint64_t, 2);
    problem.cluster.reserve_bytes[0] = 20000;
    problem.cluster.reserve_bytes[1] = 20000;
    plan.problem = problem;
    ok(!replan(&plan, &problem, &from, 0, &oracle, &arena, &err),
       "tables may stay within the reserve: %s", err.msg);
    is_i64((int64_t)plan.problem.cluster.reserve_bytes[0], 1000,
           "the reserve shrinks to the free bytes");
    is_i64((int64_t)plan.problem.cluster.reserve_bytes[1], 20000,
           "others keep theirs");
    is_i64(plan.shards[2].device, 1, "and the new table goes there");
    ok(!replan(&plan, &problem, &from, NO_MOVE_LIMIT, &oracle, &arena, &err),
       "without a limit: %s", err.msg);
    ok(moved(&from, &plan, &arena) > 0 &&
           plan.problem.cluster.reserve_bytes == problem.cluster.reserve_bytes,
       "the reserve is kept");
    problem.cluster.reserve_bytes[1] = 2 * one;
    plan = (struct plan){.problem = problem};
    ok(search_replan(&plan, &from, NO_MOVE_LIMIT, &oracle, &options, &report,
                     &arena, &err) &&
           plan.problem.cluster.reserve_bytes == problem.cluster.reserve_bytes,
       "the new table fits nowhere: %s", err.msg);
    problem.n_tables = 2;
    plan = (struct plan){.problem = problem};
    err = (struct err){0};
    ok(!search_replan(&plan, &from, NO_MOVE_LIMIT, &oracle, &options, &report,
                      &arena, &err) &&
           !moved(&from, &plan, &arena) &&
           plan.problem.cluster.reserve_bytes[0] == 1000,
       "if no plan keeps the reserve, the current plan is kept: %s", err.msg);
    arena_release(&arena);
}

/* The best plan, except that the names of the GPUs are exchanged. */
static void check_names(void)
{
    const uint64_t rows[] = {1000, 1000, 1000, 1000, 1000, 1000};
    const uint32_t dims[] = {128, 68, 60, 36, 28, 64};
    const uint32_t gpu[] = {2, 0, 0, 1, 1, 1};
    struct search_options options = options_of();
    struct err err = {0};
    struct problem problem;
    struct oracle oracle;
    struct arena arena = {0};
    struct plan from, plan;

    fake_problem(&problem, rows, dims, 6, 3, GIB, &arena);
    problem.kinds = SHARD_TABLE;
    oracle = fake_oracle(&problem);
    from = fake_whole_plan(&problem, gpu, 6, &arena);
    ok(!judge_plan(&from, &oracle, &arena, &err), "the old plan: %s", err.msg);
    ok(!replan(&plan, &problem, &from, NO_MOVE_LIMIT, &oracle, &arena, &err),
       "planned anew: %s", err.msg);
    is_near(plan.total_ms, from.total_ms, 1e-9, "as good as it was");
    is_i64((int64_t)moved(&from, &plan, &arena), 0,
           "the plan found has the old names");
    from.shards[3].device = 2; /* one table elsewhere, too; no annealing */
    options.effort = 0;
    plan = (struct plan){.problem = problem};
    ok(!search_replan(&plan, &from, NO_MOVE_LIMIT, &oracle, &options, NULL,
                      &arena, &err),
       "planned anew: %s", err.msg);
    ok(moved(&from, &plan, &arena) < 600000,
       "most of 1,560,000 B stays under the old names");
    arena_release(&arena);
}

/* A time limit far in the future has the same result as no limit. */
static void check_time(void)
{
    const uint64_t rows[] = {1000, 2000, 500, 900};
    const uint32_t dims[] = {16, 16, 32, 64};
    struct plan from, plans[2];
    struct search_options options = options_of();
    struct err err = {0};
    struct problem problem;
    struct oracle oracle;
    struct arena arena = {0};

    fake_problem(&problem, rows, dims, 4, 3, GIB, &arena);
    oracle = fake_oracle(&problem);
    from = fake_whole_plan(&problem, all_on_gpu_0, 4, &arena);
    for (unsigned i = 0; i < 2; i++) {
        plans[i] = (struct plan){.problem = problem};
        options.time_limit_ms = i * 1e6;
        ok(!search_replan(&plans[i], &from, NO_MOVE_LIMIT, &oracle, &options,
                          NULL, &arena, &err),
           "a plan: %s", err.msg);
    }
    is_str(plans[1].stopped, plans[0].stopped, "stopped as without a limit");
    is_i64((int64_t)plans[1].n_evaluations, (int64_t)plans[0].n_evaluations,
           "after as many evaluations");
    arena_release(&arena);
}

static bool same_shards(const struct plan *a, const struct plan *b)
{
    bool same = a->n_shards == b->n_shards;

    for (size_t i = 0; same && i < a->n_shards; i++)
        same = a->shards[i].table == b->shards[i].table &&
               a->shards[i].device == b->shards[i].device &&
               a->shards[i].row_begin == b->shards[i].row_begin &&
               a->shards[i].row_end == b->shards[i].row_end &&
               a->shards[i].col_begin == b->shards[i].col_begin &&
               a->shards[i].col_end == b->shards[i].col_end;
    return same;
}

/* Tables are anywhere, without replicas, and may not move. The answer is known
 * before any search. */
static void check_at_once(void)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct random_oracle oracle;
        struct problem problem;
        struct plan from, plan = {0};
        uint32_t device_of[30];
        struct arena arena = {0};
        struct err err = {0};
        struct rng rng;

        rng_init(&rng, seed, 9);
        fake_random(&problem, &rng, 40, &arena);
        random_oracle_init(&oracle, &problem, &rng);
        for (size_t t = 0; t < problem.n_tables; t++)
            device_of[t] = (uint32_t)rng_below(&rng, problem.cluster.n_devices);
        from = fake_whole_plan(&problem, device_of, (uint32_t)problem.n_tables,
                               &arena);
        ok(!replan(&plan, &problem, &from, 0, &oracle.base, &arena, &err) &&
               same_shards(&from, &plan) && plan.n_evaluations == 1,
           "seed %d: the answer is the current plan: %s", (int)seed, err.msg);
        arena_release(&arena);
    }
}

/* Tables that all GPUs hold. Changing them to another sharding moves
 * nothing. */
static void check_replicas_go(void)
{
    size_t n_gone = 0, n_stay = 0, n_wrong = 0, n = tap_size(20, 60);

    for (uint64_t seed = 0; seed < n; seed++) {
        const uint64_t few = seed % 2 ? 1 : 1000;
        const uint64_t rows[] = {few, 2 * few, 3 * few};
        const uint32_t dims[] = {64, 32, 16};
        struct random_oracle oracle;
        struct problem problem;
        struct shard shards[6];
        struct plan from, plan = {0};
        struct arena arena = {0};
        struct err err = {0};
        struct rng rng;

        rng_init(&rng, seed, 10);
        fake_problem(&problem, rows, dims, 3, 2, GIB, &arena);
        random_oracle_init(&oracle, &problem, &rng);
        for (uint32_t i = 0; i < 6; i++) {
            shards[i] = shard_whole(&problem, i / 2, i % 2);
            shards[i].kind = SHARD_REPLICATE;
        }
        from = fake_plan(&problem, shards, 6, &arena);
        n_wrong +=
            plan_price(&from, &oracle.base, &arena, &err) ||
            replan(&plan, &problem, &from, 0, &oracle.base, &arena, &err) ||
            moved(&from, &plan, &arena) ||
            plan.total_ms > from.total_ms * (1 + 1e-9);
        if (same_shards(&from, &plan))
            n_stay++;
        else
            n_gone += plan.total_ms < from.total_ms;
        n_wrong += same_shards(&from, &plan) != (plan.n_evaluations < 100);
        arena_release(&arena);
    }
    is_i64((int64_t)n_wrong, 0, "replicas that may not move");
    ok(n_gone && n_stay && n_gone + n_stay == n,
       "%zu times some become something else, %zu times all stay", n_gone,
       n_stay);
}

/* Changes the number of GPUs and the loads, and removes a table; the oracles
 * are random. */
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
    problem_find_hot_rows(problem, arena);
    for (uint32_t r = 0; r < old->cluster.n_devices; r++)
        most += old->cluster.memory_bytes[r];
    fake_cluster(problem, n, 4 * most / n + 1000, arena);
}

/* If nothing changes, the plan stays as it is, or costs less. */
static void check_same(void)
{
    size_t n_same = 0, n_other = 0, n = tap_size(8, 25);

    for (uint64_t seed = 100; seed < 100 + n; seed++) {
        struct random_oracle oracle;
        struct problem problem;
        struct plan from, plan;
        struct arena arena = {0};
        struct err err = {0};
        struct rng rng;

        rng_init(&rng, seed, 7);
        fake_random(&problem, &rng, 3, &arena);
        random_oracle_init(&oracle, &problem, &rng);
        if (!search(&from, &problem, &oracle.base, &arena, &err) &&
            !replan(&plan, &problem, &from, 0, &oracle.base, &arena, &err) &&
            plan.total_ms > from.total_ms * (1 - 1e-9)) {
            if (same_shards(&from, &plan))
                n_same++;
            else
                n_other++;
        }
        arena_release(&arena);
    }
    ok(!n_other && n_same > n / 2,
       "without changes the plan stays, %zu of %zu times", n_same, n);
}

static void check_random(void)
{
    size_t n = 0, n_stay = 0, n_bad = 0, n_over = 0, n_worse = 0, n_none = 0,
           n_moved = 0, n_seeds = tap_size(20, 60);

    for (uint64_t seed = 0; seed < n_seeds; seed++) {
        struct random_oracle old_oracle, oracle;
        struct problem old, problem;
        struct plan from, plan, free_plan;
        struct arena arena = {0};
        struct err err = {0};
        struct rng rng;
        uint64_t limit, least;

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
        if (!replan(&plan, &problem, &from, limit, &oracle.base, &arena,
                    &err)) {
            n_over += moved(&from, &plan, &arena) > limit;
        } else {
            n_bad += err.code != ERR_NO_PLAN;
            n_none += replan(&plan, &problem, &from, least, &oracle.base,
                             &arena, &err) != 0;
        }
        arena_release(&arena);
    }
    is_i64((int64_t)n_stay, (int64_t)n,
           "tables that may not move stay, and cost no more");
    is_i64((int64_t)n_bad, 0, "all plans pass plan_check");
    is_i64((int64_t)n_over, 0, "no plan exceeds its limit");
    is_i64((int64_t)n_worse, 0,
           "without a limit no plan is worse than the free one");
    ok(n_moved > n_seeds / 2, "something moves in %zu plans", n_moved);
    is_i64((int64_t)n_none, 0,
           "a limit equal to a plan's migration has a plan");
}

int main(void)
{
    check_by_hand();
    check_too_little();
    check_why_so_much();
    check_no_plan();
    check_only_stands();
    check_grown();
    check_front();
    check_way_back();
    check_other_columns();
    check_reserve();
    check_names();
    check_time();
    check_same();
    check_at_once();
    check_replicas_go();
    check_random();
    return tap_done();
}
