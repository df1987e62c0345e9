/* SPDX-License-Identifier: MIT */
#include "cli/groups_gain.h"

#include "core/cluster.h"
#include "core/host.h"
#include "core/plan_fit.h"
#include "core/sharding_groups.h"
#include "core/target_rules.h"
#include "costmodel/models/oracle_open.h"

/* Smallest gain of groups that is worth a line. */
#define LEAST_ESTIMATED_GAIN 0.01

/* Folds and prices the plan. Returns false if the result is no plan. */
static bool fold(struct plan *out, const struct plan *plan, uint32_t count,
                 struct arena *arena)
{
    struct err ignored = {0};
    struct problem group;

    if (sharding_groups_derive(&group, &plan->problem, count, GROUPS_CONTIGUOUS,
                               arena, &ignored))
        return false;
    sharding_groups_fold(out, plan, &group, arena);
    return !oracle_price_plan(out, plan->cost.name, arena, &ignored) &&
           !plan_find_lack(out).n_gpus && out->sync.ms > 0;
}

bool plan_groups_estimate(struct groups_estimate *out, const struct plan *plan,
                          struct arena *arena)
{
    const struct cluster *cluster = &plan->problem.cluster;
    const uint32_t n_hosts = cluster->n_devices / cluster_group(cluster);
    const double one_ms = plan_step(plan).ms;
    double best_ms = (1 - LEAST_ESTIMATED_GAIN) * one_ms;

    *out = (struct groups_estimate){0};
    if (problem_n_groups(&plan->problem) > 1 || !plan_has_parts(plan) ||
        plan->problem.cluster.host_bytes ||
        !problem_target(&plan->problem)->has_groups)
        return false;
    for (uint32_t n = 2; n <= n_hosts; n++) {
        struct plan folded;
        double ms;

        if (n_hosts % n || !fold(&folded, plan, n, arena))
            continue;
        ms = plan_step(&folded).ms;
        if (ms >= best_ms)
            continue;
        best_ms = (1 - LEAST_ESTIMATED_GAIN) * ms;
        *out = (struct groups_estimate){
            n, groups_pay_from(folded.sync.ms, ms, one_ms)};
    }
    return out->count > 0;
}
