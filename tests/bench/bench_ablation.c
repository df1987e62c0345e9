/* SPDX-License-Identifier: MIT */
/*
 * Measures the gain of each part of the full search: each part is switched off
 * alone, and every problem is searched again with the same number of changes
 * and several seeds. For each group of problems it prints in per cent:
 *
 * - for the search as it is: the standard deviation over seeds, averaged over
 *   problems
 * - for each part: the increase of the plans' cost without it, on average over
 *   problems and seeds, and for the worst problem (averaged over its seeds)
 *
 * The groups are the published nets (golden tasks), five real lists by roofline
 * and by TorchRec's formulas, and lists with tight memory.
 *
 *     bench_ablation [CHANGES [SEEDS [GROUP [PART]]]]    300000 5
 *
 * CHANGES of 0 is the default of `plan`: the search goes on until its stop rule
 * ends it. From 300,000 changes on, starts other than the first are annealed;
 * from 1,200,000 on, the best of them are annealed again. The gain of several
 * starts differs from list to list (search/starts.h).
 */
#include "core/memory.h"
#include "tests/golden.h"

#include "core/plan_price.h"
#include "costmodel/models/oracle_open.h"
#include "costmodel/models/oracles.h"
#include "io/tables_io.h"
#include "search/search.h"
#include <math.h>

#define MAX_SEEDS 16
#define MAX_CASES 64
#define MAX_GROUPS 16

/* --- the parts --- */

static void no_rebuild(struct tuning *tuning)
{
    tuning->rebuilds = 0;
}

static void no_pour(struct tuning *tuning)
{
    tuning->pours = false;
}

static void one_rebuilt(struct tuning *tuning)
{
    tuning->n_rebuilt = 1;
}

static void no_kept_shardings(struct tuning *tuning)
{
    tuning->recuts = 1000;
}

static void switch_off(struct tuning *tuning, enum change_kind kind)
{
    for (unsigned s = 0; s < N_MOVE_MIXES; s++)
        tuning->changes[s][kind] = 0;
}

static void no_swap(struct tuning *tuning)
{
    switch_off(tuning, CHANGE_SWAP);
}

static void no_trade(struct tuning *tuning)
{
    switch_off(tuning, CHANGE_TRADE);
}

static void no_widths(struct tuning *tuning)
{
    switch_off(tuning, CHANGE_SPLIT);
    switch_off(tuning, CHANGE_MERGE);
    switch_off(tuning, CHANGE_RESPLIT);
}

static void from_anywhere(struct tuning *tuning)
{
    tuning->anywhere = 1000;
}

static void no_imbalance(struct tuning *tuning)
{
    tuning->imbalance_weight = 0;
}

static void no_excess(struct tuning *tuning)
{
    tuning->excess_weight = 1e9;
}

static void one_price(struct tuning *tuning)
{
    tuning->n_prices = 1;
}

static void no_tempering(struct tuning *tuning)
{
    tuning->tempered = 0;
}

static void one_start(struct tuning *tuning)
{
    tuning->n_starts = 1;
}

static void starts_as_built(struct tuning *tuning)
{
    tuning->start_stages = 0;
}

static void best_once(struct tuning *tuning)
{
    tuning->best_stages = 0;
}

static const struct part_off {
    const char *name;
    void (*switch_off)(struct tuning *tuning);
} parts_off[] = {
    {"rebuild", no_rebuild},
    {"pouring", no_pour},
    {"several rebuilt", one_rebuilt},
    {"forms kept", no_kept_shardings},
    {"swap", no_swap},
    {"trade", no_trade},
    {"split, merge, resplit", no_widths},
    {"critical device first", from_anywhere},
    {"heaviness", no_imbalance},
    {"through excess", no_excess},
    {"variety of starts", one_price},
    {"several starts", one_start},
    {"starts annealed", starts_as_built},
    {"best annealed again", best_once},
    {"tempering", no_tempering},
};

/* --- the problems --- */

struct bench_case {
    struct problem problem;
    struct oracle *oracle;
    const char *name;
    double total_ms[MAX_SEEDS]; /* with the full search */
};

struct group {
    const char *name;
    struct bench_case cases[MAX_CASES];
    unsigned n;
    double worst; /* increase without the current part */
    double sum;
    unsigned n_sum;
};

