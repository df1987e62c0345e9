/* SPDX-License-Identifier: MIT */
#include "search/space_init.h"

#include "core/plan_price.h"
#include "search/temper.h"
#include "tests/judge.h"
#include "tests/tap.h"
#include "tests/unit/search/assignment_check.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define GIB (UINT64_C(1) << 30)
#define ROOMY (64 * GIB)

/* Returns an additive oracle that prices only lookups x width. */
static struct random_oracle plain_oracle(const struct problem *problem)
{
    struct random_oracle oracle;
    struct rng rng;

    /* any additive oracle; its coefficients are replaced below */
    for (uint64_t seed = 0; !seed || !oracle.base.is_additive; seed++) {
        rng_init(&rng, 1, seed);
        random_oracle_init(&oracle, problem, &rng);
    }
    oracle.lookup_ms = 1e-3;
    oracle.vector_ms = oracle.piece_ms = oracle.output_ms = 0;
    oracle.grad_ms = 1;
    oracle.narrow = 0;
    return oracle;
}

static int search_by_rows(struct plan *plan, const struct problem *problem,
                          enum row_cut row_cut, uint64_t effort,
                          struct arena *arena, struct err *err)
{
    struct random_oracle oracle = plain_oracle(problem);
    const double begin_ms = clock_ms();
    struct search_options options;

    oracle.base.row_cut = row_cut;
    *plan = (struct plan){.problem = *problem};
    oracle.base.problem = &plan->problem;
    search_options_init(&options);
    options.effort = effort;
    if (search_full(plan, &oracle.base, &options, arena, err))
        return -1;
    judge_time(plan, begin_ms);
    return judge_plan(plan, &oracle.base, arena, err);
}

static int search(struct plan *plan, const struct problem *problem,
                  uint64_t effort, struct arena *arena, struct err *err)
{
    return search_by_rows(plan, problem, ROW_CUT_ANY, effort, arena, err);
}

/* The load of one table equals that of the two others together. Cutting it
 * balances all devices, and the bound proves that this is optimal. */
static void check_even(void)
{
    const uint64_t rows[] = {1000, 1000, 1000};
    const uint32_t dims[] = {64, 32, 32};
    struct err err = {0};
    struct problem problem;
    struct arena arena = {0};
    struct plan plan;

    fake_problem(&problem, rows, dims, 3, 4, ROOMY, &arena);
    problem.kinds = SHARD_TABLE | SHARD_COLUMN;
    ok(!search(&plan, &problem, 20000, &arena, &err), "a plan: %s", err.msg);
    is_near(plan.total_ms, 64 * 10 * 32 * 1e-3, 1e-9, "even");
    is_near(plan.bound_ms, plan.total_ms, 1e-6, "the bound equals the total");
    is_str(plan.bound_term, "mean load", "by the mean");
    is_str(plan.stopped, "done", "so it stops");
    is_str(plan.search, "full", "and has a name");
    arena_release(&arena);
}

/* A table that may not be cut sets the bound, together with the shards on every
 * device, which share its device. Row blocks that may be cut over only some
 * devices need not share it. */
static void check_piece(unsigned kinds, enum row_cut row_cut,
                        double everywhere_ms)
{
    const uint64_t rows[] = {1000, 1000};
    const uint32_t dims[] = {64, 64};
    struct err err = {0};
    struct problem problem;
    struct arena arena = {0};
    struct plan plan;

    fake_problem(&problem, rows, dims, 2, 4, ROOMY, &arena);
    problem.kinds = SHARD_ALL_KINDS;
    problem.tables[0].kinds = SHARD_TABLE;
    problem.tables[1].kinds = kinds;
    ok(!search_by_rows(&plan, &problem, row_cut, 1000, &arena, &err),
       "a plan: %s", err.msg);
    is_near(plan.bound_ms, 64 * 10 * 64 * 1e-3 + everywhere_ms, 1e-6,
            "a piece, and the shards on every device");
    is_near(plan.total_ms, plan.bound_ms, 1e-6, "the plan reaches the bound");
    is_str(plan.bound_term, "largest piece",
           "the largest piece limits the plan");
    arena_release(&arena);
}

