/* SPDX-License-Identifier: MIT */
#include "core/plan_error.h"

#include "core/cluster.h"

#include <math.h>
#include <string.h>

struct priced_parts plan_priced_parts(const struct plan *plan)
{
    static const bool is_exchange[N_STEP_PARTS] = {
        [STEP_INPUT] = true, [STEP_OUTPUT] = true, [STEP_GRADIENT] = true};
    struct priced_parts parts = {.total_ms = plan->total_ms,
                                 .lookup_error = plan->cost.lookup_error,
                                 .exchange_error = plan->cost.exchange_error};
    double sum_ms, scale;

    for (unsigned p = 0; p < N_STEP_PARTS; p++)
        *(is_exchange[p] ? &parts.exchange_ms : &parts.lookup_ms) +=
            plan->exposed_ms[p];
    sum_ms = parts.lookup_ms + parts.exchange_ms;
    scale = sum_ms > 0
                ? fmin(fmax(plan->total_ms - plan_dense_ms(plan), sum_ms),
                       plan->total_ms) /
                      sum_ms
                : NAN;
    parts.lookup_ms *= scale;
    parts.exchange_ms *= scale;
    return parts;
}

double plan_error_frac(const struct plan *plan)
{
    const struct priced_parts parts = plan_priced_parts(plan);
    const double lookup_ms = parts.lookup_ms * parts.lookup_error.frac;
    const double exchange_ms = parts.exchange_ms * parts.exchange_error.frac;

    /* the condition is also true if the times are NAN */
    if (!(parts.lookup_ms <= 0 || lookup_ms > 0) ||
        !(parts.exchange_ms <= 0 || exchange_ms > 0))
        return 0;
    return hypot(hypot(hypot(lookup_ms, exchange_ms),
                       dense_cost_ms(&plan->dense) * plan->dense.error_frac) /
                     plan->total_ms,
                 plan->cost.tier_error.frac);
}

void plan_print_error(const struct plan *plan, struct buf *out)
{
    double frac = plan_error_frac(plan);
    const char *part = "";

    if (!(frac > 0)) {
        const struct priced_parts parts = plan_priced_parts(plan);

        frac = parts.lookup_ms * parts.lookup_error.frac / plan->total_ms;
        part = " of look-ups alone";
    }
    if (frac > 0)
        buf_printf(out, frac < 0.01 ? " +-%.1g %%%s" : " +-%.0f %%%s",
                   100 * frac, part);
}

double plan_shared_ms(const struct plan *plan)
{
    const struct wire *wire = &plan->cost.wire;
    const struct sharding_groups *groups = &plan->problem.groups;
    const struct cluster *cluster = &plan->problem.cluster;

    if (!wire->assumes_inter || !(wire->inter_gbps > 0) ||
        !plan_has_parts(plan))
        return 0;
    /* the sync of groups in a host is all that crosses hosts */
    if (groups->count > 1 && groups->sync_every &&
        cluster_group(cluster) >= cluster->n_devices)
        return (SHARED_NETWORK_TIMES - 1) * plan->sync.ms /
               (double)groups->sync_every;
    return (SHARED_NETWORK_TIMES - 1) * plan_priced_parts(plan).exchange_ms;
}

/* Returns the error of a ratio of two lookup times; 0 if unknown. */
static double ratio_frac(const struct cost_error *error)
{
    return RATIO_ERROR_SHARE * error->frac;
}

double priced_ratio_error(const struct priced_parts *one,
                          const struct priced_parts *ours)
{
    const double lookup_ms =
        fmax(one->lookup_ms * ratio_frac(&one->lookup_error),
             ours->lookup_ms * ratio_frac(&ours->lookup_error));
    const double more_ms = fabs(one->exchange_ms - ours->exchange_ms);
    const double exchange_ms = more_ms * ours->exchange_error.frac;

    return lookup_ms > 0 && (exchange_ms > 0 || more_ms <= 0)
               ? hypot(lookup_ms, exchange_ms) / ours->total_ms *
                     fmin(one->total_ms / ours->total_ms, 1)
               : NAN;
}
