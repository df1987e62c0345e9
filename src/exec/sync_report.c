/* SPDX-License-Identifier: MIT */
#include "exec/sync_report.h"

#include "base/text.h"
#include "core/sharding_groups.h"

#include <math.h>

void sync_report_groups(const struct plan *plan, struct buf *out)
{
    const uint32_t n = problem_n_groups(&plan->problem);

    if (n > 1)
        buf_printf(out, " in %u %s groups", n,
                   groups_layout_names[plan->problem.groups.layout]);
}

/* Returns the predicted time of a sync; NAN if there is none. */
static double predicted_ms(const struct sync_report *report)
{
    return plan_is_priced(report->plan) && report->plan->sync.ms > 0
               ? report->plan->sync.ms
               : NAN;
}

/* Returns the bytes that the fullest GPU sends in a sync by the plan: an
 * all-reduce over n groups sends 2 (n - 1) / n of the averaged bytes. */
static uint64_t planned_bytes(const struct sync_report *report)
{
    const double n = problem_n_groups(&report->plan->problem);

    return (uint64_t)(2 * (n - 1) * plan_sync_bytes(report->plan) / n + 0.5);
}

static uint64_t counted_bytes(const struct sync_report *report)
{
    return (uint64_t)(report->result->sent_bytes + 0.5);
}

static void print_time(const struct sync_report *report, struct buf *out)
{
    const struct sync_result *result = report->result;

    buf_printf(out, "sync of the groups");
    if (report->sync_every)
        buf_printf(out, " every %s steps", TEXT_COUNT(report->sync_every));
    if (result->n)
        buf_printf(out, ": %.3f ms measured (p10 %.3f, p90 %.3f, %u %s)",
                   result->time.median_ms, result->time.p10_ms,
                   result->time.p90_ms, result->n,
                   result->n == 1 ? "sync" : "syncs");
    else
        buf_printf(out, ": not measured");
    if (!isnan(predicted_ms(report)))
        buf_printf(out, ", %.3f ms predicted", predicted_ms(report));
    buf_printf(out, "\n");
}

void sync_report_print(const struct sync_report *report, struct buf *out)
{
    if (problem_n_groups(&report->plan->problem) == 1)
        return;
    print_time(report, out);
    if (report->result->sent_bytes > 0)
        buf_printf(out,
                   "bytes that the fullest GPU sends in a sync: %s counted, %s "
                   "planned%s\n",
                   TEXT_COUNT(counted_bytes(report)),
                   TEXT_COUNT(planned_bytes(report)),
                   report->scale_rows < 1 ? " for all rows" : "");
}

json_t *sync_report_to_json(const struct sync_report *report)
{
    const struct problem *problem = &report->plan->problem;
    const struct sync_result *result = report->result;

    if (problem_n_groups(problem) == 1)
        return NULL;
    return json_pack(
        "{s:i, s:s, s:o, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "count",
        problem->groups.count, "layout",
        groups_layout_names[problem->groups.layout], "sync_every",
        report->sync_every ? json_whole(report->sync_every) : json_null(),
        "timed_syncs", result->n, "median_ms",
        result->n ? json_real(result->time.median_ms) : json_null(), "p10_ms",
        result->n ? json_real(result->time.p10_ms) : json_null(), "p90_ms",
        result->n ? json_real(result->time.p90_ms) : json_null(),
        "predicted_ms", json_real_or_null(predicted_ms(report)), "sent_bytes",
        result->sent_bytes > 0 ? json_whole(counted_bytes(report))
                               : json_null(),
        "planned_bytes", json_whole(planned_bytes(report)));
}
