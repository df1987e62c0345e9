/* SPDX-License-Identifier: MIT */
#include "emit/groups_line.h"

#include "base/text.h"

#include <inttypes.h>
#include <math.h>

uint64_t groups_pay_from(double sync_ms, double step_ms, double one_ms)
{
    const double gain_ms = one_ms - step_ms;

    if (!(gain_ms > 0) || !(sync_ms / gain_ms < GROUPS_MAX_SYNC_EVERY))
        return 0;
    return (uint64_t)floor(sync_ms / gain_ms) + 1;
}

/* Rounds up to two digits. */
static uint64_t round_up(uint64_t n)
{
    uint64_t unit = 1;

    while (n / unit >= 100)
        unit *= 10;
    return (n + unit - 1) / unit * unit;
}

void emit_groups_training(uint32_t count, struct buf *out)
{
    buf_printf(out, "training changes: each group learns from ");
    if (count == 2)
        buf_printf(out, "half the batch between syncs");
    else
        buf_printf(out, "1/%u of the batch between syncs", count);
}

void emit_groups_estimate(const struct groups_estimate *estimate,
                          struct buf *out)
{
    if (!estimate->count)
        return;
    buf_printf(out, "%u groups pay from one sync in %" PRIu64 " steps; ",
               estimate->count, round_up(estimate->sync_every));
    emit_groups_training(estimate->count, out);
    buf_printf(out, " (--groups)");
}

void emit_groups_line(const struct plan *plan, struct buf *out)
{
    const struct problem *problem = &plan->problem;
    const struct sharding_groups *groups = &problem->groups;
    const uint32_t n = problem->cluster.n_devices;

    buf_printf(out, "%u %s groups of %u GPU%s", groups->count,
               groups_layout_names[groups->layout], n, n == 1 ? "" : "s");
    if (plan->sync.ms > 0)
        buf_printf(out, "; a sync of %.3g GB takes %.*f ms",
                   1e-9 * plan->sync.bytes, plan->sync.ms < 100 ? 2 : 0,
                   plan->sync.ms);
    if (groups->sync_every && plan->sync.ms > 0)
        buf_printf(out, ", every %" PRIu64 " steps %.3g ms of a step",
                   groups->sync_every,
                   plan->sync.ms / (double)groups->sync_every);
    else if (!groups->sync_every)
        buf_printf(out, ", which the step does not count (--sync-every)");
}
