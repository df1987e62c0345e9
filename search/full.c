/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "base/clock.h"
#include "search/anneal.h"
#include "search/bound.h"
#include "search/build.h"
#include "search/search.h"
#include "search/shortage.h"
#include "search/starts.h"

#define N_CHAINS 8
/* Chains that are priced together where communication is priced by comm: its
 * nets take four rows at a time. */
#define LOCK_STEP 4
/* Steps of a chain between two looks at the clock, at most, and rounds of such
 * steps a cycle, at least. The schedule does not hang on the clock. */
#define MAX_ROUND_STEPS 8192
#define MIN_CYCLE_ROUNDS 16
/* Temperatures of the annealing, as shares of the best total: the fewer
 * tables a device has, the larger are the steps there are. It is heated again
 * so many times, each time less, and then all chains go on from the best
 * layout. */
#define HOT_FRAC 0.3 /* over the square of a device's tables */
#define MAX_HOT_FRAC 0.3
#define MIN_HOT_FRAC 0.002
#define COLD_FRAC 0.00005
#define N_CYCLES 4
#define REHEATING 0.7
/* Beyond so many placements of a piece the published beam is too dear, and
 * nobody waits for it: it took 600 greedies. */
#define MAX_REFERENCE_WORK 30000
struct full {
    const struct search_options *options;
    const struct oracle *oracle;
    struct arena *scratch;
    struct units units;
    struct parts parts;
    struct plan reference; /* its n_shards is 0 where there is none */
    struct starts starts;
    struct bundle bundles[N_CHAINS];
    unsigned n_bundles;
    uint64_t n_steps; /* of each chain, in all */
    uint64_t n_round_steps, n_cycle_rounds;
    double hot_frac;        /* of the first cycle */
    double hot_ms, cooling; /* of this round */
    double best_ms;
    struct bound bound;
    uint64_t n_priced;
    const char *stopped;
};

/* The published search, where it can be asked; what it finds bounds ours. */
static int run_reference(struct full *full, const struct plan *plan,
                         struct err *err)
{
    const struct problem *problem = &plan->problem;
    uint64_t work = (uint64_t)problem->n_tables * problem->cluster.n_devices;
    struct search_options options = *full->options;
    struct err ignored = {0};
    unsigned needed = SHARD_TABLE | SHARD_COLUMN;

    full->reference = (struct plan){.problem = *problem};
    if (work > MAX_REFERENCE_WORK || !(full->oracle->kinds & needed))
        return 0;
    search_options_init(&options);
    options.pool = full->options->pool;
    if (search_reference(&full->reference, full->oracle, &options,
                         full->scratch, &ignored)) {
        full->reference.n_shards = 0;
        if (ignored.code != ERR_INPUT)
            return 0; /* it has fewer ways than we */
        *err = ignored;
        return -1;
    }
    plan_derive_kinds(&full->reference);
    full->n_priced += full->reference.n_evaluations;
    return plan_price(&full->reference, full->oracle, full->scratch, err);
}

static int find_starts(struct full *full, const struct plan *plan,
                       double start_ms, struct err *err)
{
    double limit_ms = full->options->time_limit_ms;
    struct snapshot next = {0};
    uint32_t stuck;

    starts_find(&full->starts, &full->parts, full->options->pool,
                limit_ms > 0 ? start_ms + limit_ms : INFINITY);
    if (full->reference.n_shards &&
        snapshot_from_plan(&next, &full->parts, &full->reference))
        starts_add(&full->starts, &full->parts, &next);
    if (!full->starts.n && build_by_memory(&next, &full->parts, &stuck))
        starts_add(&full->starts, &full->parts, &next);
    snapshot_release(&next);
    full->n_priced += full->starts.n_priced;
    if (full->starts.has_infinite)
        return err_set(err, ERR_INPUT,
                       "cost model '%s' gives no finite cost for some devices",
                       full->oracle->name);
    if (!full->starts.n && !full->reference.n_shards)
        return shortage_report(&plan->problem, full->oracle, &full->parts,
                               stuck, err);
    return 0;
}

