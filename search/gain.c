/* SPDX-License-Identifier: MIT */
#include "search/gain.h"

#include <math.h>

static double step_of(const struct step_parts *plan)
{
    return step_with_host_ms(plan->priced.total_ms, plan->host_ms);
}

double gain_beyond(const struct step_parts *simple,
                   const struct step_parts *other, const struct gain_rule *rule)
{
    const double total_ms = other->priced.total_ms, error = rule->error_frac;
    const double work_ratio = simple->priced.total_ms / total_ms;
    const double step_ratio = step_of(simple) / step_of(other);
    double beyond;

    if (rule->knows_dense)
        beyond = step_ratio - 1 - error * pow(total_ms / step_of(other), 2);
    else if (rule->changes_training)
        beyond = fmax(simple->priced.total_ms, simple->host_ms) /
                     fmax(total_ms, other->host_ms) -
                 1 - error;
    else
        beyond = sqrt(work_ratio * step_ratio) - 1; /* the mean of both */
    return fmin(work_ratio - 1 - error, beyond);
}
