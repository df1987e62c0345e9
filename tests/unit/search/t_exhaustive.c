/* SPDX-License-Identifier: MIT */
#include "tests/unit/search/exhaustive.h"

#include "search/search.h"
#include "tests/judge.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"

#define ROOMY (UINT64_C(1) << 40)

struct count_case {
    const char *name;
    uint32_t dim, n_devices, n_local;
    unsigned kinds;
    int64_t pin;
    bool halves_only;
    enum row_cut row_cut;
    uint64_t want;
};

static const struct count_case count_cases[] = {
    {"whole", 16, 3, 3, SHARD_TABLE, -1, false, ROW_CUT_ANY, 3},
    /* 12+4: 9, 8+8: 6, 8+4+4: 18, 4+4+4+4: 15 */
    {"columns", 16, 3, 3, SHARD_COLUMN, -1, false, ROW_CUT_ANY, 48},
    {"columns in halves", 16, 3, 3, SHARD_COLUMN, -1, true, ROW_CUT_ANY, 39},
    {"whole or columns", 8, 3, 3, SHARD_TABLE | SHARD_COLUMN, -1, false,
     ROW_CUT_ANY, 9},
    {"too narrow to be cut", 4, 3, 3, SHARD_TABLE | SHARD_COLUMN, -1, false,
     ROW_CUT_ANY, 3},
    {"no vectors of four", 6, 3, 3, SHARD_TABLE | SHARD_COLUMN, -1, false,
     ROW_CUT_ANY, 3},
    {"no halves of 12", 12, 2, 2, SHARD_COLUMN, -1, true, ROW_CUT_ANY, 0},
    {"12 in vectors of four", 12, 2, 2, SHARD_COLUMN, -1, false, ROW_CUT_ANY,
     4 + 4},
    {"rows over two or three", 8, 3, 3, SHARD_ROW, -1, false, ROW_CUT_ANY, 4},
    {"rows over a host or all", 8, 4, 2, SHARD_ROW, -1, false, ROW_CUT_RANKS,
     3},
    {"replicated", 8, 3, 3, SHARD_REPLICATE, -1, false, ROW_CUT_ANY, 1},
    {"pinned: whole, or cut and all on it", 8, 3, 3, SHARD_ALL_KINDS, 1, false,
     ROW_CUT_ANY, 2},
    {"one device", 8, 1, 1, SHARD_ALL_KINDS, -1, false, ROW_CUT_ANY, 2},
};

static void check_counts(void)
{
    for (size_t i = 0; i < sizeof count_cases / sizeof *count_cases; i++) {
        const struct count_case *test = &count_cases[i];
        const uint64_t rows[] = {100, 100};
        const uint32_t dims[] = {test->dim, test->dim};
        struct exhaustive_options options;
        struct problem problem;
        struct oracle oracle;
        struct arena arena = {0};

        exhaustive_options_init(&options);
        options.halves_only = test->halves_only;
        fake_problem(&problem, rows, dims, 2, test->n_devices, ROOMY, &arena);
        problem.cluster.devices_per_host = test->n_local;
        problem.kinds = test->kinds;
        problem.tables[0].device = problem.tables[1].device = test->pin;
        oracle = fake_oracle(&problem);
        oracle.kinds = SHARD_ALL_KINDS;
        oracle.row_cut = test->row_cut;
        is_i64((int64_t)exhaustive_count(&problem, &oracle, &options),
               (int64_t)(test->want * test->want), test->name);
        arena_release(&arena);
    }
}

/* Makes tiny random problems. A small slack makes the memory tight. */
static void make_tiny(struct problem *problem, struct rng *rng, size_t n,
                      uint32_t n_devices, double slack, struct arena *arena)
{
    uint64_t rows[6] = {0};
    uint32_t dims[6] = {0};
    double need = 0;

    for (size_t i = 0; i < n; i++) {
        rows[i] = 1 + rng_below(rng, 1000);
        dims[i] = UINT32_C(4) << rng_below(rng, 3);
        need += (double)rows[i] * dims[i] * 4;
    }
    fake_problem(problem, rows, dims, n, n_devices,
                 (uint64_t)(need * slack / n_devices), arena);
    for (size_t i = 0; i < n; i++)
        problem->tables[i].pooling_factor = (double)rng_below(rng, 60);
}

