/* SPDX-License-Identifier: MIT */
#include "search/temper.h"

#include "search/moves.h"
#include "search/search.h"

#include <assert.h>
#include <string.h>

/* Number of proposals if the user does not set the effort. They take about one
 * second on two cores. */
#define EFFORT 2400000

uint64_t temper_effort(uint64_t asked)
{
    return asked == SEARCH_EFFORT_AUTO ? EFFORT : asked;
}

/* Maximum number of draws per step. If a draw gives no move, it is repeated. */
#define TRIES 4
/* The first constant is a number of changes. Candidates with at least this
 * number of changes are tested before they are priced (is_hopeless). The second
 * is the relative tolerance of the test for rounding errors. */
#define LARGE_CANDIDATE 8
#define ROUNDING 1e-9
/* Number of chains that are priced together if comm prices the exchange. The
 * nets of comm take four rows at a time. */
#define LOCK_STEP 4
/* The first constant is the maximum number of steps of a chain between two
 * calls of goes_on. These steps are a round. The second constant is the minimum
 * number of rounds in a cycle. */
#define MAX_ROUND_STEPS 8192
#define MIN_ROUNDS 16
/* Temperature at the end of a cycle, as a fraction of the best total. */
#define COLD_FRAC 0.00005
/* The first constant is the temperature of the coldest chain in parallel
 * tempering, as a fraction of the best total. The second is the number of steps
 * between two exchanges. */
#define LOWEST_FRAC 0.0003
#define EXCHANGE_STEPS 30

/* --- one chain --- */

/* Saves the assignment as the chain's best. Saving copies all pieces. So this
 * function is called only when the chain leaves its best assignment (decide),
 * or when other code needs the best assignment (walk_group). */
static void save(struct chain *chain)
{
    snapshot_save(&chain->best, &chain->evaluator.assignment);
    chain->is_saved = true;
}

/* Returns the imbalance penalty of one device for one term. Only the slowest
 * device sets the total. To lower the total, other devices must be able to take
 * work from the slowest device, so their loads count a little. The penalty is
 * an eighth power, so devices near the slowest device count, and the other
 * devices hardly do. */
static double imbalance_ms(const struct imbalance *imbalance,
                           const double *terms_ms)
{
    double x = terms_ms[imbalance->term] * imbalance->scale;

    x *= x;
    x *= x;
    return x * x * imbalance->weight_ms;
}

void temper_start_chain(struct temper *temper, unsigned c,
                        const struct snapshot *from, uint64_t move_limit_bytes)
{
    struct chain *chain = &temper->all[c];
    struct assignment *assignment = &chain->evaluator.assignment;

    assignment->move_limit_bytes = move_limit_bytes;
    snapshot_load(from, assignment);
    save(chain);
    chain->n_imbalance = 0;
    for (uint32_t k = 0; k < assignment->n_terms; k++) {
        const double most_ms = assignment->most_ms[k];
        const double weight_ms = assignment->weight[k] * most_ms;

        if (weight_ms > 0)
            chain->imbalance[chain->n_imbalance++] =
                (struct imbalance){k, 1 / most_ms, weight_ms};
    }
    chain->all_imbalance_ms = 0;
    for (uint32_t r = 0; r < assignment->n_devices; r++)
        for (uint32_t h = 0; h < chain->n_imbalance; h++)
            chain->all_imbalance_ms +=
                imbalance_ms(&chain->imbalance[h],
                             assignment->terms_ms + r * assignment->n_terms);
}

/* Starts a chain as another one has just started. */
static void start_like(struct chain *chain, const struct chain *other)
{
    assignment_copy(&chain->evaluator.assignment, &other->evaluator.assignment);
    snapshot_copy(&chain->best, &other->best);
    chain->is_saved = true;
    memcpy(chain->imbalance, other->imbalance, sizeof(chain->imbalance));
    chain->n_imbalance = other->n_imbalance;
    chain->all_imbalance_ms = other->all_imbalance_ms;
}

/* Returns the rise of the imbalance penalty in ms, over all terms and all
 * devices that the candidate touches. */
