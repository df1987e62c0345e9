/* SPDX-License-Identifier: MIT */
/*
 * The search against the published one on the benchmark tasks: cost and time,
 * task by task. The published seconds were taken on one core of a 2-core
 * machine; ours are of all threads (or of argv[1]), the least of three runs.
 */
#include "tests/golden.h"

#include <math.h>

#include "base/clock.h"
#include "costmodel/oracles.h"
#include "search/search.h"

#define REPEATS 3

struct tally {
    double log_ratio, published_ms, our_ms, least_speedup;
    uint64_t n_priced;
    unsigned n, n_worse;
};

/* NAN where the published code found nothing. */
static double published(const json_t *task, const char *what, const char *key)
{
    const json_t *value = json_object_get(json_object_get(task, what), key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Plans, prices, and returns the search's least time. */
static double plan_task(struct plan *plan, const struct oracle *oracle,
                        const struct search_options *options,
                        struct arena *arena)
{
    double least_ms = INFINITY;
    struct err err = {0};

    for (unsigned i = 0; i < REPEATS; i++) {
        if (search_reference(plan, oracle, options, arena, &err) ||
            plan_price(plan, oracle, arena, &err)) {
            plan->total_ms = NAN;
            return NAN;
        }
        least_ms = fmin(least_ms, plan->search_ms);
    }
    return least_ms;
}

static void bench_task(struct tally *tally, const json_t *task,
                       const struct table *pool, struct pool *threads,
                       struct arena *arena)
{
    uint32_t n_devices =
        (uint32_t)json_integer_value(json_object_get(task, "gpus"));
    double want_grid = published(task, "grid_only", "cost_ms");
    double want = published(task, "beam", "cost_ms");
    double want_ms = published(task, "beam", "seconds") * 1000;
    double grid_total, ms;
    struct search_options options;
    struct oracle *oracle = NULL;
    struct plan plan = {0};
    struct err err = {0};

    golden_problem(&plan.problem, pool, json_object_get(task, "table_ids"),
                   json_object_get(task, "dims"), n_devices,
                   json_number_value(json_object_get(task, "max_mem_gib")),
                   arena);
    if (oracle_reference_open(&oracle, golden_path("golden", arena),
                              &plan.problem, arena, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    search_options_init(&options);
    options.pool = threads;
    options.beam_width = 0;
    (void)plan_task(&plan, oracle, &options, arena);
    grid_total = plan.total_ms;
    search_options_init(&options);
    options.pool = threads;
    ms = plan_task(&plan, oracle, &options, arena);
    printf("%5lld %4u %6zu %9.4f %9.4f %7.4f %9.4f %9.4f %7.4f %8.0f %8.2f "
           "%7.0f\n",
           (long long)json_integer_value(json_object_get(task, "task")),
           n_devices, plan.problem.n_tables, want_grid, grid_total,
           grid_total / want_grid, want, plan.total_ms, plan.total_ms / want,
           want_ms, ms, want_ms / ms);
    tally->log_ratio += log(plan.total_ms / want);
    tally->n_worse += !(plan.total_ms <= want * 1.0001) ||
                      (!isnan(want_grid) && grid_total > want_grid * 1.0001);
    tally->published_ms += want_ms;
    tally->our_ms += ms;
    tally->least_speedup = fmin(tally->least_speedup, want_ms / ms);
    tally->n_priced += plan.n_evaluations;
    tally->n++;
    oracle_close(oracle);
}

int main(int argc, char **argv)
{
    static const char *const files[] = {"golden/tasks_4gpu.json",
                                        "golden/tasks_8gpu.json"};
    struct pool *threads =
        pool_open(argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0);
    struct tally tally = {.least_speedup = INFINITY};
    struct arena arena;
    struct table *pool;
    size_t n, i;

    arena_init(&arena);
    if (!file_exists(golden_path("golden", &arena))) {
        printf("# no reference data\n");
        return 0;
    }
    pool = golden_tables(&n, &arena);
    printf("%u threads, nets of the published code\n%5s %4s %6s %9s %9s %7s "
           "%9s %9s %7s %8s %8s %7s\n",
           pool_size(threads), "task", "gpus", "tables", "grid ms", "ours",
           "ratio", "beam ms", "ours", "ratio", "took ms", "ours", "x");
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        json_t *tasks = golden_json(files[f], &arena), *task;

        json_array_foreach(tasks, i, task)
        {
            struct arena_mark mark = arena_mark(&arena);

            bench_task(&tally, task, pool, threads, &arena);
            arena_rewind(&arena, mark);
        }
        json_decref(tasks);
    }
    printf("%u tasks, %u worse; beam cost %.4f of the published (geometric "
           "mean); %.0f ms against %.0f: %.0f x faster, at least %.0f x; "
           "%.0f plans/s\n",
           tally.n, tally.n_worse, exp(tally.log_ratio / tally.n), tally.our_ms,
           tally.published_ms, tally.published_ms / tally.our_ms,
           tally.least_speedup, (double)tally.n_priced / tally.our_ms * 1000);
    pool_close(threads);
    arena_release(&arena);
    return 0;
}