static void open_case(struct group *group, const char *name, const char *cost,
                      const struct problem *problem, struct arena *arena)
{
    struct bench_case *next = &group->cases[group->n++];
    struct err err = {0};

    next->name = name;
    next->problem = *problem;
    if (oracle_open(&next->oracle, cost, &next->problem, arena, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
}

/* Adds every n-th golden task, n = step. */
static void open_golden(struct group *group, const char *file,
                        uint32_t n_devices, unsigned step, struct arena *arena)
{
    const char *cost =
        arena_printf(arena, "reference:%s", golden_path("golden", arena));
    json_t *tasks, *task;
    struct table *pool;
    size_t n, i;

    if (!file_exists(golden_path("golden", arena)))
        return;
    pool = golden_tables(&n, arena);
    tasks = golden_json(file, arena);
    json_array_foreach(tasks, i, task)
    {
        struct problem problem;

        if (i % step)
            continue;
        golden_problem(&problem, pool, json_object_get(task, "table_ids"),
                       json_object_get(task, "dims"), n_devices,
                       json_number_value(json_object_get(task, "max_mem_gib")),
                       arena);
        open_case(group, arena_printf(arena, "task %zu", i), cost, &problem,
                  arena);
    }
    json_decref(tasks);
}

/* Adds a list of data/tables. slack: total memory for tables relative to the
 * size of all tables, each stored once; each device gets the memory of its
 * samples on top. A slack of 0 selects the memory of an H100. */
static void open_list(struct group *group, const char *name, uint32_t n_devices,
                      uint32_t per_host, double slack, const char *cost,
                      struct arena *arena)
{
    const char *data = getenv("NEUROSHARD_DATA");
    struct tables_options options = {0};
    struct table_list list;
    struct problem problem;
    struct err err = {0};
    double all = 0;

    if (tables_load(
            &list,
            arena_printf(arena, "%s/tables/%s.csv", data ? data : "data", name),
            &options, arena, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    problem = (struct problem){
        .tables = list.tables,
        .n_tables = list.n_tables,
        .batch = 65536,
        .kinds = SHARD_ALL_KINDS,
        .cluster = {.n_devices = n_devices,
                    .devices_per_host = per_host,
                    .memory_bytes = ARENA_NEW(arena, uint64_t, n_devices),
                    .reserve_bytes = ARENA_NEW(arena, uint64_t, n_devices)}};
    for (uint32_t t = 0; t < problem.n_tables; t++) {
        struct shard whole = shard_whole(&problem, t, 0);

        all += (double)shard_memory(&problem, &whole).total;
    }
    for (uint32_t r = 0; r < n_devices; r++)
        problem.cluster.memory_bytes[r] =
            slack > 0 ? (uint64_t)(slack * all / n_devices) +
                            sample_memory(&problem).total
                      : 85520809984;
    open_case(group, name, cost, &problem, arena);
}

static void open_lists(struct group *group, const char *cost,
                       struct arena *arena)
{
    open_list(group, "mlperf_dlrm_dcnv2_multihot", 8, 8, 0, cost, arena);
    open_list(group, "mlperf_dlrm_dcnv2_multihot", 16, 8, 0, cost, arena);
    open_list(group, "nvidia_synthetic_large_v3", 16, 8, 0, cost, arena);
    open_list(group, "hugectr_7table_470B_hotness20", 32, 8, 0, cost, arena);
    open_list(group, "deeprecsys_dlrm_rm2", 4, 4, 0, cost, arena);
}

/* --- the searches --- */

static double total_of(const struct bench_case *of, const struct tuning *tuning,
                       uint64_t effort, uint64_t seed, struct pool *pool)
{
    struct plan plan = {.problem = of->problem};
    struct search_options options;
    struct err err = {0};
    struct arena arena = {0};

    search_options_init(&options);
    options.pool = pool;
    options.effort = effort;
    options.seed = seed;
    options.tuning = tuning;
    if (search_full(&plan, of->oracle, &options, &arena, &err))
        plan.total_ms = INFINITY;
    else {
        plan_derive_kinds(&plan);
        if (plan_price(&plan, of->oracle, &arena, &err))
            plan.total_ms = INFINITY;
    }
    if (err.code)
        printf("%s: %s\n", of->name, err.msg);
    arena_release(&arena);
    return plan.total_ms;
}

/* Fills the cases' totals and prints the spread over seeds. */
static void search_as_is(struct group *group, uint64_t effort, unsigned n_seeds,
                         struct pool *pool)
{
    double spread = 0;

    for (unsigned i = 0; i < group->n; i++) {
        struct bench_case *of = &group->cases[i];
        double mean = 0, squares = 0;

        for (unsigned s = 0; s < n_seeds; s++) {
            of->total_ms[s] =
                total_of(of, &tuning_default, effort, s + 1, pool);
            mean += of->total_ms[s] / n_seeds;
        }
        for (unsigned s = 0; s < n_seeds; s++)
            squares += pow(of->total_ms[s] / mean - 1, 2) / n_seeds;
        spread += sqrt(squares) / group->n;
    }
    printf(" %8.3f %7s", 100 * spread, "");
    fflush(stdout);
}

static void search_without(struct group *group, const struct part_off *type,
                           uint64_t effort, unsigned n_seeds, struct pool *pool)
{
    struct tuning tuning = tuning_default;
    double sum = 0, worst = -INFINITY;

    type->switch_off(&tuning);
    for (unsigned i = 0; i < group->n; i++) {
        const struct bench_case *of = &group->cases[i];
        double now = 0, then = 0;

        for (unsigned s = 0; s < n_seeds; s++) {
            now += of->total_ms[s];
            then += total_of(of, &tuning, effort, s + 1, pool);
        }
        sum += then / now - 1;
        worst = fmax(worst, then / now - 1);
    }
    printf(" %+8.3f %+7.3f", 100 * sum / group->n, 100 * worst);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static struct group groups[] = {
        {.name = "golden 4"}, {.name = "golden 8"}, {.name = "roofline"},
        {.name = "torchrec"}, {.name = "tight"},
    };
    const size_t n_groups = sizeof groups / sizeof *groups;
    const size_t n_types = sizeof parts_off / sizeof *parts_off;
    uint64_t effort = 300000;
    unsigned n_seeds = 5;
    struct pool *pool = pool_open(0);
    struct arena arena = {0};

    if (argc > 1)
        effort = strtoull(argv[1], NULL, 10);
    if (!effort)
        effort = SEARCH_EFFORT_AUTO;
    if (argc > 2)
        n_seeds = (unsigned)strtoul(argv[2], NULL, 10);
    if (n_seeds < 1 || n_seeds > MAX_SEEDS)
        n_seeds = MAX_SEEDS;
    open_golden(&groups[0], "golden/tasks_4gpu.json", 4, 3, &arena);
    open_golden(&groups[1], "golden/tasks_8gpu.json", 8, 2, &arena);
    open_lists(&groups[2], "roofline:h100", &arena);
    open_lists(&groups[3], "torchrec", &arena);
    open_list(&groups[4], "mlperf_dlrm_dcnv2_multihot", 8, 8, 1.03,
              "roofline:h100", &arena);
    open_list(&groups[4], "deeprecsys_dlrm_rm2", 4, 4, 1.01, "roofline:h100",
              &arena);
    open_list(&groups[4], "hugectr_7table_470B_hotness20", 32, 8, 1.01,
              "torchrec", &arena);
    printf("%-22s", "without, %");
    for (size_t g = 0; g < n_groups; g++)
        printf(" %8s   worst", groups[g].name);
    printf("\n%-22s", "(spread of seeds)");
    for (size_t g = 0; g < n_groups; g++)
        if (argc <= 3 || strstr(groups[g].name, argv[3]))
            search_as_is(&groups[g], effort, n_seeds, pool);
    printf("\n");
    for (size_t p = 0; p < n_types; p++) {
        if (argc > 4 && !strstr(parts_off[p].name, argv[4]))
            continue;
        printf("%-22s", parts_off[p].name);
        for (size_t g = 0; g < n_groups; g++)
            if (argc <= 3 || strstr(groups[g].name, argv[3]))
                search_without(&groups[g], &parts_off[p], effort, n_seeds,
                               pool);
        printf("\n");
    }
    pool_close(pool);
    arena_release(&arena);
    return 0;
}