static double price(struct plan *plan, const struct oracle *oracle,
                    struct arena *arena)
{
    struct err err = {0};

    return judge_plan(plan, oracle, arena, &err) ? NAN : plan->total_ms;
}

/* Returns the least total of plans of whole tables, by enumerating all
 * devices. */
static double best_whole(const struct problem *problem,
                         const struct oracle *oracle, struct arena *arena)
{
    uint32_t n_devices = problem->cluster.n_devices, n_plans = 1;
    double best = INFINITY;

    for (size_t t = 0; t < problem->n_tables; t++)
        n_plans *= n_devices;
    for (uint32_t code = 0; code < n_plans; code++) {
        struct plan plan = {.problem = *problem, .n_shards = problem->n_tables};
        double total;

        plan.shards = ARENA_NEW(arena, struct shard, problem->n_tables);
        for (uint32_t t = 0, rest = code; t < problem->n_tables; t++) {
            plan.shards[t] = shard_whole(problem, t, rest % n_devices);
            rest /= n_devices;
        }
        total = price(&plan, oracle, arena);
        if (total < best)
            best = total;
    }
    return best;
}

static void check_whole(void)
{
    unsigned n_same = 0, n_none = 0, n = 200;

    for (unsigned i = 0; i < n; i++) {
        struct exhaustive_options options;
        struct plan plan = {0};
        struct oracle oracle;
        struct err err = {0};
        struct arena arena = {0};
        struct rng rng;
        double best;

        rng_init(&rng, i, 3);
        make_tiny(&plan.problem, &rng, 1 + rng_below(&rng, 4),
                  1 + (uint32_t)rng_below(&rng, 3), 1 + rng_uniform(&rng),
                  &arena);
        plan.problem.kinds = SHARD_TABLE;
        oracle = fake_oracle(&plan.problem);
        exhaustive_options_init(&options);
        best = best_whole(&plan.problem, &oracle, &arena);
        if (search_exhaustive(&plan, &oracle, &options, &arena, &err))
            n_none += err.code == ERR_NO_PLAN && isinf(best);
        else
            n_same += fabs(price(&plan, &oracle, &arena) - best) < 1e-12;
        arena_release(&arena);
    }
    is_i64(n_same + n_none, n, "the best of all whole placements, or none");
    ok(n_none > 10 && n_same > 100, "%u found, %u do not fit", n_same, n_none);
}

/* The plan of the published search is one of the enumerated plans. */
static void check_search(void)
{
    unsigned n_no_worse = 0, n_better = 0, n_found = 0;

    for (unsigned i = 0; i < 100; i++) {
        struct search_options search;
        struct exhaustive_options options;
        struct plan plan = {0}, other;
        struct oracle oracle;
        struct err err = {0};
        struct arena arena = {0};
        struct rng rng;

        rng_init(&rng, i, 4);
        make_tiny(&plan.problem, &rng, 1 + rng_below(&rng, 3), 3, 1.5, &arena);
        oracle = fake_oracle(&plan.problem);
        other = plan;
        exhaustive_options_init(&options);
        search_options_init(&search);
        if (!search_reference(&other, &oracle, &search, &arena, &err)) {
            double theirs = price(&other, &oracle, &arena), ours;

            n_found++;
            if (!search_exhaustive(&plan, &oracle, &options, &arena, &err)) {
                ours = price(&plan, &oracle, &arena);
                n_no_worse += ours <= theirs + 1e-12;
                n_better += ours < theirs - 1e-9;
            }
        }
        arena_release(&arena);
    }
    is_i64(n_no_worse, n_found, "never worse than the published search");
    ok(n_found > 50 && n_better > 0, "and better in %u of %u", n_better,
       n_found);
}