/* Rows may be cut only together with columns: the bound counts grids, too. */
static void check_grid(void)
{
    const uint64_t rows[] = {1000};
    const uint32_t dims[] = {64};
    const unsigned kinds[] = {SHARD_GRID, SHARD_TABLE | SHARD_GRID};
    struct err err = {0};
    struct problem problem;
    struct arena arena = {0};
    struct plan plan;

    for (unsigned i = 0; i < 2; i++) {
        fake_problem(&problem, rows, dims, 1, 4, ROOMY, &arena);
        problem.kinds = kinds[i];
        ok(!search(&plan, &problem, 20000, &arena, &err), "a plan: %s",
           err.msg);
        is_near(plan.total_ms, 64 * 10 * 16 * 1e-3, 1e-9, "a grid, even");
        is_near(plan.bound_ms, plan.total_ms, 1e-6, "and nothing is better");
    }
    arena_release(&arena);
}

/* The table has too many rows for pieces of four columns, so its rows must be
 * cut. Grids are not needed. */
static void check_rows_for_memory(void)
{
    const uint64_t rows[] = {UINT64_C(5000000000), 1000};
    const uint32_t dims[] = {16, 16};
    struct err err = {0};
    struct problem problem;
    struct arena arena = {0};
    struct plan plan;
    uint64_t most = 0;

    fake_problem(&problem, rows, dims, 2, 32, 12 * GIB, &arena);
    ok(!search(&plan, &problem, 20000, &arena, &err), "a plan: %s", err.msg);
    for (size_t i = 0; i < plan.n_shards; i++)
        if (plan.shards[i].table == 0 &&
            plan.shards[i].row_end - plan.shards[i].row_begin > most)
            most = plan.shards[i].row_end - plan.shards[i].row_begin;
    ok(most && most < rows[0], "5e9 rows are cut");
    arena_release(&arena);
}

struct shortage_case {
    const char *name;
    size_t n_tables;
    uint64_t memory_bytes, reserve_bytes;
    unsigned kinds;
    const char *want;
};

static const struct shortage_case shortage_cases[] = {
    {"one table", 2, 100 << 20, 0, SHARD_TABLE | SHARD_COLUMN,
     "no plan fits: the tables need at least 244 MiB (244 MiB weights), but 2 "
     "GPUs have 200 MiB; it would fit with 123 MiB per GPU, or 3 such GPUs"},
    {"too much in all", 4, 125 << 20, 0, SHARD_TABLE | SHARD_COLUMN,
     "no plan fits: the tables need at least 732 MiB (732 MiB weights), but 2 "
     "GPUs have 250 MiB; it would fit with 367 MiB per GPU, or 6 such GPUs"},
    {"one table, whole", 2, 200 << 20, 0, SHARD_TABLE,
     "no plan fits: table 't0' needs 244 MiB (244 MiB weights), but the "
     "largest "
     "GPU has 200 MiB; it would fit with 245 MiB per GPU, or column cuts "
     "allowed"},
    {"one table, whole, and a reserve", 2, 250 << 20, 50 << 20, SHARD_TABLE,
     "no plan fits: table 't0' needs 244 MiB (244 MiB weights), but the "
     "largest "
     "GPU has 200 MiB unreserved; it would fit with 295 MiB per GPU, or "
     "column cuts allowed"},
};

static void check_shortages(void)
{
    const uint64_t rows[] = {1000000, 1, 1000000, 1000000};
    const uint32_t dims[] = {64, 4, 64, 64};

    for (size_t i = 0; i < sizeof shortage_cases / sizeof *shortage_cases;
         i++) {
        const struct shortage_case *test = &shortage_cases[i];
        struct err err = {0};
        struct problem problem;
        struct arena arena = {0};
        struct plan plan;

        fake_problem(&problem, rows, dims, test->n_tables, 2,
                     test->memory_bytes, &arena);
        problem.kinds = test->kinds;
        for (uint32_t r = 0; r < 2; r++)
            problem.cluster.reserve_bytes[r] = test->reserve_bytes;
        ok(search(&plan, &problem, 1000, &arena, &err) == -1 &&
               err.code == ERR_NO_PLAN,
           "%s: no plan", test->name);
        is_str(err.msg, test->want, test->name);
        arena_release(&arena);
    }
}

