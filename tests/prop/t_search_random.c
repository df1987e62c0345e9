/* SPDX-License-Identifier: MIT */
/* The full search on random problems with random cost models. Its plans are
 * valid, never more expensive than those of the published search, never below
 * their bound, the same at any thread count, and no more expensive for a
 * permuted list. With more memory they are hardly more expensive: this may
 * happen with little effort, but not with the default effort. */
#include "search/assignment.h"
#include "search/search.h"
#include "tests/judge.h"
#include "tests/tap.h"
#include "tests/unit/search/assignment_check.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define N_PROBLEMS 40
#define EFFORT 40000
/* Additional cost that is accepted with more memory, as a share, because the
 * search is a heuristic. */
#define SLACK_FRAC 0.005

static double full(struct plan *plan, const struct problem *problem,
                   const struct random_oracle *drawn, uint64_t effort,
                   struct pool *pool, struct arena *arena)
{
    struct random_oracle oracle = *drawn;
    struct search_options options;
    struct err err = {0};
    int rc;

    *plan = (struct plan){.problem = *problem};
    oracle.base.problem = &plan->problem;
    search_options_init(&options);
    options.effort = effort;
    options.pool = pool;
    rc = search_full(plan, &oracle.base, &options, arena, &err);
    return judged_total(plan, rc, &oracle.base, arena, &err);
}

static double reference(const struct problem *problem,
                        const struct random_oracle *drawn, struct arena *arena)
{
    struct plan plan = {.problem = *problem, .bound_ms = NAN};
    struct search_options options;
    struct err err = {0};
    int rc;

    search_options_init(&options);
    rc = search_reference(&plan, &drawn->base, &options, arena, &err);
    return judged_total(&plan, rc, &drawn->base, arena, &err);
}

static struct problem permuted(const struct problem *problem, struct rng *rng,
                               struct arena *arena)
{
    struct problem other = *problem;
    uint32_t *order = ARENA_NEW(arena, uint32_t, problem->n_tables);

    other.tables = ARENA_NEW(arena, struct table, problem->n_tables);
    for (uint32_t i = 0; i < problem->n_tables; i++)
        order[i] = i;
    rng_shuffle(rng, order, (uint32_t)problem->n_tables);
    for (size_t i = 0; i < problem->n_tables; i++)
        other.tables[i] = problem->tables[order[i]];
    problem_find_hot_rows(&other, arena);
    return other;
}

static struct problem roomier(const struct problem *problem,
                              struct arena *arena)
{
    uint32_t n = problem->cluster.n_devices;
    struct problem other = *problem;

    other.cluster.memory_bytes = ARENA_NEW(arena, uint64_t, n);
    for (uint32_t r = 0; r < n; r++)
        other.cluster.memory_bytes[r] = problem->cluster.memory_bytes[r] +
                                        problem->cluster.memory_bytes[r] / 4;
    return other;
}

static bool same_shards(const struct plan *a, const struct plan *b)
{
    if (a->n_shards != b->n_shards)
        return false;
    for (size_t i = 0; i < a->n_shards; i++) {
        const struct shard *x = &a->shards[i], *y = &b->shards[i];

        if (x->table != y->table || x->kind != y->kind ||
            x->row_begin != y->row_begin || x->row_end != y->row_end ||
            x->col_begin != y->col_begin || x->col_end != y->col_end ||
            x->device != y->device)
            return false;
    }
    return true;
}

struct unfair {
    unsigned n_planned; /* problems that have a plan */
    /* problems that cost more with more memory at EFFORT */
    unsigned n_hasty;
    /* problems of these that also cost more at the default effort */
    unsigned n_searched;
};

/* Searches both problems at the default effort. Returns true if there is a
 * plan. */
static bool compare_searched(uint64_t seed, const struct problem *problem,
                             const struct problem *other,
                             const struct random_oracle *oracle,
                             struct unfair *unfair, struct arena *arena)
{
    struct plan plan;
    double total_ms =
        full(&plan, problem, oracle, SEARCH_EFFORT_AUTO, NULL, arena);
    double wider_ms =
        full(&plan, other, oracle, SEARCH_EFFORT_AUTO, NULL, arena);

    printf("# problem %u at the default effort: %.6g ms, %.6g\n",
           (unsigned)seed, total_ms, wider_ms);
    if (!(wider_ms <= total_ms * (1 + SLACK_FRAC)))
        unfair->n_searched++;
    return isfinite(total_ms);
}