static void anneal_bundle(void *ctx, size_t task, unsigned thread)
{
    struct full *full = ctx;

    (void)thread;
    bundle_anneal(&full->bundles[task], full->n_round_steps, full->hot_ms,
                  full->cooling);
}

static void open_bundles(struct full *full)
{
    unsigned lock_step = full->oracle->ops->terms ? 1 : LOCK_STEP;

    full->n_bundles = N_CHAINS / lock_step;
    for (unsigned b = 0; b < full->n_bundles; b++) {
        bundle_init(&full->bundles[b], &full->parts, lock_step,
                    full->options->seed, b * lock_step);
        for (unsigned c = 0; c < lock_step; c++)
            bundle_start(
                &full->bundles[b], c,
                &full->starts.best[(b * lock_step + c) % full->starts.n]);
    }
    full->n_steps =
        anneal_effort(&full->parts, full->options->effort) / N_CHAINS + 1;
}

/* The chain with the best layout so far. */
static struct chain *best_chain(struct full *full)
{
    struct chain *best = &full->bundles[0].chains[0];

    for (unsigned b = 0; b < full->n_bundles; b++)
        for (unsigned c = 0; c < full->bundles[b].n_chains; c++)
            if (full->bundles[b].chains[c].best.total_ms < best->best.total_ms)
                best = &full->bundles[b].chains[c];
    return best;
}

static void restart_from_best(struct full *full)
{
    struct snapshot best = {0};

    snapshot_copy(&best, &best_chain(full)->best);
    for (unsigned b = 0; b < full->n_bundles; b++)
        for (unsigned c = 0; c < full->bundles[b].n_chains; c++)
            bundle_start(&full->bundles[b], c, &best);
    snapshot_release(&best);
}

/* How hot it begins: by the tables that a device has on average, where a few
 * dear ones count as few: (sum of loads)^2 / sum of their squares (Kish's
 * effective sample size). */
static double hot_frac(const struct parts *parts)
{
    double sum = 0, squares = 0, tables;

    for (uint32_t u = 0; u < parts->n_units; u++) {
        double least = INFINITY;

        for (uint32_t i = 0; i < forms_count(parts, u); i++) {
            struct form form = forms_get(parts, u, i);

            least = fmin(least, forms_figures(parts, u, form).load_ms);
        }
        sum += least;
        squares += least * least;
    }
    if (!(squares > 0))
        return MIN_HOT_FRAC;
    tables = sum * sum / squares / parts->problem->cluster.n_devices;
    return fmax(MIN_HOT_FRAC, fmin(MAX_HOT_FRAC, HOT_FRAC / (tables * tables)));
}

/* Temperature and steps of a round, by the schedule. */
static void plan_round(struct full *full, uint64_t round)
{
    const uint64_t n_rounds = full->n_cycle_rounds;
    const double n_steps =
        (double)full->n_steps / (double)(N_CYCLES * n_rounds);
    double share = (double)(round % n_rounds) / (double)n_rounds, fall;
    double hot = full->hot_frac;

    for (uint64_t cycle = 0; cycle < round / n_rounds; cycle++)
        hot *= REHEATING;
    full->n_round_steps = (uint64_t)(n_steps * (double)(round + 1)) -
                          (uint64_t)(n_steps * (double)round);
    fall = log(COLD_FRAC / hot);
    full->hot_ms = full->starts.best[0].total_ms * hot * exp(fall * share);
    full->cooling = exp(fall * N_CYCLES / (double)full->n_steps);
}

static const char *reason_to_stop(const struct full *full, double start_ms)
{
    double limit_ms = full->options->time_limit_ms;

    if (full->bound.ms >= full->best_ms * (1 - 1e-9))
        return "done";
    if (interrupt_requested())
        return "interrupt";
    if (limit_ms > 0 && clock_ms() - start_ms >= limit_ms)
        return "time";
    return NULL;
}

