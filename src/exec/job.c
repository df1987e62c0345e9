/* SPDX-License-Identifier: MIT */
#include "exec/job.h"

#include "base/ranked.h"

#include <inttypes.h>
#include <stdlib.h>

/*
 * A rank counts as a straggler if both its forward and its backward are slower
 * than on a typical rank, relative to the prediction, and by a similar factor.
 * If instead a table costs more than predicted, one of the two phases is slowed
 * down more than the other.
 *
 *     STRAGGLES   smallest slowdown of either phase
 *     ABOUT_SAME  largest ratio between the two slowdowns
 */
#define STRAGGLES 1.15
#define ABOUT_SAME 1.1
#define PER_ROUND 1000 /* slowdowns are rounded to multiples of its inverse */
#define MIN_RANKS 3    /* fewest ranks of which one can be a straggler */
/* Largest number of cells in the table of times per known time. The table has a
 * cell for each step, rank and part, so the limit allows only few missing
 * times. */
#define MAX_GAPS 64

/* Table of the job's times: ms[n_steps][n_ranks][N_STEP_PARTS]. NAN if a time
 * is not known. */
struct job_grid {
    uint64_t *steps; /* [n_steps], ascending; owned, as is `ms` */
    double *ms;
    size_t n_steps;
    uint32_t n_ranks;
};

static double *grid_at(const struct job_grid *grid, size_t step, uint32_t rank,
                       unsigned part)
{
    return &grid->ms[(step * grid->n_ranks + rank) * N_STEP_PARTS + part];
}

static void find_steps(struct job_grid *grid, const struct part_time *times,
                       size_t n)
{
    grid->steps = mem_alloc(n, sizeof(*grid->steps));
    for (size_t i = 0; i < n; i++)
        grid->steps[i] = times[i].step;
    qsort(grid->steps, n, sizeof(*grid->steps), ranked_compare_u64);
    for (size_t i = 0; i < n; i++)
        if (!i || grid->steps[i] != grid->steps[i - 1])
            grid->steps[grid->n_steps++] = grid->steps[i];
}

static int fill_grid(struct job_grid *grid, const struct part_time *times,
                     size_t n, struct err *err)
{
    size_t n_cells;

    find_steps(grid, times, n);
    n_cells = grid->n_steps * grid->n_ranks * N_STEP_PARTS;
    if (n_cells / MAX_GAPS > n)
        return err_input(err, "most ranks have no times in most of %zu steps",
                         grid->n_steps);
    grid->ms = mem_alloc(n_cells, sizeof(*grid->ms));
    for (size_t i = 0; i < n_cells; i++)
        grid->ms[i] = NAN;
    for (size_t i = 0; i < n; i++) {
        const uint64_t *step =
            bsearch(&times[i].step, grid->steps, grid->n_steps,
                    sizeof(*grid->steps), ranked_compare_u64);
        double *ms = grid_at(grid, (size_t)(step - grid->steps), times[i].rank,
                             times[i].part);

        if (!isnan(*ms))
            return err_input(
                err,
                "step %" PRIu64 " of rank %" PRIu32 " has two times of its %s",
                *step, times[i].rank, step_part_names[times[i].part]);
        *ms = times[i].ms;
    }
    return 0;
}

/* Returns the median and deciles of those values that are known. */
static struct timing timing_of_known(double *ms, size_t n)
{
    size_t n_known = 0;

    for (size_t i = 0; i < n; i++)
        if (!isnan(ms[i]))
            ms[n_known++] = ms[i];
    return timing_of(ms, n_known);
}

/* Time of an exchange on the rank that arrives last, which is the smallest time
 * among the ranks. NAN if the time of some rank is unknown. */
static double last_arrival(const struct job_grid *grid, size_t step,
                           unsigned part)
{
    double least = INFINITY;

    for (uint32_t r = 0; r < grid->n_ranks; r++) {
        const double ms = *grid_at(grid, step, r, part);

        if (!(ms >= least))
            least = ms;
        if (isnan(ms))
            return NAN;
    }
    return least;
}

static bool rank_is_there(const struct job_grid *grid, size_t first, uint32_t r)
{
    for (size_t s = first; s < grid->n_steps; s++)
        for (unsigned p = 0; p < N_STEP_PARTS; p++)
            if (!isnan(*grid_at(grid, s, r, p)))
                return true;
    return false;
}

/* index after the step parts: forward and backward of a step together */
#define BOTH N_STEP_PARTS

/* Timing over all steps. If r is a rank, it covers a part of rank r. If r is
 * n_ranks, it covers an exchange of all ranks. */
