/* SPDX-License-Identifier: MIT */
#include "search/wire_choice.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "core/host.h"
#include "core/plan_price.h"
#include "search/simplicity.h"
#include "search/tuning.h"
#include "search/wire_oracle.h"
#include "search/wire_rule.h"

#include <math.h>

/* Changes that a search may try, as a share of those that the search for the
 * recommended plan tried. */
static const double effort_frac[] = {
    [WIRE_LIMITED] = WIRE_EFFORT_FRAC, [WIRE_ROBUST] = WIRE_ROBUST_FRAC};
/* Number of searches of each choice. */
#define N_SEARCHES_LIMITED N_WIRES
#define N_SEARCHES_ROBUST (N_WIRES_BETWEEN + 2 * N_WIRES + 1)
/* Least number of changes that a search for a wire may try. */
#define LEAST_EFFORT 5000
/* Rise of the total that may make a plan simpler, as a share. It covers
 * rounding. */
#define NO_RISE 1e-12
/* Time limit in ms of a search for which no time is left. It is above 0 because
 * a time limit of 0 means no limit. */
#define LEAST_MS 0.001

const char *const wire_choice_names[] = {"limited", "robust", "nominal", NULL};

/* State of a choice. plans[0] is the recommended plan. Then come the plans of
 * the searches for slower wires and for the least worst regret. */
struct choosing {
    const struct oracle *oracles[N_WIRES];
    struct search_options options; /* of the searches */
    double end_ms;
    double finish_ms; /* time from the end of a search to its plan */
    struct wire_candidates candidates;
    struct plan plans[MOST_WIRE_CANDIDATES]; /* [candidates.n] */
    uint64_t n_evaluations;
    struct arena *arena;
};

/* Adds a plan to the candidates: prices it at each wire. An interrupt leaves it
 * out. */
static int add_plan(struct choosing *choosing, const struct plan *plan,
                    struct err *err)
{
    struct plan *own = &choosing->plans[choosing->candidates.n];
    struct wire_candidate candidate;

    for (unsigned k = N_WIRES; k--;) {
        *own = *plan;
        if (interrupt_requested())
            return 0;
        if (plan_price(own, choosing->oracles[k], choosing->arena, err))
            return -1;
        candidate.prices[k] = plan_priced_parts(own);
        /* the error of exchanges is that of the assumed wire, because a given
         * bandwidth has none */
        candidate.prices[k].exchange_error =
            choosing->oracles[0]->cost.exchange_error;
    }
    candidate.host_ms = plan_host(own).ms;
    candidate.n_kinds = plan_n_kinds(own);
    candidate.n_changed = plan_simplicity(own).n_changed;
    candidate.n_shards = own->n_shards;
    wire_add(&choosing->candidates, &candidate);
    return 0;
}

/* Fills list[] with the known plans from which a search starts: all of them, or
 * if there are too many, the best one at each wire, the one with the least
 * worst regret, and the latest others. Returns their number. */
static unsigned list_starts(const struct choosing *choosing,
                            struct plan list[STARTS_KEPT])
{
    const struct wire_candidates *all = &choosing->candidates;
    bool is_start[MOST_WIRE_CANDIDATES] = {false};
    unsigned n_left = STARTS_KEPT, n = 0;

    is_start[wire_pick(all, WIRE_ROBUST)] = true;
    for (unsigned k = 0; k < N_WIRES; k++)
        is_start[wire_best_at(all, k)] = true;
    for (unsigned i = 0; i < all->n; i++)
        n_left -= is_start[i];
    for (unsigned i = all->n; i-- && n_left;)
        if (!is_start[i]) {
            is_start[i] = true;
            n_left--;
        }
    for (unsigned i = 0; i < all->n; i++)
        if (is_start[i])
            list[n++] = choosing->plans[i];
    return n;
}
_Static_assert(STARTS_KEPT > N_WIRES, "a start for each wire, and one more");

/* A search: its cost model, and whether it starts from the known plans or finds
 * starting points of its own. */
