/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "base/text.h"
#include "core/plan_error.h"
#include "core/target_rules.h"
#include "core/target_tiers.h"
#include "search/bound.h"
#include "search/carry_over.h"
#include "search/checked_oracle.h"
#include "search/infeasible.h"
#include "search/local_search.h"
#include "search/marginal.h"
#include "search/planners.h"
#include "search/published.h"
#include "search/schedule.h"
#include "search/simplicity.h"
#include "search/space_init.h"
#include "search/starts.h"
#include "search/tier_polish.h"
#include "search/to_plan.h"

#include <math.h>
#include <string.h>

/* Maximum share by which an assignment may become cheaper when its memory is
 * evened out. The largest share seen was 0.0001. */
#define SETTLED_GAIN 0.01
/* Largest product of tables and devices for which the published search is run.
 * The product is the number of places that one greedy tries, and the beam
 * search ran 600 greedies. A larger product takes too long for any user. */
#define MAX_REFERENCE_WORK 30000

struct full {
    const struct search_options *options;
    struct plan *plan; /* gets the result */
    struct checked_oracle checked;
    struct arena scratch;
    struct search_space space;
    struct snapshot starts[STARTS_KEPT]; /* some may be empty */
    struct snapshot start;               /* the cheapest start of any origin */
    /* `rivals` points to `own` or is options->rivals */
    struct rivals own, *rivals;
    double best_ms; /* cheapest total known when the plan is written */
    struct schedule schedule;
    struct progress progress;
};

#define SHARE_OF_FEW(id, name, few, many) few,
#define SHARE_OF_MANY(id, name, few, many) many,

#define TUNING_VALUE(type, name, value) .name = (value),

const struct tuning tuning_default = {
    .changes = {{CHANGE_KINDS(SHARE_OF_FEW)}, {CHANGE_KINDS(SHARE_OF_MANY)}},
    TUNING_FIELDS(TUNING_VALUE)};

void search_options_init(struct search_options *options)
{
    *options = (struct search_options){
        .beam_width = 3, .beam_depth = 10, .effort = SEARCH_EFFORT_AUTO};
}

/* Returns whether a plan obeys the rules of the target, and has all tables in
 * tiers that they allow. */
static bool plan_obeys(const struct full *full, const struct plan *plan)
{
    struct arena arena = {0};
    struct plan sorted = *plan;
    struct err ignored = {0};
    bool obeys;

    sorted.shard_ms = NULL;
    sorted.shards = ARENA_NEW(&arena, struct shard, plan->n_shards);
    memcpy(sorted.shards, plan->shards, plan->n_shards * sizeof(*plan->shards));
    plan_sort_shards(&sorted);
    obeys = !target_check_as(&sorted, full->plan->problem.target, &ignored);
    for (size_t i = 0; i < plan->n_shards && obeys; i++)
        obeys = problem_tiers(&plan->problem, plan->shards[i].table) >>
                    plan->shards[i].tier &
                1;
    arena_release(&arena);
    return obeys;
}

/* Returns whether an assignment obeys the rules of the target. The pieces of a
 * unit are as the builder makes them, unless other code could place two of them
 * on one device. */
static bool obeys(const struct full *full, const struct snapshot *assignment)
{
    struct plan plan = {.problem = full->plan->problem};
    struct arena arena = {0};
    bool is_fine = true;

    if (problem_target(&plan.problem)->keeps_apart) {
        snapshot_to_plan(assignment, &full->space, &plan, &arena);
        plan_derive_kinds(&plan);
        is_fine = plan_obeys(full, &plan);
    }
    arena_release(&arena);
    return is_fine;
}

/* Prices an assignment and makes it the start if it is the cheapest so far. An
 * assignment that breaks the rules of the target is left out. */
static void offer(struct full *full, struct snapshot *assignment)
{
    if (!obeys(full, assignment))
        return;
    snapshot_price(assignment, &full->space);
    full->plan->n_evaluations++;
    if (!full->start.n || assignment->excess < full->start.excess ||
        (assignment->excess == full->start.excess &&
         assignment->total_ms < full->start.total_ms))
        snapshot_copy(&full->start, assignment);
}

/* Offers the plan that the published search makes by memory alone, after
 * joining pieces of a table that share a device. If it finds none, offers a
 * plan by memory in which all kinds of cuts are allowed. */