static void anneal(struct full *full, double start_ms)
{
    struct progress progress;

    full->best_ms = full->starts.best[0].total_ms;
    full->hot_frac = hot_frac(&full->parts);
    full->n_cycle_rounds = full->n_steps / N_CYCLES / MAX_ROUND_STEPS + 1;
    if (full->n_cycle_rounds < MIN_CYCLE_ROUNDS)
        full->n_cycle_rounds = MIN_CYCLE_ROUNDS;
    progress_start(&progress, "searching", N_CYCLES * full->n_cycle_rounds);
    for (uint64_t round = 0; round < N_CYCLES * full->n_cycle_rounds; round++) {
        full->stopped = reason_to_stop(full, start_ms);
        if (full->stopped)
            break;
        if (round && round % full->n_cycle_rounds == 0)
            restart_from_best(full);
        plan_round(full, round);
        pool_run(full->options->pool, full->n_bundles, anneal_bundle, full);
        full->best_ms = best_chain(full)->best.total_ms;
        progress_update(&progress, round + 1);
    }
    progress_finish(&progress);
    if (!full->stopped)
        full->stopped = "budget";
}

/* The best of all chains, as comm prices it. */
static const struct snapshot *choose_best(struct full *full)
{
    struct snapshot *best = &full->starts.best[0];

    for (unsigned b = 0; b < full->n_bundles; b++)
        for (unsigned c = 0; c < full->bundles[b].n_chains; c++) {
            struct snapshot *other = &full->bundles[b].chains[c].best;

            snapshot_price(other, &full->parts);
            full->n_priced++;
            if (other->total_ms < best->total_ms)
                best = other;
        }
    for (unsigned b = 0; b < full->n_bundles; b++)
        full->n_priced += full->bundles[b].n_priced;
    return best;
}

/* Ours, unless the published one prices lower to the last digit. */
static int write_plan(struct full *full, struct plan *plan,
                      const struct snapshot *best, struct arena *arena,
                      struct err *err)
{
    struct plan ours = {.problem = plan->problem};
    const struct plan *reference = &full->reference;

    if (best) {
        snapshot_to_plan(best, &full->parts, &ours, arena);
        plan_derive_kinds(&ours);
        if (reference->n_shards) {
            if (plan_price(&ours, full->oracle, full->scratch, err))
                return -1;
            if (reference->total_ms < ours.total_ms)
                best = NULL;
        }
    }
    if (best) {
        plan->shards = ours.shards;
        plan->n_shards = ours.n_shards;
    } else {
        plan->n_shards = reference->n_shards;
        plan->shards = ARENA_NEW(arena, struct shard, plan->n_shards);
        for (size_t i = 0; i < plan->n_shards; i++)
            plan->shards[i] = reference->shards[i];
    }
    plan->shard_ms = NULL; /* of other shards */
    return 0;
}

static void full_release(struct full *full)
{
    for (unsigned b = 0; b < full->n_bundles; b++)
        bundle_release(&full->bundles[b]);
    starts_release(&full->starts);
}

int search_full(struct plan *plan, const struct oracle *oracle,
                const struct search_options *options, struct arena *arena,
                struct err *err)
{
    double start_ms = clock_ms();
    struct full full = {.options = options, .oracle = oracle};
    const struct snapshot *best = NULL;
    struct arena scratch;
    int rc = -1;

    arena_init(&scratch);
    full.scratch = &scratch;
    full.stopped = "done";
    if (units_collect(&full.units, &plan->problem, oracle, &scratch, err))
        goto out;
    if (parts_init(&full.parts, &full.units, options->pool, &scratch, err))
        goto out;
    if (run_reference(&full, plan, err))
        goto out;
    if (find_starts(&full, plan, start_ms, err))
        goto out;
    bound_find(&full.bound, &full.parts);
    if (full.starts.n) {
        if (plan->problem.cluster.n_devices > 1 && options->effort) {
            open_bundles(&full);
            anneal(&full, start_ms);
        }
        best = choose_best(&full);
    }
    if (write_plan(&full, plan, best, arena, err))
        goto out;
    plan->search = "full";
    plan->stopped = full.stopped;
    plan->seed = options->seed;
    plan->bound_ms = full.bound.ms;
    plan->bound_term = bound_term_name(full.bound.term);
    plan->n_evaluations = full.n_priced;
    plan->search_ms = clock_ms() - start_ms;
    rc = 0;
out:
    full_release(&full);
    arena_release(&scratch);
    return rc;
}
