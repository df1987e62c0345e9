/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_HOST_STEPS_H
#define NEUROSHARD_TESTS_HOST_STEPS_H

/*
 * Compares the host model (core/host.h) with the steps of TorchRec jobs on one
 * H100 (data/measurements/torchrec-nvidia-h100-steps.csv). The shipped model of
 * the H100 predicts the GPU work of a job. Include in one file only.
 */

#include "core/host.h"
#include "core/plan_price.h"
#include "costmodel/models/oracle_open.h"
#include "io/tables_io.h"
#include "tests/anchors.h"

/* Most GPU work of the jobs to which the host's time is fitted: their host
 * determines the step. Longest step of the errors that are asserted. */
#define HOST_SHORT_MS 1
#define HOST_SHORT_STEP_MS 4

struct host_job {
    const char *list;
    double gpu_ms; /* predicted */
    double step_ms;
    /* lookups; [0] predicted, [1] measured */
    double forward_ms[2], backward_ms[2];
};
struct host_jobs {
    struct host_job *all;
    size_t n;
};

/* Joins GPU work and the time of the host to a step. */
typedef double host_join(double gpu_ms, double host_ms);

/* Columns of the file of steps. */
enum {
    HOST_LIST,
    HOST_BATCH = 2,
    HOST_FORWARD = 7,
    HOST_BACKWARD,
    HOST_STEP = 12,
    HOST_DIVISOR = 14,
    HOST_TABLES
};

/* Fills the table of a job from the table of its list. Only these members were
 * used; a list without skew stood for equal rows. */
static void host_table(struct table *table, const struct table *from,
                       uint64_t divisor, bool is_zipf)
{
    table_init(table);
    table->name = from->name;
    table->num_embeddings = from->num_embeddings / divisor;
    if (table->num_embeddings < 4)
        table->num_embeddings = 4;
    table->dim = from->dim;
    table->pooling_factor = fmax(1, rint(from->pooling_factor));
    if (!is_zipf)
        table->zipf_alpha = from->skew_assumed ? 0 : from->zipf_alpha;
}

static void host_price(struct host_job *job, char **field,
                       const struct table_list *list, struct arena *arena)
{
    struct plan plan = {0};
    struct err err = {0};
    const char *next = field[HOST_TABLES];
    uint32_t n = 0;

    anchor_problem(&plan.problem, (uint32_t)list->n_tables, 1, arena);
    while (*next) {
        char *end;
        const size_t t = strtoul(next, &end, 10);

        host_table(&plan.problem.tables[n++], &list->tables[t],
                   strtoull(field[HOST_DIVISOR], NULL, 10), *end == 'z');
        end += *end == 'z';
        next = end + (*end == ' ');
    }
    plan.problem.n_tables = n;
    plan.problem.batch = strtoull(field[HOST_BATCH], NULL, 10);
    plan.problem.job.pipeline = PIPELINE_NONE;
    plan.n_shards = n;
    plan.shards = ARENA_NEW(arena, struct shard, n);
    for (uint32_t t = 0; t < n; t++)
        plan.shards[t] = shard_whole(&plan.problem, t, 0);
    if (oracle_price_plan(&plan, "model:h100", arena, &err))
        anchor_bail(err.msg);
    job->gpu_ms = plan.total_ms;
    job->forward_ms[0] = plan.devices[0].parts_ms[STEP_FORWARD];
    job->backward_ms[0] = plan.devices[0].parts_ms[STEP_BACKWARD];
}

/* Reads all jobs and predicts their GPU work. They live in the arena. */
static struct host_jobs host_jobs_read(struct arena *arena)
{
    const struct tables_options options = {0};
    char *(*fields)[ANCHOR_COLUMNS];
    struct host_jobs jobs = {
        .n = anchor_records(
            &fields, "measurements/torchrec-nvidia-h100-steps.csv", arena)};

    jobs.all = ARENA_NEW(arena, struct host_job, jobs.n);
    for (size_t i = 0; i < jobs.n; i++) {
        char **field = fields[i];
        struct arena_mark mark = arena_mark(arena);
        struct host_job *job = &jobs.all[i];
        struct table_list list;
        struct err err = {0};

        if (tables_load(&list,
                        anchor_data(arena_printf(arena, "tables/%s.csv",
                                                 field[HOST_LIST]),
                                    arena),
                        &options, arena, &err))
            anchor_bail(err.msg);
        job->list = field[HOST_LIST];
        job->step_ms = strtod(field[HOST_STEP], NULL);
        job->forward_ms[1] = strtod(field[HOST_FORWARD], NULL);
        job->backward_ms[1] = strtod(field[HOST_BACKWARD], NULL);
        host_price(job, field, &list, arena);
        arena_rewind(arena, mark);
    }
    return jobs;
}

