/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "search/finish.h"
#include "search/fit.h"
#include "search/marginal.h"
#include "search/migration.h"
#include "search/search.h"
#include "search/starts.h"
#include "search/temper.h"

#include <math.h>

/* Highest temperature of the chains, as a share of the best total. */
#define HOT_FRAC 0.02           /* tempering or annealing alone */
#define TEMPERED_HOT_FRAC 0.003 /* annealing after tempering */
/* Factor of the temperature from one annealing to the next. */
#define REHEATING 0.7
/* Temperature at which the annealing of a single start begins, as a share of
 * the best total. It is higher than in a stage, because a start may be far from
 * a good plan. The annealing of a start is tuning->start_stages times as long
 * as the first stage. DCNv2 on 16 H100s costs 2.324 ms if starts are annealed
 * singly, and 2.540 ms if not. */
#define START_HOT_FRAC 0.05
/*
 * Shard kinds that a job launches together. If other kinds are allowed, too, a
 * device has a fixed cost for each kind of shard that it holds. The best start
 * is then annealed once more, for tuning->best_stages times the first stage.
 * The table lists how far totals are above the best known total (three lists,
 * two cost models, four seeds):
 *
 *                              mean    worst
 *     with this annealing      0.2 %   0.55 %
 *     without                  0.7 %   4.6 %
 */
#define ONE_SORT ((unsigned)SHARD_TABLE | SHARD_COLUMN)
/* Length of the first stage, as a share of the default budget. Each stage is
 * twice as long as the stage before and begins from the best plan so far. So a
 * long search begins exactly as a short one, and its plan is never dearer. */
#define FIRST_STAGE (1.0 / 32)
#define ADDITIVE_FIRST_STAGE (1.0 / 64)
/*
 * Rules that end a search early if no budget is given. Gaps (from the lower
 * bound to the best total) and gains are shares of the total.
 *
 *     gap below SMALL_GAP   the last stage gained less than LITTLE_GAIN
 *     gap below WIDE_GAP    each of the last two stages gained less than
 *                           LITTLE_GAIN, or all stages since the starts were
 *                           annealed did so together
 *     no lower bound        each of the last two stages gained less than
 *                           WORTH_GAIN
 *     host-bound            one start is annealed, and the job waits for its
 *                           host: no plan makes it faster, and the annealed
 *                           one is good with a faster host, too
 *
 * If costs are additive and the list is not long, only the first rule holds:
 * stages are cheap then, and the last one often finds the best plan.
 */
#define SMALL_GAP 0.003
#define WIDE_GAP 0.03
#define LITTLE_GAIN 0.001
#define WORTH_GAIN 0.002
/* Gain of a stage, as a share of the total, below which the stage counts as
 * without gain. The rules for two stages use it instead of LITTLE_GAIN and
 * WORTH_GAIN if nets price the exchange of all devices at once (no ops->terms).
 * Each change of a device then shifts the waiting times of all others, and
 * stages with a small gain are followed by stages with a larger gain. Without
 * this rule eight tasks of 50 to 80 tables are 0.1 to 0.4 % dearer. */
#define NO_GAIN 0.0001
/* Minimum number of stages before two small gains may end the search. */
#define MIN_STAGES 4
/*
 * Largest budget, as a multiple of the default budget, if costs are not
 * additive. The last stage may then end beyond the default budget. More stages
 * follow if one of the last two gained NO_GAIN or more. DCNv2 on 8 H100s,
 * totals in ms:
 *
 *     seed                         0       1       2
 *     with this rule           2.173   2.177   2.172
 *     last stage cut short     2.173   2.191   2.172
 */
#define MOST_USUAL 2
/* Steps of a chain per unit after which the imbalance penalty counts less. The
 * penalty speeds up descent but blocks most ways between plans of few
 * tables. */
#define LONG_WALK 5000
/* Factor of imbalance_weight after LONG_WALK steps per unit. DCNv2 on 8 H100s,
 * sdd, mean of eight seeds: 2.176 ms with this factor, 2.203 ms without. */
#define LONG_WALK_IMBALANCE 0.05
/* Factor of imbalance_weight in all walks if costs are additive. An additive
 * plan is a partition: only a sum over all devices shows the worth of a change.
 * With this factor 311 tables on 8 GPUs of 35 GiB cost 0.5 % less, and 26
 * tables on GPUs of 13 GiB 0.5 % less. */
