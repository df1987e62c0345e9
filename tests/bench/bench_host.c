/* SPDX-License-Identifier: MIT */
/*
 * Compares the host model (core/host.h) with measured steps of TorchRec jobs on
 * one H100 (tests/host_steps.h). The host's time is fitted to the jobs of the
 * other lists of tables, for each list.
 *
 *     bench_host
 */
#include "tests/host_steps.h"

static double larger(double gpu_ms, double host_ms)
{
    return fmax(gpu_ms, host_ms);
}

static double gpu_alone(double gpu_ms, double host_ms)
{
    (void)host_ms;
    return gpu_ms;
}

static void print_error(const struct host_error *error)
{
    printf("%5zu %8.1f %8.1f %+8.1f\n", error->n, 100 * error->median,
           100 * error->mean, 100 * error->bias);
}

static void print_lists(const struct host_jobs *jobs, struct arena *arena)
{
    printf("\nsteps below %d ms, each list predicted from the others\n"
           "%-32s %8s %5s %8s %8s %8s\n",
           HOST_SHORT_STEP_MS, "list", "host ms", "steps", "median %", "mean %",
           "sign %");
    for (size_t i = 0; i < jobs->n; i++) {
        const char *list = jobs->all[i].list;
        struct host_error error;
        size_t first = 0;

        while (strcmp(jobs->all[first].list, list) != 0)
            first++;
        if (first < i)
            continue;
        error = host_error(jobs, step_with_host_ms, list, 0, HOST_SHORT_STEP_MS,
                           arena);
        printf("%-32s %8.3f ", list, host_fitted(jobs, list, arena));
        print_error(&error);
    }
}

static void print_joins(const struct host_jobs *jobs, struct arena *arena)
{
    static const struct {
        const char *name;
        host_join *join;
    } joins[] = {{"GPU work alone", gpu_alone},
                 {"larger of the two", larger},
                 {"root of squares", step_with_host_ms}};
    static const double lengths[][2] = {{0, 2},        {2, 4}, {4, 8},
                                        {8, INFINITY}, {0, 4}, {0, INFINITY}};

    printf("\nhow GPU work and host are joined\n%-18s %12s %5s %8s %8s %8s\n",
           "join", "step, ms", "steps", "median %", "mean %", "sign %");
    for (size_t k = 0; k < sizeof(lengths) / sizeof(*lengths); k++)
        for (size_t j = 0; j < sizeof(joins) / sizeof(*joins); j++) {
            const struct host_error error = host_error(
                jobs, joins[j].join, NULL, lengths[k][0], lengths[k][1], arena);

            printf("%-18s %4g to %-4g ", joins[j].name, lengths[k][0],
                   lengths[k][1]);
            print_error(&error);
        }
}

/* Jobs with the same tables and batch: how far one step is from another. No
 * model of the tables can err less. */
static void print_repeats(const struct host_jobs *jobs, struct arena *arena)
{
    double *apart = ARENA_NEW(arena, double, jobs->n);
    size_t n = 0;

    for (size_t i = 0; i < jobs->n; i++)
        for (size_t k = 0; k < i; k++) {
            const struct host_job *a = &jobs->all[i], *b = &jobs->all[k];

            if (a->gpu_ms == b->gpu_ms && a->gpu_ms < HOST_SHORT_MS &&
                !strcmp(a->list, b->list) && n < jobs->n)
                apart[n++] = fabs(log(a->step_ms / b->step_ms));
        }
    printf("\n%zu pairs of equal jobs with less than %d ms of GPU work: steps "
           "differ by %.1f %% in the median, %.1f %% in the mean\n",
           n, HOST_SHORT_MS, 100 * (exp(stats_median(apart, n)) - 1),
           100 * (exp(stats_mean(apart, n)) - 1));
}

static void print_host(const struct host_jobs *jobs, struct arena *arena)
{
    const struct problem problem = {0};
    const struct time_range one = host_time(&problem, HOST_MEASURED, 1);
    const struct time_range two = host_time(&problem, HOST_MEASURED, 2);
    double *x = ARENA_NEW(arena, double, jobs->n);
    const size_t n = host_times(x, jobs, NULL);
    const double median = stats_median(x, n);

    printf("host: %.2f ms, %.1f to %.1f. %zu jobs with less than %d ms of GPU "
           "work: median %.3f ms, eight of ten %.2f to %.2f\n",
           one.ms, one.least_ms, one.most_ms, n, HOST_SHORT_MS, median,
           stats_quantile(x, n, 0.1), stats_quantile(x, n, 0.9));
    printf("further kind of sharding: %.2f ms, %.2f to %.2f\n", two.ms - one.ms,
           two.least_ms - one.least_ms, two.most_ms - one.most_ms);
    for (size_t g = 0; g < 2; g++) {
        const char *gpu = g ? "h200" : "h100";
        double *further;
        const size_t n_sets = host_further(&further, gpu, arena);

        printf("    %s, %zu sets: median %.2f ms, eight of ten %.2f to %.2f\n",
               gpu, n_sets, stats_median(further, n_sets),
               stats_quantile(further, n_sets, 0.1),
               stats_quantile(further, n_sets, 0.9));
    }
}

/* Lookups of jobs that keep the GPU busy. */
static void print_lookups(const struct host_jobs *jobs, struct arena *arena)
{
    double *forward = ARENA_NEW(arena, double, jobs->n);
    double *backward = ARENA_NEW(arena, double, jobs->n);
    size_t n = 0;

    for (size_t i = 0; i < jobs->n; i++) {
        const struct host_job *job = &jobs->all[i];

        if (job->gpu_ms <= HOST_SHORT_STEP_MS)
            continue;
        forward[n] = job->forward_ms[0] / job->forward_ms[1];
        backward[n++] = job->backward_ms[0] / job->backward_ms[1];
    }
    printf("\n%zu jobs with more than %d ms of GPU work: predicted / measured "
           "forward %.3f, backward %.3f in the median\n",
           n, HOST_SHORT_STEP_MS, stats_median(forward, n),
           stats_median(backward, n));
}

/* Prints how well steps are ordered: the steps of all jobs, and of the jobs
 * with more GPU work than host. */
static void print_order(const struct host_jobs *jobs, struct arena *arena)
{
    const double host_ms = host_fitted(jobs, NULL, arena);
    double *predicted = ARENA_NEW(arena, double, jobs->n);
    double *measured = ARENA_NEW(arena, double, jobs->n);
    double all;
    size_t n = 0;

    for (size_t i = 0; i < jobs->n; i++) {
        predicted[i] = jobs->all[i].gpu_ms;
        measured[i] = jobs->all[i].step_ms;
    }
    all = stats_kendall_tau(measured, predicted, jobs->n);
    for (size_t i = 0; i < jobs->n; i++)
        if (jobs->all[i].gpu_ms > host_ms) {
            predicted[n] = jobs->all[i].gpu_ms;
            measured[n++] = jobs->all[i].step_ms;
        }
    printf("Kendall's tau of predicted and measured steps: %.2f; of the %zu "
           "with more GPU work than host: %.2f\n",
           all, n, stats_kendall_tau(measured, predicted, n));
}

int main(void)
{
    struct arena arena = {0};
    const struct host_jobs jobs = host_jobs_read(&arena);

    print_host(&jobs, &arena);
    print_lists(&jobs, &arena);
    print_joins(&jobs, &arena);
    print_repeats(&jobs, &arena);
    print_lookups(&jobs, &arena);
    print_order(&jobs, &arena);
    arena_release(&arena);
    return 0;
}
