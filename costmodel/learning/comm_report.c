/* SPDX-License-Identifier: MIT */
#include "costmodel/learning/comm_report.h"

#include "base/figures.h"
#include "costmodel/learning/comm_fit.h"

#include <inttypes.h>
#include <stdio.h>

/* Errors of fitted curves on the exchanges of one kind, one number of ranks and
 * one number of hosts. */
struct exchange_errors {
    const char *name;
    struct comm_errors errors;
};
#define EXCHANGES(member) MEMBER_OF(struct exchange_errors, member)
static const struct figure exchange_figures[] = {
    {NULL, "held-out exchanges", -28, 0, FIGURE_PLAIN, EXCHANGES(name)},
    {NULL, "n", 8, 0, FIGURE_PLAIN, EXCHANGES(errors.n)},
    {NULL, "median %", 9, 2, FIGURE_PERCENT, EXCHANGES(errors.median_frac)},
    {NULL, "p90 %", 7, 2, FIGURE_PERCENT, EXCHANGES(errors.p90_frac)},
    {NULL, "uneven, median", 14, 2, FIGURE_PERCENT,
     EXCHANGES(errors.uneven_median_frac)},
    {NULL, "p90 %", 7, 2, FIGURE_PERCENT, EXCHANGES(errors.uneven_p90_frac)},
    {0},
};

void comm_report_print(const struct comm_sample *samples, size_t n,
                       struct buf *out)
{
    if (n)
        figures_heading(exchange_figures, out);
    for (size_t i = 0; i < n; i++) {
        const struct comm_sample *like = &samples[i];
        char name[64];
        struct exchange_errors row = {.name = name};

        if (!comm_fit_is_new_group(samples, i))
            continue;
        comm_fit_validate(&row.errors, samples, n, like);
        snprintf(name, sizeof(name),
                 "%s, %" PRIu32 " ranks, %" PRIu32 " host%s", like->kind,
                 like->n_ranks, like->n_hosts, like->n_hosts == 1 ? "" : "s");
        figures_row(exchange_figures, &row, out);
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
