/* SPDX-License-Identifier: MIT */
#include "search/replan.h"

#include "base/clock.h"
#include "base/text.h"
#include "search/anneal.h"
#include "search/bound.h"
#include "search/homes.h"
#include "search/replan_start.h"

#include <math.h>
#include <stdlib.h>

#define N_CHAINS 8
/* Chains that are priced together where communication is priced by comm. */
#define LOCK_STEP 4
/* Steps between looks at the clock. */
#define ROUNDS 64
/* Temperatures, as shares of the first total: low, as the old plan was good. */
#define HOT_FRAC 0.01
#define COLD_FRAC 0.00005
/* What is not better by so much is not worth any movement. */
#define WORTH_FRAC 1e-4
/* Tables beyond so many are not tried at home again: each takes a pricing. */
#define MAX_SETTLED 4096
#define SETTLE_PASSES 3

struct replan {
    const struct search_options *options;
    const struct oracle *oracle;
    struct arena *scratch;
    struct units units;
    struct parts parts;
    struct homes homes;
    struct snapshot start, best;
    double best_excess;
    struct bundle bundles[N_CHAINS];
    unsigned n_bundles;
    uint64_t n_steps, n_round_steps; /* of each chain */
    double hot_ms, cooling;          /* of this round */
    uint64_t n_priced;
    const char *stopped;
};

/* Sets the true total; returns the excess. */
static double price_snapshot(struct replan *replan, struct snapshot *snapshot)
{
    struct layout layout;
    double excess;

    layout_init(&layout, &replan->parts);
    snapshot_load(snapshot, &layout);
    snapshot->total_ms = layout_true_total(&layout);
    excess = layout.excess;
    replan->n_priced++;
    layout_release(&layout);
    return excess;
}

static void offer(struct replan *replan, struct snapshot *snapshot)
{
    double excess = price_snapshot(replan, snapshot);

    if (excess < replan->best_excess ||
        (excess <= replan->best_excess &&
         snapshot->total_ms < replan->best.total_ms)) {
        snapshot_copy(&replan->best, snapshot);
        replan->best_excess = excess;
    }
}

/* --- annealing from the old plan --- */

static void anneal_bundle(void *ctx, size_t task, unsigned thread)
{
    struct replan *replan = ctx;

    (void)thread;
    bundle_anneal(&replan->bundles[task], replan->n_round_steps, replan->hot_ms,
                  replan->cooling);
}

static void open_bundles(struct replan *replan)
{
    unsigned lock_step = replan->oracle->ops->terms ? 1 : LOCK_STEP;

    replan->n_bundles = N_CHAINS / lock_step;
    for (unsigned b = 0; b < replan->n_bundles; b++) {
        bundle_init(&replan->bundles[b], &replan->parts, lock_step,
                    replan->options->seed, b * lock_step);
        for (unsigned c = 0; c < lock_step; c++)
            bundle_start(&replan->bundles[b], c, &replan->start);
    }
    replan->n_steps =
        anneal_effort(&replan->parts, replan->options->effort) / N_CHAINS + 1;
}

static const char *reason_to_stop(const struct replan *replan, double start_ms)
{
    double limit_ms = replan->options->time_limit_ms;

    if (interrupt_requested())
        return "interrupt";
    if (limit_ms > 0 && clock_ms() - start_ms >= limit_ms)
        return "time";
    return NULL;
}

static void anneal(struct replan *replan, double start_ms)
{
    double fall;

    if (replan->parts.problem->cluster.n_devices < 2 ||
        !replan->options->effort)
        return;
    open_bundles(replan);
    fall = log(COLD_FRAC / HOT_FRAC) / (double)replan->n_steps;
    replan->stopped = NULL;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t first = replan->n_steps * round / ROUNDS;

        replan->stopped = reason_to_stop(replan, start_ms);
        if (replan->stopped)
            break;
        replan->n_round_steps = replan->n_steps * (round + 1) / ROUNDS - first;
        replan->hot_ms =
            HOT_FRAC * replan->start.total_ms * exp(fall * (double)first);
        replan->cooling = exp(fall);
        pool_run(replan->options->pool, replan->n_bundles, anneal_bundle,
                 replan);
    }
    if (!replan->stopped)
        replan->stopped = "budget";
    for (unsigned b = 0; b < replan->n_bundles; b++) {
        for (unsigned c = 0; c < replan->bundles[b].n_chains; c++)
            offer(replan, &replan->bundles[b].chains[c].best);
        replan->n_priced += replan->bundles[b].n_priced;
        bundle_release(&replan->bundles[b]);
    }
    replan->n_bundles = 0;
}