static struct timing estimate_time(const struct job_times *job,
                                   const struct job_grid *grid, uint32_t r,
                                   enum step_part part)
{
    const size_t first = grid->n_steps - job->n_steps;
    double *ms = mem_alloc(job->n_steps, sizeof(*ms));
    struct timing time;

    for (size_t s = 0; s < job->n_steps; s++)
        ms[s] = r == job->n_ranks ? last_arrival(grid, first + s, part)
                : part == BOTH    ? *grid_at(grid, first + s, r, STEP_FORWARD) +
                                     *grid_at(grid, first + s, r, STEP_BACKWARD)
                               : *grid_at(grid, first + s, r, part);
    time = timing_of_known(ms, job->n_steps);
    mem_free(ms);
    return time;
}

static void add_phase(struct job_times *job, const struct plan *plan,
                      const struct job_grid *grid, uint32_t r,
                      enum step_part part, struct arena *arena)
{
    const bool is_all = r == job->n_ranks;
    struct job_phase *phase = &job->phases[job->n_phases++];

    *phase = (struct job_phase){
        .rank = is_all ? "all" : arena_printf(arena, "%" PRIu32, r),
        .name = step_part_names[part],
        .part = part,
        .time = estimate_time(job, grid, r, part),
        .predicted_ms = plan_has_parts(plan)
                            ? plan->devices[is_all ? 0 : r].parts_ms[part]
                            : NAN,
        .differs_frac = NAN,
        .straggles = 1,
        .relative = NAN};
    if (phase->predicted_ms > 0)
        phase->differs_frac = phase->time.median_ms / phase->predicted_ms - 1;
}

static void estimate(struct job_times *job, const struct plan *plan,
                     const struct job_grid *grid, struct arena *arena)
{
    static const enum step_part all[] = {STEP_INPUT, STEP_OUTPUT, STEP_GRADIENT,
                                         STEP_REPLICAS};

    job->phases = ARENA_NEW(arena, struct job_phase, 2 * job->n_ranks + 4);
    job->totals = ARENA_NEW(arena, struct timing, job->n_ranks);
    for (uint32_t r = 0; r < job->n_ranks; r++) {
        add_phase(job, plan, grid, r, STEP_FORWARD, arena);
        add_phase(job, plan, grid, r, STEP_BACKWARD, arena);
        job->totals[r] = estimate_time(job, grid, r, BOTH);
    }
    for (unsigned i = 0; i < 4; i++)
        add_phase(job, plan, grid, job->n_ranks, all[i], arena);
}

/* Median over the ranks of measured time / predicted time of a part; NAN if the
 * ratio is unknown for all ranks. */
static double typical_ratio(const struct job_times *job, enum step_part part)
{
    double *ratios = mem_alloc(job->n_phases, sizeof(*ratios)), median;

    for (size_t i = 0; i < job->n_phases; i++)
        ratios[i] =
            job->phases[i].part == part ? 1 + job->phases[i].differs_frac : NAN;
    median = timing_of_known(ratios, job->n_phases).median_ms;
    mem_free(ratios);
    return median;
}

static void find_stragglers(struct job_times *job, struct arena *arena)
{
    const double forward = typical_ratio(job, STEP_FORWARD);
    const double backward = typical_ratio(job, STEP_BACKWARD);

    for (uint32_t r = 0; job->n_ranks >= MIN_RANKS && r < job->n_ranks; r++) {
        struct job_phase *own = job->phases + 2 * (size_t)r;
        const double x = (1 + own[0].differs_frac) / forward;
        const double y = (1 + own[1].differs_frac) / backward;

        own[0].relative = own[1].relative = sqrt(x * y);
        if (!(x >= STRAGGLES && y >= STRAGGLES && x <= ABOUT_SAME * y &&
              y <= ABOUT_SAME * x))
            continue;
        own[0].straggles = own[1].straggles = own[0].relative;
        own[0].note = own[1].note =
            arena_printf(arena, "straggles, x %.2f", own[0].straggles);
    }
}

/* Number of steps in which the time of a rank's phase is known. */
static size_t count_known(const struct job_grid *grid, uint32_t rank,
                          unsigned part)
{
    size_t n = 0;

    for (size_t s = 0; s < grid->n_steps; s++)
        n += isnan(*grid_at(grid, s, rank, part)) ? 0 : 1;
    return n;
}

/* Returns a sentence about steps that are missing from an otherwise regular
 * series of steps; NULL if no step is missing. Also returns NULL if many steps
 * are missing (more than n / 4 + 1), because such a job was measured in windows
 * of steps. */
