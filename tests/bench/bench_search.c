/* SPDX-License-Identifier: MIT */
/*
 * Compares our searches with the published one on the benchmark tasks: cost and
 * time of each task. The published seconds were measured on one core of a
 * 2-core machine. Ours use all threads (or argv[1] threads) and are the minimum
 * of three runs.
 *
 * The published nets distinguish devices by their number, so a plan's cost
 * changes if its devices are renumbered. The full search should not get credit
 * for a lucky numbering, so the second ratio is of costs averaged over
 * RELABELLINGS random numberings.
 *
 * Further parts: tasks drawn by the published protocol, larger tasks drawn in
 * the same way, and the growth of time with the number of tables and devices.
 */
#include "tests/golden.h"

#include <inttypes.h>
#include <math.h>
#include <sys/resource.h>

#include "base/rng.h"
#include "core/plan_price.h"
#include "costmodel/models/oracles.h"
#include "search/published.h"
#include "search/search.h"
#include "search/space_init.h"

#define REPEATS 3
#define RELABELLINGS 100
#define DRAWN_TASKS 100 /* for each number of devices */
#define DRAWN_SEED 2305 /* seed of the drawn tasks */
#define LARGER_TASKS 20 /* for each number of devices */
#define LARGER_SEED 43
#define MIB (UINT64_C(1) << 20)

struct tally {
    double log_ratio, published_ms, our_ms, least_speedup;
    uint64_t n_priced;
    unsigned n, n_worse;
};