/* --- what has moved for nothing goes back --- */

static uint32_t unit_of(const struct replan *replan, const struct change *piece)
{
    return replan->parts.parts[piece->part].unit;
}

/* What each unit of a layout moves, [n_units], for the caller to free; *sum,
 * which may be NULL, gets all of it. */
static uint64_t *count_moved(const struct replan *replan,
                             const struct snapshot *snapshot, uint64_t *sum)
{
    uint32_t n = replan->parts.n_units;
    uint64_t *bytes = mem_alloc(n, sizeof(*bytes));
    struct layout layout;

    layout_init(&layout, &replan->parts);
    snapshot_load(snapshot, &layout);
    for (uint32_t u = 0; u < n; u++)
        bytes[u] = layout.moved_bytes[u];
    if (sum)
        *sum = layout.all_moved_bytes;
    layout_release(&layout);
    return bytes;
}

/* The best layout with one unit as the start has it; kept where it exceeds
 * nothing and its total is at most most_ms. */
static bool send_home(struct replan *replan, uint32_t unit, double most_ms)
{
    struct snapshot next = {0};
    double excess;
    bool is_kept;

    for (uint32_t i = 0; i < replan->best.n; i++)
        if (unit_of(replan, &replan->best.pieces[i]) != unit)
            snapshot_add(&next, replan->best.pieces[i]);
    for (uint32_t i = 0; i < replan->start.n; i++)
        if (unit_of(replan, &replan->start.pieces[i]) == unit)
            snapshot_add(&next, replan->start.pieces[i]);
    excess = price_snapshot(replan, &next);
    is_kept = !(excess > 0) && next.total_ms <= most_ms;
    if (is_kept)
        snapshot_copy(&replan->best, &next);
    snapshot_release(&next);
    return is_kept;
}

struct moved {
    uint64_t saved_bytes;
    uint32_t unit;
};

static int compare_moved(const void *left, const void *right)
{
    const struct moved *a = left, *b = right;

    if (a->saved_bytes != b->saved_bytes)
        return a->saved_bytes > b->saved_bytes ? -1 : 1;
    return (a->unit > b->unit) - (a->unit < b->unit);
}

/* Units go home, the largest first, as long as the total stays within most_ms.
 */
static void settle(struct replan *replan, double most_ms)
{
    uint32_t n_units = replan->parts.n_units, n_back = 1;
    struct moved *moved = mem_alloc(n_units, sizeof(*moved));
    uint64_t *least = count_moved(replan, &replan->start, NULL);

    for (unsigned pass = 0; pass < SETTLE_PASSES && n_back; pass++) {
        uint64_t *now = count_moved(replan, &replan->best, NULL);
        uint32_t n = 0;

        n_back = 0;
        for (uint32_t u = 0; u < n_units; u++)
            if (now[u] > least[u])
                moved[n++] = (struct moved){now[u] - least[u], u};
        mem_free(now);
        qsort(moved, n, sizeof(*moved), compare_moved);
        for (uint32_t i = 0; i < n && i < MAX_SETTLED; i++)
            n_back += send_home(replan, moved[i].unit, most_ms);
    }
    mem_free(least);
    mem_free(moved);
}

/* --- the whole --- */

/* What search_full finds, where it is better by enough: then movement is no
 * matter. */
static int offer_free(struct replan *replan, const struct plan *plan,
                      struct err *err)
{
    struct plan other = {.problem = plan->problem};
    struct snapshot snapshot = {0};
    struct homes there;

