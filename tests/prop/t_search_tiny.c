/* SPDX-License-Identifier: MIT */
/* Tiny random problems for which every plan can be priced. The full search
 * finds the best plan nearly always, its bound is never above the best plan,
 * and it fails only if no plan exists. */
#include "costmodel/models/oracle_open.h"
#include "costmodel/models/oracles.h"
#include "search/assignment.h"
#include "search/planners.h"
#include "tests/judge.h"
#include "tests/tap.h"
#include "tests/unit/search/assignment_check.h"
#include "tests/unit/search/exhaustive.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define EFFORT 8000
#define MAX_PLANS 20000

struct tally {
    unsigned n, n_equal, n_none;
    double worst;
};

static void tiny_problem(struct problem *problem, unsigned kinds,
                         struct rng *rng, struct arena *arena)
{
    uint32_t n = 1 + (uint32_t)rng_below(rng, 6);
    uint64_t rows[6] = {0};
    uint32_t dims[6] = {0};
    double need = 0;

    for (uint32_t i = 0; i < n; i++) {
        rows[i] = 1 + (uint64_t)exp(rng_uniform(rng) * log(1e4));
        dims[i] = 4u << rng_below(rng, 3);
        need += (double)rows[i] * dims[i] * 4;
    }
    fake_problem(problem, rows, dims, n, 1 + (uint32_t)rng_below(rng, 3), 0,
                 arena);
    problem->kinds = kinds;
    for (uint32_t i = 0; i < n; i++)
        problem->tables[i].pooling_factor = floor(rng_uniform(rng) * 50);
    for (uint32_t r = 0; r < problem->cluster.n_devices; r++)
        problem->cluster.memory_bytes[r] =
            (uint64_t)(need * (0.9 + 2 * rng_uniform(rng)) /
                       problem->cluster.n_devices);
}

/* Returns the total of a priced, valid plan. */
static double price(struct plan *plan, const struct oracle *oracle,
                    struct arena *arena)
{
    struct err err = {0};

    if (judge_plan(plan, oracle, arena, &err))
        ok(0, "a legal plan: %s", err.msg);
    return plan->total_ms;
}

static void compare(struct tally *tally, const struct problem *problem,
                    const struct oracle *oracle, unsigned number,
                    struct arena *arena)
{
    struct plan best = {.problem = *problem, .bound_ms = NAN};
    struct plan found = {.problem = *problem, .bound_ms = NAN};
    struct exhaustive_options exhaustive;
    struct search_options options;
    struct err best_err = {0}, err = {0};
    double want, got;
    int best_rc, rc;

    exhaustive_options_init(&exhaustive);
    search_options_init(&options);
    options.effort = EFFORT;
    best_rc = search_exhaustive(&best, oracle, &exhaustive, arena, &best_err);
    rc = search_full(&found, oracle, &options, arena, &err);
    tally->n++;
    if (best_rc || rc) {
        /* In the exhaustive search row blocks of one table never share a
         * device, so it may find no plan if the full search does. */
        bool may_share = !rc && (problem->kinds & SHARD_ROW);

        if (best_err.code != ERR_NO_PLAN ||
            (err.code != ERR_NO_PLAN && !may_share))
            ok(0, "problem %u: '%s', and all plans: '%s'", number,
               rc ? err.msg : "a plan", best_rc ? best_err.msg : "a plan");
        tally->n_none++;
        tally->n_equal++;
        return;
    }
    want = price(&best, oracle, arena);
    got = price(&found, oracle, arena);
    if (found.bound_ms > want * (1 + 1e-9))
        ok(0, "problem %u: a bound of %.9g ms, and a plan of %.9g", number,
           found.bound_ms, want);
    tally->n_equal += got <= want * (1 + 1e-9);
    tally->worst = tap_worst(tally->worst, got / want);
}

