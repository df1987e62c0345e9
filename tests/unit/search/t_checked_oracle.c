/* SPDX-License-Identifier: MIT */
/* A cost model that answers correctly until one call, whose answer is NaN or
 * infinity. Any of its functions may give the wrong answer, at any call. No
 * search may turn such an answer into a plan. */
#include "core/plan_price.h"
#include "search/checked_oracle.h"
#include "search/search.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define N_TABLES 5
#define N_DEVICES 3
#define EFFORT 400
/* Indices of the calls that are tried: 0 to N_FIRST, then each GROWTH times the
 * one before. */
#define N_FIRST 3
#define GROWTH 3.0

enum function { EMBED, COMPUTE, COMM, TERMS, N_FUNCTIONS };
static const char *const function_names[] = {"embed", "compute", "comm",
                                             "terms"};

struct lapse {
    struct oracle base;
    const struct oracle *oracle;
    enum function function;
    double answer;
    uint64_t *n_left; /* calls of that function before the wrong answer */
};

static void lapse(const struct oracle *base, enum function function,
                  double *answers, size_t n)
{
    const struct lapse *it = (const struct lapse *)(const void *)base;

    if (it->function == function && n && (*it->n_left)-- == 0)
        answers[n - 1] = it->answer;
}

static const struct oracle *inner(const struct oracle *base)
{
    return ((const struct lapse *)(const void *)base)->oracle;
}

static void lapse_embed(const struct oracle *base, const struct shard *shards,
                        size_t n, double *out)
{
    inner(base)->ops->embed(inner(base), shards, n, out);
    lapse(base, EMBED, out, n * base->width);
}

static void lapse_compute(const struct oracle *base, const double *sums,
                          size_t n, double *compute_ms)
{
    inner(base)->ops->compute(inner(base), sums, n, compute_ms);
    lapse(base, COMPUTE, compute_ms, n);
}

static void lapse_comm(const struct oracle *base, size_t n, const double *sums,
                       const double *compute_ms, double *fwd_ms, double *bwd_ms)
{
    inner(base)->ops->comm(inner(base), n, sums, compute_ms, fwd_ms, bwd_ms);
    lapse(base, COMM, fwd_ms, n * N_DEVICES);
}

static void lapse_terms(const struct oracle *base, const double *sums, size_t n,
                        double *compute_ms, double *terms_ms)
{
    inner(base)->ops->terms(inner(base), sums, n, compute_ms, terms_ms);
    lapse(base, COMPUTE, compute_ms, n);
    lapse(base, TERMS, terms_ms, n * base->n_terms);
}

static const struct oracle_ops by_comm = {
    .embed = lapse_embed, .compute = lapse_compute, .comm = lapse_comm};
static const struct oracle_ops by_terms = {.embed = lapse_embed,
                                           .compute = lapse_compute,
                                           .comm = lapse_comm,
                                           .terms = lapse_terms};

enum search { FULL, REFERENCE, REPLAN, PRICE, N_SEARCHES };
static const char *const search_names[] = {"full", "reference", "replan",
                                           "price"};

struct scene {
    struct problem problem;
    struct random_oracle oracle;
    struct plan from;
};

/* Returns the code of the error; *n_left counts the calls down. */
static enum err_code run(const struct scene *scene, enum search search,
                         enum function function, double answer,
                         uint64_t *n_left)
{
    const struct oracle *oracle = &scene->oracle.base;
    struct lapse it = {*oracle, oracle, function, answer, n_left};
    struct plan plan = {.problem = scene->problem};
    struct search_options options;
    struct err err = {0};
    struct arena arena = {0};
    int rc = -1;

    it.base.ops = oracle->ops->terms ? &by_terms : &by_comm;
    search_options_init(&options);
    options.effort = EFFORT;
    switch (search) {
    case FULL:
        rc = search_full(&plan, &it.base, &options, &arena, &err);
        break;
    case REFERENCE:
        rc = search_reference(&plan, &it.base, &options, &arena, &err);
        break;
    case REPLAN:
        rc = search_replan(&plan, &scene->from, 400000, &it.base, &options,
                           NULL, &arena, &err);
        break;
    case PRICE:
        plan.shards = scene->from.shards;
        plan.n_shards = scene->from.n_shards;
        rc = plan_price(&plan, &it.base, &arena, &err);
        break;
    case N_SEARCHES:
        break;
    }
    arena_release(&arena);
    if (!rc != (err.code == ERR_NONE))
        ok(0, "%s: returns %d with '%s'", search_names[search], rc, err.msg);
    return err.code;
}