static void offer_by_memory(struct full *full, struct snapshot *next,
                            const struct search_options *options)
{
    struct plan plan = {.problem = *full->space.problem};
    struct err ignored = {0};
    bool is_found = !search_reference(&plan, full->checked.oracle, options,
                                      &full->scratch, &ignored);

    if (is_found) {
        plan_join_columns(&plan, false, &full->scratch);
        is_found = snapshot_from_plan(next, &full->space, &plan);
    }
    if (is_found || fit_by_memory(next, &full->space, NULL))
        offer(full, next);
}

/* Offers the result of the published search, after joining pieces of a table
 * that share a device. So the full search never ends dearer than the published
 * search. If the published search finds no plan by cost, its plan by memory
 * alone is offered. */
static void offer_published(struct full *full, struct snapshot *next)
{
    const struct search_space *space = &full->space;
    struct search_options options;
    struct plan found;

    search_options_init(&options);
    options.pool = full->options->pool;
    if (!published_find(next, &found, space, &options)) {
        offer_by_memory(full, next, &options);
        return;
    }
    full->schedule.published_ms = next->total_ms;
    full->plan->n_evaluations +=
        found.n_evaluations + published_join(next, space);
    if (isfinite(next->total_ms))
        offer(full, next);
}

/* Offers the cheapest plans of the other planners as starts, so that the full
 * search never ends with a dearer plan than theirs. If there is a start, no
 * planner is run after end_ms. */
static int offer_rivals(struct full *full, struct snapshot *next, double end_ms,
                        struct err *err)
{
    const struct oracle *torchrec = full->options->torchrec;
    const struct contender_inputs inputs = {
        .oracle = full->checked.oracle,
        .torchrec = torchrec ? torchrec : &full->checked.base,
        .seed = full->options->seed,
        .end_ms = full->start.n ? end_ms : 0};

    if (rivals_ask(full->rivals, &full->plan->problem, inputs, err))
        return -1;
    for (size_t r = 0; r < N_RIVALS; r++) {
        const struct plan *found = &full->rivals->list[r].plan;

        if (isfinite(found->total_ms) &&
            (!full->start.n || found->total_ms < full->start.total_ms) &&
            plan_obeys(full, found) &&
            snapshot_from_plan(next, &full->space, found))
            offer(full, next);
    }
    return 0;
}

/* Offers the given plans, and keeps them as starts. Plans whose shardings are
 * not in the search space are left out. Returns whether a start was found. */
static bool offer_given(struct full *full)
{
    const struct search_options *options = full->options;

    for (unsigned i = 0; i < options->n_given; i++) {
        struct snapshot *start = &full->starts[i];

        if (!snapshot_from_plan(start, &full->space, &options->given[i]))
            start->n = 0;
        else
            offer(full, start);
    }
    return full->start.n && full->start.excess <= 0;
}

/* Reports that the memory of devices and hosts together holds no plan that the
 * search found. */
static int no_tiered_plan(const struct full *full, struct err *err)
{
    const struct cluster *cluster = &full->space.problem->cluster;

    err_set(err, ERR_NO_PLAN,
            "no plan was found: with %s a host for tables, they do not fit "
            "the memory of %u GPUs and of their hosts",
            TEXT_BYTES(cluster->host_bytes), cluster->n_devices);
    err->shortage = (struct shortage){.subject = "tables"};
    return -1;
}

static int find_start(struct full *full, struct err *err)
{
    const double end_ms =
        search_end_ms(&full->checked, full->options->time_limit_ms);
    struct snapshot next = {0};
    struct fit_failure failure;
    int rc;

    if (offer_given(full)) {
        full->schedule.is_given = true;
        return checked_oracle_check(&full->checked, err);
    }
    full->plan->n_evaluations +=
        starts_find(full->starts, &full->space, full->options->pool, end_ms);
    for (unsigned f = 0; f < STARTS_KEPT; f++)
        if (full->starts[f].n && !(full->start.n && interrupt_requested()))
            offer(full, &full->starts[f]);
    if ((uint64_t)full->space.problem->n_tables * full->space.n_devices <=
            MAX_REFERENCE_WORK &&
        !problem_target(full->space.problem)->keeps_apart)
        offer_published(full, &next);
    rc = offer_rivals(full, &next, end_ms, err);
    if (!rc && !full->start.n && fit_by_memory(&next, &full->space, &failure))
        offer(full, &next);
    snapshot_release(&next);
    if (rc || checked_oracle_check(&full->checked, err))
        return -1;
    if (!full->start.n && full->space.has_tiers)
        return no_tiered_plan(full, err);
    if (!full->start.n)
        return infeasible_check(full->space.problem, full->space.oracle,
                                SHARD_ALL_KINDS, &failure, end_ms, err);
    if (full->options->on_found)
        full->options->on_found();
    return 0;
}