#define ADDITIVE_IMBALANCE 10
/* A chain with fewer steps per unit than FEW_STEPS counts as short. A short
 * chain rarely finds shardings that are better than those of the start. */
#define FEW_STEPS 500
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
    struct tuning tuning, long_walk;
    /* Total of the published search before pieces are joined, or INFINITY. */
    double published_ms;
    /* Best total of the annealed starts, or INFINITY if it is not used. */
    double annealed_ms;
    struct snapshot starts[STARTS_KEPT]; /* some may be empty */
    struct snapshot start;               /* the cheapest start of any origin */
    /* `rivals` points to `own` or is options->rivals */
    struct rivals own, *rivals;
    const struct plan *rival; /* cheapest plan of the other planners */
    struct temper temper;
    /* Best assignment of all stages. No chain ended with a better one. */
    struct snapshot best;
    struct snapshot tempered[TEMPER_CHAINS]; /* states of the chains when
                                                tempering last ended */
    /* Steps of each chain: so far; in the default budget; in the largest. */
    uint64_t n_before, usual_steps, max_steps;
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

/* Prices an assignment and makes it the start if it is the cheapest so far. */
static void offer(struct full *full, struct snapshot *assignment)
{
    snapshot_price(assignment, &full->space);
    full->plan->n_evaluations++;
    if (!full->start.n || assignment->total_ms < full->start.total_ms)
        snapshot_copy(&full->start, assignment);
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
        if (fit_by_memory(next, space, NULL))
            offer(full, next);
        return;
    }
    full->published_ms = next->total_ms;
    full->plan->n_evaluations +=
        found.n_evaluations + published_join(next, space);
    if (isfinite(next->total_ms))
        offer(full, next);
}

/* Offers the cheapest plans of the other planners as starts, so that the full
 * search never ends with a dearer plan than theirs. */
static int offer_rivals(struct full *full, struct snapshot *next,
                        struct err *err)
{
    const struct oracle *torchrec = full->options->torchrec;
    const struct contender_inputs inputs = {
        .oracle = full->checked.oracle,
        .torchrec = torchrec ? torchrec : &full->checked.base,
        .seed = full->options->seed};

    if (rivals_ask(full->rivals, &full->plan->problem, inputs, err))
        return -1;
    for (size_t r = 0; r < N_RIVALS; r++) {
        const struct plan *found = &full->rivals->list[r].plan;

        if (found->total_ms >= full->rival->total_ms)
            continue;
        full->rival = found;
        if ((!full->start.n || found->total_ms < full->start.total_ms) &&
            snapshot_from_plan(next, &full->space, found))
            offer(full, next);
    }
    return 0;
}

static int find_start(struct full *full, struct err *err)
{
    double limit_ms = full->options->time_limit_ms;
    struct snapshot next = {0};
    struct fit_failure failure;
    int rc;

    full->plan->n_evaluations += starts_find(
        full->starts, &full->space, full->options->pool,
        limit_ms > 0 ? full->checked.start_ms + limit_ms : INFINITY);
    for (unsigned f = 0; f < STARTS_KEPT; f++)
        if (full->starts[f].n)
            offer(full, &full->starts[f]);
    if ((uint64_t)full->space.problem->n_tables * full->space.n_devices <=
        MAX_REFERENCE_WORK)
        offer_published(full, &next);
    rc = offer_rivals(full, &next, err);
    if (!rc && !full->start.n && fit_by_memory(&next, &full->space, &failure))
        offer(full, &next);
    snapshot_release(&next);
    if (rc || checked_oracle_check(&full->checked, err))
        return -1;
    if (!full->start.n)
        return infeasible_check(full->space.problem, full->space.oracle,
                                SHARD_ALL_KINDS, &failure, err);
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
    const struct snapshot *now = temper_best(&full->temper);
    double best_ms = full->best.total_ms;

    if (now->excess <= 0 && now->total_ms < best_ms)
        best_ms = now->total_ms;
    buf_printf(out, ", best %.4g ms (%+.1f %%)", best_ms,
               100 * (best_ms / full->start.total_ms - 1));
    if (full->plan->bound_ms > 0)
        buf_printf(out, ", gap %.1f %%",
                   100 * (best_ms / full->plan->bound_ms - 1));
}

