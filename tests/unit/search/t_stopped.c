/* SPDX-License-Identifier: MIT */
/* A search that is stopped reports the reason, returns a valid plan and ends
 * soon. */
#include "search/search.h"

#include <signal.h>

#include "base/interrupt.h"
#include "tests/judge.h"
#include "tests/unit/search/scene.h"

/* Number of calls of the cost model, and the call at which the user
 * interrupts. */
static uint64_t n_calls, interrupted_at = UINT64_MAX;

static void count_call(void)
{
    if (++n_calls == interrupted_at)
        (void)raise(SIGINT);
}

static void counting_terms(const struct oracle *oracle, const double *sums,
                           size_t n, double *compute_ms, double *terms_ms)
{
    count_call();
    random_terms(oracle, sums, n, compute_ms, terms_ms);
}

static void counting_comm(const struct oracle *oracle, size_t n,
                          const double *sums, const double *compute_ms,
                          double *fwd_ms, double *bwd_ms)
{
    count_call();
    random_comm(oracle, n, sums, compute_ms, fwd_ms, bwd_ms);
}

enum search { FULL, REFERENCE, REPLAN, N_SEARCHES };
static const char *const names[] = {"full", "reference", "replan"};

/* Returns the number of calls of the cost model. */
static uint64_t search(const struct scene *scene, enum search search,
                       const struct search_options *options, const char *want)
{
    static const struct oracle_ops ops = {.embed = random_embed,
                                          .compute = random_compute,
                                          .comm = counting_comm,
                                          .terms = counting_terms};
    struct random_oracle oracle = scene->oracle;
    struct plan plan = {.problem = scene->problem};
    const uint64_t n_before = n_calls;
    struct err err = {0};
    struct arena arena = {0};
    int rc = -1;

    oracle.base.ops = &ops;
    oracle.base.problem = &plan.problem;
    if (search == FULL) {
        rc = search_full(&plan, &oracle.base, options, &arena, &err);
    } else if (search == REFERENCE) {
        rc = search_reference(&plan, &oracle.base, options, &arena, &err);
    } else {
        const uint32_t device_of[SCENE_TABLES] = {0};
        struct plan from =
            fake_whole_plan(&scene->problem, device_of, SCENE_TABLES, &arena);

        rc = search_replan(&plan, &from, UINT64_MAX, &oracle.base, options,
                           NULL, &arena, &err);
    }
    ok(!rc && !judge_plan(&plan, &oracle.base, &arena, &err),
       "%s: a plan that is one: %s", names[search], err.msg);
    is_str(plan.stopped, want, names[search]);
    arena_release(&arena);
    return n_calls - n_before;
}

int main(void)
{
    const char *const stops[N_SEARCHES] = {"budget", "done", "budget"};
    const char *const late[N_SEARCHES] = {"time", "done", "time"};
    struct search_options options;
    uint64_t n_whole[N_SEARCHES];
    struct scene scene;

    scene_open(&scene, BY_TERMS);
    search_options_init(&options);
    options.effort = 40000;
    for (enum search s = FULL; s < N_SEARCHES; s++)
        n_whole[s] = search(&scene, s, &options, stops[s]);
    options.time_limit_ms = 1e-6;
    for (enum search s = FULL; s < N_SEARCHES; s++)
        ok(search(&scene, s, &options, late[s]) < n_whole[s] / 10 ||
               s == REFERENCE,
           "%s: late, it is soon there", names[s]);
    options.time_limit_ms = 0;
    interrupt_install();
    interrupted_at = n_calls + n_whole[FULL] / 2;
    ok(search(&scene, FULL, &options, "interrupt") < n_whole[FULL] * 3 / 4,
       "interrupted half-way it is soon there");
    for (enum search s = REFERENCE; s < N_SEARCHES; s++)
        ok(search(&scene, s, &options, "interrupt") < n_whole[s] / 2,
           "%s: interrupted before, it does the least", names[s]);
    scene_close(&scene);
    return tap_done();
}