/* Adds a point to the trace if the best total has decreased. */
static void trace(struct full *full, uint64_t n_evaluations, double total_ms)
{
    struct search_trace *trace = full->options->trace;

    if (!trace ||
        (trace->n && total_ms >= trace->points[trace->n - 1].total_ms))
        return;
    trace->points =
        mem_grow(trace->points, trace->n + 1, sizeof(*trace->points));
    trace->points[trace->n++] = (struct search_point){
        .n_evaluations = n_evaluations,
        .total_ms = total_ms,
        .seconds = (clock_ms() - full->checked.start_ms) / 1000};
}

/* Prints the best total so far, its change from the start, and the gap to the
 * lower bound. */
static void tell_best(const void *ctx, struct buf *out)
{
    const struct full *full = ctx;
    const struct snapshot *now = temper_best(&full->schedule.temper);
    double best_ms = full->schedule.best.total_ms;

    if (now->excess <= 0 && now->total_ms < best_ms)
        best_ms = now->total_ms;
    buf_printf(out, ", best %.4g ms (%+.1f %%)", best_ms,
               100 * (best_ms / full->start.total_ms - 1));
    if (full->plan->bound_ms > 0)
        buf_printf(out, ", gap %.1f %%",
                   100 * (best_ms / full->plan->bound_ms - 1));
}

static bool goes_on(void *ctx, uint64_t n_done)
{
    struct full *full = ctx;
    struct plan *plan = full->plan;
    const struct snapshot *best = temper_best(&full->schedule.temper);

    n_done += full->schedule.n_before;
    if (best->excess <= 0)
        trace(full, plan->n_evaluations + temper_priced(&full->schedule.temper),
              best->total_ms);
    progress_update(&full->progress, n_done);
    plan->stopped = stop_reason(&full->checked, full->options->time_limit_ms);
    if (plan->bound_ms >= best->total_ms * (1 - 1e-9))
        plan->stopped = "done";
    if (!plan->stopped && n_done >= full->schedule.max_steps)
        plan->stopped = "budget";
    return !plan->stopped;
}

/* Improves the start, unless the search must stop already. */
static void improve(struct full *full)
{
    struct plan *plan = full->plan;
    const char *stopped =
        stop_reason(&full->checked, full->options->time_limit_ms);

    if (stopped) {
        plan->stopped = stopped;
        return;
    }
    progress_start(&full->progress,
                   full->options->label ? full->options->label : "searching",
                   full->schedule.max_steps, full->options->is_logged);
    full->progress.limit_s = full->options->time_limit_ms / 1000;
    full->progress.before_s =
        (full->progress.start_ms - full->checked.start_ms) / 1000;
    full->progress.tell = tell_best;
    full->progress.ctx = full;
    schedule_run(&full->schedule, &full->start);
    if (!plan->stopped)
        plan->stopped = "budget";
    progress_finish(&full->progress);
}

/* Returns whether the user is waiting for the plan: after an interrupt, or
 * after the time limit if the list is so long that what follows takes time. */
static bool is_late(const struct full *full)
{
    return interrupt_requested() ||
           (full->space.is_long &&
            clock_ms() >=
                search_end_ms(&full->checked, full->options->time_limit_ms));
}

/* Lowers the memory share of the fullest device at no higher total, as a last
 * tie-break. Does nothing if the user is waiting. */
static void even_memory(struct full *full, struct snapshot *best)
{
    struct snapshot even = {0};

    if (is_late(full))
        return;
    snapshot_copy(&even, best);
    full->plan->n_evaluations += settle(&even, &full->space, true, -INFINITY);
    snapshot_price(&even, &full->space);
    if (even.excess <= 0 && even.total_ms <= best->total_ms)
        snapshot_copy(best, &even);
    snapshot_release(&even);
}

/* Returns the cheaper of two assignments: the best of the chains, and the
 * start. Both are priced by comm after their memory was evened out. So a long
 * search, which begins like a short one, never ends with a dearer plan. */
static struct snapshot *choose(struct full *full)
{
    struct snapshot *best = &full->schedule.best, *start = &full->start;

