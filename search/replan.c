/* SPDX-License-Identifier: MIT */
#include "search/replan.h"

#include "base/clock.h"
#include "search/bound.h"
#include "search/relabel.h"
#include "search/replan_lessen.h"
#include "search/replan_start.h"
#include "search/walks.h"

#include <math.h>

/* The first temperature, as a share of the total: low, as the old plan was
 * good. It is heated again so many times, each time less, and then all chains
 * go on from the best layout. */
#define HOT_FRAC 0.01
#define N_CYCLES 3
#define REHEATING 0.5
/* What is not better by so much is not worth any movement. */
#define WORTH_FRAC 1e-4
/* To lessen the movement, a share of the effort a try. */
#define LESSEN_FRAC 0.06

/* A layout, as far as it exceeds its limits. */
static bool is_better(double excess, double total_ms,
                      const struct replan *replan)
{
    if (excess > 0 || replan->best_excess > 0)
        return excess < replan->best_excess;
    return total_ms < replan->best.total_ms;
}

double replan_price(struct replan *replan, struct snapshot *snapshot)
{
    replan->n_priced++;
    return snapshot_price(snapshot, &replan->parts);
}

void replan_offer(struct replan *replan, struct snapshot *snapshot)
{
    double excess = replan_price(replan, snapshot);

    if (is_better(excess, snapshot->total_ms, replan)) {
        snapshot_copy(&replan->best, snapshot);
        replan->best_excess = excess;
    }
}

/* --- annealing --- */

static void offer_chains(struct replan *replan, const struct walks *walks)
{
    for (unsigned c = 0; c < WALKS_CHAINS; c++)
        replan_offer(replan, &walks->chains[c]->best);
}

static bool goes_on(void *ctx, uint64_t n_done)
{
    struct replan *replan = ctx;
    double limit_ms = replan->options->time_limit_ms;

    (void)n_done;
    if (watch_is_bad(&replan->watch))
        return false;
    if (interrupt_requested())
        replan->stopped = "interrupt";
    else if (limit_ms > 0 && clock_ms() - replan->start_ms >= limit_ms)
        replan->stopped = "time";
    else
        return true;
    return false;
}

void replan_anneal(struct replan *replan, const struct snapshot *starts,
                   unsigned n_starts, double effort_frac)
{
    uint64_t effort = anneal_effort(&replan->parts, replan->options->effort);
    double n_steps = effort_frac * (double)effort / WALKS_CHAINS / N_CYCLES;
    double hot_frac = HOT_FRAC;
    bool is_on = true;
    struct walks walks;

    if (replan->parts.problem->cluster.n_devices < 2 || !effort)
        return;
    walks_open(&walks, &replan->parts, replan->options->pool,
               replan->options->seed);
    walks.goes_on = goes_on;
    walks.ctx = replan;
    replan->stopped = "budget";
    for (unsigned cycle = 0; cycle < N_CYCLES && is_on; cycle++) {
        walks_start(&walks, cycle ? &replan->best : starts,
                    cycle ? 1 : n_starts);
        is_on = walks_anneal(&walks, (uint64_t)n_steps + 1, hot_frac);
        offer_chains(replan, &walks);
        hot_frac *= REHEATING;
    }
    replan->n_priced += walks_priced(&walks);
    walks_close(&walks);
}

/* --- the whole --- */

/* What search_full finds, with its GPUs named such that little moves; false
 * where it finds none, or its error is set. */
static bool find_free(struct replan *replan, struct snapshot *out,
                      const struct plan *plan, struct err *err)
{
    struct plan other = {.problem = plan->problem};
    struct search_options options = *replan->options;
    struct snapshot named = {0};
    struct homes there;
    double excess;

    options.time_limit_ms /= 2;
    if (search_full(&other, replan->oracle, &options, replan->scratch, err))
        return false;
    replan->n_priced += other.n_evaluations;
    plan_derive_kinds(&other);
    homes_init(&there, &plan->problem, &other, NO_MOVE_LIMIT, replan->scratch);
    replan_start(out, &replan->parts, &there);
    excess = replan_price(replan, out);
    snapshot_copy(&named, out);
    relabel(&named, &replan->parts, &replan->homes);
    if (replan_price(replan, &named) <= excess &&
        named.total_ms <= out->total_ms * (1 + WORTH_FRAC))
        snapshot_copy(out, &named);
    snapshot_release(&named);
    return true;
}