/* Returns whether the search needs no further stage: one start is annealed, and
 * the job waits for its host, so a better plan would not make it faster. */
static bool needs_no_more(const struct full *full)
{
    const struct step *step = full->space.oracle->step;

    return full->options->effort == SEARCH_EFFORT_AUTO && full->n_before &&
           step && full->best.total_ms <= step->host_ms;
}

static bool goes_on(void *ctx, uint64_t n_done)
{
    struct full *full = ctx;
    struct plan *plan = full->plan;
    const struct snapshot *best = temper_best(&full->temper);

    n_done += full->n_before;
    if (best->excess <= 0)
        trace(full, plan->n_evaluations + temper_priced(&full->temper),
              best->total_ms);
    progress_update(&full->progress, n_done);
    plan->stopped = stop_reason(&full->checked, full->options->time_limit_ms);
    if (plan->bound_ms >= best->total_ms * (1 - 1e-9))
        plan->stopped = "done";
    if (!plan->stopped && (n_done >= full->max_steps || needs_no_more(full)))
        plan->stopped = "budget";
    return !plan->stopped;
}

/* Ends n_steps steps of a schedule. Saves the best assignment of the chains if
 * it is better than the best so far. */
static void end_steps(struct full *full, uint64_t n_steps)
{
    const struct snapshot *best = temper_best(&full->temper);

    full->n_before += n_steps;
    if (best->excess <= 0 && best->total_ms < full->best.total_ms)
        snapshot_copy(&full->best, best);
}

/* Chooses the weight of the imbalance penalty for the next n_steps steps. */
static void weigh_imbalance(struct full *full, uint64_t n_steps)
{
    if (full->n_before + n_steps >= LONG_WALK * (uint64_t)full->space.n_units)
        full->space.tuning = &full->long_walk;
}

/* Runs one stage. Tempering continues from the states in which the last
 * tempering ended; annealing then begins from the best assignment so far.
 * Returns false if the search must stop. */
static bool run_stage(struct full *full, unsigned stage, uint64_t n_steps)
{
    uint64_t n_tempered = n_steps * full->space.tuning->tempered / 1000;
    double hot = n_tempered ? TEMPERED_HOT_FRAC : HOT_FRAC;
    bool is_on;

    weigh_imbalance(full, n_steps);
    if (n_tempered) {
        temper_start(&full->temper, full->tempered, TEMPER_CHAINS);
        is_on = temper_exchange(&full->temper, n_tempered, HOT_FRAC);
        temper_pause(&full->temper, full->tempered);
        end_steps(full, n_tempered);
        if (!is_on)
            return false;
    }
    temper_start(&full->temper, &full->best, 1);
    is_on = temper_anneal(&full->temper, n_steps - n_tempered,
                          hot * pow(REHEATING, stage));
    end_steps(full, n_steps - n_tempered);
    return is_on;
}

static bool has_few_steps(const struct full *full)
{
    return full->usual_steps < FEW_STEPS * (uint64_t)full->space.n_units;
}

/* Returns the gap from the lower bound to the best total, as a share of that
 * total. In a long list most shardings stay as the start chose them. So the
 * mean load of the best assignment's pieces replaces the bound there if it is
 * larger. */
static double gap_of(const struct full *full)
{
    const struct search_space *space = &full->space;
    const struct snapshot *best = &full->best;
    double floor_ms = full->plan->bound_ms, sum_ms = 0;

    if (space->oracle->is_additive && has_few_steps(full)) {
        for (uint32_t i = 0; i < best->n; i++)
            sum_ms += space->standalone_ms[best->pieces[i].type];
        floor_ms = fmax(floor_ms, sum_ms / space->n_devices);
    }
    return 1 - floor_ms / best->total_ms;
}

/* Returns whether the search ends after n_stages stages, because a further
 * stage of n_steps steps is not worth it. gains[] has the gains of the last two
 * stages, in the order of the stages. Beyond the default budget, a further
 * stage must end within the largest budget, and one of the last two must have
 * gained. */