    full->plan->n_evaluations += temper_priced(&full->schedule.temper);
    if (best->n) {
        snapshot_price(best, &full->space);
        even_memory(full, best);
        if (start->excess > 0 ||
            start->total_ms > best->total_ms * (1 + SETTLED_GAIN))
            return best;
    }
    even_memory(full, start);
    return !best->n || start->total_ms < best->total_ms ? start : best;
}

/* Smallest rise of the total that may make a plan simpler, as a share. It
 * covers rounding. */
#define NO_RISE 1e-12

/* Returns the plan of another planner. Returns NULL if it made none, one that
 * is cheaper than the bound, which may be unknown, or one that breaks a rule of
 * the target. */
static const struct plan *rival_at(const struct full *full, size_t r)
{
    const struct rival *rival = &full->rivals->list[r];

    return rival->by && isfinite(rival->plan.total_ms) &&
                   !(full->plan->bound_ms > rival->plan.total_ms) &&
                   plan_obeys(full, &rival->plan)
               ? &rival->plan
               : NULL;
}

/* Returns whether the plan of another planner is better within the allowed
 * rise: it is simpler, or as simple and cheaper by more than SETTLED_GAIN.
 * Other planners do not even out memory, so a smaller gain is not worth it. */
static bool is_better(const struct plan *rival, const struct plan *best)
{
    return is_simpler(plan_simplicity(rival),
                      rival->total_ms * (1 + SETTLED_GAIN),
                      plan_simplicity(best), best->total_ms);
}

/* Returns the plan that a rise allows, out of the plan of the search and those
 * of the other planners: the simplest one whose total is at most the share
 * rise_frac above the cheapest total known. If there is none, it is the
 * cheapest one. Lowers full->best_ms. */
static const struct plan *simplest_of(struct full *full, double rise_frac)
{
    const struct plan *best = full->plan;
    double most_ms;

    full->best_ms = fmin(full->best_ms, best->total_ms);
    for (size_t r = 0; r < N_RIVALS; r++)
        if (rival_at(full, r))
            full->best_ms = fmin(full->best_ms, rival_at(full, r)->total_ms);
    most_ms = full->best_ms * (1 + rise_frac);
    for (size_t r = 0; r < N_RIVALS; r++) {
        const struct plan *rival = rival_at(full, r);

        if (rival && (fmax(rival->total_ms, best->total_ms) <= most_ms
                          ? is_better(rival, best)
                          : rival->total_ms < best->total_ms))
            best = rival;
    }
    return best;
}

/* Fills the plan with an assignment, and prices it. The plan of another planner
 * replaces it if simplest_of returns that plan. */
static int write_plan(struct full *full, const struct snapshot *found,
                      double rise_frac, struct arena *arena, struct err *err)
{
    struct plan *plan = full->plan;
    const struct plan *best;

    snapshot_to_plan(found, &full->space, plan, arena);
    /* Placing by memory alone may leave pieces that touch on one device. */
    plan_join_columns(plan, false, arena);
    if (full->space.has_tiers)
        plan->n_evaluations += tier_polish(plan, full->checked.oracle, arena);
    if (checked_oracle_finish(&full->checked, plan, arena, err))
        return -1;
    best = simplest_of(full, rise_frac);
    if (best == plan)
        return 0;
    plan_take_shards(plan, best);
    return checked_oracle_finish(&full->checked, plan, arena, err);
}

/* Largest share of the search's changes that a simplification may try, and the
 * number that it may always try. */
#define SIMPLIFY_FRAC 0.25
#define SIMPLIFY_EFFORT 200000

/* Simplifies an assignment up to a total of most_ms, and fills the plan with
 * it, or with the plan of another planner that is simpler still. */
static int simplify_to(struct full *full, struct snapshot *found,
                       double most_ms, double rise_frac, struct arena *arena,
                       struct err *err)
{
    struct plan *plan = full->plan;
    const struct simplify_limits limits = {
        .most_ms = most_ms,
        .move_limit_bytes = NO_MOVE_LIMIT,
        .most_priced =
            max_u64(SIMPLIFY_EFFORT,
                    (uint64_t)(SIMPLIFY_FRAC * (double)plan->n_evaluations)),
        .end_ms = search_end_ms(&full->checked, full->options->time_limit_ms),
        .most_copied = simplify_most_copied(plan->problem.n_tables)};