struct wire_search {
    const struct oracle *oracle;
    bool is_given;
    bool is_simplified; /* the plan is made simpler if that costs nothing */
};

/* Runs a search, and adds its plan to the candidates. n_left is the number of
 * searches that are still to run, which share the time. The lack of a plan is
 * no error. */
static int run(struct choosing *choosing, const struct problem *problem,
               const struct wire_search *search, unsigned n_left,
               struct err *err)
{
    struct search_options options = choosing->options;
    struct plan plan = {.problem = *problem}, starts[STARTS_KEPT];
    double left_ms = choosing->end_ms - clock_ms();

    if (interrupt_requested() || left_ms <= 0)
        return 0;
    if (search->is_given) {
        options.given = starts;
        options.n_given = list_starts(choosing, starts);
    }
    options.simplest_frac = search->is_simplified ? NO_RISE : 0;
    options.time_limit_ms =
        isfinite(left_ms)
            ? fmax(left_ms / n_left - choosing->finish_ms, LEAST_MS)
            : 0;
    if (!search_full(&plan, search->oracle, &options, choosing->arena, err)) {
        choosing->n_evaluations += plan.n_evaluations;
        return add_plan(choosing, &plan, err);
    }
    if (err->code != ERR_NO_PLAN && err->code != ERR_INTERRUPTED &&
        err->code != ERR_USAGE)
        return -1;
    *err = (struct err){0};
    return 0;
}

/* Returns whether the recommended plan has an exchange that takes longer on a
 * slower wire. */
static bool uses_wire(const struct wire_candidates *candidates)
{
    const struct priced_parts *prices = candidates->list[0].prices;

    return prices[N_WIRES - 1].total_ms > prices[0].total_ms;
}

/* Searches for the least worst regret. */
static int run_worst(struct choosing *choosing, const struct problem *problem,
                     double most_ms, bool is_given, unsigned n_left,
                     struct err *err)
{
    struct wire_oracle worst;

    wire_oracle_init(&worst, choosing->oracles, choosing->candidates.best_ms,
                     most_ms);
    return run(choosing, problem,
               &(struct wire_search){.oracle = &worst.base,
                                     .is_given = is_given,
                                     .is_simplified = true},
               n_left, err);
}

/* Runs the searches of WIRE_LIMITED. The searches at slower wires come first,
 * because regrets are relative to their plans. */
static int find_limited(struct choosing *choosing, const struct plan *plan,
                        const struct problem *problem, struct err *err)
{
    unsigned n_left = N_SEARCHES_LIMITED;

    for (unsigned k = N_WIRES - 1; k; k--)
        if (run(choosing, problem,
                &(struct wire_search){.oracle = choosing->oracles[k],
                                      .is_given = true},
                n_left--, err))
            return -1;
    return run_worst(choosing, &plan->problem,
                     wire_limit_ms(&choosing->candidates), true, n_left, err);
}

/* Runs the searches of WIRE_ROBUST. The first ones have starting points of
 * their own. At each wire and for the least worst regret, a further search
 * starts from their plans, because the plan that one search finds may be the
 * best one for another. */
static int find_robust(struct choosing *choosing, const struct problem *problem,
                       struct err *err)
{
    const struct oracle *const *between = choosing->options.between;
    unsigned n_left = N_SEARCHES_ROBUST;

    for (unsigned i = 0; i < N_WIRES_BETWEEN; i++)
        if (run(choosing, problem,
                &(struct wire_search){.oracle = between[i],
                                      .is_simplified = true},
                n_left--, err))
            return -1;
    for (unsigned k = N_WIRES - 1; k; k--)
        if (run(choosing, problem,
                &(struct wire_search){.oracle = choosing->oracles[k],
                                      .is_simplified = true},
                n_left--, err))
            return -1;
    if (run_worst(choosing, problem, INFINITY, false, n_left--, err))
        return -1;
    for (unsigned k = N_WIRES; k--;)
        if (run(choosing, problem,
                &(struct wire_search){.oracle = choosing->oracles[k],
                                      .is_given = true,
                                      .is_simplified = true},
                n_left--, err))
            return -1;
    return run_worst(choosing, problem, INFINITY, true, n_left, err);
}