static void compare_many(const char *what, unsigned kinds, enum row_cut row_cut,
                         size_t n, unsigned percent)
{
    struct exhaustive_options exhaustive;
    struct tally tally = {.worst = 1};
    struct arena arena = {0};
    struct rng rng;

    rng_init(&rng, 11, kinds);
    exhaustive_options_init(&exhaustive);
    while (tally.n < n) {
        struct random_oracle oracle;
        struct problem problem;

        tiny_problem(&problem, kinds, &rng, &arena);
        random_oracle_init(&oracle, &problem, &rng);
        oracle.base.row_cut = row_cut;
        if (exhaustive_count(&problem, &oracle.base, &exhaustive) <= MAX_PLANS)
            compare(&tally, &problem, &oracle.base, tally.n, &arena);
        arena_release(&arena);
    }
    printf("# %s: %u of %u as good as any plan, %u without one, worst %.4f\n",
           what, tally.n_equal, tally.n, tally.n_none, tally.worst);
    ok(tally.n_equal * 100 >= tally.n * percent,
       "%s: full search is exhaustive", what);
}

/* Compares the step times of a job for each pipeline. The terms of a step do
 * not add up. */
static void compare_steps(enum pipeline pipeline, size_t n, unsigned percent)
{
    struct tally tally = {.worst = 1};
    struct exhaustive_options exhaustive;
    struct arena arena = {0};
    struct rng rng;

    rng_init(&rng, 12, pipeline);
    exhaustive_options_init(&exhaustive);
    while (tally.n < n) {
        struct oracle *oracle = NULL;
        struct problem problem;
        struct err err = {0};

        tiny_problem(&problem, SHARD_ALL_KINDS & ~(unsigned)SHARD_GRID, &rng,
                     &arena);
        problem.job = (struct job){
            .pipeline = pipeline,
            .n_chunks = 1 + (uint32_t)rng_below(&rng, 4),
            .asks_host = true,
            .dense_ms = {0, rng_below(&rng, 2) ? rng_uniform(&rng) : 0}};
        if (oracle_open(&oracle, "roofline:h100", &problem, &arena, &err)) {
            ok(0, "roofline opens: %s", err.msg);
            arena_release(&arena);
            break;
        }
        if (exhaustive_count(&problem, oracle, &exhaustive) <= MAX_PLANS)
            compare(&tally, &problem, oracle, tally.n, &arena);
        arena_release(&arena);
    }
    printf("# %s: %u of %u as good as any plan, %u without one, worst %.4f\n",
           pipeline_names[pipeline], tally.n_equal, tally.n, tally.n_none,
           tally.worst);
    ok(tally.n_equal * 100 >= tally.n * percent,
       "%s: full search is exhaustive", pipeline_names[pipeline]);
}

/* A net on a job that pays a fixed cost for its first row blocks. The cost is
 * less than the gain of cutting all tables, but more than the gain of cutting
 * one. */
static void search_all_rows(void)
{
    static const uint64_t rows[] = {569817, 8508293};
    static const uint32_t dims[] = {4, 8};
    struct tally tally = {.worst = 1};
    struct oracle *oracle = NULL;
    struct problem problem;
    struct err err = {0};
    struct arena arena = {0};

    fake_problem(&problem, rows, dims, 2, 2, UINT64_C(1) << 40, &arena);
    problem.kinds = SHARD_TABLE | SHARD_ROW;
    problem.batch = 8192;
    problem.job.asks_host = true;
    problem.tables[0].pooling_factor = 69.34;
    problem.tables[0].optimizer = OPTIMIZER_ADAGRAD;
    problem.tables[0].zipf_alpha = 0.89;
    problem.tables[0].row_order = ROW_ORDER_UNIFORM;
    problem.tables[1].zipf_alpha = 1.17;
    problem.tables[1].pooling_factor = 9.62;
    problem.tables[1].output = OUTPUT_SEQUENCE;
    if (oracle_open(&oracle, "model:h100.nsm", &problem, &arena, &err))
        ok(0, "the net opens: %s", err.msg);
    else
        compare(&tally, &problem, oracle, 0, &arena);
    ok(tally.n_equal == 1, "all tables by rows: %.4f times the best",
       tally.worst);
    arena_release(&arena);
}

/* Checks the bound under TorchRec's costs, which price empty row blocks: no
 * plan of another planner, and no plan of the exhaustive search, is below the
 * bound. */
static void judge_bound(size_t number, const struct plan *found,
                        const struct oracle *oracle, size_t *n_judged,
                        struct arena *arena)
{
    const struct contender_inputs inputs = {.oracle = oracle,
                                            .torchrec = oracle};
    struct exhaustive_options exhaustive;
    struct err err = {0};

