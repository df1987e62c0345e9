/* SPDX-License-Identifier: MIT */
/*
 * Tests whether allowing more makes plans worse. "subsets": compares the
 * default plan with the cheapest plan over all subsets of the shard kinds, on
 * 12 shipped lists. "memory": plans 8 shipped lists with memory limits from the
 * least that fits to unlimited. Both use TorchRec's formulas and the roofline
 * of an H100. Exits with status 1 if a plan costs more, beyond a limit, than a
 * plan that was allowed less. With the roofline, the 8 most important subsets
 * are searched, or all 31 if TEST_SIZE=full.
 *
 *     bench_more                  both tables
 *     bench_more subsets|memory   one of them
 *     bench_more LIST GPUS [COST] the 8 subsets of one list, 8 GPUs a host with
 *                                 80 GiB each and no reserve
 *
 * If BENCH_POINTS is set it also prints the plan cost of every memory limit.
 */
#include "base/clock.h"
#include "base/file.h"
#include "core/cluster.h"
#include "costmodel/modelfile/gpu_file.h"
#include "costmodel/models/oracle_open.h"
#include "io/tables_io.h"
#include "search/search.h"
#include "tests/judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define GIB (UINT64_C(1) << 30)
#define UNLIMITED (UINT64_C(1) << 50)
#define RESERVE_FRAC 0.15 /* first table only; the second has none */
#define MAX_SUBSET_RATIO 1.002
#define MAX_MEMORY_RATIO 1.003
#define N_POINTS 12

struct list {
    const char *name;
    uint32_t n_gpus, per_host;
    double gib;         /* memory of a GPU in GiB; 0: H100 */
    uint64_t gpu_batch; /* batch per GPU; 0: 65,536 in total */
    const char *torchrec;
};

/* Lists of the first table. The second table has only the first
 * N_MEMORY_LISTS. */
static const struct list lists[] = {
    {"mlperf_dlrm_dcnv2_multihot", 8, 8, 0, 0, "torchrec"},
    {"mlperf_dlrm_v1_onehot", 8, 8, 0, 0, "torchrec"},
    {"criteo_1tb_torchrec_26", 8, 8, 0, 0, "torchrec"},
    {"deeprecsys_dlrm_rm2", 8, 8, 0, 0, "torchrec"},
    {"hugectr_7table_470B_hotness20", 64, 8, 0, 0, "torchrec"},
    {"hugectr_200table_100B_hotness20", 8, 8, 0, 0, "torchrec"},
    {"nvidia_synthetic_small_v3", 8, 8, 0, 0, "torchrec"},
    {"nvidia_synthetic_medium_v3", 8, 8, 0, 0, "torchrec"},
    {"nvidia_synthetic_large_v3", 16, 8, 0, 0, "torchrec"},
    {"nvidia_synthetic_tiny_v3", 8, 8, 0, 0, "torchrec"},
    {"meta_tbe_eeg_example_5", 8, 8, 0, 0, "torchrec"},
    {"meta_torchrec_1935", 96, 8, 192, 2560, "torchrec:outputs=legacy"},
};
#define N_SUBSET_LISTS (sizeof lists / sizeof *lists)
#define N_MEMORY_LISTS 8

static const unsigned main_subsets[] = {
    SHARD_TABLE,
    SHARD_TABLE | SHARD_COLUMN,
    SHARD_TABLE | SHARD_ROW,
    SHARD_TABLE | SHARD_REPLICATE,
    SHARD_TABLE | SHARD_COLUMN | SHARD_ROW,
    SHARD_TABLE | SHARD_COLUMN | SHARD_REPLICATE,
    SHARD_TABLE | SHARD_ROW | SHARD_REPLICATE,
    SHARD_TABLE | SHARD_COLUMN | SHARD_ROW | SHARD_GRID,
};
#define N_MAIN_SUBSETS (sizeof main_subsets / sizeof *main_subsets)

