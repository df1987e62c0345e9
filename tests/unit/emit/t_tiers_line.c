/* SPDX-License-Identifier: MIT */
#include "emit/tiers_line.h"

#include "tests/tap.h"
#include "tests/tiered_plan.h"

static void is_line(const struct plan *plan, const char *want, const char *name)
{
    struct buf out = {0};

    buf_printf(&out, "%s", "");
    emit_tiers_line(plan, "host ", &out);
    is_str(out.data, want, name);
    buf_release(&out);
}

int main(void)
{
    static struct tiered_plan tiered;
    struct device_cache caches[2] = {{.miss = 0.125}, {.miss = 0.25}};
    struct device_cost devices[TIERED_DEVICES] = {
        {.caches = caches, .n_caches = 1},
        {.caches = caches, .n_caches = 2},
    };
    struct plan *plan = &tiered.plan;

    tiered_plan_init(&tiered);
    plan->devices = NULL;
    is_line(plan,
            "host 4 tables cached (wide whole tall ..); 1 table not cached "
            "(cold)\n",
            "a plan without prices");
    plan->devices = devices;
    is_line(plan,
            "host 4 tables cached (wide whole tall ..), least hits 75 % on GPU "
            "1; 1 table not cached (cold)\n",
            "the worst cache");
    tiered.shards[AT_COLD].tier = TIER_HBM;
    is_line(plan,
            "host 4 tables cached (wide whole tall ..), least hits 75 % on GPU "
            "1\n",
            "caches alone");
    for (size_t i = 0; i < TIERED_SHARDS; i++)
        tiered.shards[i].tier = TIER_HBM;
    is_line(plan, "", "all in the memory of GPUs");
    tiered.shards[AT_COLD].tier = TIER_HOST;
    is_line(plan, "host 1 table not cached (cold)\n", "no caches");
    return tap_done();
}