/* One hot table of 8 rows on two devices: half the rows on each is best. The
 * fake oracle ignores rows; this oracle counts them. */
static void row_embed(const struct oracle *oracle, const struct shard *shards,
                      size_t n, double *out)
{
    fake_embed(oracle, shards, n, out);
    for (size_t i = 0; i < n; i++, out += FAKE_WIDTH) {
        double rows =
            (double)oracle->problem->tables[shards[i].table].num_embeddings;

        out[FAKE_WORK] *=
            (double)(shards[i].row_end - shards[i].row_begin) / rows;
        out[FAKE_OUTPUT] = 0;
    }
}

static void check_rows(void)
{
    const uint64_t rows[] = {8, 8};
    const uint32_t dims[] = {4, 4};
    struct oracle_ops ops;
    struct exhaustive_options options;
    struct plan plan = {0};
    struct oracle oracle;
    struct err err = {0};
    struct arena arena = {0};

    exhaustive_options_init(&options);
    fake_problem(&plan.problem, rows, dims, 2, 2, ROOMY, &arena);
    plan.problem.tables[0].pooling_factor = 1000;
    oracle = fake_oracle(&plan.problem);
    ops = *oracle.ops;
    ops.embed = row_embed;
    oracle.ops = &ops;
    oracle.kinds = SHARD_TABLE | SHARD_ROW;
    if (ok(!search_exhaustive(&plan, &oracle, &options, &arena, &err),
           "finds a plan %s", err.msg)) {
        is_near(price(&plan, &oracle, &arena), 1 + pow(2525, 0.8) / 100, 1e-9,
                "half of both tables on each");
        is_i64(plan.shards[0].kind, SHARD_ROW, "by rows");
        is_str(plan.search, "exhaustive", "and says so");
        is_i64((int64_t)plan.n_evaluations, 9, "nine plans were priced");
    }
    arena_release(&arena);
}

static void check_refusals(void)
{
    const uint64_t rows[] = {1000, 1000, 1000};
    const uint32_t dims[] = {16, 16, 16};
    struct exhaustive_options options;
    struct plan plan = {0};
    struct oracle oracle;
    struct err err = {0};
    struct arena arena = {0};

    exhaustive_options_init(&options);
    fake_problem(&plan.problem, rows, dims, 3, 3, 1000, &arena);
    oracle = fake_oracle(&plan.problem);
    ok(search_exhaustive(&plan, &oracle, &options, &arena, &err) &&
           err.code == ERR_NO_PLAN,
       "does not fit");
    is_str(err.msg, "no plan fits: none of all there are does", "and says so");
    options.max_plans = 1000;
    ok(search_exhaustive(&plan, &oracle, &options, &arena, &err) &&
           err.code == ERR_USAGE,
       "too many");
    is_str(err.msg,
           "there are 132651 plans, more than the 1000 that may be tried",
           "51 x 51 x 51");
    plan.problem.tables[1].group = "g";
    ok(search_exhaustive(&plan, &oracle, &options, &arena, &err) &&
           err.code == ERR_USAGE,
       "a group");
    is_str(err.msg,
           "table 't1' is in a group, which the exhaustive search does not "
           "know",
           "is refused");
    plan.problem.tables[1].group = NULL;
    plan.problem.cluster.memory_bytes[0] = ROOMY;
    options.max_plans = 1000000;
    oracle = fake_nan_oracle(&plan.problem);
    ok(search_exhaustive(&plan, &oracle, &options, &arena, &err) &&
           err.code == ERR_INPUT,
       "costs that are no numbers");
    is_str(err.msg, "cost model 'fake' gives no finite cost for some GPUs",
           "are refused");
    arena_release(&arena);
}

int main(void)
{
    check_counts();
    check_whole();
    check_search();
    check_rows();
    check_refusals();
    return tap_done();
}
