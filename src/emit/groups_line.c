/* SPDX-License-Identifier: MIT */
#include "emit/groups_line.h"

#include "base/text.h"
#include "core/sharding_groups.h"

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

/* Number of ranks that are listed in full. */
#define N_RANKS_LISTED 4

/* Prints the ranks of a GPU in all groups: "0 and 8", or "0, 8 .. 56". */
static void print_ranks(const struct problem *problem, uint32_t device,
                        struct buf *out)
{
    const uint32_t n = problem_n_groups(problem);

    for (uint32_t g = 0; g < n; g++) {
        const bool is_cut = n > N_RANKS_LISTED && g + 1 == n;

        if (n > N_RANKS_LISTED && g > 1 && !is_cut)
            continue;
        buf_printf(out, "%s%u",
                   !g           ? ""
                   : is_cut     ? " .. "
                   : g + 1 == n ? " and "
                                : ", ",
                   sharding_groups_rank(problem, g, device));
    }
}

void emit_groups_ranks(const struct plan *plan, struct buf *out)
{
    const struct problem *problem = &plan->problem;
    const uint32_t n = problem->cluster.n_devices;

    buf_printf(out,
               "all groups have this plan, and the figures are those of one\n"
               "        GPU 0 stands for ranks ");
    print_ranks(problem, 0, out);
    buf_printf(out, " of the job");
    if (n > 1) {
        buf_printf(out, ", GPU 1 for ranks ");
        print_ranks(problem, 1, out);
    }
    if (n > 2)
        buf_printf(out, " ..");
}

void emit_groups_equal(const struct plan *plan, struct buf *out)
{
    if (problem_n_groups(&plan->problem) == 1)
        return;
    buf_printf(out, "groups  ");
    emit_groups_line(plan, out);
    buf_printf(out, "\n        ");
    emit_groups_ranks(plan, out);
    buf_printf(out, "\n");
}