static struct pool *threads;
static int n_broken;

static void fail_on(const struct err *err)
{
    printf("Bail out! %s\n", err->msg);
    exit(1);
}

/* --- a plan --- */

static void set_cluster(struct cluster *cluster, const struct list *list,
                        uint64_t memory_bytes, struct arena *arena)
{
    const uint32_t n = list->n_gpus;

    cluster->n_devices = n;
    cluster->devices_per_host = list->per_host;
    cluster->memory_bytes = ARENA_NEW(arena, uint64_t, n);
    cluster->reserve_bytes = ARENA_NEW(arena, uint64_t, n);
    cluster->gpu = "h100";
    for (uint32_t r = 0; r < n; r++)
        cluster->memory_bytes[r] = memory_bytes;
}

/* Reads a list as `neuroshard plan` does, but sets no memory. */
static void open_list(struct problem *problem, const struct list *list,
                      const char *path, struct arena *arena)
{
    const struct tables_options options = {.n_devices = list->n_gpus};
    struct table_list read;
    struct err err = {0};

    if (tables_load(&read, path, &options, arena, &err))
        fail_on(&err);
    *problem = (struct problem){.tables = read.tables,
                                .n_tables = read.n_tables,
                                .dense_optimizer = DENSE_ADAM,
                                .layout = LAYOUT_FBGEMM,
                                .buffers = BUFFERS_TRACED,
                                .min_width = TABLE_COLUMN_STEP,
                                .kinds = SHARD_ALL_KINDS,
                                .row_cut = ROW_CUT_RANKS};
    problem->batch =
        list->gpu_batch ? list->gpu_batch * list->n_gpus : UINT64_C(65536);
    set_cluster(&problem->cluster, list, 0, arena);
    problem_find_hot_rows(problem, arena);
}

static const char *shipped_path(const struct list *list, struct arena *arena)
{
    const char *data = file_find_data("tables", arena);

    return arena_printf(arena, "%s/%s.csv", data ? data : "data/tables",
                        list->name);
}

/* Returns the cost of the best plan and sets the memory of the fullest device.
 * Returns INFINITY if no plan fits; *need_bytes is then the memory that would
 * fit. */
static double plan_ms(const struct problem *problem, const char *cost,
                      uint64_t *fullest_bytes, uint64_t *need_bytes)
{
    struct plan plan = {.problem = *problem};
    struct search_options options;
    struct oracle *oracle, *torchrec;
    struct arena arena = {0};
    struct err err = {0};
    double total_ms = INFINITY;

    search_options_init(&options);
    options.pool = threads;
    if (oracle_open(&oracle, cost, &plan.problem, &arena, &err) ||
        oracle_open(&torchrec, strncmp(cost, "torchrec", 8) ? "torchrec" : cost,
                    &plan.problem, &arena, &err))
        fail_on(&err);
    options.torchrec = torchrec;
    if (!search_full(&plan, oracle, &options, &arena, &err) &&
        !judge_plan(&plan, oracle, &arena, &err)) {
        const struct device_cost *fullest = &plan.devices[plan_fullest(&plan)];

        total_ms = plan.total_ms;
        *fullest_bytes = fullest->memory.total;
    } else if (err.code == ERR_NO_PLAN) {
        *need_bytes = err.shortage.fits_memory_bytes;
    } else if (err.code != ERR_USAGE) {
        fail_on(&err);
    }
    arena_release(&arena);
    return total_ms;
}

/* --- subsets of the kinds --- */

/* Closes a set of kinds as --shard does: rows and columns together allow
 * grids. */
static unsigned closed(unsigned kinds)
{
    const unsigned made_of = SHARD_COLUMN | SHARD_ROW;

    return (kinds & made_of) == made_of ? kinds | SHARD_GRID : kinds;
}