/* A table that cannot be placed in any way is the caller's mistake. */
static void check_usage(void)
{
    const char *const nowhere =
        "table 't0' cannot be placed in any way that its kinds, '--shard' and "
        "cost model 'random' all allow";
    const struct {
        const char *why;
        unsigned kinds, table_kinds;
        const char *group;
        int64_t device;
        const char *also;
    } tests[] = {
        {"six columns cannot be cut", SHARD_COLUMN, SHARD_ALL_KINDS, NULL, -1,
         ": it has 10 rows and 6 columns, at least 4 per piece, for 2 GPUs"},
        {"no kind is left", SHARD_COLUMN, SHARD_ROW, NULL, -1, ""},
        {"a group is not cut", SHARD_ROW, SHARD_ALL_KINDS, "g", -1,
         ": group 'g' keeps it whole, on one GPU"},
        {"a pinned table is not cut by rows", SHARD_ROW, SHARD_ALL_KINDS, NULL,
         1, ": it is pinned to GPU 1, whole or cut by columns"},
    };
    const uint64_t rows[] = {10};
    const uint32_t dims[] = {6};

    for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++) {
        struct problem problem;
        struct err err = {0};
        struct arena arena = {0};
        struct plan plan;

        fake_problem(&problem, rows, dims, 1, 2, ROOMY, &arena);
        problem.kinds = tests[i].kinds;
        problem.tables[0].kinds = tests[i].table_kinds;
        problem.tables[0].group = tests[i].group;
        problem.tables[0].device = tests[i].device;
        ok(search(&plan, &problem, 1000, &arena, &err) == -1 &&
               err.code == ERR_USAGE,
           "%s", tests[i].why);
        is_str(err.msg, arena_printf(&arena, "%s%s", nowhere, tests[i].also),
               "the message says why");
        arena_release(&arena);
    }
}

static void check_shardings(void)
{
    const uint64_t rows[] = {100};
    const uint32_t dims[] = {16};
    struct random_oracle oracle;
    struct problem problem;
    struct err err = {0};
    struct arena arena = {0};
    struct search_space space;
    int rc;

    fake_problem(&problem, rows, dims, 1, 3, ROOMY, &arena);
    oracle = plain_oracle(&problem);
    rc = space_init(&space, &problem, &oracle.base, NULL, NULL, &arena, &err);
    ok(!rc, "parts: %s", err.msg);
    if (rc)
        return;
    for (uint32_t i = 0; i < space.n_shardings; i++) {
        const struct sharding *sharding = &space.shardings[i];
        double elements = 0;

        for (uint32_t k = 0; k < sharding->n_pieces; k++) {
            struct change piece = sharding_piece(&space, sharding, k);
            const struct piece_type *type = &space.types[piece.type];

            elements += (double)type->n_rows * type->width;
        }
        if (sharding->kind == SHARDING_REPLICA)
            elements /= sharding->n_pieces;
        if (elements != 1600)
            ok(0, "form %u has %g elements", i, elements);
    }
    ok(space.n_shardings >= 8, "%u ways to cut a table", space.n_shardings);
    arena_release(&arena);
}

/* Compares an oracle whose backward exchange is priced separately and
 * remembered with an oracle that has only comm. */
static void check_halves(void)
{
    const uint64_t rows[] = {1000, 2000, 500, 70, 300, 900, 1200};
    const uint32_t dims[] = {16, 8, 32, 16, 8, 64, 4};
    struct plan plans[2];
    struct search_options options;
    struct err err = {0};
    struct arena arena = {0};

    search_options_init(&options);
    options.effort = 20000;
    for (int i = 0; i < 2; i++) {
        struct oracle oracle;
        struct oracle_ops ops;

        plans[i] = (struct plan){0};
        fake_problem(&plans[i].problem, rows, dims, 7, 3, ROOMY, &arena);
        oracle = fake_oracle(&plans[i].problem);
        ops = *oracle.ops;
        if (i)
            ops.bwd = NULL;
        if (i)
            ops.fwd = NULL;
        oracle.ops = &ops;
        ok(!search_full(&plans[i], &oracle, &options, &arena, &err),
           "a plan: %s", err.msg);
    }
    ok(plans[0].n_shards == plans[1].n_shards &&
           plans[0].n_evaluations == plans[1].n_evaluations &&
           !memcmp(plans[0].shards, plans[1].shards,
                   plans[0].n_shards * sizeof(*plans[0].shards)),
       "comm in halves gives the plan of comm, of %zu shards",
       plans[0].n_shards);
    arena_release(&arena);
}

