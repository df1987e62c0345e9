/* SPDX-License-Identifier: MIT */
#include "search/schedule.h"

#include "search/search.h"

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
/* Number of stages from a plan that was searched already. The first is 1/7 of
 * the effort, and each is twice as long as the one before. */
#define GIVEN_STAGES 3
/* A chain with fewer steps per unit than FEW_STEPS counts as short. A short
 * chain rarely finds shardings that are better than those of the start. */
#define FEW_STEPS 500
/* Ends n_steps steps. Saves the best assignment of the chains if
 * it is better than the best so far. */
static void end_steps(struct schedule *schedule, uint64_t n_steps)
{
    const struct snapshot *best = temper_best(&schedule->temper);

    schedule->n_before += n_steps;
    if (best->excess <= 0 && best->total_ms < schedule->best.total_ms)
        snapshot_copy(&schedule->best, best);
}

/* Chooses the weight of the imbalance penalty for the next n_steps steps. */
static void weigh_imbalance(struct schedule *schedule, uint64_t n_steps)
{
    if (schedule->n_before + n_steps >=
        LONG_WALK * (uint64_t)schedule->space->n_units)
        schedule->space->tuning = &schedule->long_walk;
}

/* Runs one stage. Tempering continues from the states in which the last
 * tempering ended; annealing then begins from the best assignment so far.
 * Returns false if the search must stop. */
static bool run_stage(struct schedule *schedule, unsigned stage,
                      uint64_t n_steps)
{
    uint64_t n_tempered = n_steps * schedule->space->tuning->tempered / 1000;
    double hot = n_tempered ? TEMPERED_HOT_FRAC : HOT_FRAC;
    bool is_on;

    weigh_imbalance(schedule, n_steps);
    if (n_tempered) {
        temper_start(&schedule->temper, schedule->tempered, TEMPER_CHAINS);
        is_on = temper_exchange(&schedule->temper, n_tempered, HOT_FRAC);
        temper_pause(&schedule->temper, schedule->tempered);
        end_steps(schedule, n_tempered);
        if (!is_on)
            return false;
    }
    temper_start(&schedule->temper, &schedule->best, 1);
    is_on = temper_anneal(&schedule->temper, n_steps - n_tempered,
                          hot * pow(REHEATING, stage));
    end_steps(schedule, n_steps - n_tempered);
    return is_on;
}

static bool has_few_steps(const struct schedule *schedule)
{
    return schedule->usual_steps <
           FEW_STEPS * (uint64_t)schedule->space->n_units;
}

/* Returns the gap from the lower bound to the best total, as a share of that
 * total. In a long list most shardings stay as the start chose them. So the
 * mean load of the best assignment's pieces replaces the bound there if it is
 * larger. */