static const char *tell_lost_steps(const struct job_grid *grid,
                                   struct arena *arena)
{
    const size_t n = grid->n_steps;
    uint64_t apart = UINT64_MAX, n_lost = 0, first = 0;

    for (size_t s = 1; s < n; s++)
        apart = min_u64(apart, grid->steps[s] - grid->steps[s - 1]);
    for (size_t s = 1; s < n; s++) {
        const uint64_t n_here =
            (grid->steps[s] - grid->steps[s - 1]) / apart - 1;

        if (n_here && !n_lost)
            first = grid->steps[s - 1] + apart;
        n_lost += n_here;
    }
    return n_lost && n_lost <= n / 4 + 1
               ? arena_printf(arena,
                              "%" PRIu64 " of %" PRIu64 " steps are missing, "
                              "the first is step %" PRIu64,
                              n_lost, n + n_lost, first)
               : NULL;
}

/* Returns a sentence about missing times; NULL if no time is missing. A time
 * counts as missing only if the same rank has a time of the same phase in
 * another step. */
static const char *tell_gaps(const struct job_grid *grid, struct arena *arena)
{
    const char *first = NULL;
    size_t n_gaps = 0, n_all = 0;

    for (uint32_t r = 0; r < grid->n_ranks; r++)
        for (unsigned p = 0; p < N_STEP_PARTS; p++) {
            const size_t n = count_known(grid, r, p);

            if (!n)
                continue;
            n_all += grid->n_steps;
            n_gaps += grid->n_steps - n;
            for (size_t s = 0; n < grid->n_steps && !first; s++)
                if (isnan(*grid_at(grid, s, r, p)))
                    first = arena_printf(arena,
                                         "%s of rank %" PRIu32 " in step "
                                         "%" PRIu64,
                                         step_part_names[p], r, grid->steps[s]);
        }
    return first ? arena_printf(arena,
                                "%zu of %zu times are missing, the first is %s",
                                n_gaps, n_all, first)
                 : NULL;
}

int job_times_init(struct job_times *job, const struct plan *plan,
                   const struct part_time *times, size_t n, size_t n_warm_up,
                   struct arena *arena, struct err *err)
{
    struct job_grid grid = {.n_ranks = plan->problem.cluster.n_devices};
    int rc = fill_grid(&grid, times, n, err);

    *job = (struct job_times){.n_ranks = grid.n_ranks};
    if (!rc && grid.n_steps <= n_warm_up)
        rc = err_input(err, "%zu steps, but none is left after %zu of warm-up",
                       grid.n_steps, n_warm_up);
    for (uint32_t r = 0; !rc && r < grid.n_ranks; r++)
        if (!rank_is_there(&grid, n_warm_up, r))
            rc = err_input(err,
                           "rank %" PRIu32 " of the plan's %" PRIu32
                           " has no times after warm-up",
                           r, grid.n_ranks);
    if (!rc) {
        job->n_steps = grid.n_steps - n_warm_up;
        estimate(job, plan, &grid, arena);
        find_stragglers(job, arena);
        job->doubt = tell_gaps(&grid, arena);
        if (!job->doubt)
            job->doubt = tell_lost_steps(&grid, arena);
    }
    mem_free(grid.steps);
    mem_free(grid.ms);
    return rc;
}

const double *job_slowdown(const struct job_times *job, struct cluster *cluster,
                           struct arena *arena)
{
    double *slowdown = ARENA_NEW(arena, double, job->n_ranks);
    bool is_slow = false;

    for (uint32_t r = 0; r < job->n_ranks; r++) {
        const struct job_phase *own = &job->phases[2 * (size_t)r];
        const double before = cluster_slowdown(cluster, r);
        const bool changes = own->straggles > 1 || before > 1;
        const double x =
            before * (changes && own->relative > 0 ? own->relative : 1);

        slowdown[r] = fmin(fmax(round(x * PER_ROUND) / PER_ROUND, 1),
                           CLUSTER_MAX_SLOWDOWN);
        is_slow |= slowdown[r] > 1;
    }
    cluster->slowdown = is_slow ? slowdown : NULL;
    return slowdown;
}

/*
 * Returns the factor by which a cause changes the predicted time of phase i:
 *
 *   cause 0      1; the cause is a base time alone
 *   cause 1      a factor for each rank
 *   cause 2      the slowdown of stragglers
 *   from 3 on    the typical factor of one phase
 */