/* A longer search begins with the same steps as a shorter one, so it is never
 * worse. Oracles with terms that do not make up the whole total are left out,
 * because the search compares plans by their terms. */
static void check_effort(void)
{
    static const uint64_t efforts[] = {0, 700, 4000, 20000};
    unsigned n = 0, n_dearer = 0, n_gain = 0;

    for (uint64_t seed = 0; seed < tap_size(25, 400); seed++) {
        double least_ms = INFINITY, first_ms = 0;
        struct random_oracle oracle;
        struct problem problem;
        struct arena arena = {0};
        struct rng rng;

        rng_init(&rng, 52, seed);
        fake_random(&problem, &rng, 2, &arena);
        random_oracle_init(&oracle, &problem, &rng);
        if (!oracle.base.ops->terms || oracle.base.is_additive)
            for (size_t i = 0; i < sizeof efforts / sizeof *efforts; i++) {
                struct plan plan = {.problem = problem};
                struct search_options options;
                struct err err = {0};

                search_options_init(&options);
                options.effort = efforts[i];
                if (search_full(&plan, &oracle.base, &options, &arena, &err) ||
                    plan_price(&plan, &oracle.base, &arena, &err))
                    break;
                first_ms = i ? first_ms : plan.total_ms;
                n++;
                n_dearer += plan.total_ms > least_ms * (1 + 1e-9);
                n_gain += plan.total_ms < first_ms * (1 - 1e-9);
                least_ms = plan.total_ms;
            }
        arena_release(&arena);
    }
    ok(n > 0 && !n_dearer && n_gain > 0,
       "%u searches: %u cost more than with less effort; %u gain", n, n_dearer,
       n_gain);
}

/* Stages price about the same number of assignments if part of each stage uses
 * tempering as if all of it uses annealing. The whole tables cannot be
 * balanced, so no bound ends the search. */
static void check_stages(void)
{
    uint64_t n_priced[2] = {0};

    for (unsigned i = 0; i < 2; i++) {
        struct tuning tuning = tuning_default;
        const uint64_t rows[] = {1000, 1000, 1000, 1000, 1000, 1000, 1000};
        const uint32_t dims[] = {20, 20, 20, 20, 24, 24, 28};
        struct search_options options;
        struct random_oracle oracle;
        struct problem problem;
        struct err err = {0};
        struct arena arena = {0};
        struct plan plan;

        fake_problem(&problem, rows, dims, 7, 3, ROOMY, &arena);
        problem.kinds = SHARD_TABLE;
        oracle = plain_oracle(&problem);
        plan = (struct plan){.problem = problem};
        oracle.base.problem = &plan.problem;
        search_options_init(&options);
        tuning.tempered = i ? tuning.tempered : 0;
        options.tuning = &tuning;
        ok(!search_full(&plan, &oracle.base, &options, &arena, &err),
           "a plan: %s", err.msg);
        n_priced[i] = plan.n_evaluations;
        arena_release(&arena);
    }
    ok(n_priced[1] > n_priced[0] / 2 && n_priced[1] < 2 * n_priced[0],
       "annealed %u layouts are priced, tempered %u", (unsigned)n_priced[0],
       (unsigned)n_priced[1]);
}

#define MOST_TABLES 700

/* Returns the number of evaluations for two tables that cost ten each, a small
 * one, and further tables that cost nothing, on two devices. The best plan puts
 * the small table with one of the ten; it is found at once. The bound is the
 * mean load. */
static uint64_t evaluations_of_gap(double gap, uint32_t n_tables,
                                   struct plan *plan, struct arena *arena)
{
    uint64_t rows[MOST_TABLES];
    uint32_t dims[MOST_TABLES];
    struct problem problem;
    struct err err = {0};