/* total_ms is the cost of the problem at EFFORT. */
static void try_roomier(uint64_t seed, const struct problem *problem,
                        const struct random_oracle *oracle, double total_ms,
                        struct unfair *unfair, struct arena *arena)
{
    struct problem other = roomier(problem, arena);
    struct plan plan;
    double wider_ms = full(&plan, &other, oracle, EFFORT, NULL, arena);

    if (wider_ms <= total_ms * (1 + SLACK_FRAC))
        return;
    unfair->n_hasty++;
    printf("# problem %u: %.6g ms, with more memory %.6g\n", (unsigned)seed,
           total_ms, wider_ms);
    (void)compare_searched(seed, problem, &other, oracle, unfair, arena);
}

static void draw_problem(struct problem *problem, struct random_oracle *oracle,
                         struct rng *rng, uint64_t seed, struct arena *arena)
{
    rng_init(rng, 4, seed);
    fake_random(problem, rng, 1.05 + 2 * rng_uniform(rng), arena);
    fake_constrain(problem, rng, 12);
    random_oracle_init(oracle, problem, rng);
}

static void try_problem(uint64_t seed, struct pool *pool, struct unfair *unfair)
{
    struct random_oracle oracle;
    struct problem problem, other;
    struct plan plan, again;
    struct arena arena = {0};
    struct rng rng;
    double total, published;

    draw_problem(&problem, &oracle, &rng, seed, &arena);
    total = full(&plan, &problem, &oracle, EFFORT, NULL, &arena);
    unfair->n_planned += total < INFINITY;
    published = reference(&problem, &oracle, &arena);
    if (total > published * (1 + 1e-9))
        ok(0, "problem %u: %.9g ms, the published search %.9g", (unsigned)seed,
           total, published);
    full(&again, &problem, &oracle, EFFORT, pool, &arena);
    if (!same_shards(&plan, &again))
        ok(0, "problem %u: two threads find another plan", (unsigned)seed);
    other = permuted(&problem, &rng, &arena);
    if (fabs(full(&again, &other, &oracle, EFFORT, NULL, &arena) - total) >
        1e-9 * total)
        ok(0, "problem %u: another order of tables, another cost",
           (unsigned)seed);
    try_roomier(seed, &problem, &oracle, total, unfair, &arena);
    arena_release(&arena);
}

/* Tests only the effect of memory, at the default effort: 1.5 s per problem. */
static void try_memory(uint64_t first, uint64_t end)
{
    struct unfair unfair = {0};

    for (uint64_t seed = first; seed < end; seed++) {
        struct random_oracle oracle;
        struct problem problem, other;
        struct arena arena = {0};
        struct rng rng;

        draw_problem(&problem, &oracle, &rng, seed, &arena);
        other = roomier(&problem, &arena);
        unfair.n_planned +=
            compare_searched(seed, &problem, &other, &oracle, &unfair, &arena);
        arena_release(&arena);
    }
    ok(unfair.n_searched == 0, "more memory costs more than 0.5 %% in %u of %u",
       unfair.n_searched, unfair.n_planned);
}

/* t_search_random [FIRST END]: range of seeds for try_memory(). */
int main(int argc, char **argv)
{
    struct pool *pool = pool_open(2);
    struct unfair unfair = {0};
    /* With fewer problems a share would mean nothing. */
    const unsigned n =
        (unsigned)max_u64(tap_size(N_PROBLEMS, 3 * N_PROBLEMS), 12);

    assignment_check_every = (uint32_t)tap_size(0, 1);
    if (argc == 3) {
        try_memory(strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10));
        pool_close(pool);
        return tap_done();
    }
    for (uint64_t seed = 0; seed < n; seed++)
        try_problem(seed, pool, &unfair);
    ok(unfair.n_planned > n * 3 / 4, "%u of %u problems have a plan",
       unfair.n_planned, n);
    /* With so little effort, some problems are not searched to the end. */
    ok(unfair.n_hasty * 100 <= 5 * n,
       "with effort %u, more memory costs more than 0.5 %% in %u problems",
       EFFORT, unfair.n_hasty);
    ok(unfair.n_searched == 0, "with the default effort, in %u of these",
       unfair.n_searched);
    pool_close(pool);
    return tap_done();
}
