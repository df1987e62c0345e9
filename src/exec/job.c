/* SPDX-License-Identifier: MIT */
#include "exec/job.h"

#include "base/hash.h"
#include "base/ranked.h"
#include "base/stats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A straggler is slower than others by so much in all that it computes, and by
 * about the same: a table that costs more than was thought costs it in one
 * phase more than in another. */
#define STRAGGLES 1.15
#define ABOUT_SAME 1.1
#define MIN_RANKS 3 /* for one of them to stand out */
/* Times are kept in a table of steps and ranks, of which few may be missing. */
#define MAX_GAPS 64

static int compare_steps(const void *left, const void *right)
{
    return ranked_compare(left, right, 1);
}

/* ms[n_steps][n_ranks][N_STEP_PARTS], NAN where it is not known. */
struct grid {
    uint64_t *steps; /* [n_steps], rising; owned, as the next */
    double *ms;
    size_t n_steps;
    uint32_t n_ranks;
};

static double *grid_at(const struct grid *grid, size_t step, uint32_t rank,
                       unsigned part)
{
    return &grid->ms[(step * grid->n_ranks + rank) * N_STEP_PARTS + part];
}

static void find_steps(struct grid *grid, const struct part_time *times,
                       size_t n)
{
    grid->steps = mem_alloc(n, sizeof(*grid->steps));
    for (size_t i = 0; i < n; i++)
        grid->steps[i] = times[i].step;
    qsort(grid->steps, n, sizeof(*grid->steps), compare_steps);
    for (size_t i = 0; i < n; i++)
        if (!i || grid->steps[i] != grid->steps[i - 1])
            grid->steps[grid->n_steps++] = grid->steps[i];
}

static int fill_grid(struct grid *grid, const struct part_time *times, size_t n,
                     struct err *err)
{
    size_t n_cells;

    find_steps(grid, times, n);
    n_cells = grid->n_steps * grid->n_ranks * N_STEP_PARTS;
    if (n_cells / MAX_GAPS > n)
        return err_set(err, ERR_INPUT,
                       "most ranks have no times in most of %zu steps",
                       grid->n_steps);
    grid->ms = mem_alloc(n_cells, sizeof(*grid->ms));
    for (size_t i = 0; i < n_cells; i++)
        grid->ms[i] = NAN;
    for (size_t i = 0; i < n; i++) {
        const uint64_t *step =
            bsearch(&times[i].step, grid->steps, grid->n_steps,
                    sizeof(*grid->steps), compare_steps);
        double *ms = grid_at(grid, (size_t)(step - grid->steps), times[i].rank,
                             times[i].part);

        if (!isnan(*ms))
            return err_set(
                err, ERR_INPUT,
                "step %" PRIu64 " of rank %" PRIu32 " has two times of its %s",
                *step, times[i].rank, step_part_names[times[i].part]);
        *ms = times[i].ms;
    }
    return 0;
}

/* Of those that are known. */
static struct timing timing_of_known(double *ms, size_t n)
{
    size_t n_known = 0;

    for (size_t i = 0; i < n; i++)
        if (!isnan(ms[i]))
            ms[n_known++] = ms[i];
    return timing_of(ms, n_known);
}

/* What the rank that arrives last sees; not known where any rank's is not. */
static double last_arrival(const struct grid *grid, size_t step, unsigned part)
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

static int estimate(struct job_times *job, const struct grid *grid,
                    size_t n_warm_up, struct err *err)
{
    const size_t n = job->n_steps;
    double *ms = mem_alloc(n, sizeof(*ms));
    int rc = 0;

    for (unsigned p = 0; p < N_STEP_PARTS; p++) {
        for (size_t s = 0; s < n; s++)
            ms[s] = last_arrival(grid, n_warm_up + s, p);
        job->exchanges[p] = timing_of_known(ms, n);
    }
    for (uint32_t r = 0; !rc && r < job->n_ranks; r++) {
        struct job_rank *rank = &job->ranks[r];
        bool is_known = false;

        for (unsigned p = 0; p < N_STEP_PARTS; p++) {
            for (size_t s = 0; s < n; s++)
                ms[s] = *grid_at(grid, n_warm_up + s, r, p);
            rank->parts[p] = timing_of_known(ms, n);
            is_known |= !isnan(rank->parts[p].median_ms);
        }
        for (size_t s = 0; s < n; s++)
            ms[s] = *grid_at(grid, n_warm_up + s, r, STEP_FORWARD) +
                    *grid_at(grid, n_warm_up + s, r, STEP_BACKWARD);
        rank->total = timing_of_known(ms, n);
        rank->straggles = 1;
        if (!is_known)
            rc = err_set(err, ERR_INPUT,
                         "rank %" PRIu32 " of the plan's %" PRIu32
                         " has no times after warm-up",
                         r, job->n_ranks);
    }
    mem_free(ms);
    return rc;
}

double job_measured_ms(const struct job_times *job, uint32_t r,
                       enum step_part part)
{
    return step_part_is_compute(part) ? job->ranks[r].parts[part].median_ms
                                      : job->exchanges[part].median_ms;
}

/* Measured over predicted; NAN where either is not known, or nothing. */
static double ratio_of(const struct job_times *job, const struct plan *plan,
                       uint32_t r, enum step_part part)
{
    const double predicted = plan->devices[r].parts_ms[part];

    return predicted > 0 ? job_measured_ms(job, r, part) / predicted : NAN;
}

