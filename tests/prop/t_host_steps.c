/* SPDX-License-Identifier: MIT */
/* Compares the host model (core/host.h) with the measured steps to which it is
 * fitted, and its error with that in the manual pages. */
#include "tests/tap.h"

#include "tests/host_steps.h"

static void test_host(const struct host_jobs *jobs, struct arena *arena)
{
    const struct problem problem = {0};
    const struct time_range host = host_time(&problem, HOST_MEASURED, 1);
    double *x = ARENA_NEW(arena, double, jobs->n);
    const size_t n = host_times(x, jobs, NULL);

    is_i64((long)n, 150, "jobs with less than 1 ms of GPU work");
    is_near(host.ms, stats_median(x, n), 0.02, "the host's time is the median");
    is_near(host.least_ms, stats_quantile(x, n, 0.1), 0.06,
            "eight of ten begin here");
    is_near(host.most_ms, stats_quantile(x, n, 0.9), 0.06, "and end here");
}

static void test_further_kinds(struct arena *arena)
{
    const struct problem problem = {0};
    const struct time_range one = host_time(&problem, HOST_MEASURED, 1);
    const struct time_range two = host_time(&problem, HOST_MEASURED, 2);
    double *h100, *h200;
    const size_t n_h100 = host_further(&h100, "h100", arena);
    const size_t n_h200 = host_further(&h200, "h200", arena);

    is_near(two.ms - one.ms, stats_median(h100, n_h100), 0.03,
            "a further kind, on an H100");
    is_near(two.ms - one.ms, stats_median(h200, n_h200), 0.03,
            "a further kind, on an H200");
    is_near(two.least_ms - one.least_ms, stats_quantile(h100, n_h100, 0.1),
            0.02, "the range begins at a tenth of the H100's sets");
    is_near(two.most_ms - one.most_ms, stats_quantile(h100, n_h100, 0.9), 0.02,
            "and ends at nine tenths");
    ok(stats_quantile(h200, n_h200, 0.1) > two.least_ms - one.least_ms &&
           stats_quantile(h200, n_h200, 0.9) < two.most_ms - one.most_ms,
       "the range holds eight of ten sets of the H200");
}

static double larger(double gpu_ms, double host_ms)
{
    return fmax(gpu_ms, host_ms);
}

static void test_errors(const struct host_jobs *jobs, struct arena *arena)
{
    const struct host_error root =
        host_error(jobs, step_with_host_ms, NULL, 0, HOST_SHORT_STEP_MS, arena);
    const struct host_error most =
        host_error(jobs, larger, NULL, 0, HOST_SHORT_STEP_MS, arena);

    is_i64((long)root.n, 246, "steps below 4 ms");
    ok(root.median <= 0.08 && root.mean <= 0.11,
       "lists left out: median error %.4f, mean error %.4f", root.median,
       root.mean);
    ok(most.median > 0.1 && most.mean > 0.13,
       "the larger of the two errs more: %.4f, %.4f", most.median, most.mean);
}

int main(void)
{
    struct arena arena = {0};
    const struct host_jobs jobs = host_jobs_read(&arena);

    test_host(&jobs, &arena);
    test_further_kinds(&arena);
    test_errors(&jobs, &arena);
    arena_release(&arena);
    return tap_done();
}
