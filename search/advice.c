/* SPDX-License-Identifier: MIT */
#include "search/advice.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "core/host.h"
#include "core/plan_error.h"
#include "search/gain.h"
#include "search/wire_choice.h"

#include <math.h>
#include <string.h>

/* Share of the first search's changes that a search for an alternative may
 * try. Least number of changes that such a search may try. */
#define ALTERNATIVE_FRAC 0.2
#define LEAST_EFFORT 20000
/* Shares of a time limit after which the first search ends, and the searches
 * for alternatives. */
#define FIRST_FRAC 0.7
#define ALTERNATIVES_FRAC 0.85

/* Shardings that an alternative does without. */
struct restriction {
    const char *without;
    bool changes_training; /* all kinds that change the training of a table */
    unsigned kinds;        /* mask of shard kinds, for all tables */
    enum rows_over rows_over; /* if set: row cuts over these devices */
};
static const struct restriction restrictions[MOST_ALTERNATIVES] = {
    {"changes of training", .changes_training = true},
    {"replicas", .kinds = SHARD_REPLICATE},
    {"grids", .kinds = SHARD_GRID},
    {"row cuts over hosts", .kinds = SHARD_ROW, .rows_over = ROWS_OVER_HOST},
    {"row cuts", .kinds = SHARD_ROW},
};

/* State of a recommendation. */
struct advising {
    const struct oracle *oracle;
    struct search_options options;   /* options of all searches but the first */
    double end_ms;                   /* time on clock_ms(), or INFINITY */
    struct search_overhead overhead; /* of the first search */
    bool is_cut; /* an alternative was left out for lack of time */
    struct plan chosen;
    struct advice *advice;
    double best_host_ms; /* host time of the cheapest plan */
    struct arena *arena;
};

/* Returns whether the restriction forbids this shard. */
static bool forbids(const struct restriction *restriction,
                    const struct problem *problem, const struct shard *shard)
{
    if (restriction->changes_training)
        return shard_changes_training(problem, shard);
    if (!(shard->kind & restriction->kinds))
        return false;
    return restriction->rows_over != ROWS_OVER_HOST ||
           shard_row_ranks(problem, shard) < problem->cluster.n_devices;
}

static bool uses(const struct plan *plan, const struct restriction *restriction)
{
    for (size_t i = 0; i < plan->n_shards; i++)
        if (forbids(restriction, &plan->problem, &plan->shards[i]))
            return true;
    return false;
}

/* Returns whether the plan cuts rows over all devices. */
static bool uses_all_ranks(const struct plan *plan)
{
    for (size_t i = 0; i < plan->n_shards; i++)
        if (plan->shards[i].kind == SHARD_ROW &&
            shard_row_ranks(&plan->problem, &plan->shards[i]) ==
                plan->problem.cluster.n_devices)
            return true;
    return false;
}

/* Returns the mask of kinds that the restriction forbids for a table. */
static unsigned forbidden_kinds(const struct restriction *restriction,
                                const struct table *table,
                                enum dense_optimizer dense)
{
    unsigned kinds = restriction->kinds;

    for (unsigned i = 0; restriction->changes_training && i < N_SHARD_KINDS;
         i++)
        if (kind_changes_training(table, shard_traits[i].kind, dense))
            kinds |= shard_traits[i].kind;
    return kinds;
}

/* Fills `to` with the problem under a further restriction. Tables that can only
 * be sharded by the forbidden kinds keep them. */
static void restrict_problem(struct problem *to, const struct problem *from,
                             const struct restriction *restriction,
                             struct arena *arena)
{
    *to = *from;
    to->tables = ARENA_NEW(arena, struct table, from->n_tables);
    for (size_t t = 0; t < from->n_tables; t++) {
        struct table *table = &to->tables[t];
        unsigned kinds;

        *table = from->tables[t];
        if (restriction->rows_over == ROWS_OVER_HOST) {
            if (table->rows_over == ROWS_OVER_ANY)
                table->rows_over = ROWS_OVER_ALL;
            continue;
        }
        kinds = table->kinds &
                ~forbidden_kinds(restriction, table, from->dense_optimizer);
        if (kinds & from->kinds)
            table->kinds = kinds;
    }
}

/* Returns whether the plan of an alternative is preferred to the plan that was
 * chosen so far. Both have at most one kind that the other lacks. */
static bool is_preferred(const struct advising *advising,
                         const struct plan *plan,
                         const struct restriction *restriction)
{
    const struct step_parts simple = plan_step_parts(plan);
    const struct step_parts best = {.priced = advising->advice->cheapest,
                                    .host_ms = advising->best_host_ms};
    const double frac = advising->options.simplest_frac;
    struct gain_rule rule = {.knows_dense = job_knows_dense(&plan->problem.job),
                             .changes_training = restriction->changes_training};

    if (frac != SIMPLEST_BY_ERROR)
        return plan->total_ms <= best.priced.total_ms * (1 + frac);
    rule.error_frac = fmax(0, priced_ratio_error(&simple.priced, &best.priced));
    return gain_beyond(&simple, &best, &rule) <= 0;
}

/* Returns whether there is time for a further search. */
static bool has_time(const struct advising *advising)
{
    return clock_ms() + advising->overhead.setup_ms +
               advising->overhead.finish_ms <
           advising->end_ms;
}