    for (const struct contender *by = search_contenders; by->name; by++) {
        struct plan plan = {.problem = found->problem, .bound_ms = NAN};

        if (by->search || contender_place(&plan, by, &inputs, arena, &err))
            continue;
        ++*n_judged;
        if (found->bound_ms > plan.total_ms * (1 + 1e-9))
            ok(0, "problem %zu: a bound of %.9g ms, and %s has %.9g", number,
               found->bound_ms, by->name, plan.total_ms);
    }
    exhaustive_options_init(&exhaustive);
    for (size_t t = 0; t < found->problem.n_tables; t++)
        if (found->problem.tables[t].dim > 16)
            return; /* too many widths */
    if (exhaustive_count(&found->problem, oracle, &exhaustive) <= MAX_PLANS) {
        struct plan best = {.problem = found->problem, .bound_ms = NAN};

        if (search_exhaustive(&best, oracle, &exhaustive, arena, &err))
            return;
        ++*n_judged;
        if (found->bound_ms > price(&best, oracle, arena) * (1 + 1e-9))
            ok(0, "problem %zu: a bound of %.9g ms, and a plan of %.9g", number,
               found->bound_ms, best.total_ms);
    }
}

/* Tables with about as many rows as there are ranks: all plans are valid, and
 * their bounds are true. */
static void search_few_rows(size_t n)
{
    size_t n_legal = 0, n_plans = 0, n_judged = 0;

    for (size_t i = 0; i < n; i++) {
        struct search_options options;
        struct oracle *oracle = NULL;
        struct problem problem;
        struct arena arena = {0};
        struct plan plan;
        struct err err = {0};
        struct rng rng;

        rng_init(&rng, i, 17);
        tiny_problem(&problem, 1 + (unsigned)rng_below(&rng, SHARD_ALL_KINDS),
                     &rng, &arena);
        fake_cluster(&problem, 2 + (uint32_t)rng_below(&rng, 7),
                     UINT64_C(1) << 40, &arena);
        if (problem.cluster.n_devices % 2 == 0)
            problem.cluster.devices_per_host =
                problem.cluster.n_devices / (1 + (uint32_t)rng_below(&rng, 2));
        for (size_t t = 0; t < problem.n_tables; t++) {
            problem.tables[t].num_embeddings = 1 + rng_below(&rng, 12);
            problem.tables[t].output =
                rng_below(&rng, 2) ? OUTPUT_SEQUENCE : OUTPUT_POOLED;
            if (!rng_below(&rng, 8))
                problem.tables[t].dim = 512;
        }
        search_options_init(&options);
        options.effort = 1000;
        plan = (struct plan){.problem = problem, .bound_ms = NAN};
        if (oracle_open(&oracle, "torchrec", &plan.problem, &arena, &err)) {
            ok(0, "torchrec opens: %s", err.msg);
        } else if (search_full(&plan, oracle, &options, &arena, &err)) {
            n_legal += err.code == ERR_USAGE; /* one row, which should be cut */
        } else {
            price(&plan, oracle, &arena);
            n_legal++;
            n_plans++;
            judge_bound(i, &plan, oracle, &n_judged, &arena);
        }
        arena_release(&arena);
    }
    is_i64((int64_t)n_legal, (int64_t)n, "few rows: all plans are legal");
    ok(n_plans > n / 2 && n_judged > n,
       "few rows: %zu plans, compared with %zu others", n_plans, n_judged);
}

int main(void)
{
    const unsigned all_but_grids =
        SHARD_TABLE | SHARD_COLUMN | SHARD_ROW | SHARD_REPLICATE;

    assignment_check_every = (uint32_t)tap_size(0, 1);
    search_few_rows(tap_size(200, 3000));
    compare_many("tables and columns", SHARD_TABLE | SHARD_COLUMN, ROW_CUT_ANY,
                 tap_size(250, 1000), 99);
    compare_many("tables and rows", SHARD_TABLE | SHARD_ROW, ROW_CUT_ANY,
                 tap_size(100, 300), 97);
    compare_many("all kinds except grids", all_but_grids, ROW_CUT_ANY,
                 tap_size(100, 300), 97);
    compare_many("and rows over all ranks", all_but_grids, ROW_CUT_RANKS,
                 tap_size(100, 300), 97);
    assignment_check_every = (uint32_t)tap_size(16, 1);
    for (unsigned p = 0; p < N_PIPELINES; p++)
        compare_steps((enum pipeline)p, tap_size(40, 100), 95);
    search_all_rows();
    return tap_done();
}