/* Value of a published result; NAN if the published code found no plan. */
static double published(const json_t *task, const char *what, const char *key)
{
    const json_t *value = json_object_get(json_object_get(task, what), key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Plans and prices a task; returns the shortest search time of REPEATS runs. */
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
}

/* Mean cost over random numberings of the devices. */
static double averaged(const struct plan *plan, const struct oracle *oracle,
                       struct arena *arena)
{
    uint32_t n_devices = plan->problem.cluster.n_devices;
    uint32_t *number = ARENA_NEW(arena, uint32_t, n_devices);
    struct plan other = *plan;
    struct err err = {0};
    struct rng rng;
    double sum = 0;

    rng_init(&rng, 1, 0);
    other.shards = ARENA_NEW(arena, struct shard, plan->n_shards);
    for (unsigned k = 0; k < RELABELLINGS; k++) {
        for (uint32_t r = 0; r < n_devices; r++)
            number[r] = r;
        rng_shuffle(&rng, number, n_devices);
        for (size_t i = 0; i < plan->n_shards; i++) {
            other.shards[i] = plan->shards[i];
            other.shards[i].device = number[plan->shards[i].device];
        }
        if (plan_price(&other, oracle, arena, &err))
            return NAN;
        sum += other.total_ms;
    }
    return sum / RELABELLINGS;
}

struct gain {
    double ratio, averaged_ratio, worst, took_ms, slowest_ms, reference_ms;
    double n_evaluations;
    unsigned n;
};

static void full_task(struct gain *gain, const json_t *task,
                      const struct table *pool, struct pool *threads,
                      struct arena *arena)
{
    uint32_t n_devices =
        (uint32_t)json_integer_value(json_object_get(task, "gpus"));
    double want = published(task, "beam", "cost_ms"), ratio;
    struct plan reference = {0}, full = {0};
    struct search_options options;
    struct oracle *oracle = NULL;
    struct err err = {0};

    golden_problem(&full.problem, pool, json_object_get(task, "table_ids"),
                   json_object_get(task, "dims"), n_devices,
                   json_number_value(json_object_get(task, "max_mem_gib")),
                   arena);
    reference.problem = full.problem;
    search_options_init(&options);
    options.pool = threads;
    if (oracle_reference_open(&oracle, golden_path("golden", arena),
                              &full.problem, arena, &err) ||
        search_reference(&reference, oracle, &options, arena, &err) ||
        plan_price(&reference, oracle, arena, &err) ||
        search_full(&full, oracle, &options, arena, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    plan_derive_kinds(&full);
    if (plan_price(&full, oracle, arena, &err))
        exit(1);
    ratio = full.total_ms / want;
    gain->ratio += ratio;
    gain->averaged_ratio +=
        averaged(&full, oracle, arena) / averaged(&reference, oracle, arena);
    gain->worst = fmax(gain->worst, ratio);
    gain->took_ms += full.search_ms;
    gain->slowest_ms = fmax(gain->slowest_ms, full.search_ms);
    gain->reference_ms += reference.search_ms;
    gain->n_evaluations += (double)full.n_evaluations;
    gain->n++;
}

static void print_gain(const struct gain *gain, uint32_t n_devices)
{
    printf("%4u %6u %7.4f %10.4f %9.6f %9.0f %9.0f %12.2f %11.0f\n", n_devices,
           gain->n, gain->ratio / gain->n, gain->averaged_ratio / gain->n,
           gain->worst, gain->took_ms / gain->n, gain->slowest_ms,
           gain->reference_ms / gain->n, gain->n_evaluations / gain->n);
}

static void bench_drawn(const struct table *pool, size_t n_pool,
                        uint32_t n_devices, struct pool *threads)
{
    unsigned n_full = 0, n_reference = 0;
    struct search_options options;
    struct rng rng;

    rng_init(&rng, DRAWN_SEED, n_devices);
    search_options_init(&options);
    options.pool = threads;
    options.effort = 24000; /* enough to tell whether a plan exists */
    for (unsigned i = 0; i < DRAWN_TASKS; i++) {
        struct oracle *oracle = NULL;
        struct plan plan = {0};
        struct err err = {0};
        struct arena arena = {0};

        golden_draw(&plan.problem, pool, n_pool, 10, 59, n_devices, &rng,
                    &arena);
        if (oracle_reference_open(&oracle, golden_path("golden", &arena),
                                  &plan.problem, &arena, &err))
            exit(1);
        n_reference += !search_reference(&plan, oracle, &options, &arena, &err);
        n_full += !search_full(&plan, oracle, &options, &arena, &err);
        arena_release(&arena);
    }
    printf("%4u %6u %6u %9u\n", n_devices, DRAWN_TASKS, n_full, n_reference);
}

/* Sums over larger tasks: cost of the full and the published search, and `ban`,
 * the cost ratio of the published search with and without its ban. The ban
 * forbids two pieces of one table, and unequal widths of it, on one device. */
struct larger {
    double tables, reference_ms, full_ms, ratio, ban, n_evaluations, took_ms;
    unsigned n, n_banned;
};

static double banned(const struct problem *problem, const struct oracle *oracle,
                     struct arena *arena)
{
    struct search_options options;
    struct snapshot found = {0};
    struct plan plan = {0};
    struct err err = {0};
    struct search_space space;
    double before_ms, ratio = 1;

    search_options_init(&options);
    if (space_init(&space, problem, oracle, NULL, NULL, arena, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    if (published_find(&found, &plan, &space, &options)) {
        before_ms = found.total_ms;
        (void)published_join(&found, &space);
        ratio = found.total_ms / before_ms;
    }
    snapshot_release(&found);
    return ratio;
}

static void larger_task(struct larger *larger, struct plan *plan,
                        struct pool *threads, struct arena *arena)
{
    struct plan reference = {.problem = plan->problem};
    struct search_options options;
    struct oracle *oracle = NULL;
    struct err err = {0};
    double ban;

    search_options_init(&options);
    options.pool = threads;
    if (oracle_reference_open(&oracle, golden_path("golden", arena),
                              &plan->problem, arena, &err) ||
        search_full(plan, oracle, &options, arena, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    if (search_reference(&reference, oracle, &options, arena, &err))
        return; /* no plan */
    ban = banned(&plan->problem, oracle, arena);
    larger->tables += (double)plan->problem.n_tables;
    larger->reference_ms += reference.total_ms;
    larger->full_ms += plan->total_ms;
    larger->ratio += plan->total_ms / reference.total_ms;
    larger->ban += ban;
    larger->n_banned += ban < 1 || ban > 1;
    larger->n_evaluations += (double)plan->n_evaluations;
    larger->took_ms += plan->search_ms;
    larger->n++;
}

static void bench_larger(const struct table *pool, size_t n_pool,
                         uint32_t n_devices, struct pool *threads)
{
    struct larger sum = {0};
    struct rng rng;

    rng_init(&rng, LARGER_SEED, n_devices);
    for (unsigned i = 0; i < LARGER_TASKS; i++) {
        struct arena arena = {0};
        struct plan plan = {0};

        golden_draw(&plan.problem, pool, n_pool, 50, 80, n_devices, &rng,
                    &arena);
        larger_task(&sum, &plan, threads, &arena);
        arena_release(&arena);
    }
    printf("%4u %6u %6.1f %9.4f %9.4f %7.4f %11.0f %9.0f %6u %8.5f\n",
           n_devices, sum.n, sum.tables / sum.n, sum.reference_ms / sum.n,
           sum.full_ms / sum.n, sum.ratio / sum.n, sum.n_evaluations / sum.n,
           sum.took_ms / sum.n, sum.n_banned, sum.ban / sum.n);
}

/* Draws a list similar to NVIDIA's synthetic ones: ten to about 10^8 rows,
 * mostly few; a few tables have many lookups. */
static void draw_list(struct problem *problem, size_t n_tables,
                      uint32_t n_devices, struct arena *arena)
{
    static const uint32_t dims[] = {8, 16, 32, 32, 64, 128, 128, 256};
    static const double pooling[] = {1, 1, 1, 1, 1, 10, 20, 50};
    struct rng rng;

    rng_init(&rng, n_tables, n_devices);
    *problem = (struct problem){
        .tables = ARENA_NEW(arena, struct table, n_tables),
        .n_tables = n_tables,
        .batch = 65536,
        .kinds = SHARD_ALL_KINDS,
        .cluster = {.n_devices = n_devices,
                    .devices_per_host = n_devices < 8 ? n_devices : 8,
                    .memory_bytes = ARENA_NEW(arena, uint64_t, n_devices),
                    .reserve_bytes = ARENA_NEW(arena, uint64_t, n_devices)},
    };
    for (uint32_t r = 0; r < n_devices; r++)
        problem->cluster.memory_bytes[r] = 80 * 1024 * MIB;
    for (size_t i = 0; i < n_tables; i++) {
        struct table *table = &problem->tables[i];

        table_init(table);
        table->name = arena_printf(arena, "t%zu", i);
        table->num_embeddings = (uint64_t)pow(10, 1 + 7 * rng_uniform(&rng)) *
                                (rng_below(&rng, 50) ? 1 : 4);
        table->dim = dims[rng_below(&rng, 8)];
        table->pooling_factor = pooling[rng_below(&rng, 8)];
    }
}

/* Peak memory of the process so far, in MiB; grows with the sizes. */
static double peak_mib(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024;
}

static void bench_scale(size_t n_tables, uint32_t n_devices,
                        struct pool *threads)
{
    struct search_options options;
    struct oracle *oracle = NULL;
    struct plan plan = {0};
    struct err err = {0};
    struct arena arena = {0};
    double built_ms;

    draw_list(&plan.problem, n_tables, n_devices, &arena);
    search_options_init(&options);
    options.pool = threads;
    options.effort = 0;
    if (oracle_roofline_open(&oracle, "h100", &plan.problem, &arena, &err) ||
        search_full(&plan, oracle, &options, &arena, &err) ||
        plan_price(&plan, oracle, &arena, &err)) {
        printf("%6zu %5u %s\n", n_tables, n_devices, err.msg);
        goto out;
    }
    built_ms = plan.total_ms;
    options.effort = SEARCH_EFFORT_AUTO;
    if (search_full(&plan, oracle, &options, &arena, &err))
        goto out;
    plan_derive_kinds(&plan);
    if (plan_price(&plan, oracle, &arena, &err))
        goto out;
    printf("%6zu %5u %9.2f %9.3f %9.3f %8zu %12" PRIu64 " %9.0f\n", n_tables,
           n_devices, plan.search_ms / 1000, built_ms, plan.total_ms,
           plan.n_shards, plan.n_evaluations, peak_mib());
out:
    arena_release(&arena);
}

static void bench_scales(struct pool *threads)
{
    static const struct {
        size_t n_tables;
        uint32_t n_devices;
    } sizes[] = {{50, 4},      {100, 8},     {200, 8},    {400, 64},
                 {1000, 64},   {1000, 512},  {2000, 512}, {5000, 512},
                 {5000, 1024}, {10000, 1024}};

    printf("\nfull search, roofline of an H100, lists drawn like NVIDIA's\n"
           "%6s %5s %9s %9s %9s %8s %12s %9s\n",
           "tables", "gpus", "took s", "built ms", "found ms", "shards",
           "evaluations", "peak MiB");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        bench_scale(sizes[i].n_tables, sizes[i].n_devices, threads);
}

int main(int argc, char **argv)
{
    static const char *const files[] = {"golden/tasks_4gpu.json",
                                        "golden/tasks_8gpu.json"};
    struct pool *threads =
        pool_open(argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0);
    struct tally tally = {.least_speedup = INFINITY};
    struct arena arena = {0};
    struct table *pool;
    size_t n, i;

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
    printf("\nfull search, cost over the published one\n%4s %6s %7s %10s %9s "
           "%9s %9s %12s %11s\n",
           "gpus", "tasks", "ratio", "relabelled", "worst", "took ms",
           "at most", "reference ms", "evaluations");
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        json_t *tasks = golden_json(files[f], &arena), *task;
        struct gain gain = {0};

        json_array_foreach(tasks, i, task)
        {
            struct arena_mark mark = arena_mark(&arena);

            full_task(&gain, task, pool, threads, &arena);
            arena_rewind(&arena, mark);
        }
        json_decref(tasks);
        print_gain(&gain, f ? 8 : 4);
    }
    printf("\ntasks drawn by the published protocol, seed %d\n%4s %6s %6s "
           "%9s\n",
           DRAWN_SEED, "gpus", "tasks", "solved", "reference");
    bench_drawn(pool, n, 4, threads);
    bench_drawn(pool, n, 8, threads);
    printf("\ntasks of 50 to 80 tables, seed %d: the full search and the "
           "published one, and what\nthat costs more once pieces of unequal "
           "widths are joined\n%4s %6s %6s %9s %9s %7s %11s %9s %6s %8s\n",
           LARGER_SEED, "gpus", "tasks", "tables", "published", "full ms",
           "ratio", "evaluations", "took ms", "joined", "by");
    bench_larger(pool, n, 4, threads);
    bench_larger(pool, n, 8, threads);
    bench_scales(threads);
    pool_close(threads);
    arena_release(&arena);
    return 0;
}
