/* SPDX-License-Identifier: MIT */
/* Recommended plans of random problems: they stay within the allowed rise, and
 * change training only if every plan found that does not is dearer than that.
 */
#include "search/advice.h"

#include "core/plan_price.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define N_PROBLEMS 60
#define N_TABLES 8
#define N_DEVICES 4
#define RISE_FRAC 0.05
#define EFFORT 20000

static size_t count_changed(const struct plan *plan)
{
    size_t n = 0;

    for (size_t i = 0; i < plan->n_shards; i++)
        n += shard_changes_training(&plan->problem, &plan->shards[i]);
    return n;
}

struct tally {
    unsigned n_failed, n_dearer, n_needless, n_kept, n_given_up, n_tried;
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

static void try_problem(struct tally *tally, uint64_t seed)
{
    uint64_t rows[N_TABLES];
    uint32_t dims[N_TABLES];
    struct arena arena = {0};
    struct problem problem;
    struct random_oracle oracle;
    struct search_options options;
    struct advice advice;
    struct err err = {0};
    struct plan plan;
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
    search_options_init(&options);
    options.effort = EFFORT;
    options.simplest_frac = RISE_FRAC;
    plan = (struct plan){.problem = problem};
    if (search_advised(&plan, &oracle.base, &options, &advice, &arena, &err)) {
        printf("# seed %llu: %s\n", (unsigned long long)seed, err.msg);
        tally->n_failed++;
    } else {
        tally->n_dearer +=
            plan.total_ms > advice.cheapest.total_ms * (1 + RISE_FRAC) * 1.0001;
        tally->n_failed += plan.problem.tables != problem.tables;
        check_training(tally, &plan, &advice);
    }
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
    test_cheapest();
    return tap_done();
}
