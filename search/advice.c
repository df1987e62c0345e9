/* SPDX-License-Identifier: MIT */
#include "search/advice.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "core/host.h"
#include "core/plan_error.h"
#include "core/target_rules.h"
#include "search/gain.h"
#include "search/simplicity.h"
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

/* A plan that a search found. */
struct tried {
    struct plan plan;  /* plan of the search; no tables if it found none */
    struct plan found; /* cheapest plan before it was simplified */
};
/* Number of plans by a share: the first plan, those without one restriction
 * each, and those that do not change training either. */
#define MOST_TRIED (2 * MOST_ALTERNATIVES)

/* State of a recommendation. */
struct advising {
    const struct oracle *oracle;
    struct search_options options;   /* options of all searches but the first */
    double end_ms;                   /* time on clock_ms(), or INFINITY */
    struct search_overhead overhead; /* of the first search */
    bool is_cut; /* an alternative was left out for lack of time */
    struct tried first;
    struct plan chosen;
    struct advice *advice;
    uint64_t n_evaluations; /* of all searches */
    double best_host_ms;    /* host time of the cheapest plan */
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

/* Returns whether the plan cuts rows over all devices. If the target deals
 * rows, this does not matter: it exchanges all row cuts alike. */
static bool uses_all_ranks(const struct plan *plan)
{
    if (problem_target(&plan->problem)->rows[OUTPUT_POOLED] ==
        TARGET_ROWS_DEALT)
        return false;
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
        if (kinds & problem_kinds(from, t))
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
    struct gain_rule rule = {.knows_dense = job_knows_dense(&plan->problem.job),
                             .changes_training = restriction->changes_training};

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

/* Adds an alternative that was not found yet to the list. */
static struct alternative *add_alternative(struct advice *advice,
                                           const struct restriction *without)
{
    struct alternative *alternative = &advice->list[advice->n++];

    *alternative =
        (struct alternative){.without = without->without,
                             .keeps_training = without->changes_training,
                             .priced.total_ms = INFINITY,
                             .step_ms = INFINITY};
    return alternative;
}

/* Fills an alternative with its plan. */
static void describe(struct alternative *alternative, const struct plan *plan)
{
    alternative->priced = plan_priced_parts(plan);
    alternative->step_ms = plan_step(plan).ms;
}

/* Searches a plan of tried->plan.problem and lowers the cheapest total. Without
 * time for the search, or if there is no plan, which is no error, the plan has
 * no shards. */
static int search_one(struct advising *advising, struct tried *tried,
                      struct err *err)
{
    struct priced_parts *cheapest = &advising->advice->cheapest;

    if (interrupt_requested())
        return 0;
    if (!has_time(advising)) {
        advising->is_cut = true;
        return 0;
    }
    advising->options.best_ms = cheapest->total_ms;
    advising->options.found = &tried->found;
    if (isfinite(advising->end_ms))
        advising->options.time_limit_ms =
            advising->end_ms - advising->overhead.finish_ms - clock_ms();
    if (search_full(&tried->plan, advising->oracle, &advising->options,
                    advising->arena, err)) {
        if (err->code != ERR_NO_PLAN && err->code != ERR_INTERRUPTED &&
            err->code != ERR_USAGE)
            return -1;
        *err = (struct err){0};
        tried->plan.n_shards = 0;
        return 0;
    }
    if (tried->found.total_ms < cheapest->total_ms)
        *cheapest = plan_priced_parts(&tried->found);
    advising->n_evaluations += tried->plan.n_evaluations;
    return 0;
}

/* --- by the error of the ratio --- */

/* Searches a plan under the restriction, and chooses it if it is preferred. If
 * the chosen plan keeps the restriction already, only its problem is
 * restricted, so that later alternatives keep it, too. */
static int try_without(struct advising *advising,
                       const struct restriction *restriction, struct err *err)
{
    struct alternative *alternative;
    struct tried tried = {0};

    restrict_problem(&tried.plan.problem, &advising->chosen.problem,
                     restriction, advising->arena);
    if (restriction->rows_over == ROWS_OVER_HOST &&
        !uses_all_ranks(&advising->chosen))
        return 0;
    if (!uses(&advising->chosen, restriction)) {
        advising->chosen.problem = tried.plan.problem;
        return 0;
    }
    if (!has_time(advising)) {
        advising->is_cut = true;
        return 0;
    }
    alternative = add_alternative(advising->advice, restriction);
    if (search_one(advising, &tried, err))
        return -1;
    if (!tried.plan.n_shards)
        return 0;
    describe(alternative, &tried.plan);
    alternative->is_chosen = !uses(&tried.plan, restriction) &&
                             is_preferred(advising, &tried.plan, restriction);
    if (alternative->is_chosen)
        advising->chosen = tried.plan;
    return 0;
}

static int choose_by_error(struct advising *advising, struct err *err)
{
    advising->chosen = advising->first.plan;
    for (size_t i = 0; i < MOST_ALTERNATIVES; i++)
        if (!interrupt_requested() &&
            try_without(advising, &restrictions[i], err))
            return -1;
    return 0;
}

/* --- by a share --- */

/* Returns whether a search under the restriction may find a simpler plan than
 * the cheapest plan of another search. */
static bool is_worth(const struct plan *found,
                     const struct restriction *restriction)
{
    return found->n_shards && uses(found, restriction) &&
           (restriction->rows_over != ROWS_OVER_HOST || uses_all_ranks(found));
}

/* Simplifies the cheapest plan that a search found once more if later searches
 * have lowered the cheapest total, so that its simplified plan is too dear. */
static int keep_to(struct advising *advising, struct tried *tried,
                   double most_ms, struct err *err)
{
    struct search_options options = advising->options;
    const struct plan found = tried->found;

    if (!tried->plan.n_shards || tried->plan.total_ms <= most_ms ||
        found.total_ms > most_ms || interrupt_requested())
        return 0;
    options.given = &found;
    options.n_given = 1;
    options.effort = 0;
    options.best_ms = advising->advice->cheapest.total_ms;
    options.gives_up = false;
    options.found = NULL;
    return search_full(&tried->plan, advising->oracle, &options,
                       advising->arena, err);
}

/* Chooses the plan if it costs at most most_ms, and is simpler than the chosen
 * one or the chosen one costs more. */
static void offer(struct advising *advising, const struct plan *plan,
                  double most_ms)
{
    if (plan->n_shards && plan->total_ms <= most_ms &&
        (advising->chosen.total_ms > most_ms ||
         plan_is_simpler(plan, &advising->chosen)))
        advising->chosen = *plan;
}

/* Chooses the simplest plan within the share. Which searches are run does not
 * depend on the share, nor does any search, except for the end of its
 * simplification. So a larger share never gives a less simple plan. */
static int choose_by_share(struct advising *advising, struct err *err)
{
    struct tried all[MOST_TRIED] = {advising->first};
    struct tried *const keeps = &all[1]; /* without changes of training */
    const double *cheapest_ms = &advising->advice->cheapest.total_ms;
    double most_ms;
    struct alternative *list[MOST_TRIED] = {NULL};

    for (size_t i = 1; i < MOST_TRIED; i++) {
        const bool is_single = i <= MOST_ALTERNATIVES;
        const struct restriction *restriction =
            &restrictions[is_single ? i - 1 : i - MOST_ALTERNATIVES];
        const struct tried *from = is_single ? &all[0] : keeps;

        if (!is_worth(&from->found, restriction))
            continue;
        restrict_problem(&all[i].plan.problem, &from->plan.problem, restriction,
                         advising->arena);
        if (is_single && has_time(advising))
            list[i] = add_alternative(advising->advice, restriction);
        if (search_one(advising, &all[i], err))
            return -1;
        if (list[i] && all[i].plan.n_shards)
            describe(list[i], &all[i].plan);
    }
    most_ms = *cheapest_ms * (1 + advising->options.simplest_frac);
    advising->chosen = all[0].plan;
    for (size_t i = 0; i < MOST_TRIED; i++) {
        if (keep_to(advising, &all[i], most_ms, err))
            return -1;
        offer(advising, &all[i].plan, most_ms);
    }
    for (size_t i = 0; i < MOST_ALTERNATIVES; i++)
        if (list[i + 1])
            list[i + 1]->is_chosen = !uses(&advising->chosen, &restrictions[i]);
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
    first.found = &advising->first.found;
    first.overhead = &advising->overhead;
    if (search_full(&advising->first.plan, advising->oracle, &first,
                    advising->arena, err))
        return -1;
    advice->cheapest = plan_priced_parts(&advising->first.found);
    advice->error_frac =
        fmax(0, priced_ratio_error(&advice->cheapest, &advice->cheapest));
    advising->chosen = advising->first.plan;
    advising->n_evaluations = advising->first.plan.n_evaluations;
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
        .first.plan = *plan,
        .advice = advice,
        .arena = arena};
    struct search_options for_wire = *options;
    const struct plan *first = &advising.first.plan;

    *advice = (struct advice){0};
    if (find_first(&advising, options, err))
        return -1;
    advising.options.effort = min_u64(
        options->effort,
        max_u64(LEAST_EFFORT,
                (uint64_t)(ALTERNATIVE_FRAC *
                           (double)advising.first.found.n_evaluations)));
    advising.options.gives_up = true;
    advising.options.trace = NULL;
    advising.options.rivals = NULL;
    if (allows_more(&advising) && (options->simplest_frac == SIMPLEST_BY_ERROR
                                       ? choose_by_error(&advising, err)
                                       : choose_by_share(&advising, err)))
        return -1;
    *plan = advising.chosen;
    plan->n_evaluations = advising.n_evaluations;
    plan->stopped = first->stopped;
    if (advising.is_cut && strcmp(plan->stopped, "interrupt") != 0)
        plan->stopped = "time";
    for_wire.overhead = &advising.overhead;
    if (wire_choose(plan, &problem, oracle, &for_wire,
                    &advice->cheapest.total_ms,
                    has_limit ? start_ms + limit_ms : INFINITY, arena, err))
        return -1;
    plan->problem = problem;
    plan->bound_ms = first->bound_ms;
    plan->bound_term = first->bound_term;
    plan->bound_table = first->bound_table;
    plan->search_ms = clock_ms() - start_ms;
    return 0;
}