static double more_imbalance(const struct chain *chain)
{
    const struct assignment *assignment = &chain->evaluator.assignment;
    const struct candidate *candidate = &chain->evaluator.candidate;
    double sum = 0;

    for (uint32_t i = 0; i < candidate->after.n_devices; i++) {
        const double *now_ms =
            assignment->terms_ms +
            candidate->after.devices[i] * assignment->n_terms;
        const double *then_ms =
            candidate->after.terms_ms + i * assignment->n_terms;

        for (uint32_t h = 0; h < chain->n_imbalance; h++)
            sum += imbalance_ms(&chain->imbalance[h], then_ms) -
                   imbalance_ms(&chain->imbalance[h], now_ms);
    }
    return sum;
}

/* Returns the penalty in ms for an excess over the limits. The penalty is added
 * to the energy, so a chain may exceed the limits for a while: a path between
 * two feasible assignments may lead through infeasible assignments. The penalty
 * is relative to the best total, so that it is independent of the scale of the
 * problem. */
static double excess_ms(const struct chain *chain, double excess)
{
    return chain->evaluator.assignment.space->tuning->excess_weight * excess *
           chain->best.total_ms;
}

/* Returns the energy of the chain's present assignment. Energy is the total
 * plus the penalty for excess. The chain searches for low energy. */
static double energy_ms(const struct chain *chain)
{
    return chain->evaluator.assignment.total_ms +
           excess_ms(chain, chain->evaluator.assignment.excess);
}

/* Returns whether an assignment is better than a snapshot. The excess is
 * compared first, so an assignment that keeps all limits is better than any
 * assignment that exceeds them. If the excess is equal, the total decides. */
static bool is_better(double excess, double total_ms,
                      const struct snapshot *other)
{
    if (excess > 0 || other->excess > 0)
        return excess < other->excess;
    return total_ms < other->total_ms;
}

/* Accepts or rejects the candidate by Metropolis' rule. A candidate that is not
 * worse is accepted. A candidate that is worse by `rise` is accepted with
 * probability exp(-rise / T). The best assignment is copied only when the chain
 * is about to leave it, because most improvements are followed by a further
 * improvement. */
static void decide(struct chain *chain)
{
    const struct assignment *assignment = &chain->evaluator.assignment;
    const struct candidate *candidate = &chain->evaluator.candidate;
    double rise = INFINITY, more_imbalance_ms = 0;

    if (!candidate->changes.n)
        return;
    if (candidate_is_priced(candidate) && isfinite(candidate->after.total_ms)) {
        more_imbalance_ms = more_imbalance(chain);
        rise = candidate->after.total_ms - assignment->total_ms +
               excess_ms(chain, candidate->after.excess - assignment->excess) +
               assignment->space->tuning->imbalance_weight * more_imbalance_ms;
    }
    if (rise > 0 &&
        !(rng_uniform(&chain->rng) < exp(-rise / chain->temperature_ms)))
        return;
    /* If the rise is NAN, the whole search fails at its end
     * (checked_oracle_finish). */
    assert(!candidate->is_given_up || isnan(rise));
    if (!chain->is_saved)
        save(chain);
    candidate_commit(&chain->evaluator.assignment, candidate);
    chain->all_imbalance_ms += more_imbalance_ms;
    if (is_better(assignment->excess, assignment->total_ms, &chain->best))
        chain->is_saved = false;
}

/* --- chains in lock-step --- */

void temper_open(struct temper *temper, const struct search_space *space,
                 struct pool *pool, uint64_t seed, goes_on_fn *goes_on,
                 void *ctx)
{
    *temper =
        (struct temper){.pool = pool,
                        .lock_step = space->oracle->ops->terms ? 1 : LOCK_STEP,
                        .goes_on = goes_on,
                        .ctx = ctx};
    for (unsigned c = 0; c < TEMPER_CHAINS; c++) {
        struct chain *chain = temper->chains[c] = &temper->all[c];

        evaluator_init(&chain->evaluator, space);
        chain->evaluator.assignment.mix = c % N_MOVE_MIXES;
        rng_init(&chain->rng, seed, c);
        if (c % temper->lock_step == 0)
            pricing_init(&temper->pricing[c / temper->lock_step], space,
                         temper->lock_step);
    }
    rng_init(&temper->rng, seed, TEMPER_CHAINS);
}