    plan->n_evaluations += simplify(found, &full->space, &limits);
    return write_plan(full, found, rise_frac, arena, err);
}

/* Fills the plan with the cheapest assignment, or with a simpler one that
 * options->simplest_frac allows. Changes that cost nothing are made first. They
 * may even make the assignment cheaper. */
static int finish(struct full *full, struct arena *arena, struct err *err)
{
    const struct search_options *options = full->options;
    struct plan *plan = full->plan;
    struct snapshot *found = choose(full);
    double rise_frac = is_late(full) ? 0 : options->simplest_frac;

    if (full->space.has_tiers && found->excess > 0)
        return no_tiered_plan(full, err);
    if (rise_frac == 0
            ? write_plan(full, found, 0, arena, err)
            : simplify_to(full, found, found->total_ms * (1 + NO_RISE), NO_RISE,
                          arena, err))
        return -1;
    if (options->found)
        *options->found = *plan;
    if (rise_frac == SIMPLEST_BY_ERROR) {
        const struct priced_parts parts = plan_priced_parts(plan);

        rise_frac = fmax(NO_RISE, priced_ratio_error(&parts, &parts));
    }
    if (rise_frac > NO_RISE && !is_late(full) &&
        simplify_to(full, found, full->best_ms * (1 + rise_frac), rise_frac,
                    arena, err))
        return -1;
    trace(full, plan->n_evaluations, plan->total_ms);
    return 0;
}

/* Checks that the cost model can price the problem, and that sums of bytes
 * leave room for a plan. */
static int check_problem(const struct full *full, struct err *err)
{
    const struct problem *problem = &full->plan->problem;
    const struct oracle *oracle = &full->checked.base;

    if (problem->cluster.host_bytes && !oracle->prices_tiers)
        return err_usage(err,
                         "cost model '%s' cannot price tables in host memory, "
                         "as option '--tiers' asks",
                         oracle->cost.name);
    if (problem->cluster.host_bytes)
        return 0;
    return infeasible_check(
        problem, oracle, SHARD_ALL_KINDS, NULL,
        search_end_ms(&full->checked, full->options->time_limit_ms), err);
}

int search_full(struct plan *plan, const struct oracle *oracle,
                const struct search_options *options, struct arena *arena,
                struct err *err)
{
    struct full full = {.options = options,
                        .plan = plan,
                        .schedule = {.space = &full.space,
                                     .pool = options->pool,
                                     .seed = options->seed,
                                     .effort = options->effort,
                                     .starts = full.starts,
                                     .goes_on = goes_on,
                                     .ctx = &full,
                                     .published_ms = INFINITY},
                        .own.arena = arena,
                        .rivals = options->rivals ? options->rivals : &full.own,
                        .best_ms =
                            options->best_ms > 0 ? options->best_ms : INFINITY};
    struct search_overhead overhead;
    struct proven bound;
    int rc = -1;

    checked_oracle_init(&full.checked, oracle);
    plan->stopped = "done";
    plan->n_evaluations = 0;
    if (check_problem(&full, err) ||
        space_init(&full.space, &plan->problem, &full.checked.base, NULL,
                   options, &full.scratch, err))
        goto out;
    if (options->tuning)
        full.space.tuning = options->tuning;
    schedule_init(&full.schedule);
    overhead.setup_ms = clock_ms() - full.checked.start_ms;
    if (find_start(&full, err))
        goto out;
    bound_find(&bound, &full.space);
    space_load_marginal(&full.space, options->pool);
    plan->search = "full";
    plan->seed = options->seed;
    plan->bound_ms = full.schedule.bound_ms = bound.ms;
    plan->bound_term = bound.term;
    trace(&full, plan->n_evaluations, full.start.total_ms);
    if (plan->problem.cluster.n_devices > 1 && options->effort)
        improve(&full);
    overhead.finish_ms = -clock_ms();
    rc = options->gives_up && interrupt_requested()
             ? err_set(err, ERR_INTERRUPTED,
                       "interrupted before the plan was written")
             : finish(&full, arena, err);
    overhead.finish_ms += clock_ms();
    if (options->overhead)
        *options->overhead = overhead;
out:
    schedule_release(&full.schedule);
    snapshot_release(&full.start);
    for (unsigned f = 0; f < STARTS_KEPT; f++)
        snapshot_release(&full.starts[f]);
    arena_release(&full.scratch);
    return rc;
}
