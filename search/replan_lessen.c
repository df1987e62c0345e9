/* SPDX-License-Identifier: MIT */
#include "search/replan_front.h"

#include "base/ranked.h"

#include <math.h>

/* Prices a unit's way home, in ms a byte saved; false where it saves nothing,
 * or exceeds the memory. */
static bool price_way(struct replan *replan, uint32_t unit, double *price)
{
    struct tryout *tryout = &replan->tryout;
    const struct layout *layout = &tryout->layout;
    double total_ms;

    trial_clear(&tryout->trial);
    homes_propose(&tryout->trial, layout, unit);
    if (!tryout->trial.n_changes)
        return false;
    total_ms = tryout_price(tryout);
    if (!isfinite(total_ms) || tryout->trial.excess > layout->excess ||
        tryout->trial.all_moved_bytes >= layout->all_moved_bytes)
        return false;
    *price = (total_ms - layout->total_ms) /
             (double)(layout->all_moved_bytes - tryout->trial.all_moved_bytes);
    return true;
}

/* The cheaper half of the units goes home. Returns whether any did. */
static bool send_home(struct replan *replan, struct ranked *moved, uint32_t n)
{
    bool any = false;
    double price;

    ranked_sort(moved, n);
    for (uint32_t i = 0; i < (n + 1) / 2; i++) {
        if (!price_way(replan, moved[i].idx, &price))
            continue;
        layout_commit(&replan->tryout.layout, &replan->tryout.trial);
        (void)replan_offer_layout(replan);
        any = true;
    }
    return any;
}

void replan_lessen(struct replan *replan)
{
    struct ranked *moved = mem_alloc(replan->parts.n_units, sizeof(*moved));
    uint32_t n;

    do {
        n = 0;
        for (uint32_t u = 0; u < replan->parts.n_units; u++)
            if (price_way(replan, u, &moved[n].key))
                moved[n++].idx = u;
    } while (send_home(replan, moved, n));
    mem_free(moved);
}