static double gap_of(const struct schedule *schedule)
{
    const struct search_space *space = schedule->space;
    const struct snapshot *best = &schedule->best;
    double floor_ms = schedule->bound_ms, sum_ms = 0;

    if (space->oracle->is_additive && has_few_steps(schedule)) {
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
static bool is_enough(const struct schedule *schedule, unsigned n_stages,
                      uint64_t n_steps, const double *gains)
{
    const double gap = gap_of(schedule);
    const double little = !schedule->space->oracle->ops->terms ? NO_GAIN
                          : isnan(gap)                         ? WORTH_GAIN
                                                               : LITTLE_GAIN;
    const bool is_additive = schedule->space->oracle->is_additive;

    if (schedule->n_before >= schedule->usual_steps)
        return schedule->n_before + n_steps > schedule->max_steps ||
               fmax(gains[0], gains[1]) < NO_GAIN;
    if (schedule->best.total_ms > schedule->published_ms)
        return false;
    if (gap < SMALL_GAP)
        return gains[1] < LITTLE_GAIN;
    if (gap > WIDE_GAP || (is_additive && !has_few_steps(schedule)))
        return false;
    return (n_stages > 1 && schedule->annealed_ms <
                                schedule->best.total_ms * (1 + LITTLE_GAIN)) ||
           (n_stages >= MIN_STAGES && fmax(gains[0], gains[1]) < little);
}

/* Runs stages until the search ends. The first tempering begins from all
 * starts. */
static void run_stages(struct schedule *schedule, uint64_t n_steps)
{
    double gains[2] = {INFINITY, INFINITY}, before_ms = schedule->best.total_ms;
    struct snapshot starts[STARTS_KEPT + 1] = {schedule->best};
    unsigned n = 1;

    for (unsigned f = 0; f < STARTS_KEPT; f++)
        if (schedule->starts[f].n)
            starts[n++] = schedule->starts[f];
    temper_start(&schedule->temper, starts, n);
    temper_pause(&schedule->temper, schedule->tempered);
    for (unsigned stage = 0; run_stage(schedule, stage, n_steps); stage++) {
        gains[0] = gains[1];
        gains[1] = before_ms / schedule->best.total_ms - 1;
        n_steps *= 2;
        if (schedule->effort == SEARCH_EFFORT_AUTO &&
            is_enough(schedule, stage + 1, n_steps, gains))
            break;
        before_ms = schedule->best.total_ms;
    }
}

/* Anneals one start alone. A dearer start may still lead to a better plan. */
static bool run_start(struct schedule *schedule, struct snapshot *start,
                      uint64_t n_steps)
{
    bool is_on;

    if (!start->n || !n_steps)
        return true;
    weigh_imbalance(schedule, n_steps);
    temper_start(&schedule->temper, start, 1);
    is_on = temper_anneal(&schedule->temper, n_steps, START_HOT_FRAC);
    end_steps(schedule, n_steps);
    snapshot_copy(start, temper_best(&schedule->temper));
    return is_on;
}

/* Anneals each start, then the best of them for longer. Without this five of
 * twelve seeds ended 2.4 % dearer for HugeCTR's seven tables on 64 GPUs of 38
 * GiB, by TorchRec's formulas. Searches with few steps per unit leave it out,
 * because stages gain more: 10,000 tables on 1,024 H100s 27.81 ms instead of
 * 28.17 by the roofline, 5,000 on 512 24.28 instead of 24.80. */
static bool run_starts(struct schedule *schedule, uint64_t n_steps)
{
    const struct tuning *tuning = schedule->space->tuning;
    const struct oracle *oracle = schedule->space->oracle;
    const unsigned kinds = oracle->kinds & schedule->space->problem->kinds;

    schedule->annealed_ms = schedule->best.total_ms;
    if (has_few_steps(schedule))
        return true;
    schedule->annealed_ms = INFINITY;
    for (unsigned f = 0; f < STARTS_KEPT; f++)
        if (!run_start(schedule, &schedule->starts[f],
                       tuning->start_stages * n_steps))
            return false;
    if (!(kinds & ~ONE_SORT))
        return true;
    schedule->annealed_ms = schedule->best.total_ms;
    return run_start(schedule, &schedule->best, tuning->best_stages * n_steps);
}

void schedule_init(struct schedule *schedule)
{
    struct search_space *space = schedule->space;
    const bool is_additive = space->oracle->is_additive;

    schedule->tuning = *space->tuning;
    space->tuning = &schedule->tuning;
    if (is_additive)
        schedule->tuning.imbalance_weight *= ADDITIVE_IMBALANCE;
    schedule->long_walk = schedule->tuning;
    if (!is_additive)
        schedule->long_walk.imbalance_weight *= LONG_WALK_IMBALANCE;
    schedule->usual_steps = temper_effort(SEARCH_EFFORT_AUTO) / TEMPER_CHAINS;
    schedule->max_steps = schedule->effort != SEARCH_EFFORT_AUTO
                              ? schedule->effort / TEMPER_CHAINS
                          : is_additive ? schedule->usual_steps
                                        : MOST_USUAL * schedule->usual_steps;
    schedule->annealed_ms = INFINITY;
}

void schedule_run(struct schedule *schedule, const struct snapshot *start)
{
    const double first = schedule->space->oracle->is_additive
                             ? ADDITIVE_FIRST_STAGE
                             : FIRST_STAGE;
    uint64_t n_steps = (uint64_t)(first * (double)schedule->usual_steps);

    if (schedule->is_given)
        n_steps = max_u64(
            min_u64(n_steps, schedule->max_steps / ((1u << GIVEN_STAGES) - 1)),
            1);

    temper_open(&schedule->temper, schedule->space, schedule->pool,
                schedule->seed, schedule->goes_on, schedule->ctx);
    temper_start(&schedule->temper, start, 1);
    snapshot_copy(&schedule->best, temper_best(&schedule->temper));
    if (schedule->is_given || run_starts(schedule, n_steps))
        run_stages(schedule, n_steps);
}

void schedule_release(struct schedule *schedule)
{
    temper_close(&schedule->temper);
    snapshot_release(&schedule->best);
    for (unsigned c = 0; c < TEMPER_CHAINS; c++)
        snapshot_release(&schedule->tempered[c]);
}
