/* SPDX-License-Identifier: MIT */
#include "search/walks.h"

#include "search/build.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define GIB (UINT64_C(1) << 30)
#define N_STEPS 3000

struct scene {
    struct arena arena;
    struct problem problem;
    struct random_oracle oracle;
    struct units units;
    struct parts parts;
    struct snapshot start;
    uint64_t n_asked, n_most; /* questions whether to go on; then no more */
    uint64_t n_done;          /* as said last */
    bool is_falling;          /* the steps were said to become fewer */
};

static bool goes_on(void *ctx, uint64_t n_done)
{
    struct scene *scene = ctx;

    scene->is_falling |= scene->n_asked && n_done < scene->n_done;
    scene->n_done = n_done;
    return scene->n_asked++ < scene->n_most;
}

/* Six tables on four devices; priced by terms or by comm alone. */
static void scene_open(struct scene *scene, bool has_terms)
{
    const uint64_t rows[] = {1000, 2000, 500, 70000, 12, 300};
    const uint32_t dims[] = {64, 32, 128, 16, 8, 64};
    struct err err = {0};
    uint32_t stuck;

    *scene = (struct scene){.n_most = UINT64_MAX};
    arena_init(&scene->arena);
    fake_problem(&scene->problem, rows, dims, 6, 4, GIB, &scene->arena);
    for (uint64_t seed = 0;; seed++) {
        struct rng rng;

        rng_init(&rng, 9, seed);
        random_oracle_init(&scene->oracle, &scene->problem, &rng);
        if (!scene->oracle.base.is_additive &&
            (scene->oracle.base.ops->terms != NULL) == has_terms)
            break;
    }
    ok(!units_collect(&scene->units, &scene->problem, &scene->oracle.base,
                      &scene->arena, &err) &&
           !parts_init(&scene->parts, &scene->units, NULL, &scene->arena,
                       &err) &&
           build_by_memory(&scene->start, &scene->parts, &stuck),
       "a start: %s", err.msg);
    snapshot_price(&scene->start, &scene->parts);
}

static void scene_close(struct scene *scene)
{
    snapshot_release(&scene->start);
    arena_release(&scene->arena);
}

static void walks_begin(struct walks *walks, struct scene *scene,
                        struct pool *pool)
{
    walks_open(walks, &scene->parts, pool, 7);
    walks->goes_on = goes_on;
    walks->ctx = scene;
    walks_start(walks, &scene->start, 1);
    scene->n_asked = 0;
}

/* Either schedule on one thread and on two. */
static void check_threads(bool has_terms, bool tempers)
{
    bool (*walk)(struct walks *, uint64_t, double) =
        tempers ? walks_temper : walks_anneal;
    const char *name = tempers ? "tempering" : "annealing";
    struct pool *pool = pool_open(2);
    struct walks one, two;
    struct scene scene;
    double best_ms;

    scene_open(&scene, has_terms);
    walks_begin(&one, &scene, NULL);
    ok(walk(&one, N_STEPS, 0.05), "%s goes to its end", name);
    ok(!scene.is_falling && scene.n_asked > 1 && scene.n_done < N_STEPS,
       "and tells how far it is");
    best_ms = walks_best(&one)->total_ms;
    ok(best_ms < scene.start.total_ms, "it improves on %g ms: %g",
       scene.start.total_ms, best_ms);
    ok(walks_priced(&one) > 0 &&
           walks_priced(&one) <= (uint64_t)WALKS_CHAINS * N_STEPS,
       "and prices at most a layout a step");
    walks_begin(&two, &scene, pool);
    ok(walk(&two, N_STEPS, 0.05) && walks_best(&two)->total_ms == best_ms &&
           walks_priced(&two) == walks_priced(&one),
       "two threads do the same");
    walks_close(&one);
    walks_close(&two);
    scene_close(&scene);
    pool_close(pool);
}

/* The ladder has each temperature once, the coldest first, whatever chains
 * have exchanged. */
static void check_ladder(void)
{
    unsigned n_moved = 0, n_seen = 0;
    struct walks walks;
    struct scene scene;

    scene_open(&scene, false);
    walks_begin(&walks, &scene, NULL);
    ok(walks_temper(&walks, N_STEPS, 0.05), "tempered");
    for (unsigned c = 0; c < WALKS_CHAINS; c++) {
        struct chain *chain = &walks.bundles[c / walks.bundles->n_chains]
                                   .chains[c % walks.bundles->n_chains];

        n_moved += walks.chains[c] != chain;
        for (unsigned i = 0; i < WALKS_CHAINS; i++)
            n_seen += walks.chains[i] == chain;
    }
    ok(n_moved > 0, "chains have changed places");
    ok(n_seen == WALKS_CHAINS, "and each has one");
    walks_close(&walks);
    scene_close(&scene);
}

static void check_stop(void)
{
    struct walks walks;
    struct scene scene;

    scene_open(&scene, true);
    scene.n_most = 3;
    walks_begin(&walks, &scene, NULL);
    ok(!walks_temper(&walks, N_STEPS, 0.05), "tempering stops");
    ok(scene.n_asked == 4 && scene.n_done < N_STEPS / 2, "at once");
    walks_close(&walks);
    walks_begin(&walks, &scene, NULL);
    ok(!walks_anneal(&walks, N_STEPS, 0.05), "annealing stops");
    ok(walks_best(&walks)->total_ms <= scene.start.total_ms,
       "with the best so far");
    walks_close(&walks);
    scene_close(&scene);
}

int main(void)
{
    for (unsigned i = 0; i < 4; i++)
        check_threads(i % 2, i / 2);
    check_ladder();
    check_stop();
    return tap_done();
}