static const char *say_kinds(unsigned kinds, struct arena *arena)
{
    const char *list = "";

    for (unsigned kind = 1; kind & SHARD_ALL_KINDS; kind <<= 1)
        if (kinds & kind)
            list = arena_printf(arena, "%s%s%s", list, *list ? "," : "",
                                shard_kind_name((enum shard_kind)kind));
    return list;
}

static void print_subsets(const char *name, const char *cost,
                          struct problem *problem, bool all,
                          struct arena *arena)
{
    const size_t n = all ? SHARD_ALL_KINDS + 1 : N_MAIN_SUBSETS;
    double own_ms, least_ms = INFINITY;
    uint64_t bytes, need;
    unsigned least = 0, done[SHARD_ALL_KINDS + 1] = {0}, n_found = 0;

    own_ms = plan_ms(problem, cost, &bytes, &need);
    done[SHARD_ALL_KINDS] = 1;
    for (size_t i = all ? 1 : 0; i < n; i++) {
        double ms;

        problem->kinds = closed(all ? (unsigned)i : main_subsets[i]);
        if (done[problem->kinds]++)
            continue;
        ms = plan_ms(problem, cost, &bytes, &need);
        n_found += ms < INFINITY;
        if (ms < least_ms) {
            least_ms = ms;
            least = problem->kinds;
        }
    }
    problem->kinds = SHARD_ALL_KINDS;
    printf("%-4s %-31s %4u %-14.14s %10.4f %10.4f %3u %7.4f  %s\n",
           own_ms > least_ms * MAX_SUBSET_RATIO ? "FAIL" : "ok", name,
           problem->cluster.n_devices, cost, own_ms, least_ms, n_found,
           own_ms / least_ms, say_kinds(least, arena));
    fflush(stdout);
    n_broken += own_ms > least_ms * MAX_SUBSET_RATIO;
}

static void head_subsets(void)
{
    printf("\nall kinds beside the cheapest of their subsets; no more than "
           "%g\n     %-31s %4s %-14s %10s %10s %3s %7s  %s\n",
           MAX_SUBSET_RATIO, "list", "gpus", "cost", "all, ms", "subset, ms",
           "n", "ratio", "which");
}

static void set_memory(struct problem *problem, uint64_t bytes,
                       uint64_t reserve)
{
    for (uint32_t r = 0; r < problem->cluster.n_devices; r++) {
        problem->cluster.memory_bytes[r] = bytes;
        problem->cluster.reserve_bytes[r] = reserve;
    }
}

static void bench_subsets(bool all)
{
    head_subsets();
    for (size_t i = 0; i < 2 * N_SUBSET_LISTS; i++) {
        const struct list *list = &lists[i / 2];
        const char *cost = i % 2 ? "roofline:h100" : list->torchrec;
        struct arena arena = {0};
        const struct gpu_spec *gpu;
        struct problem problem;
        struct err err = {0};
        uint64_t bytes;

        if (gpu_spec_get(&gpu, "h100", &arena, &err))
            fail_on(&err);
        bytes = list->gib > 0 ? (uint64_t)(list->gib * (double)GIB)
                              : gpu->memory_bytes;
        open_list(&problem, list, shipped_path(list, &arena), &arena);
        set_memory(&problem, bytes, (uint64_t)(RESERVE_FRAC * (double)bytes));
        print_subsets(list->name, cost, &problem, all || !(i % 2), &arena);
        arena_release(&arena);
    }
}

static void bench_one(const char *path, uint32_t n_gpus, const char *only)
{
    static const char *const costs[] = {"torchrec", "roofline:h100"};
    const struct list list = {path, n_gpus, 8, 80, 0, NULL};

    head_subsets();
    for (size_t i = 0; i < 2; i++) {
        struct arena arena = {0};
        struct problem problem;

        if (only && strcmp(only, costs[i]) != 0)
            continue;
        open_list(&problem, &list, path, &arena);
        set_memory(&problem, 80 * GIB, 0);
        print_subsets(path, costs[i], &problem, false, &arena);
        arena_release(&arena);
    }
}