void temper_close(struct temper *temper)
{
    for (unsigned c = 0; c < TEMPER_CHAINS; c++) {
        evaluator_release(&temper->all[c].evaluator);
        snapshot_release(&temper->all[c].best);
        pricing_release(&temper->pricing[c]);
    }
    *temper = (struct temper){0};
}

uint64_t temper_priced(const struct temper *temper)
{
    uint64_t n_priced = 0;

    for (unsigned c = 0; c < TEMPER_CHAINS; c++)
        n_priced += temper->all[c].evaluator.n_priced;
    return n_priced;
}

void temper_start(struct temper *temper, const struct snapshot *starts,
                  unsigned n_starts)
{
    for (unsigned c = 0; c < TEMPER_CHAINS; c++)
        if (c < n_starts)
            temper_start_chain(temper, c, &starts[c], NO_MOVE_LIMIT);
        else
            start_like(&temper->all[c], &temper->all[c % n_starts]);
}

void temper_pause(const struct temper *temper, struct snapshot *assignments)
{
    for (unsigned c = 0; c < TEMPER_CHAINS; c++)
        snapshot_save(&assignments[c], &temper->all[c].evaluator.assignment);
}

struct snapshot *temper_best(const struct temper *temper)
{
    struct snapshot *best = &temper->chains[0]->best;

    for (unsigned c = 1; c < TEMPER_CHAINS; c++) {
        struct snapshot *other = &temper->chains[c]->best;

        if (is_better(other->excess, other->total_ms, best))
            best = other;
    }
    return best;
}

/*
 * Cheap rejection test for a large candidate. Returns true if one device alone
 * is enough for decide() to reject the candidate, even if all other devices
 * cost nothing, fit the memory and have no imbalance penalty. The test looks at
 * the device that seemed busiest when the move was drawn. This rejects most
 * large candidates.
 *
 * The test is not made if the candidate is small, costs are additive or the
 * oracle has no terms. The function then returns is_given_up, the verdict of
 * the estimates that were made when the move was drawn.
 *
 * The test uses the random number that decide() will draw next. In builds that
 * check assignments, rejected candidates are priced all the same, and decide()
 * asserts that it rejects them, too.
 */
static bool is_hopeless(struct chain *chain)
{
    const struct assignment *assignment = &chain->evaluator.assignment;
    const struct oracle *oracle = assignment->space->oracle;
    struct candidate *candidate = &chain->evaluator.candidate;
    double most_ms = assignment->total_ms;
    uint32_t busiest = NO_PIECE;

    if (candidate->is_given_up || candidate->changes.n < LARGE_CANDIDATE ||
        !oracle->ops->terms || oracle->is_additive)
        return candidate->is_given_up;
    for (uint32_t r = 0; r < assignment->n_devices; r++)
        if (candidate->estimates[r].load_ms > most_ms)
            most_ms = candidate->estimates[busiest = r].load_ms;
    if (busiest == NO_PIECE)
        return false;
    return space_standalone_ms(
               oracle, candidate_sum_on(candidate, assignment, busiest)) >
           candidate_limit_ms(candidate, &chain->rng);
}

/* Draws the next candidate of a chain. All random numbers come from the chain's
 * own generator. So the path of the chain does not depend on the other chains
 * or on the thread that runs it. */
static void propose_some(struct chain *chain)
{
    const struct assignment *assignment = &chain->evaluator.assignment;
    struct candidate *candidate = &chain->evaluator.candidate;

    candidate->limit_ms =
        (1 + ROUNDING) * assignment->total_ms +
        excess_ms(chain, assignment->excess) +
        assignment->space->tuning->imbalance_weight * chain->all_imbalance_ms;
    candidate->temperature_ms = chain->temperature_ms;
    for (unsigned i = 0; i < TRIES; i++) {
        propose(candidate, assignment, &chain->rng);
        if (!candidate->changes.n)
            continue;
        candidate->is_given_up = is_hopeless(chain);
        if (candidate_is_priced(candidate))
            candidate_sum(candidate, assignment);
        break;
    }
}