static bool is_enough(const struct full *full, unsigned n_stages,
                      uint64_t n_steps, const double *gains)
{
    const double gap = gap_of(full);
    const double little = !full->space.oracle->ops->terms ? NO_GAIN
                          : isnan(gap)                    ? WORTH_GAIN
                                                          : LITTLE_GAIN;
    const bool is_additive = full->space.oracle->is_additive;

    if (full->n_before >= full->usual_steps)
        return full->n_before + n_steps > full->max_steps ||
               fmax(gains[0], gains[1]) < NO_GAIN;
    if (full->best.total_ms > full->published_ms)
        return false;
    if (gap < SMALL_GAP)
        return gains[1] < LITTLE_GAIN;
    if (gap > WIDE_GAP || (is_additive && !has_few_steps(full)))
        return false;
    return (n_stages > 1 &&
            full->annealed_ms < full->best.total_ms * (1 + LITTLE_GAIN)) ||
           (n_stages >= MIN_STAGES && fmax(gains[0], gains[1]) < little);
}

/* Runs stages until the search ends. The first tempering begins from all
 * starts. */
static void run_stages(struct full *full, uint64_t n_steps)
{
    double gains[2] = {INFINITY, INFINITY}, before_ms = full->best.total_ms;
    struct snapshot starts[STARTS_KEPT + 1] = {full->best};
    unsigned n = 1;

    for (unsigned f = 0; f < STARTS_KEPT; f++)
        if (full->starts[f].n)
            starts[n++] = full->starts[f];
    temper_start(&full->temper, starts, n);
    temper_pause(&full->temper, full->tempered);
    for (unsigned stage = 0; run_stage(full, stage, n_steps); stage++) {
        full->plan->stopped = "budget";
        gains[0] = gains[1];
        gains[1] = before_ms / full->best.total_ms - 1;
        n_steps *= 2;
        if (full->options->effort == SEARCH_EFFORT_AUTO &&
            is_enough(full, stage + 1, n_steps, gains))
            break;
        before_ms = full->best.total_ms;
    }
}

/* Anneals one start alone. A dearer start may still lead to a better plan. */
static bool run_start(struct full *full, struct snapshot *start,
                      uint64_t n_steps)
{
    bool is_on;

    if (!start->n || !n_steps)
        return true;
    weigh_imbalance(full, n_steps);
    temper_start(&full->temper, start, 1);
    is_on = temper_anneal(&full->temper, n_steps, START_HOT_FRAC);
    end_steps(full, n_steps);
    snapshot_copy(start, temper_best(&full->temper));
    return is_on;
}

/* Anneals each start, then the best of them for longer. Without this five of
 * twelve seeds ended 2.4 % dearer for HugeCTR's seven tables on 64 GPUs of 38
 * GiB, by TorchRec's formulas. Searches with few steps per unit leave it out,
 * because stages gain more: 10,000 tables on 1,024 H100s 27.81 ms instead of
 * 28.17 by the roofline, 5,000 on 512 24.28 instead of 24.80. */
static bool run_starts(struct full *full, uint64_t n_steps)
{
    const struct tuning *tuning = full->space.tuning;
    const struct oracle *oracle = full->space.oracle;
    const unsigned kinds = oracle->kinds & full->space.problem->kinds;

    full->annealed_ms = full->best.total_ms;
    if (has_few_steps(full))
        return true;
    full->annealed_ms = INFINITY;
    for (unsigned f = 0; f < STARTS_KEPT; f++)
        if (!run_start(full, &full->starts[f], tuning->start_stages * n_steps))
            return false;
    if (!(kinds & ~ONE_SORT))
        return true;
    full->annealed_ms = full->best.total_ms;
    return run_start(full, &full->best, tuning->best_stages * n_steps);
}

static void improve(struct full *full)
{
    const bool is_additive = full->space.oracle->is_additive;
    const double first = is_additive ? ADDITIVE_FIRST_STAGE : FIRST_STAGE;
    uint64_t n_steps;

    full->usual_steps = temper_effort(SEARCH_EFFORT_AUTO) / TEMPER_CHAINS;
    full->max_steps = full->options->effort != SEARCH_EFFORT_AUTO
                          ? full->options->effort / TEMPER_CHAINS
                      : is_additive ? full->usual_steps
                                    : MOST_USUAL * full->usual_steps;
    n_steps = (uint64_t)(first * (double)full->usual_steps);
    temper_open(&full->temper, &full->space, full->options->pool,
                full->options->seed, goes_on, full);
    temper_start(&full->temper, &full->start, 1);
    snapshot_copy(&full->best, temper_best(&full->temper));
    progress_start(&full->progress, "searching", full->max_steps,
                   full->options->is_logged);
    full->progress.tell = tell_best;
    full->progress.ctx = full;
    if (run_starts(full, n_steps))
        run_stages(full, n_steps);
    progress_finish(&full->progress);
}