/* --- memory --- */

/* Prints the cost over memory limits. The points range from the tightest limit
 * that fits to the memory of the plan found without a limit. The last point is
 * unlimited. */
static void print_memory(const struct list *list, const char *cost,
                         struct problem *problem)
{
    double least_ms = INFINITY, worst = 0, ms[N_POINTS];
    uint64_t most_bytes = 0, need_bytes = 0, least_bytes = 0, worst_at = 0;
    uint64_t worst_than = 0, bytes, skip;
    unsigned n_found = 0;

    set_memory(problem, UNLIMITED, 0);
    ms[N_POINTS - 1] = plan_ms(problem, cost, &most_bytes, &skip);
    set_memory(problem, 1, 0);
    (void)plan_ms(problem, cost, &skip, &need_bytes);
    for (unsigned i = 0; i < N_POINTS; i++) {
        const double frac = (double)i / (N_POINTS - 2);

        bytes = i == N_POINTS - 1
                    ? UNLIMITED
                    : (uint64_t)((double)need_bytes *
                                 pow((double)most_bytes / (double)need_bytes,
                                     frac));
        set_memory(problem, bytes, 0);
        if (i < N_POINTS - 1)
            ms[i] = plan_ms(problem, cost, &skip, &skip);
        n_found += ms[i] < INFINITY;
        if (ms[i] / least_ms > worst && least_ms < INFINITY) {
            worst = ms[i] / least_ms;
            worst_at = bytes;
            worst_than = least_bytes;
        }
        if (ms[i] < least_ms) {
            least_ms = ms[i];
            least_bytes = bytes;
        }
    }
    printf("%-4s %-31s %4u %-14.14s %3u %8.2f %8.2f %10.4f %10.4f %7.4f",
           worst > MAX_MEMORY_RATIO ? "FAIL" : "ok", list->name, list->n_gpus,
           cost, n_found, (double)need_bytes / (double)GIB,
           (double)most_bytes / (double)GIB, least_ms, ms[N_POINTS - 1], worst);
    printf("  %.2f than %.2f\n", (double)worst_at / (double)GIB,
           (double)worst_than / (double)GIB);
    if (getenv("BENCH_POINTS"))
        for (unsigned i = 0; i < N_POINTS; i++)
            printf("%s%.4f", i ? " " : "       ", ms[i]);
    if (getenv("BENCH_POINTS"))
        printf("\n");
    fflush(stdout);
    n_broken += worst > MAX_MEMORY_RATIO;
}

static void bench_memory(void)
{
    printf("\nplans under more and more memory, each beside the cheapest found "
           "with less; no more than %g\n     %-31s %4s %-14s %3s %8s %8s %10s "
           "%10s %7s  %s\n",
           MAX_MEMORY_RATIO, "list", "gpus", "cost", "n", "least", "most GiB",
           "least ms", "most, ms", "worst", "GiB");
    for (size_t i = 0; i < 2 * N_MEMORY_LISTS; i++) {
        const struct list *list = &lists[i / 2];
        struct arena arena = {0};
        struct problem problem;

        open_list(&problem, list, shipped_path(list, &arena), &arena);
        print_memory(list, i % 2 ? "roofline:h100" : list->torchrec, &problem);
        arena_release(&arena);
    }
}

int main(int argc, char **argv)
{
    const char *size = getenv("TEST_SIZE"), *what = argc > 1 ? argv[1] : "";

    threads = pool_open(0);
    if (argc > 2) {
        bench_one(what, (uint32_t)strtoul(argv[2], NULL, 10),
                  argc > 3 ? argv[3] : NULL);
    } else {
        if (strcmp(what, "memory") != 0)
            bench_subsets(size && !strcmp(size, "full"));
        if (strcmp(what, "subsets") != 0)
            bench_memory();
    }
    pool_close(threads);
    return n_broken > 0;
}
