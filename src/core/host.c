/* SPDX-License-Identifier: MIT */
#include "core/host.h"

#include "core/torchrec_type.h"

#include <math.h>
#include <string.h>

/* Time of the host for one kind of sharding, and for each further kind. */
static const struct time_range of_first_kind = {2, 1.6, 2.4};
static const struct time_range of_further_kind = {0.5, 0.26, 0.81};
/* Number of tables up to which the measured jobs go; largest time per table
 * above this number. */
#define MEASURED_TABLES 55
#define MOST_MS_PER_TABLE 0.031

unsigned plan_n_kinds(const struct plan *plan)
{
    unsigned pooled = 0, sequences = 0;

    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        unsigned *types =
            plan->problem.tables[shard->table].output == OUTPUT_SEQUENCE
                ? &sequences
                : &pooled;

        if (i && shard->table == shard[-1].table)
            continue;
        *types |= 1u << shard_torchrec_type(&plan->problem, shard);
    }
    if (pooled & 1u << TORCHREC_COLUMN_WISE)
        pooled &= ~(1u << TORCHREC_TABLE_WISE);
    return (unsigned)(__builtin_popcount(pooled) +
                      __builtin_popcount(sequences)) +
           plan->problem.cluster.n_other_kinds;
}

struct time_range host_time(const struct problem *problem,
                            enum host_basis basis, unsigned n_kinds)
{
    const struct job *job = &problem->job;
    const double further = n_kinds > 1 ? n_kinds - 1 : 0;
    const double more_tables = (double)problem->n_tables -
                               fmin((double)problem->n_tables, MEASURED_TABLES);

    if (job->asks_host)
        return (struct time_range){job->host_ms, job->host_ms, job->host_ms};
    if (basis == HOST_NONE)
        return (struct time_range){0};
    return (struct time_range){
        .ms = of_first_kind.ms + further * of_further_kind.ms,
        .least_ms = of_first_kind.least_ms + further * of_further_kind.least_ms,
        .most_ms = of_first_kind.most_ms + further * of_further_kind.most_ms +
                   more_tables * MOST_MS_PER_TABLE};
}

struct time_range plan_host(const struct plan *plan)
{
    if (!plan_has_parts(plan))
        return (struct time_range){0};
    return host_time(&plan->problem, plan->cost.host, plan_n_kinds(plan));
}

double step_with_host_ms(double total_ms, double host_ms)
{
    return sqrt(total_ms * total_ms + host_ms * host_ms);
}

struct time_range plan_step(const struct plan *plan)
{
    const struct time_range host = plan_host(plan);
    const double times = 1 + plan_error_frac(plan);

    return (struct time_range){
        .ms = step_with_host_ms(plan->total_ms, host.ms),
        .least_ms = step_with_host_ms(plan->total_ms / times, host.least_ms),
        .most_ms = step_with_host_ms(
            (plan->total_ms + plan_shared_ms(plan)) * times, host.most_ms)};
}

bool plan_waits_for_host(const struct plan *plan)
{
    return plan_host(plan).ms > plan->total_ms;
}

struct step_parts plan_step_parts(const struct plan *plan)
{
    const struct time_range host = plan_host(plan);

    return (struct step_parts){
        .cost = plan->cost.name,
        .priced = plan_priced_parts(plan),
        .error_frac = plan_error_frac(plan),
        .host_ms = host.ms,
        .host_error_frac =
            host.ms > 0 ? (host.most_ms - host.least_ms) / 2 / host.ms : 0,
    };
}

/* Returns the share of the errors of the GPU work that the step has. */
static double work_share(const struct step_parts *parts)
{
    const double work_ms = parts->priced.total_ms;

    return work_ms * work_ms /
           (work_ms * work_ms + parts->host_ms * parts->host_ms);
}

double step_ratio_error(const struct step_parts *one,
                        const struct step_parts *ours)
{
    const double share = work_share(one), our_share = work_share(ours);
    const double work_ms = one->priced.total_ms;
    const double our_work_ms = ours->priced.total_ms;
    const double host =
        (share - our_share) * fmax(one->host_error_frac, ours->host_error_frac);
    double work = NAN;

    if (!strcmp(one->cost, ours->cost))
        work = fmax(share, our_share) *
               priced_ratio_error(&one->priced, &ours->priced) /
               (work_ms / our_work_ms);
    else if (one->error_frac > 0 && ours->error_frac > 0)
        work = hypot(share * one->error_frac, our_share * ours->error_frac);
    return hypot(work, host);
}