/* Lowers the memory share of the fullest device at no higher total, as a last
 * tie-break. Does nothing after an interrupt, because the user is waiting. */
static void even_memory(struct full *full, struct snapshot *best)
{
    struct snapshot even = {0};

    if (interrupt_requested())
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
    struct snapshot *best = &full->best, *start = &full->start;

    full->plan->n_evaluations += temper_priced(&full->temper);
    if (best->n) {
        snapshot_price(best, &full->space);
        even_memory(full, best);
        if (start->total_ms > best->total_ms * (1 + SETTLED_GAIN))
            return best;
    }
    even_memory(full, start);
    return !best->n || start->total_ms < best->total_ms ? start : best;
}

/* Fills the plan with the cheapest assignment. If the plan of another planner
 * is still cheaper by exact prices, that plan is used instead. */
static int finish(struct full *full, struct arena *arena, struct err *err)
{
    const double simplest_frac = full->options->simplest_frac;
    struct plan *plan = full->plan;
    struct snapshot *found = choose(full);
    int rc;

    plan->n_evaluations +=
        simplify(found, &full->space, simplest_frac, NO_MOVE_LIMIT);
    snapshot_to_plan(found, &full->space, plan, arena);
    /* Placing by memory alone may leave pieces that touch on one device. */
    plan_join_columns(plan, false, arena);
    rc = checked_oracle_finish(&full->checked, plan, arena, err);
    if (!rc && full->rival->total_ms < plan->total_ms &&
        !(plan->bound_ms > full->rival->total_ms) && !(simplest_frac > 0)) {
        plan->shards = full->rival->shards;
        plan->n_shards = full->rival->n_shards;
        rc = checked_oracle_finish(&full->checked, plan, arena, err);
    }
    if (!rc)
        trace(full, plan->n_evaluations, plan->total_ms);
    return rc;
}

int search_full(struct plan *plan, const struct oracle *oracle,
                const struct search_options *options, struct arena *arena,
                struct err *err)
{
    static const struct plan none = {.total_ms = INFINITY};
    struct full full = {.options = options,
                        .plan = plan,
                        .published_ms = INFINITY,
                        .annealed_ms = INFINITY,
                        .own.arena = arena,
                        .rivals = options->rivals ? options->rivals : &full.own,
                        .rival = &none};
    struct proven bound;
    int rc = -1;

    checked_oracle_init(&full.checked, oracle);
    plan->stopped = "done";
    plan->n_evaluations = 0;
    if (infeasible_check(&plan->problem, &full.checked.base, SHARD_ALL_KINDS,
                         NULL, err) ||
        space_init(&full.space, &plan->problem, &full.checked.base, NULL,
                   options, &full.scratch, err))
        goto out;
    if (options->tuning)
        full.space.tuning = options->tuning;
    full.tuning = *full.space.tuning;
    full.space.tuning = &full.tuning;
    if (oracle->is_additive)
        full.tuning.imbalance_weight *= ADDITIVE_IMBALANCE;
    full.long_walk = full.tuning;
    if (!oracle->is_additive)
        full.long_walk.imbalance_weight *= LONG_WALK_IMBALANCE;
    if (find_start(&full, err))
        goto out;
    bound_find(&bound, &full.space);
    space_load_marginal(&full.space, options->pool);
    plan->search = "full";
    plan->seed = options->seed;
    plan->bound_ms = bound.ms;
    plan->bound_term = bound.term;
    trace(&full, plan->n_evaluations, full.start.total_ms);
    if (plan->problem.cluster.n_devices > 1 && options->effort)
        improve(&full);
    rc = finish(&full, arena, err);
out:
    temper_close(&full.temper);
    snapshot_release(&full.best);
    snapshot_release(&full.start);
    for (unsigned f = 0; f < STARTS_KEPT; f++)
        snapshot_release(&full.starts[f]);
    for (unsigned c = 0; c < TEMPER_CHAINS; c++)
        snapshot_release(&full.tempered[c]);
    arena_release(&full.scratch);
    return rc;
}