/* Fills *out for the chosen candidate. */
static void describe(struct wire_regret *out, const struct wire *wire,
                     const struct wire_candidates *candidates, unsigned chosen)
{
    const struct wire_break_even even = wire_break_even(candidates, chosen);

    *out = (struct wire_regret){.is_inter = wire->inter_gbps > 0};
    out->assumed_gbps = out->is_inter ? wire->inter_gbps : wire->intra_gbps;
    for (unsigned k = 0; k < N_WIRES; k++)
        out->regrets[k] = wire_regret_at(candidates, chosen, k);
    out->break_even_gbps = out->assumed_gbps * even.share;
    out->gain_frac = even.gain_frac;
}

/* Returns the number of changes that a search may try if the search for the
 * recommended plan tried n_evaluations. */
static uint64_t effort_of(enum wire_choice wire, uint64_t n_evaluations)
{
    return max_u64(LEAST_EFFORT,
                   (uint64_t)(effort_frac[wire] * (double)n_evaluations));
}

static void init_options(struct search_options *out,
                         const struct search_options *options,
                         uint64_t n_evaluations)
{
    *out = *options;
    out->trace = NULL;
    out->rivals = NULL;
    out->found = NULL;
    out->overhead = NULL;
    out->gives_up = true;
    out->effort =
        min_u64(options->effort, effort_of(options->wire, n_evaluations));
}

/* Returns whether the searches are worth their setup. Sets plan->stopped if
 * they would not end in time. */
static bool may_search(struct plan *plan, const struct search_options *options,
                       double end_ms)
{
    static const struct search_overhead none = {0};
    const struct search_overhead *overhead =
        options->overhead ? options->overhead : &none;
    const unsigned n =
        options->wire == WIRE_ROBUST ? N_SEARCHES_ROBUST : N_SEARCHES_LIMITED;

    if (interrupt_requested() ||
        effort_of(options->wire, plan->n_evaluations) < plan->problem.n_tables)
        return false;
    if (clock_ms() + n * (overhead->setup_ms + overhead->finish_ms) < end_ms)
        return true;
    plan->stopped = "time";
    return false;
}

int wire_choose(struct plan *plan, const struct problem *problem,
                const struct oracle *oracle,
                const struct search_options *options, double *best_ms,
                double end_ms, struct arena *arena, struct err *err)
{
    struct choosing choosing = {
        .oracles = {oracle},
        .end_ms = end_ms,
        .finish_ms = options->overhead ? options->overhead->finish_ms : 0,
        .candidates = {.best_ms = {*best_ms, INFINITY, INFINITY},
                       .knows_dense = job_knows_dense(&problem->job)},
        .n_evaluations = plan->n_evaluations,
        .arena = arena};
    struct wire_candidates *candidates = &choosing.candidates;
    unsigned chosen;

    if (options->wire == WIRE_NOMINAL || !options->slower[0] ||
        options->simplest_frac != SIMPLEST_BY_ERROR ||
        !may_search(plan, options, end_ms))
        return 0;
    for (unsigned k = 1; k < N_WIRES; k++)
        choosing.oracles[k] = options->slower[k - 1];
    init_options(&choosing.options, options, plan->n_evaluations);
    if (add_plan(&choosing, plan, err))
        return -1;
    if (!candidates->n || !uses_wire(candidates))
        return 0;
    if (options->wire == WIRE_ROBUST
            ? find_robust(&choosing, problem, err)
            : find_limited(&choosing, plan, problem, err))
        return -1;
    plan->n_evaluations = choosing.n_evaluations;
    if (candidates->n < N_WIRES)
        return 0;
    *best_ms = candidates->best_ms[0];
    chosen = wire_pick(candidates, options->wire);
    if (chosen) {
        plan_take_shards(plan, &choosing.plans[chosen]);
        if (plan_price(plan, oracle, arena, err))
            return -1;
    }
    describe(&plan->wire, &oracle->cost.wire, candidates, chosen);
    return 0;
}
