/* SPDX-License-Identifier: MIT */
#include "search/walks.h"

#include "tests/unit/search/scene.h"

#define N_STEPS 3000

/* What is asked of the caller. */
struct asking {
    uint64_t n_asked, n_most; /* questions whether to go on; then no more */
    uint64_t n_done;          /* as said last */
    bool is_falling;          /* the steps were said to become fewer */
};

static bool goes_on(void *ctx, uint64_t n_done)
{
    struct asking *asking = ctx;

    asking->is_falling |= asking->n_asked && n_done < asking->n_done;
    asking->n_done = n_done;
    return asking->n_asked++ < asking->n_most;
}

static void walks_begin(struct walks *walks, const struct scene *scene,
                        struct asking *asking, struct pool *pool)
{
    walks_open(walks, &scene->parts, pool, 7);
    walks->goes_on = goes_on;
    walks->ctx = asking;
    walks_start(walks, &scene->start, 1);
    asking->n_asked = 0;
}

/* Either schedule on one thread and on two. */
static void check_threads(enum scene_sort sort, bool tempers)
{
    bool (*walk)(struct walks *, uint64_t, double) =
        tempers ? walks_temper : walks_anneal;
    const char *name = tempers ? "tempering" : "annealing";
    struct pool *pool = pool_open(2);
    struct walks one, two;
    struct scene scene;
    struct asking asking = {.n_most = UINT64_MAX};
    double best_ms;

    scene_open(&scene, sort);
    walks_begin(&one, &scene, &asking, NULL);
    ok(walk(&one, N_STEPS, 0.05), "%s goes to its end", name);
    ok(!asking.is_falling && asking.n_asked > 1 && asking.n_done < N_STEPS,
       "and tells how far it is");
    best_ms = walks_best(&one)->total_ms;
    ok(best_ms < scene.start.total_ms, "it improves on %g ms: %g",
       scene.start.total_ms, best_ms);
    ok(walks_priced(&one) > 0 &&
           walks_priced(&one) <= (uint64_t)WALKS_CHAINS * N_STEPS,
       "and prices at most a layout a step");
    walks_begin(&two, &scene, &asking, pool);
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
    struct asking asking = {.n_most = UINT64_MAX};

    scene_open(&scene, BY_COMM);
    walks_begin(&walks, &scene, &asking, NULL);
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
    struct asking asking = {.n_most = UINT64_MAX};

    scene_open(&scene, BY_TERMS);
    asking.n_most = 3;
    walks_begin(&walks, &scene, &asking, NULL);
    ok(!walks_temper(&walks, N_STEPS, 0.05), "tempering stops");
    ok(asking.n_asked == 4 && asking.n_done < N_STEPS / 2, "at once");
    walks_close(&walks);
    walks_begin(&walks, &scene, &asking, NULL);
    ok(!walks_anneal(&walks, N_STEPS, 0.05), "annealing stops");
    ok(walks_best(&walks)->total_ms <= scene.start.total_ms,
       "with the best so far");
    walks_close(&walks);
    scene_close(&scene);
}

int main(void)
{
    for (unsigned i = 0; i < 4; i++)
        check_threads(i % 2 ? BY_TERMS : BY_COMM, i / 2);
    check_ladder();
    check_stop();
    return tap_done();
}