/* The median over the ranks. */
static double typical_ratio(const struct job_times *job,
                            const struct plan *plan, enum step_part part)
{
    double *ratios = mem_alloc(job->n_ranks, sizeof(*ratios)), median;

    for (uint32_t r = 0; r < job->n_ranks; r++)
        ratios[r] = ratio_of(job, plan, r, part);
    median = timing_of_known(ratios, job->n_ranks).median_ms;
    mem_free(ratios);
    return median;
}

static void find_stragglers(struct job_times *job, const struct plan *plan)
{
    const double forward = typical_ratio(job, plan, STEP_FORWARD);
    const double backward = typical_ratio(job, plan, STEP_BACKWARD);

    for (uint32_t r = 0; job->n_ranks >= MIN_RANKS && r < job->n_ranks; r++) {
        const double x = ratio_of(job, plan, r, STEP_FORWARD) / forward;
        const double y = ratio_of(job, plan, r, STEP_BACKWARD) / backward;

        if (x >= STRAGGLES && y >= STRAGGLES && x <= ABOUT_SAME * y &&
            y <= ABOUT_SAME * x)
            job->ranks[r].straggles = sqrt(x * y);
    }
}

int job_times_init(struct job_times *job, const struct plan *plan,
                   const struct part_time *times, size_t n, size_t n_warm_up,
                   struct arena *arena, struct err *err)
{
    struct grid grid = {.n_ranks = plan->problem.cluster.n_devices};
    int rc = fill_grid(&grid, times, n, err);

    *job = (struct job_times){.n_ranks = grid.n_ranks};
    job->ranks = ARENA_NEW(arena, struct job_rank, job->n_ranks);
    if (!rc && grid.n_steps <= n_warm_up)
        rc = err_set(err, ERR_INPUT,
                     "%zu steps, of which none is left after %zu of warm-up",
                     grid.n_steps, n_warm_up);
    if (!rc) {
        job->n_steps = grid.n_steps - n_warm_up;
        rc = estimate(job, &grid, n_warm_up, err);
    }
    if (!rc && plan_has_parts(plan))
        find_stragglers(job, plan);
    mem_free(grid.steps);
    mem_free(grid.ms);
    return rc;
}

/* The sum of absolute differences that are left of all that is known where each
 * phase takes parts[p] of what was predicted, and look-ups ranks[r] of that and
 * base_ms; the differences to ms[n_ranks][N_STEP_PARTS], unless that is NULL.
 */
static double left_ms(const struct job_times *job, const struct plan *plan,
                      const double *parts, const double *ranks, double base_ms,
                      double *ms)
{
    double sum = 0;

    for (uint32_t r = 0; r < job->n_ranks; r++)
        for (unsigned p = 0; p < N_STEP_PARTS; p++) {
            const double predicted = plan->devices[r].parts_ms[p];
            const double own = step_part_is_compute(p)
                                   ? predicted * ranks[r] + base_ms
                                   : predicted;
            const double left =
                predicted > 0 ? job_measured_ms(job, r, p) - own * parts[p]
                              : NAN;

            if (ms)
                *ms++ = left;
            sum += isnan(left) ? 0 : fabs(left);
        }
    return sum;
}

size_t job_causes(struct job_cause causes[JOB_CAUSES],
                  const struct job_times *job, const struct plan *plan,
                  struct arena *arena)
{
    const size_t n_cells = (size_t)job->n_ranks * N_STEP_PARTS;
    double *ms = ARENA_NEW(arena, double, n_cells);
    double *ones = ARENA_NEW(arena, double, job->n_ranks);
    double *ranks = ARENA_NEW(arena, double, job->n_ranks);
    double *straggling = ARENA_NEW(arena, double, job->n_ranks);
    double parts[N_STEP_PARTS] = {1, 1, 1, 1, 1, 1}, all_ms, base_ms;
    size_t n = 3;

    for (uint32_t r = 0; r < job->n_ranks; r++) {
        ranks[r] = sqrt(ratio_of(job, plan, r, STEP_FORWARD) *
                        ratio_of(job, plan, r, STEP_BACKWARD));
        ranks[r] = isnan(ranks[r]) ? 1 : ranks[r];
        straggling[r] = job->ranks[r].straggles;
        ones[r] = 1;
    }
    all_ms = left_ms(job, plan, parts, ones, 0, ms);
    base_ms = timing_of_known(ms, n_cells).median_ms;
    causes[0] = (struct job_cause){
        arena_printf(arena, "a base of %+.3f ms", base_ms),
        1 - left_ms(job, plan, parts, ones, base_ms, NULL) / all_ms};
    causes[1] = (struct job_cause){
        "a factor for each rank",
        1 - left_ms(job, plan, parts, ranks, 0, NULL) / all_ms};
    causes[2] = (struct job_cause){
        "stragglers",
        1 - left_ms(job, plan, parts, straggling, 0, NULL) / all_ms};
    for (unsigned p = 0; p < N_STEP_PARTS; p++) {
        parts[p] = typical_ratio(job, plan, p);
        if (!isnan(parts[p]))
            causes[n++] = (struct job_cause){
                arena_printf(arena, "%s x %.2f", step_part_names[p], parts[p]),
                1 - left_ms(job, plan, parts, ones, 0, NULL) / all_ms};
        parts[p] = 1;
    }
    return n;
}
