/* SPDX-License-Identifier: MIT */
#include "search/temper.h"

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

static void temper_begin(struct temper *temper, const struct scene *scene,
                         struct asking *asking, struct pool *pool)
{
    temper_open(temper, &scene->parts, pool, 7);
    temper->goes_on = goes_on;
    temper->ctx = asking;
    temper_start(temper, &scene->start, 1);
    asking->n_asked = 0;
}

/* Either schedule on one thread and on two. */
static void check_threads(enum scene_sort sort, bool tempers)
{
    bool (*walk)(struct temper *, uint64_t, double) =
        tempers ? temper_exchange : temper_anneal;
    const char *name = tempers ? "tempering" : "annealing";
    struct pool *pool = pool_open(2);
    struct temper one, two;
    struct scene scene;
    struct asking asking = {.n_most = UINT64_MAX};
    double best_ms;

    scene_open(&scene, sort);
    temper_begin(&one, &scene, &asking, NULL);
    ok(walk(&one, N_STEPS, 0.05), "%s goes to its end", name);
    ok(!asking.is_falling && asking.n_asked > 1 && asking.n_done < N_STEPS,
       "and tells how far it is");
    best_ms = temper_best(&one)->total_ms;
    ok(best_ms < scene.start.total_ms, "it improves on %g ms: %g",
       scene.start.total_ms, best_ms);
    ok(temper_priced(&one) > 0 &&
           temper_priced(&one) <= (uint64_t)TEMPER_CHAINS * N_STEPS,
       "and prices at most a layout a step");
    temper_begin(&two, &scene, &asking, pool);
    ok(walk(&two, N_STEPS, 0.05) && temper_best(&two)->total_ms == best_ms &&
           temper_priced(&two) == temper_priced(&one),
       "two threads do the same");
    temper_close(&one);
    temper_close(&two);
    scene_close(&scene);
    pool_close(pool);
}

/* The ladder has each temperature once, the coldest first, whatever chains
 * have exchanged. */
static void check_ladder(void)
{
    unsigned n_moved = 0, n_seen = 0;
    struct temper temper;
    struct scene scene;
    struct asking asking = {.n_most = UINT64_MAX};

    scene_open(&scene, BY_COMM);
    temper_begin(&temper, &scene, &asking, NULL);
    ok(temper_exchange(&temper, N_STEPS, 0.05), "tempered");
    for (unsigned c = 0; c < TEMPER_CHAINS; c++) {
        struct chain *chain = &temper.all[c];

        n_moved += temper.chains[c] != chain;
        for (unsigned i = 0; i < TEMPER_CHAINS; i++)
            n_seen += temper.chains[i] == chain;
    }
    ok(n_moved > 0, "chains have changed places");
    ok(n_seen == TEMPER_CHAINS, "and each has one");
    temper_close(&temper);
    scene_close(&scene);
}

static void check_stop(void)
{
    struct temper temper;
    struct scene scene;
    struct asking asking = {.n_most = UINT64_MAX};

    scene_open(&scene, BY_TERMS);
    asking.n_most = 3;
    temper_begin(&temper, &scene, &asking, NULL);
    ok(!temper_exchange(&temper, N_STEPS, 0.05), "tempering stops");
    ok(asking.n_asked == 4 && asking.n_done < N_STEPS / 2, "at once");
    temper_close(&temper);
    temper_begin(&temper, &scene, &asking, NULL);
    ok(!temper_anneal(&temper, N_STEPS, 0.05), "annealing stops");
    ok(temper_best(&temper)->total_ms <= scene.start.total_ms,
       "with the best so far");
    temper_close(&temper);
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
