/* SPDX-License-Identifier: MIT */
#include "core/plan_fit.h"

#include "base/text.h"

struct memory_lack plan_find_lack(const struct plan *plan)
{
    const struct cluster *cluster = &plan->problem.cluster;
    struct memory_lack lack = {0};

    for (uint32_t r = 0; r < cluster->n_devices; r++) {
        const uint64_t need = plan->devices[r].memory.total;
        const uint64_t have = cluster->memory_bytes[r];

        if (need <= have)
            continue;
        lack.n_gpus++;
        if (need - have > lack.lacks_bytes) {
            lack.lacks_bytes = need - have;
            lack.worst = r;
        }
    }
    return lack;
}

void plan_print_lack(const struct plan *plan, const struct memory_lack *lack,
                     struct buf *out)
{
    const uint64_t have = plan->problem.cluster.memory_bytes[lack->worst];

    buf_printf(out, "GPU %u lacks %s (needs %s of %s)", lack->worst,
               TEXT_BYTES(lack->lacks_bytes),
               TEXT_BYTES(plan->devices[lack->worst].memory.total),
               TEXT_BYTES(have));
    if (lack->n_gpus > 1)
        buf_printf(out, "; %u other GPU%s less", lack->n_gpus - 1,
                   lack->n_gpus == 2 ? " lacks" : "s lack");
}

double plan_most_reserve_frac(const struct plan *plan)
{
    const struct cluster *cluster = &plan->problem.cluster;
    double least = 1;

    for (uint32_t r = 0; r < cluster->n_devices; r++) {
        const struct memory_items *memory = &plan->devices[r].memory;
        const uint64_t used = memory->total - memory->reserve - memory->nccl;

        least =
            fmin(least, 1 - (double)used / (double)cluster->memory_bytes[r]);
    }
    return least;
}

void plan_print_fit(const struct plan *plan, struct buf *out)
{
    const struct memory_lack lack = plan_find_lack(plan);
    const uint32_t r = plan_fullest(plan);
    const struct memory_items *memory = &plan->devices[r].memory;
    const double have = (double)plan->problem.cluster.memory_bytes[r];
    /* rounded down, so that the printed reserve fits */
    const double percent = floor(1000 * plan_most_reserve_frac(plan)) / 10;

    if (lack.n_gpus) {
        buf_printf(out, "does not fit: ");
        plan_print_lack(plan, &lack, out);
    } else
        buf_printf(out, "fits: GPU %u is fullest, %s of %s (%.0f %%)", r,
                   TEXT_BYTES(memory->total), TEXT_BYTES(have),
                   100 * plan_used_frac(plan, r));
    if (percent < 0)
        buf_printf(out, "; it does not fit without a reserve either");
    else
        buf_printf(out, "; a reserve of %.3g %% is kept, up to %g %% fits",
                   100 * (double)(memory->reserve + memory->nccl) / have,
                   percent);
}

int plan_check_fit(const struct plan *plan, struct err *err)
{
    const struct memory_lack lack = plan_find_lack(plan);
    struct buf text = {0};

    if (!lack.n_gpus)
        return 0;
    plan_print_fit(plan, &text);
    err_set(err, ERR_NO_PLAN, "the plan %s", text.data);
    buf_release(&text);
    err->shortage = (struct shortage){
        .subject = "device",
        .is_of_device = true,
        .device = lack.worst,
        .need_bytes = plan->devices[lack.worst].memory.total,
        .have_bytes = plan->problem.cluster.memory_bytes[lack.worst]};
    return -1;
}