    for (uint32_t i = 0; i < MOST_TABLES; i++) {
        rows[i] = 1000;
        dims[i] = 16;
    }
    fake_problem(&problem, rows, dims, n_tables, 2, ROOMY, arena);
    problem.kinds = SHARD_TABLE;
    problem.tables[2].pooling_factor = 20 * gap / (1 - 2 * gap);
    for (uint32_t i = 3; i < n_tables; i++)
        problem.tables[i].pooling_factor = 0;
    ok(!search(plan, &problem, SEARCH_EFFORT_AUTO, arena, &err), "a plan: %s",
       err.msg);
    is_near(1 - plan->bound_ms / plan->total_ms, gap, 1e-6, "the gap is so");
    return plan->n_evaluations;
}

/* If no effort is given, stages continue until they gain little, each twice as
 * long as the one before. One stage is enough if the bound is near. In a long
 * list, two are enough if the start stays best. If the list is short or the
 * bound is far off, the search goes on, because there may be more to find; here
 * there is nothing. In a short list, the start is annealed first, for two first
 * stages. */
static void check_gaps(void)
{
    static const struct {
        double gap;
        uint32_t n_tables;
        unsigned n_first_stages; /* expected work in units of the first stage */
    } tests[] = {{0.0029, 3, 2 + 1},
                 {0.0031, 3, 64},
                 {0.029, 3, 64},
                 {0.0029, MOST_TABLES, 1},
                 {0.0031, MOST_TABLES, 1 + 2},
                 {0.029, MOST_TABLES, 1 + 2},
                 {0.031, MOST_TABLES, 64}};
    const double first = (double)temper_effort(SEARCH_EFFORT_AUTO) / 64;
    double settled = 0;

    for (unsigned i = 0; i < sizeof tests / sizeof *tests; i++) {
        struct arena arena = {0};
        struct plan plan;
        double n;

        if (tests[i].n_first_stages == 64 && tap_many(10) < 10)
            continue; /* too long with sanitizers */
        n = (double)evaluations_of_gap(tests[i].gap, tests[i].n_tables, &plan,
                                       &arena);
        if (tests[i].n_first_stages == 1)
            settled = n - first; /* work to balance the memory of a long list */
        n -= settled;
        ok(fabs(n / first - tests[i].n_first_stages) <
               0.04 * tests[i].n_first_stages,
           "with %u tables and a gap of %g it prices %.0f assignments, in a "
           "first stage %.0f",
           tests[i].n_tables, tests[i].gap, n, first);
        is_str(plan.stopped, "budget", "and does not say that it is the best");
        arena_release(&arena);
    }
}

/* If nothing is proven, four stages are enough, too. Before them a start is
 * annealed for twice the length of the first stage. */
static void check_unbounded(void)
{
    const uint64_t rows[] = {1000, 1000, 1000};
    const uint32_t dims[] = {16, 16, 16};
    struct tuning tuning = tuning_default;
    struct search_options options;
    struct err err = {0};
    struct oracle oracle;
    struct arena arena = {0};
    struct plan plan = {0};
    double first;

    fake_problem(&plan.problem, rows, dims, 3, 2, ROOMY, &arena);
    plan.problem.kinds = SHARD_TABLE;
    oracle = fake_oracle(&plan.problem);
    first = (double)temper_effort(SEARCH_EFFORT_AUTO) / 32;
    search_options_init(&options);
    options.tuning = &tuning;
    tuning.n_starts = 1;
    tuning.start_stages = 2;
    ok(!search_full(&plan, &oracle, &options, &arena, &err), "a plan: %s",
       err.msg);
    ok(fabs((double)plan.n_evaluations / first - (2 + 1 + 2 + 4 + 8)) < 0.5,
       "it prices %g layouts, in the first stage %g",
       (double)plan.n_evaluations, first);
    arena_release(&arena);
}

int main(void)
{
    check_gaps();
    check_unbounded();
    check_stages();
    assignment_check_every = (uint32_t)tap_size(0, 1);
    check_effort();
    check_even();
    check_halves();
    check_piece(SHARD_TABLE, ROW_CUT_ANY, 0);
    check_piece(SHARD_ROW, ROW_CUT_ANY, 0);
    check_piece(SHARD_ROW, ROW_CUT_RANKS, 16 * 10 * 64 * 1e-3);
    check_piece(SHARD_REPLICATE, ROW_CUT_ANY, 16 * 10 * 64 * 1e-3 + 1000 * 64);
    check_grid();
    check_rows_for_memory();
    check_shortages();
    check_usage();
    check_shardings();
    return tap_done();
}
