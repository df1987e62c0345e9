/* SPDX-License-Identifier: MIT */
#include "costmodel/formulas/comm_curve.h"

#include <stddef.h>

const char *const comm_form_names[] = {
    [COMM_PORT] = "port", [COMM_TOTAL] = "total", NULL};

double comm_rules_bytes(struct comm_rules rules,
                        const struct comm_sample *sample)
{
    const double hosts = sample->n_hosts > 1 ? sample->n_hosts : 1;
    const double near = hosts > 1 ? 1 / hosts : 1.0 / sample->n_ranks;

    if (rules.form == COMM_TOTAL && hosts == 1)
        return (double)sample->total_bytes;
    if (rules.shares_port && sample->host_bytes)
        return (double)sample->host_bytes * hosts / sample->n_ranks;
    return (double)sample->max_bytes * (1 - near);
}

struct comm_curve comm_line(double alpha_us, double gbps)
{
    return (struct comm_curve){.n_knots = 2,
                               .bytes = {0, gbps * 1e9},
                               .us = {alpha_us, alpha_us + COMM_LINE_US}};
}

double comm_curve_gbps(const struct comm_curve *curve)
{
    uint32_t last = curve->n_knots - 1;

    return 1e-3 * (curve->bytes[last] - curve->bytes[last - 1]) /
           (curve->us[last] - curve->us[last - 1]);
}