static void try_function(const struct scene *scene, enum search search,
                         enum function function)
{
    static const double answers[] = {NAN, INFINITY, -INFINITY};
    uint64_t n_left = UINT64_MAX, n_calls, n_tried = 0, n_passed = 0;

    if (run(scene, search, function, 0, &n_left) != ERR_NONE)
        ok(0, "%s has a plan", search_names[search]);
    n_calls = UINT64_MAX - n_left;
    for (uint64_t at = 0; at < n_calls;
         at = at < N_FIRST ? at + 1 : (uint64_t)((double)at * GROWTH))
        /* Counts from the first call on, and back from the last. */
        for (int is_last = 0; is_last < 2; is_last++) {
            n_left = is_last ? n_calls - 1 - at : at;
            n_passed += run(scene, search, function, answers[n_tried++ % 3],
                            &n_left) != ERR_INPUT;
        }
    ok(n_passed == 0 && n_tried > 0,
       "%s, %s: %llu of %llu lapses passed, of %llu calls",
       search_names[search], function_names[function],
       (unsigned long long)n_passed, (unsigned long long)n_tried,
       (unsigned long long)n_calls);
}

static void open_scene(struct scene *scene, bool has_terms, bool is_additive,
                       struct arena *arena)
{
    static const uint64_t rows[N_TABLES] = {1000, 2000, 500, 70, 300};
    static const uint32_t dims[N_TABLES] = {16, 8, 32, 16, 8};
    struct err err = {0};
    uint64_t seed = 0;
    struct search_options options;

    fake_problem(&scene->problem, rows, dims, N_TABLES, N_DEVICES, 200000,
                 arena);
    do {
        struct rng rng;

        rng_init(&rng, 9, seed++);
        random_oracle_init(&scene->oracle, &scene->problem, &rng);
    } while (!scene->oracle.base.ops->terms == has_terms ||
             scene->oracle.base.is_additive != is_additive);
    scene->from = (struct plan){.problem = scene->problem};
    search_options_init(&options);
    options.effort = 0;
    ok(!search_full(&scene->from, &scene->oracle.base, &options, arena, &err),
       "a plan to start from: %s", err.msg);
    plan_derive_kinds(&scene->from);
}

/* comm in halves: the checked oracle is called directly, without a search. */
static void check_halves(void)
{
    const double lanes[2][N_DEVICES] = {{1, 2, 3}, {1, INFINITY, 3}};
    const double compute_ms[2][N_DEVICES] = {{1, 1, 1}, {1, 1, NAN}};
    struct problem problem = {.cluster = {.n_devices = N_DEVICES}};
    const struct oracle oracle = fake_oracle(&problem);
    double good_ms[N_DEVICES], bwd_ms[N_DEVICES], fwd_ms[N_DEVICES];

    fake_bwd(&oracle, 1, lanes[0], good_ms);
    for (int bad = 0; bad < 3; bad++) {
        struct err err = {0};
        struct checked_oracle checked;

        checked_oracle_init(&checked, &oracle);
        checked.base.ops->bwd(&checked.base, 1, lanes[bad == 1], bwd_ms);
        checked.base.ops->fwd(&checked.base, 1, lanes[0], compute_ms[bad == 2],
                              good_ms, fwd_ms);
        ok((checked_oracle_check(&checked, &err) != 0) == (bad != 0),
           "%s of a half is noted", bad ? "no number" : "nothing");
    }
}

int main(void)
{
    check_halves();
    for (int sort = 0; sort < 3; sort++) {
        struct scene scene;
        struct arena arena = {0};

        open_scene(&scene, sort < 2, sort == 0, &arena);
        for (int s = 0; s < N_SEARCHES; s++)
            for (int f = 0; f < N_FUNCTIONS; f++)
                if (f != TERMS || (sort < 2 && s != PRICE && s != REFERENCE))
                    try_function(&scene, (enum search)s, (enum function)f);
        arena_release(&arena);
    }
    return tap_done();
}
