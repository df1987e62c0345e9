/* SPDX-License-Identifier: MIT */
#include "costmodel/comm_report.h"

#include "base/figures.h"
#include "costmodel/comm_fit.h"

#include <inttypes.h>
#include <stdio.h>

struct row {
    const char *name;
    struct comm_errors errors;
};
#define ROW(member) MEMBER_OF(struct row, member)
static const struct figure columns[] = {
    {NULL, "held-out exchanges", -28, 0, FIGURE_PLAIN, ROW(name)},
    {NULL, "n", 8, 0, FIGURE_PLAIN, ROW(errors.n)},
    {NULL, "median %", 9, 2, FIGURE_PERCENT, ROW(errors.median_frac)},
    {NULL, "p90 %", 7, 2, FIGURE_PERCENT, ROW(errors.p90_frac)},
    {NULL, "uneven, median", 14, 2, FIGURE_PERCENT,
     ROW(errors.uneven_median_frac)},
    {NULL, "p90 %", 7, 2, FIGURE_PERCENT, ROW(errors.uneven_p90_frac)},
    {0},
};

void comm_report_print(const struct comm_sample *samples, size_t n,
                       struct buf *out)
{
    if (n)
        figures_heading(columns, out);
    for (size_t i = 0; i < n; i++) {
        const struct comm_sample *like = &samples[i];
        char name[64];
        struct row row = {.name = name};

        if (!comm_fit_is_new_group(samples, i))
            continue;
        comm_fit_validate(&row.errors, samples, n, like);
        snprintf(name, sizeof(name),
                 "%s, %" PRIu32 " ranks, %" PRIu32 " host%s", like->kind,
                 like->n_ranks, like->n_hosts, like->n_hosts == 1 ? "" : "s");
        figures_row(columns, &row, out);
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