/* Runs the steps of a round for one group of chains in lock-step. In each step
 * the devices that the candidates of all chains touch are priced in one call.
 * At the end of the round, the best assignment of each chain is saved, because
 * other code reads it then. */
static void walk_group(void *ctx, size_t group, unsigned thread)
{
    struct temper *temper = ctx;
    const unsigned n = temper->lock_step;
    struct chain *chains = temper->all + group * n;
    struct evaluator *evaluators[LOCK_STEP];

    (void)thread;
    for (unsigned c = 0; c < n; c++)
        evaluators[c] = &chains[c].evaluator;
    for (uint64_t step = 0; step < temper->n_round_steps; step++) {
        for (unsigned c = 0; c < n; c++)
            propose_some(&chains[c]);
        evaluators_price(evaluators, n, &temper->pricing[group]);
        for (unsigned c = 0; c < n; c++) {
            decide(&chains[c]);
            chains[c].temperature_ms *= temper->cooling;
        }
    }
    for (unsigned c = 0; c < n; c++)
        if (!chains[c].is_saved)
            save(&chains[c]);
}

/* Runs one round. A cycle has n_steps steps, divided into n_rounds rounds.
 * Returns false if goes_on ends the search. */
static bool walk_round(struct temper *temper, uint64_t n_steps, uint64_t round,
                       uint64_t n_rounds)
{
    const uint64_t first = n_steps * round / n_rounds;

    if (!temper->goes_on(temper->ctx, first))
        return false;
    temper->n_round_steps = n_steps * (round + 1) / n_rounds - first;
    pool_run(temper->pool, TEMPER_CHAINS / temper->lock_step, walk_group,
             temper);
    return true;
}

bool temper_anneal(struct temper *temper, uint64_t n_steps, double hot_frac)
{
    const double best_ms = temper_best(temper)->total_ms;
    const double fall = log(COLD_FRAC / hot_frac) / (double)n_steps;
    const uint64_t n_rounds =
        max_u64(n_steps / MAX_ROUND_STEPS + 1, MIN_ROUNDS);
    bool is_on = true;

    temper->cooling = exp(fall);
    for (uint64_t round = 0; is_on && round < n_rounds; round++) {
        const uint64_t first = n_steps * round / n_rounds;

        for (unsigned c = 0; c < TEMPER_CHAINS; c++)
            temper->chains[c]->temperature_ms =
                hot_frac * best_ms * exp(fall * (double)first);
        is_on = walk_round(temper, n_steps, round, n_rounds);
    }
    return is_on;
}

/* Runs parallel tempering. The temperatures form a geometric ladder. They are
 * proportional to the best total and are set again when the best total falls.
 * After each round every second pair of neighbouring chains may exchange
 * temperatures. The exchange is accepted with probability exp(gain). exp(gain)
 * is the likelihood of the two assignments after the exchange of temperatures,
 * relative to their likelihood before it. The exchange swaps two chain
 * pointers, not assignments. */
bool temper_exchange(struct temper *temper, uint64_t n_steps, double hot_frac)
{
    const uint64_t n_rounds = n_steps / EXCHANGE_STEPS + 1;
    const double rise = pow(hot_frac / LOWEST_FRAC, 1.0 / (TEMPER_CHAINS - 1));

    temper->cooling = 1;
    for (uint64_t round = 0; round < n_rounds; round++) {
        double temperature_ms = LOWEST_FRAC * temper_best(temper)->total_ms;

        for (unsigned c = 0; c < TEMPER_CHAINS; c++, temperature_ms *= rise)
            temper->chains[c]->temperature_ms = temperature_ms;
        if (!walk_round(temper, n_steps, round, n_rounds))
            return false;
        for (unsigned c = round % 2; c + 1 < TEMPER_CHAINS; c += 2) {
            struct chain *cold = temper->chains[c];
            struct chain *hot = temper->chains[c + 1];
            double gain = (energy_ms(cold) - energy_ms(hot)) *
                          (1 / cold->temperature_ms - 1 / hot->temperature_ms);

            if (gain < 0 && !(rng_uniform(&temper->rng) < exp(gain)))
                continue;
            temper->chains[c] = hot;
            temper->chains[c + 1] = cold;
        }
    }
    return true;
}

