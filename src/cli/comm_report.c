/* SPDX-License-Identifier: MIT */
#include "cli/comm_report.h"

#include "costmodel/comm_fit.h"

#include <inttypes.h>
#include <stdio.h>

void comm_report_print(const struct comm_sample *samples, size_t n,
                       struct buf *out)
{
    if (n)
        buf_printf(out, "%-28s %8s %9s %7s %14s %7s\n", "held-out exchanges",
                   "n", "median %", "p90 %", "uneven, median", "p90 %");
    for (size_t i = 0; i < n; i++) {
        const struct comm_sample *like = &samples[i];
        struct comm_errors errors;
        char name[64];

        if (!comm_fit_is_new_group(samples, i))
            continue;
        comm_fit_validate(&errors, samples, n, like);
        snprintf(name, sizeof(name),
                 "%s, %" PRIu32 " ranks, %" PRIu32 " host%s", like->kind,
                 like->n_ranks, like->n_hosts, like->n_hosts == 1 ? "" : "s");
        if (errors.n && errors.n_uneven)
            buf_printf(out, "%-28s %8zu %9.2f %7.2f %14.2f %7.2f\n", name,
                       errors.n, 100 * errors.median_frac,
                       100 * errors.p90_frac, 100 * errors.uneven_median_frac,
                       100 * errors.uneven_p90_frac);
        else
            buf_printf(out, "%-28s %8d %9s %7s %14s %7s\n", name, 0, "-", "-",
                       "-", "-");
    }
}

json_t *comm_report_to_json(const struct comm_sample *samples, size_t n)
{
    json_t *groups = json_array();

    for (size_t i = 0; i < n; i++) {
        const struct comm_sample *like = &samples[i];
        struct comm_errors errors;
        json_t *group;

        if (!comm_fit_is_new_group(samples, i))
            continue;
        comm_fit_validate(&errors, samples, n, like);
        group = json_pack("{s:s, s:I, s:I, s:I}", "kind", like->kind, "ranks",
                          (json_int_t)like->n_ranks, "hosts",
                          (json_int_t)like->n_hosts, "n", (json_int_t)errors.n);
        if (errors.n)
            json_object_update_new(group,
                                   json_pack("{s:f, s:f}", "median_frac",
                                             errors.median_frac, "p90_frac",
                                             errors.p90_frac));
        if (errors.n_uneven)
            json_object_update_new(
                group,
                json_pack("{s:I, s:f, s:f}", "n_uneven",
                          (json_int_t)errors.n_uneven, "uneven_median_frac",
                          errors.uneven_median_frac, "uneven_p90_frac",
                          errors.uneven_p90_frac));
        json_array_append_new(groups, group);
    }
    return groups;
}