/* Searches a plan under the restriction, and chooses it if it is preferred. If
 * the chosen plan keeps the restriction already, only its problem is
 * restricted, so that later alternatives keep it, too. The lack of a plan is no
 * error. */
static int try_without(struct advising *advising,
                       const struct restriction *restriction, struct err *err)
{
    struct priced_parts *cheapest = &advising->advice->cheapest, found;
    struct alternative *alternative;
    struct plan plan = {0};

    restrict_problem(&plan.problem, &advising->chosen.problem, restriction,
                     advising->arena);
    if (restriction->rows_over == ROWS_OVER_HOST &&
        !uses_all_ranks(&advising->chosen))
        return 0;
    if (!uses(&advising->chosen, restriction)) {
        advising->chosen.problem = plan.problem;
        return 0;
    }
    if (!has_time(advising)) {
        advising->is_cut = true;
        return 0;
    }
    alternative = &advising->advice->list[advising->advice->n++];
    *alternative =
        (struct alternative){.without = restriction->without,
                             .keeps_training = restriction->changes_training,
                             .priced.total_ms = INFINITY,
                             .step_ms = INFINITY};
    advising->options.best_ms = cheapest->total_ms;
    advising->options.found = &found;
    if (isfinite(advising->end_ms))
        advising->options.time_limit_ms =
            advising->end_ms - advising->overhead.finish_ms - clock_ms();
    if (search_full(&plan, advising->oracle, &advising->options,
                    advising->arena, err)) {
        if (err->code != ERR_NO_PLAN && err->code != ERR_INTERRUPTED &&
            err->code != ERR_USAGE)
            return -1;
        *err = (struct err){0};
        return 0;
    }
    if (found.total_ms < cheapest->total_ms)
        *cheapest = found;
    alternative->priced = plan_priced_parts(&plan);
    alternative->step_ms = plan_step(&plan).ms;
    alternative->is_chosen =
        !uses(&plan, restriction) && is_preferred(advising, &plan, restriction);
    plan.n_evaluations += advising->chosen.n_evaluations;
    if (alternative->is_chosen)
        advising->chosen = plan;
    else
        advising->chosen.n_evaluations = plan.n_evaluations;
    return 0;
}

/* Returns whether an alternative may cost more than the cheapest plan. If not,
 * the first search has made the plan as simple as it can be. */
static bool allows_more(const struct advising *advising)
{
    const double simplest_frac = advising->options.simplest_frac;

    return simplest_frac > 0 ||
           (simplest_frac == SIMPLEST_BY_ERROR &&
            (advising->advice->error_frac > 0 || advising->best_host_ms > 0));
}

/* Runs the first search and notes its result. */
static int find_first(struct advising *advising,
                      const struct search_options *options, struct err *err)
{
    struct search_options first = *options;
    struct advice *advice = advising->advice;

    first.time_limit_ms *= FIRST_FRAC;
    first.found = &advice->cheapest;
    first.overhead = &advising->overhead;
    if (search_full(&advising->chosen, advising->oracle, &first,
                    advising->arena, err))
        return -1;
    advice->error_frac =
        fmax(0, priced_ratio_error(&advice->cheapest, &advice->cheapest));
    advising->best_host_ms = plan_host(&advising->chosen).ms;
    return 0;
}

int search_advised(struct plan *plan, const struct oracle *oracle,
                   const struct search_options *options, struct advice *advice,
                   struct arena *arena, struct err *err)
{
    const double start_ms = clock_ms(), limit_ms = options->time_limit_ms;
    const bool has_limit = limit_ms > 0 && isfinite(limit_ms);
    const struct problem problem = plan->problem;
    struct advising advising = {
        .oracle = oracle,
        .options = *options,
        .end_ms =
            has_limit ? start_ms + ALTERNATIVES_FRAC * limit_ms : INFINITY,
        .chosen = *plan,
        .advice = advice,
        .arena = arena};
    struct search_options for_wire = *options;
    struct plan first;

    *advice = (struct advice){0};
    if (find_first(&advising, options, err))
        return -1;
    first = advising.chosen;
    advising.options.effort =
        min_u64(options->effort,
                max_u64(LEAST_EFFORT, (uint64_t)(ALTERNATIVE_FRAC *
                                                 (double)first.n_evaluations)));
    advising.options.gives_up = true;
    advising.options.trace = NULL;
    advising.options.rivals = NULL;
    for (size_t i = 0; i < MOST_ALTERNATIVES && allows_more(&advising); i++)
        if (!interrupt_requested() &&
            try_without(&advising, &restrictions[i], err))
            return -1;
    *plan = advising.chosen;
    plan->stopped = first.stopped;
    if (advising.is_cut && strcmp(plan->stopped, "interrupt") != 0)
        plan->stopped = "time";
    for_wire.overhead = &advising.overhead;
    if (wire_choose(plan, &problem, oracle, &for_wire,
                    &advice->cheapest.total_ms,
                    has_limit ? start_ms + limit_ms : INFINITY, arena, err))
        return -1;
    plan->problem = problem;
    plan->bound_ms = first.bound_ms;
    plan->bound_term = first.bound_term;
    plan->bound_table = first.bound_table;
    plan->search_ms = clock_ms() - start_ms;
    return 0;
}
