/* SPDX-License-Identifier: MIT */
/* The ways that `explain` lists for each table of random plans. Each way costs
 * as much as a plan with its shards, and is allowed only if that plan is legal.
 * Each kind of sharding that the search has for the table is listed, is the
 * kind that the plan has, or is named with a reason. */
#include "core/plan_price.h"
#include "explain/ways.h"
#include "search/space_init.h"
#include "tests/judge.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define N_PROBLEMS 60
#define EFFORT 2000

struct tally {
    size_t n_plans, n_ways, n_allowed, n_grids, n_untried;
    size_t n_priced_wrong, n_judged_wrong, n_missing;
};

/* Prices and checks a plan with the shards that the way gives to the table and
 * to its group, and the other shards of the plan. */
static void check_way(const struct way *way, const struct what_if *what_if,
                      uint32_t table, struct arena *arena, struct tally *tally)
{
    struct plan plan = *what_if->plan;
    const struct problem *problem = &plan.problem;
    struct err err = {0};

    plan.shards =
        ARENA_NEW(arena, struct shard, plan.n_shards + way->plan.n_shards);
    plan.n_shards = 0;
    plan.shard_ms = NULL; /* the old costs belong to other shards */
    for (size_t i = 0; i < what_if->plan->n_shards; i++)
        if (!tables_share_group(problem, table, what_if->plan->shards[i].table))
            plan.shards[plan.n_shards++] = what_if->plan->shards[i];
    for (size_t i = 0; i < way->plan.n_shards; i++)
        if (tables_share_group(problem, table, way->plan.shards[i].table))
            plan.shards[plan.n_shards++] = way->plan.shards[i];
    plan_derive_kinds(&plan);
    tally->n_ways++;
    tally->n_allowed += way->is_allowed;
    tally->n_grids += strstr(way->name, " grid on ") != NULL;
    tally->n_priced_wrong +=
        plan_price(&plan, what_if->oracle, arena, &err) ||
        !(fabs(plan.total_ms - way->total_ms) <= 1e-12 * plan.total_ms);
    tally->n_judged_wrong += way->is_allowed != !plan_check(&plan, &err);
}

/* Returns the mask of the kinds that the search has for the unit of a table. */
static unsigned kinds_of(const struct search_space *space, uint32_t table)
{
    unsigned kinds = 0;

    for (uint32_t u = 0; u < space->n_units; u++) {
        const struct unit *unit = &space->units[u];

        for (uint32_t k = 0; k < unit->n_tables; k++)
            for (uint32_t i = 0;
                 unit->tables[k] == table && i < unit->n_shardings; i++)
                kinds |= (unsigned)space->types[unit->shardings[i].type].kind;
    }
    return kinds;
}

/* Returns the mask of the kinds that the list has: as ways, as the reasons why
 * there is no way, and as the kind that the plan has. */
static unsigned told_kinds(const struct ways *ways, const struct plan *plan)
{
    static const struct {
        enum shard_kind kind;
        const char *name;
    } untried[] = {{SHARD_TABLE, "not whole"},
                   {SHARD_COLUMN, "not in columns"},
                   {SHARD_ROW, "not in rows"},
                   {SHARD_GRID, "not in a grid"},
                   {SHARD_REPLICATE, "not replicated"}};
    unsigned kinds = 0;

    for (size_t i = 0; i < plan->n_shards; i++)
        if (plan->shards[i].table == ways->table)
            kinds |= (unsigned)plan->shards[i].kind;
    for (size_t i = 0; i < ways->n; i++)
        for (size_t k = 0; k < ways->ways[i].plan.n_shards; k++)
            if (ways->ways[i].plan.shards[k].table == ways->table)
                kinds |= (unsigned)ways->ways[i].plan.shards[k].kind;
    for (size_t i = 0; i < ways->n_untried; i++)
        for (size_t k = 0; k < N_SHARD_KINDS; k++)
            if (!strcmp(ways->ways[ways->n + i].name, untried[k].name))
                kinds |= (unsigned)untried[k].kind;
    return kinds;
}

static void check_plan(const struct plan *plan, const struct oracle *oracle,
                       struct arena *arena, struct tally *tally)
{
    struct search_space space;
    struct what_if what_if;
    struct err err = {0};

    tally->n_plans++;
    if (space_init(&space, &plan->problem, oracle, NULL, NULL, arena, &err))
        ok(0, "space: %s", err.msg);
    what_if_init(&what_if, plan, oracle);
    for (uint32_t t = 0; t < plan->problem.n_tables; t++) {
        struct ways ways;

        ways_find(&ways, &what_if, t, arena);
        for (size_t i = 0; i < ways.n; i++)
            check_way(&ways.ways[i], &what_if, t, arena, tally);
        tally->n_missing +=
            (kinds_of(&space, t) & ~told_kinds(&ways, plan)) != 0;
        tally->n_untried += ways.n_untried;
    }
    what_if_release(&what_if);
}

static void check_problem(uint64_t seed, struct tally *tally)
{
    struct problem problem;
    struct random_oracle oracle;
    struct search_options options;
    struct arena arena = {0};
    struct err err = {0};
    struct plan plan;
    struct rng rng;

    rng_init(&rng, 23, seed);
    fake_random(&problem, &rng, 1.5, &arena);
    if (seed % 2 && problem.cluster.n_devices % 2 == 0)
        problem.cluster.devices_per_host = problem.cluster.n_devices / 2;
    if (seed % 3 == 0)
        problem.row_cut = ROW_CUT_RANKS;
    fake_constrain(&problem, &rng, 10);
    random_oracle_init(&oracle, &problem, &rng);
    oracle_keep_to(&oracle.base, &problem);
    plan = (struct plan){.problem = problem};
    oracle.base.problem = &plan.problem;
    search_options_init(&options);
    options.effort = EFFORT;
    if (isfinite(judged_total(
            &plan, search_full(&plan, &oracle.base, &options, &arena, &err),
            &oracle.base, &arena, &err)))
        check_plan(&plan, &oracle.base, &arena, tally);
    arena_release(&arena);
}

int main(void)
{
    const size_t n = tap_size(N_PROBLEMS, 1000);
    struct tally tally = {0};

    for (uint64_t seed = 0; seed < n; seed++)
        check_problem(seed, &tally);
    ok(!tally.n_priced_wrong, "of %zu ways, %zu do not cost what a plan costs",
       tally.n_ways, tally.n_priced_wrong);
    ok(!tally.n_judged_wrong, "of %zu allowed ways, %zu are not legal",
       tally.n_allowed, tally.n_judged_wrong);
    is_i64((int64_t)tally.n_missing, 0, "no kind is missing");
    /* a few problems may happen to have few ways */
    ok(n < N_PROBLEMS || (tally.n_plans > n / 2 && tally.n_ways > 20 * n &&
                          tally.n_grids > n && tally.n_untried > n),
       "%zu plans, %zu grids, %zu kinds without a way", tally.n_plans,
       tally.n_grids, tally.n_untried);
    return tap_done();
}
