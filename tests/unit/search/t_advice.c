/* SPDX-License-Identifier: MIT */
/* Recommended plans of random problems: they stay within the allowed rise, and
 * change training only if every plan found that does not is dearer than that.
 * A larger rise never gives a less simple plan. No plan of another planner is
 * simpler and within the rise. */
#include "search/advice.h"

#include "core/plan_price.h"
#include "search/planners.h"
#include "search/simplicity.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define N_PROBLEMS 40
#define N_TABLES 8
#define N_DEVICES 4
#define RISE_FRAC 0.05
#define EFFORT 4000

static size_t count_changed(const struct plan *plan)
{
    size_t n = 0;

    for (size_t i = 0; i < plan->n_shards; i++)
        n += shard_changes_training(&plan->problem, &plan->shards[i]);
    return n;
}

struct tally {
    unsigned n_failed, n_dearer, n_needless, n_kept, n_given_up, n_tried;
    unsigned n_worse, n_simpler, n_missed, n_within;
};

/* Checks the alternative without changes of training against the plan. */
static void check_training(struct tally *tally, const struct plan *plan,
                           const struct advice *advice)
{
    const double most_ms = advice->cheapest.total_ms * (1 + RISE_FRAC);

    for (size_t i = 0; i < advice->n; i++) {
        const struct alternative *one = &advice->list[i];

        if (!one->keeps_training)
            continue;
        tally->n_tried++;
        tally->n_needless +=
            one->priced.total_ms <= most_ms && count_changed(plan);
        tally->n_kept += !one->is_chosen && count_changed(plan);
        tally->n_given_up += one->is_chosen && !count_changed(plan);
    }
}

/* Compares the plan with those of the other planners that cost at most
 * most_ms. */
static void check_rivals(struct tally *tally, const struct plan *plan,
                         const struct rivals *rivals, double most_ms)
{
    for (size_t i = 0; i < N_RIVALS; i++) {
        const struct plan *rival = &rivals->list[i].plan;

        if (!(rival->total_ms <= most_ms))
            continue;
        tally->n_within++;
        tally->n_missed +=
            is_simpler(plan_simplicity(rival), rival->total_ms * 1.01,
                       plan_simplicity(plan), plan->total_ms);
    }
}

/* Plans by a random oracle at each rise. */
static void try_rises(struct tally *tally, const struct problem *problem,
                      const struct oracle *oracle, struct arena *arena)
{
    static const double rises[] = {1e-12, 0.01, 0.02, RISE_FRAC, 0.1, 0.3, 1};
    struct simplicity before = {SIZE_MAX, SIZE_MAX};
    struct search_options options;

    search_options_init(&options);
    options.effort = EFFORT;
    for (size_t i = 0; i < sizeof rises / sizeof *rises; i++) {
        struct plan plan = {.problem = *problem};
        struct rivals rivals = {.arena = arena};
        struct simplicity simplicity;
        struct advice advice;
        struct err err = {0};

        options.simplest_frac = rises[i];
        options.rivals = &rivals;
        if (search_advised(&plan, oracle, &options, &advice, arena, &err)) {
            printf("# %s\n", err.msg);
            tally->n_failed++;
            return;
        }
        tally->n_dearer +=
            plan.total_ms > advice.cheapest.total_ms * (1 + rises[i]) * 1.0001;
        tally->n_failed += plan.problem.tables != problem->tables;
        simplicity = plan_simplicity(&plan);
        tally->n_worse += is_simpler(before, 0, simplicity, 0);
        tally->n_simpler += i && is_simpler(simplicity, 0, before, 0);
        before = simplicity;
        check_rivals(tally, &plan, &rivals,
                     advice.cheapest.total_ms * (1 + rises[i]));
        if (rises[i] == RISE_FRAC)
            check_training(tally, &plan, &advice);
    }
}

static void try_problem(struct tally *tally, uint64_t seed)
{
    uint64_t rows[N_TABLES];
    uint32_t dims[N_TABLES];
    struct arena arena = {0};
    struct problem problem;
    struct random_oracle oracle;
    struct rng rng;

    rng_init(&rng, 45, seed);
    for (unsigned t = 0; t < N_TABLES; t++) {
        rows[t] = 1 + rng_below(&rng, 100000);
        dims[t] = 4u << rng_below(&rng, 6);
    }
    fake_problem(&problem, rows, dims, N_TABLES, N_DEVICES, UINT64_C(1) << 30,
                 &arena);
    for (unsigned t = 0; t < N_TABLES; t++)
        problem.tables[t].optimizer =
            rng_below(&rng, 2) ? OPTIMIZER_ROWWISE_ADAGRAD : OPTIMIZER_SGD;
    problem.dense_optimizer = DENSE_ADAM;
    random_oracle_init(&oracle, &problem, &rng);
    oracle.base.row_cut = ROW_CUT_RANKS; /* as in TorchRec */
    try_rises(tally, &problem, &oracle.base, &arena);
    arena_release(&arena);
}

/* Without an allowed rise, the plan is that of the full search. */
static void test_cheapest(void)
{
    const uint64_t rows[] = {1000, 2000, 500, 70000};
    const uint32_t dims[] = {64, 32, 128, 16};
    struct plan plans[2];
    struct arena arena = {0};
    struct problem problem;
    struct random_oracle oracle;
    struct search_options options;
    struct advice advice = {0};
    struct err err = {0};
    struct rng rng;

    rng_init(&rng, 45, 0);
    fake_problem(&problem, rows, dims, 4, 4, UINT64_C(1) << 30, &arena);
    random_oracle_init(&oracle, &problem, &rng);
    search_options_init(&options);
    options.effort = EFFORT;
    for (int i = 0; i < 2; i++)
        plans[i] = (struct plan){.problem = problem};
    ok(!search_full(&plans[0], &oracle.base, &options, &arena, &err) &&
           !search_advised(&plans[1], &oracle.base, &options, &advice, &arena,
                           &err),
       "two plans: %s", err.msg);
    ok(plans[0].total_ms == plans[1].total_ms &&
           plans[0].n_shards == plans[1].n_shards &&
           !memcmp(plans[0].shards, plans[1].shards,
                   plans[0].n_shards * sizeof(*plans[0].shards)),
       "are equal");
    is_i64((int64_t)advice.n, 0, "and have no alternatives");
    arena_release(&arena);
}

int main(void)
{
    struct tally tally = {0};

    for (uint64_t seed = 1; seed <= N_PROBLEMS; seed++)
        try_problem(&tally, seed);
    is_i64(tally.n_failed, 0, "plans are found");
    is_i64(tally.n_dearer, 0, "none is dearer than allowed");
    is_i64(tally.n_needless, 0, "none changes training without need");
    ok(tally.n_kept > 0 && tally.n_given_up > 0,
       "of %u, %u keep changes of training, %u give them up", tally.n_tried,
       tally.n_kept, tally.n_given_up);
    is_i64(tally.n_worse, 0, "a larger rise never gives a less simple plan");
    ok(tally.n_simpler > N_PROBLEMS, "%u give a simpler one", tally.n_simpler);
    is_i64(tally.n_missed, 0, "no other plan is simpler");
    ok(tally.n_within > N_PROBLEMS, "of %u", tally.n_within);
    test_cheapest();
    return tap_done();
}