static double scale_by(const struct job_times *job, unsigned cause, size_t i)
{
    const struct job_phase *phase = &job->phases[i],
                           *own = &job->phases[i - i % 2];

    if (cause == 1 && i < 2 * (size_t)job->n_ranks)
        return sqrt((1 + own[0].differs_frac) * (1 + own[1].differs_frac));
    if (cause == 2)
        return phase->straggles;
    return cause >= 3 && phase->part == cause - 3
               ? typical_ratio(job, phase->part)
               : 1;
}

/* Returns the sum of the absolute differences between measured and predicted
 * times that a cause leaves unexplained. Stores the remaining differences in
 * ms[n_phases]. */
static double left_ms(const struct job_times *job, unsigned cause,
                      double base_ms, double *ms)
{
    double sum = 0;

    for (size_t i = 0; i < job->n_phases; i++) {
        const struct job_phase *phase = &job->phases[i];

        ms[i] = phase->time.median_ms -
                phase->predicted_ms * scale_by(job, cause, i) -
                (i < 2 * (size_t)job->n_ranks ? base_ms : 0);
        sum += isnan(ms[i]) ? 0 : fabs(ms[i]);
    }
    return sum;
}

size_t job_causes(struct job_cause causes[JOB_CAUSES],
                  const struct job_times *job, struct arena *arena)
{
    double *ms = ARENA_NEW(arena, double, job->n_phases);
    const double all_ms = left_ms(job, 0, 0, ms);
    const double base_ms =
        timing_of_known(ms, 2 * (size_t)job->n_ranks).median_ms;
    size_t n = 0;

    for (unsigned c = 0; c < JOB_CAUSES && !isnan(base_ms); c++) {
        const enum step_part part = c < 3 ? 0 : c - 3;
        const double ratio = typical_ratio(job, part);

        if (c >= 3 && isnan(ratio))
            continue;
        causes[n++] = (struct job_cause){
            c == 0   ? arena_printf(arena, "a base of %+.3f ms", base_ms)
            : c == 1 ? "a factor for each rank"
            : c == 2 ? "stragglers"
                     : arena_printf(arena, "%s x %.2f", step_part_names[part],
                                    ratio),
            1 - left_ms(job, c, c ? 0 : base_ms, ms) / all_ms};
    }
    return n;
}

/* Returns the rank that straggles most; n_ranks if none does. */
static uint32_t worst_straggler(const struct job_times *job)
{
    uint32_t worst = job->n_ranks;
    double most = 1;

    for (uint32_t r = 0; r < job->n_ranks; r++) {
        const double factor = job->phases[2 * (size_t)r].straggles;

        if (factor > most) {
            most = factor;
            worst = r;
        }
    }
    return worst;
}

/* Returns the cause that explains most, without the factors of all ranks, which
 * always explain much. Returns NULL if no cause is left. */
static const struct job_cause *main_cause(const struct job_cause *causes,
                                          size_t n_causes)
{
    const struct job_cause *best = NULL;

    for (size_t i = 0; i < n_causes; i++)
        if (i != 1 && !isnan(causes[i].explained_frac) &&
            (!best || causes[i].explained_frac > best->explained_frac))
            best = &causes[i];
    return best;
}

const char *job_verdict(const struct job_times *job,
                        const struct job_cause *causes, size_t n_causes,
                        struct arena *arena)
{
    const uint32_t slow = worst_straggler(job);
    const struct job_cause *cause = main_cause(causes, n_causes);
    double *ms = ARENA_NEW(arena, double, job->n_phases);
    const double differs_ms = left_ms(job, 0, 0, ms);
    double predicted_ms = 0;

    for (size_t i = 0; i < job->n_phases; i++)
        predicted_ms += isnan(ms[i]) ? 0 : job->phases[i].predicted_ms;
    if (!(predicted_ms > 0))
        return NULL;
    if (slow < job->n_ranks)
        return arena_printf(arena,
                            "rank %" PRIu32
                            " is %.2fx slower than the others in all of its "
                            "work: its machine is slow, not the plan; check "
                            "its clocks, temperature and other processes",
                            slow, job->phases[2 * (size_t)slow].straggles);
    if (differs_ms < JOB_AS_PREDICTED * predicted_ms)
        return arena_printf(arena,
                            "the times are as predicted: they differ by "
                            "%.1f %%",
                            100 * differs_ms / predicted_ms);
    if (cause && cause->explained_frac >= 0.5)
        return arena_printf(arena,
                            "the times differ by %.0f %% from the prediction, "
                            "and %s explains %.0f %% of this",
                            100 * differs_ms / predicted_ms, cause->what,
                            100 * cause->explained_frac);
    return arena_printf(arena,
                        "the times differ by %.0f %% from the prediction, and "
                        "no single cause explains half of this",
                        100 * differs_ms / predicted_ms);
}
