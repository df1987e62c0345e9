/* SPDX-License-Identifier: MIT */
/* The published benchmark tasks under the published nets. Our searches are
 * never worse than the published one, the full search is better, and the greedy
 * baselines equal the published ones. */
#include <math.h>

#include "costmodel/models/oracles.h"
#include "search/planners.h"
#include "tests/golden.h"
#include "tests/judge.h"
#include "tests/tap.h"

/* Returns the published cost, or NAN if the published code found no plan. */
static double published(const json_t *task, const char *what)
{
    const json_t *cost =
        json_object_get(json_object_get(task, what), "cost_ms");

    return json_is_number(cost) ? json_number_value(cost) : NAN;
}

/* Returns the total of a valid plan. If no plan was found, prints the reason
 * and returns NAN. */
static double judge(struct plan *plan, int rc, const struct oracle *oracle,
                    struct arena *arena, struct err *err)
{
    if (!rc && !judge_plan(plan, oracle, arena, err))
        return plan->total_ms;
    printf("# %s\n", err->msg);
    return NAN;
}

static void check_search(struct plan *plan, const struct oracle *oracle,
                         const json_t *task, const char *label,
                         struct arena *arena)
{
    struct search_options options;
    struct err err = {0};
    double grid, beam, want_grid = published(task, "grid_only"),
                       want_beam = published(task, "beam");
    int rc;

    search_options_init(&options);
    options.beam_width = 0;
    rc = search_reference(plan, oracle, &options, arena, &err);
    grid = judge(plan, rc, oracle, arena, &err);
    ok(isnan(want_grid) || grid <= want_grid * 1.0001,
       "%s: grid alone %.4f ms, published %.4f", label, grid, want_grid);
    search_options_init(&options);
    rc = search_reference(plan, oracle, &options, arena, &err);
    beam = judge(plan, rc, oracle, arena, &err);
    ok(beam <= want_beam * 1.0001, "%s: beam %.4f ms, published %.4f", label,
       beam, want_beam);
    ok(isnan(grid) || beam <= grid, "%s: beam is no worse than grid", label);
}

/* Sum of the ratios of our costs to the published ones. */
struct gain {
    double ratios;
    unsigned n;
};

/* Runs the full search with little effort. Half of this effort is too little
 * for task 19 of 4 GPUs: 5 of 12 runs found nothing better than the published
 * plan. That plan has pieces of unequal widths on one GPU, which the full
 * search may not use. */
static void check_full(struct plan *plan, const struct oracle *oracle,
                       const json_t *task, const char *label, struct gain *gain,
                       struct arena *arena)
{
    double want = published(task, "beam"), got;
    struct search_options options;
    struct err err = {0};
    int rc;

    search_options_init(&options);
    options.effort = 200000;
    rc = search_full(plan, oracle, &options, arena, &err);
    got = judge(plan, rc, oracle, arena, &err);
    ok(got <= want * (1 + 1e-6), "%s: full %.4f ms, published %.4f", label, got,
       want);
    gain->ratios += got / want;
    gain->n++;
}

static void check_baselines(struct plan *plan, const struct oracle *oracle,
                            const json_t *task, const char *label,
                            struct arena *arena)
{
    static const struct {
        const char *name, *key;
    } names[] = {{"dim", "dim_greedy"},
                 {"lookup", "lookup_greedy"},
                 {"size", "size_greedy"},
                 {"size-lookup", "size_lookup_greedy"}};

    const struct contender_inputs inputs = {.oracle = oracle, .seed = 1};

    for (const struct contender *baseline = search_contenders;
         strcmp(baseline->name, "torchrec") != 0; baseline++) {
        struct err err = {0};
        int rc = contender_place(plan, baseline, &inputs, arena, &err);
        double got = judge(plan, rc, oracle, arena, &err), want = NAN;
        const char *key = NULL;

        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (!strcmp(names[i].name, baseline->name))
                key = names[i].key;
        if (key)
            want = published(task, key);
        if (!key)
            ok(!rc || err.code == ERR_NO_PLAN, "%s: %s", label, baseline->name);
        else if (isnan(want))
            ok(rc && err.code == ERR_NO_PLAN, "%s: %s does not fit either",
               label, baseline->name);
        else
            ok(fabs(got - want) <= 1e-4 * want, "%s: %s %.4f, published %.4f",
               label, baseline->name, got, want);
    }
}

int main(void)
{
    static const char *const files[] = {"golden/tasks_4gpu.json",
                                        "golden/tasks_8gpu.json"};
    /* the default effort reaches 0.984 and 0.969 */
    static const double most_ratio[] = {0.988, 0.98};
    struct arena arena = {0};
    struct table *pool;
    const char *dir;
    size_t n, i;

    dir = golden_path("golden", &arena);
    if (!file_exists(dir))
        tap_skip_all("no ../shared");
    if (tap_many(10) < 10)
        tap_skip_all("it takes minutes with sanitizers");
    pool = golden_tables(&n, &arena);
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        json_t *tasks = golden_json(files[f], &arena), *task;
        struct gain gain = {0};

        json_array_foreach(tasks, i, task)
        {
            struct arena_mark mark = arena_mark(&arena);
            uint32_t n_devices =
                (uint32_t)json_integer_value(json_object_get(task, "gpus"));
            const char *label =
                arena_printf(&arena, "task %zu of %u gpus", i, n_devices);
            struct oracle *oracle = NULL;
            struct plan plan = {0};
            struct err err = {0};

            golden_problem(
                &plan.problem, pool, json_object_get(task, "table_ids"),
                json_object_get(task, "dims"), n_devices,
                json_number_value(json_object_get(task, "max_mem_gib")),
                &arena);
            if (ok(!oracle_reference_open(&oracle, dir, &plan.problem, &arena,
                                          &err),
                   "%s: opens the nets", label)) {
                check_search(&plan, oracle, task, label, &arena);
                check_full(&plan, oracle, task, label, &gain, &arena);
                check_baselines(&plan, oracle, task, label, &arena);
            }
            arena_rewind(&arena, mark);
        }
        json_decref(tasks);
        ok(gain.ratios <= most_ratio[f] * gain.n,
           "%s: full search costs %.4f of the published on average", files[f],
           gain.ratios / gain.n);
    }
    arena_release(&arena);
    return tap_done();
}
