/* SPDX-License-Identifier: MIT */
/* Tasks of 50 to 80 tables under the published nets. The full search continues
 * to its usual effort as long as its stages gain at all. If it ends earlier,
 * its second half has gained nothing. */
#include <math.h>

#include "costmodel/models/oracles.h"
#include "search/search.h"
#include "tests/golden.h"
#include "tests/judge.h"
#include "tests/tap.h"

enum { N_DEVICES = 8, N_TASKS = 3, SEED = 44 };
/* USUAL_EFFORT: evaluations of the usual effort (search/temper.c), less the
 * rest that the last stage may leave. NO_GAIN: largest gain, as a share, of a
 * second half that counts as gaining nothing. It is twice the NO_GAIN of
 * search/schedule.c, as for two stages. */
#define USUAL_EFFORT 2300000
#define NO_GAIN 0.0002

/* Returns the best total after half of all evaluations. */
static double half_way_ms(const struct search_trace *trace, uint64_t n_all)
{
    double total_ms = INFINITY;

    for (size_t i = 0; i < trace->n; i++)
        if (trace->points[i].n_evaluations <= n_all / 2)
            total_ms = trace->points[i].total_ms;
    return total_ms;
}

static void check_task(struct plan *plan, const struct oracle *oracle,
                       unsigned task, struct arena *arena)
{
    struct search_trace trace = {0};
    struct search_options options;
    struct err err = {0};
    double half_ms;

    search_options_init(&options);
    options.trace = &trace;
    if (ok(!search_full(plan, oracle, &options, arena, &err) &&
               !judge_plan(plan, oracle, arena, &err),
           "task %u: a legal plan", task)) {
        half_ms = half_way_ms(&trace, plan->n_evaluations);
        ok(plan->n_evaluations >= USUAL_EFFORT ||
               half_ms <= plan->total_ms * (1 + NO_GAIN),
           "task %u: %.4f ms half way, %.4f ms after %.0f evaluations", task,
           half_ms, plan->total_ms, (double)plan->n_evaluations);
    }
    mem_free(trace.points);
}

int main(void)
{
    struct arena arena = {0};
    struct table *pool;
    struct rng rng;
    size_t n;

    if (!file_exists(golden_path("golden", &arena)))
        tap_skip_all("no ../shared");
    if (tap_many(10) < 10)
        tap_skip_all("it takes minutes with sanitizers");
    pool = golden_tables(&n, &arena);
    rng_init(&rng, SEED, 0);
    for (unsigned i = 0; i < N_TASKS; i++) {
        struct oracle *oracle = NULL;
        struct plan plan = {0};
        struct err err = {0};

        golden_draw(&plan.problem, pool, n, 50, 80, N_DEVICES, &rng, &arena);
        if (ok(!oracle_reference_open(&oracle, golden_path("golden", &arena),
                                      &plan.problem, &arena, &err),
               "task %u: opens the nets", i))
            check_task(&plan, oracle, i, &arena);
    }
    arena_release(&arena);
    return tap_done();
}