/* Returns the number of jobs with less than HOST_SHORT_MS of GPU work, and
 * fills x[n] with their host times in ms, if the step is the root of the sum of
 * squares. Skips the jobs of one list, unless left_out is NULL. */
static size_t host_times(double *x, const struct host_jobs *jobs,
                         const char *left_out)
{
    size_t n = 0;

    for (size_t i = 0; i < jobs->n; i++) {
        const struct host_job *job = &jobs->all[i];

        if (job->gpu_ms < HOST_SHORT_MS &&
            (!left_out || strcmp(job->list, left_out) != 0))
            x[n++] = sqrt(fmax(0, job->step_ms * job->step_ms -
                                      job->gpu_ms * job->gpu_ms));
    }
    return n;
}

/* Returns the host's time in ms that fits the jobs of the other lists. */
static double host_fitted(const struct host_jobs *jobs, const char *left_out,
                          struct arena *arena)
{
    struct arena_mark mark = arena_mark(arena);
    double *x = ARENA_NEW(arena, double, jobs->n);
    const size_t n = host_times(x, jobs, left_out);
    const double ms = stats_median(x, n);

    arena_rewind(arena, mark);
    return ms;
}

/* Fills errors[n] with predicted / measured - 1 of each step of at least
 * least_ms and less than most_ms, and returns n. If list is not NULL, takes the
 * jobs of this list only. Each list is predicted from the others. */
static size_t host_errors(double *errors, const struct host_jobs *jobs,
                          host_join *join, const char *list, double least_ms,
                          double most_ms, struct arena *arena)
{
    size_t n = 0;

    for (size_t i = 0; i < jobs->n; i++) {
        const struct host_job *job = &jobs->all[i];

        if (job->step_ms >= least_ms && job->step_ms < most_ms &&
            (!list || !strcmp(job->list, list)))
            errors[n++] =
                join(job->gpu_ms, host_fitted(jobs, job->list, arena)) /
                    job->step_ms -
                1;
    }
    return n;
}

/* Median and mean of the absolute errors, as fractions. */
struct host_error {
    size_t n;
    double median, mean, bias; /* bias: median of the signed errors */
};
static struct host_error host_error(const struct host_jobs *jobs,
                                    host_join *join, const char *list,
                                    double least_ms, double most_ms,
                                    struct arena *arena)
{
    struct arena_mark mark = arena_mark(arena);
    double *errors = ARENA_NEW(arena, double, jobs->n);
    struct host_error error = {
        .n = host_errors(errors, jobs, join, list, least_ms, most_ms, arena)};

    error.bias = stats_median(errors, error.n);
    for (size_t i = 0; i < error.n; i++)
        errors[i] = fabs(errors[i]);
    error.median = stats_median(errors, error.n);
    error.mean = stats_mean(errors, error.n);
    arena_rewind(arena, mark);
    return error;
}

/* Allocates and fills (*x)[n] with the host's further time in ms for lookups in
 * two groups instead of one, and returns n. `gpu` is h100 or h200. Only
 * FBGEMM's operations were timed. */
static size_t host_further(double **x, const char *gpu, struct arena *arena)
{
    /* columns of the forward; the backward's are next to them */
    enum { ONE_GROUP = 17, TWO_GROUPS = 23 };
    char *(*fields)[ANCHOR_COLUMNS];
    const size_t n = anchor_records(
        &fields,
        arena_printf(arena, "measurements/fbgemm-nvidia-%s-groups.csv", gpu),
        arena);

    *x = ARENA_NEW(arena, double, n);
    for (size_t i = 0; i < n; i++)
        (*x)[i] = strtod(fields[i][TWO_GROUPS], NULL) +
                  strtod(fields[i][TWO_GROUPS + 1], NULL) -
                  strtod(fields[i][ONE_GROUP], NULL) -
                  strtod(fields[i][ONE_GROUP + 1], NULL);
    return n;
}

#endif