/* One that keeps the memory, whatever it moves: the limit rises until there is
 * one. */
static int find_any(struct replan *replan, struct snapshot *free_plan,
                    const struct err *no_plan, struct err *err)
{
    static const double fracs[] = {0, 0.02, 0.05, 0.1, 0.2, 0.4, 1};
    const size_t n = sizeof fracs / sizeof *fracs;
    uint64_t limit_bytes = replan->homes.limit_bytes;
    uint64_t least_bytes = replan_bytes(replan, &replan->nearest);

    for (size_t i = 0; i < n && replan->best_excess > 0; i++) {
        double more = fracs[i] * (double)replan->homes.held_bytes;

        replan->homes.limit_bytes =
            i + 1 < n ? least_bytes + (uint64_t)more : NO_MOVE_LIMIT;
        replan->best_excess = INFINITY;
        replan_offer(replan, &replan->nearest);
        if (free_plan->n)
            replan_offer(replan, free_plan);
        if (replan->best_excess > 0)
            replan_anneal(replan, &replan->nearest, 1, LESSEN_FRAC);
    }
    replan->homes.limit_bytes = limit_bytes;
    if (!(replan->best_excess > 0))
        return 0;
    if (no_plan->code != ERR_NONE) {
        *err = *no_plan;
        return -1;
    }
    return err_set(err, ERR_NO_PLAN, "no plan was found that fits the memory");
}

/* The least movement that will do, whatever it costs; from there to the best
 * within the limit. ERR_NO_PLAN where it is above the limit. */
static int find_least_movement(struct replan *replan,
                               struct snapshot *free_plan,
                               const struct err *no_plan, struct err *err)
{
    struct snapshot least = {0};
    int rc = -1;

    if (find_any(replan, free_plan, no_plan, err))
        goto out;
    replan_lessen(replan, INFINITY, LESSEN_FRAC);
    snapshot_copy(&least, &replan->best);
    replan->best_excess = replan_price(replan, &least);
    if (replan->best_excess > 0) {
        rc = replan_too_little(replan, err);
        goto out;
    }
    replan_rebalance(&least, &replan->parts);
    replan_offer(replan, &least);
    replan_anneal(replan, &least, 1, 1);
    rc = 0;
out:
    snapshot_release(&least);
    return rc;
}

/* Limits on the way to the one given, as shares of all that stands: what was
 * found under a lower one is where the next begins, so more movement never
 * makes a plan worse. */
static const double rungs[] = {0, 1.0 / 64, 1.0 / 8};
#define N_RUNGS (sizeof rungs / sizeof *rungs)
#define RUNG_FRAC 0.3

/* The best under this limit, from the best so far, from that made even, and
 * from the free plan. */
static void climb(struct replan *replan, const struct snapshot *free_plan,
                  uint64_t limit_bytes)
{
    struct snapshot starts[3] = {{0}};
    unsigned n = 2;

    replan->homes.limit_bytes = limit_bytes;
    snapshot_copy(&starts[0], &replan->best);
    snapshot_copy(&starts[1], &replan->best);
    replan->best_excess = INFINITY;
    replan_offer(replan, &starts[0]);
    replan_rebalance(&starts[1], &replan->parts);
    replan_offer(replan, &starts[1]);
    if (free_plan->n) {
        snapshot_copy(&starts[n], free_plan);
        replan_offer(replan, &starts[n++]);
    }
    replan_anneal(replan, starts, n, RUNG_FRAC);
    for (unsigned i = 0; i < 3; i++)
        snapshot_release(&starts[i]);
}