/* --- repair: all plans have the same cost and only memory counts --- */

/* Number of steps of all chains together: MIN_STEPS, plus STEPS_A_PIECE for
 * each piece. MAX_WORK limits the product of steps and devices, because the
 * time of a step grows with the number of devices. */
#define MIN_STEPS 50000
#define STEPS_A_PIECE 500
#define MAX_WORK 20000000
#define REPAIR_SEED 4
/* The first constant is the number of cooling cycles. The second is the first
 * temperature. Temperatures are in units of excess, as fractions of the memory
 * of a device. */
#define N_REPAIR_CYCLES 4
#define REPAIR_HOT_FRAC 0.02
/* Weight of a device's fullness in the total, in ms. This weight makes the
 * fullest device set the total, so that moves begin on that device
 * (search/moves.h). The weight is so small that it never outweighs the excess
 * memory. */
#define FULLNESS_MS 1e-6

/* Oracle of the repair. The vector of a piece has one lane: the bytes of the
 * piece as a fraction of the largest device memory. */
static void price_fullness(const struct oracle *oracle, const double *sums,
                           size_t n, double *compute_ms, double *terms_ms)
{
    (void)oracle;
    for (size_t i = 0; i < n; i++) {
        compute_ms[i] = 0;
        terms_ms[i] = 1 + FULLNESS_MS * sums[i];
    }
}

static bool exceeds(void *ctx, uint64_t n_done)
{
    const struct temper *temper = ctx;

    (void)n_done;
    return temper_best(temper)->excess > 0;
}

uint64_t temper_repair(struct snapshot *io, const struct search_space *space,
                       unsigned patience)
{
    static const struct oracle_ops ops = {.terms = price_fullness};
    const struct oracle oracle = {.ops = &ops,
                                  .width = 1,
                                  .n_terms = 1,
                                  .row_cut = space->oracle->row_cut};
    struct tuning tuning = tuning_default;
    struct search_space unpriced = *space;
    uint64_t n_steps = MIN_STEPS + (uint64_t)STEPS_A_PIECE * io->n;
    struct temper temper;
    struct assignment *assignment = &temper.all[0].evaluator.assignment;
    double lacking = 0;

    if (space->n_devices < 2)
        return UINT64_MAX;
    n_steps = min_u64(n_steps, MAX_WORK / space->n_devices);
    n_steps = patience * n_steps / (N_REPAIR_CYCLES * TEMPER_CHAINS) + 1;
    tuning.imbalance_weight = 0;
    tuning.excess_weight = 1;
    unpriced.oracle = &oracle;
    unpriced.current = NULL;
    unpriced.tuning = &tuning;
    unpriced.vectors = mem_alloc(space->n_types, sizeof(double));
    for (uint32_t p = 0; p < space->n_types; p++)
        unpriced.vectors[p] = (double)space->types[p].bytes /
                              ((double)space->most_room_bytes + 1);
    unpriced.standalone_ms = unpriced.load_ms = unpriced.vectors;
    temper_open(&temper, &unpriced, NULL, REPAIR_SEED, exceeds, &temper);
    temper_start(&temper, io, 1);
    for (unsigned cycle = 0; cycle < N_REPAIR_CYCLES; cycle++)
        if (!temper_anneal(&temper, n_steps, REPAIR_HOT_FRAC))
            break;
    snapshot_load(temper_best(&temper), assignment);
    for (uint32_t r = 0; r < assignment->n_devices; r++)
        lacking += fmax(0, (double)assignment->bytes[r] -
                               (double)space->room_bytes[r]);
    if (!(lacking > 0))
        snapshot_copy(io, temper_best(&temper));
    temper_close(&temper);
    mem_free(unpriced.vectors);
    return (uint64_t)fmin(lacking, 0x1p63);
}