    if (search_full(&other, replan->oracle, replan->options, replan->scratch,
                    err))
        return -1;
    replan->n_priced += other.n_evaluations;
    plan_derive_kinds(&other);
    homes_init(&there, &plan->problem, &other, NO_MOVE_LIMIT, replan->scratch);
    replan_start(&snapshot, &replan->parts, &there);
    if (!(price_snapshot(replan, &snapshot) > 0) &&
        (replan->best_excess > 0 ||
         snapshot.total_ms < replan->best.total_ms * (1 - WORTH_FRAC))) {
        snapshot_copy(&replan->best, &snapshot);
        replan->best_excess = 0;
    }
    snapshot_release(&snapshot);
    return 0;
}

/* Looks for a plan that moves little, whatever it costs: where that keeps the
 * limit it is a new start, else ERR_NO_PLAN says how much would have to move.
 */
static int find_least_movement(struct replan *replan, const struct plan *plan,
                               double start_ms, struct err *err)
{
    char limit[TEXT_BYTES_MAX], least[TEXT_BYTES_MAX];
    uint64_t limit_bytes = replan->homes.limit_bytes, least_bytes;

    replan->homes.limit_bytes = NO_MOVE_LIMIT;
    replan->best_excess = INFINITY;
    offer(replan, &replan->start);
    anneal(replan, start_ms);
    if (replan->best_excess > 0 && offer_free(replan, plan, err))
        return -1;
    settle(replan, INFINITY);
    mem_free(count_moved(replan, &replan->best, &least_bytes));
    replan->homes.limit_bytes = limit_bytes;
    if (least_bytes <= limit_bytes) {
        snapshot_copy(&replan->start, &replan->best);
        anneal(replan, start_ms);
        return 0;
    }
    text_from_bytes(limit, (double)limit_bytes);
    text_from_bytes(least, (double)least_bytes);
    return err_set(
        err, ERR_NO_PLAN,
        "no plan was found that moves at most %s; the least movement "
        "found that will do is %s",
        limit, least);
}

static int find(struct replan *replan, const struct plan *plan, double start_ms,
                struct err *err)
{
    bool is_free = replan->homes.limit_bytes >= replan->homes.held_bytes;

    replan_start(&replan->start, &replan->parts, &replan->homes);
    replan->best_excess = INFINITY;
    offer(replan, &replan->start);
    if (!isfinite(replan->start.total_ms))
        return err_set(err, ERR_INPUT,
                       "cost model '%s' gives no finite cost for some devices",
                       replan->oracle->name);
    anneal(replan, start_ms);
    if (is_free && offer_free(replan, plan, err))
        return -1;
    if (replan->best_excess > 0 &&
        find_least_movement(replan, plan, start_ms, err))
        return -1;
    settle(replan, replan->best.total_ms * (1 + 1e-9));
    return 0;
}

static void write_plan(struct replan *replan, struct plan *plan,
                       double start_ms, struct arena *arena)
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
    plan->search_ms = clock_ms() - start_ms;
}

int search_replan(struct plan *plan, const struct plan *from,
                  uint64_t limit_bytes, const struct oracle *oracle,
                  const struct search_options *options, struct arena *arena,
                  struct err *err)
{
    struct replan replan = {
        .options = options, .oracle = oracle, .stopped = "done"};
    double start_ms = clock_ms();
    struct arena scratch;
    int rc = -1;

    arena_init(&scratch);
    replan.scratch = &scratch;
    if (units_collect(&replan.units, &plan->problem, oracle, &scratch, err))
        goto out;
    if (parts_init(&replan.parts, &replan.units, options->pool, &scratch, err))
        goto out;
    homes_init(&replan.homes, &plan->problem, from, limit_bytes, &scratch);
    replan.parts.homes = &replan.homes;
    if (find(&replan, plan, start_ms, err))
        goto out;
    write_plan(&replan, plan, start_ms, arena);
    rc = 0;
out:
    snapshot_release(&replan.start);
    snapshot_release(&replan.best);
    arena_release(&scratch);
    return rc;
}