/* Rungs below what moves anyway, or where nothing is open, are left out. */
static void climb_all(struct replan *replan, const struct snapshot *free_plan)
{
    static const struct snapshot none = {0};
    uint64_t limit_bytes = replan->homes.limit_bytes;
    uint64_t least_bytes = replan_bytes(replan, &replan->nearest);
    uint64_t free_bytes = replan_bytes(replan, free_plan);

    for (size_t i = 0; i < N_RUNGS; i++) {
        uint64_t rung = (uint64_t)(rungs[i] * (double)replan->homes.held_bytes);

        if (rung < limit_bytes && rung >= least_bytes &&
            (rung > 0 || replan->homes.n_loose))
            climb(replan, free_bytes <= rung ? free_plan : &none, rung);
    }
    climb(replan, free_plan, limit_bytes);
}

/* Where nothing may move and nothing is open there is no choice. */
static bool has_choice(const struct replan *replan)
{
    return replan->homes.limit_bytes > 0 || replan->homes.n_loose > 0;
}

static int find_within(struct replan *replan, struct snapshot *free_plan,
                       const struct plan *plan, struct err *err)
{
    struct err no_plan = {0};

    if (has_choice(replan) || replan->best_excess > 0) {
        if (!find_free(replan, free_plan, plan, &no_plan) &&
            no_plan.code != ERR_NO_PLAN) {
            *err = no_plan;
            return -1;
        }
        climb_all(replan, free_plan);
    }
    if (replan->best_excess > 0 &&
        find_least_movement(replan, free_plan, &no_plan, err))
        return -1;
    replan_lessen(replan, replan->best.total_ms * (1 + WORTH_FRAC),
                  LESSEN_FRAC);
    return 0;
}

static int find(struct replan *replan, const struct plan *plan, struct err *err)
{
    struct snapshot free_plan = {0};
    int rc = -1;

    replan_start(&replan->nearest, &replan->parts, &replan->homes);
    homes_settle(&replan->homes, &replan->parts, &replan->nearest,
                 replan->scratch);
    replan->best_excess = INFINITY;
    replan_offer(replan, &replan->nearest);
    if (!watch_check(&replan->watch, err))
        rc = find_within(replan, &free_plan, plan, err);
    snapshot_release(&free_plan);
    return rc;
}

static void write_plan(struct replan *replan, struct plan *plan,
                       struct arena *arena)
{
    struct bound bound;

    snapshot_to_plan(&replan->best, &replan->parts, plan, arena);
    bound_find(&bound, &replan->parts);
    plan->search = "replan";
    plan->stopped = replan->stopped;
    plan->seed = replan->options->seed;
    plan->bound_ms = bound.ms;
    plan->bound_term = bound_term_name(bound.term);
    plan->n_evaluations = replan->n_priced;
    plan->search_ms = clock_ms() - replan->start_ms;
}

int search_replan(struct plan *plan, const struct plan *from,
                  uint64_t limit_bytes, const struct oracle *oracle,
                  const struct search_options *options, struct arena *arena,
                  struct err *err)
{
    struct replan replan = {
        .options = options, .start_ms = clock_ms(), .stopped = "done"};
    struct arena scratch;
    int rc = -1;

    arena_init(&scratch);
    watch_init(&replan.watch, oracle);
    replan.oracle = &replan.watch.base;
    replan.scratch = &scratch;
    if (units_collect(&replan.units, &plan->problem, replan.oracle, &scratch,
                      err))
        goto out;
    homes_init(&replan.homes, &plan->problem, from, limit_bytes, &scratch);
    if (parts_init_from(&replan.parts, &replan.units, &replan.homes,
                        options->pool, &scratch, err))
        goto out;
    if (find(&replan, plan, err))
        goto out;
    write_plan(&replan, plan, arena);
    rc = watch_check(&replan.watch, err);
out:
    snapshot_release(&replan.nearest);
    snapshot_release(&replan.best);
    arena_release(&scratch);
    return rc;
}
