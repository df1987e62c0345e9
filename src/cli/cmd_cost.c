/* SPDX-License-Identifier: MIT */
#include "cli/planning.h"
#include "core/plan_check.h"

static const struct option_spec own_options[] = {
    {"output", 'o', OPTION_PLAN, "FILE", NULL, 0, 0, NULL,
     "write the priced plan, as JSON"},
    {0},
};

/* Sorts shards, derives kinds, prices, hashes the inputs, judges and bounds. */
static int price(struct plan *plan, const struct oracle *oracle,
                 struct arena *arena, struct err *err)
{
    plan_derive_kinds(plan);
    if (plan_price(plan, oracle, arena, err))
        return -1;
    plan->version = NEUROSHARD_VERSION;
    plan->inputs_hash = plan_inputs_hash(plan, arena);
    if (plan_check(plan, err))
        return -1;
    plan_bound(plan, oracle, arena);
    return 0;
}

static int run_cost(struct cli *cli, struct err *err)
{
    struct plan plan = {0};
    struct oracle *oracle = NULL;

    return planning_load(&plan, cli->args[0], NULL, cli, err) ||
                   planning_oracle_of_plan(&oracle, cli, &plan, err) ||
                   price(&plan, oracle, cli->arena, err) ||
                   plan_answer(&plan, oracle, NULL, cli, err)
               ? -1
               : 0;
}

const struct command command_cost = {
    .name = "cost",
    .synopsis = "PLAN [options]",
    .summary = "price a plan, also a hand-made one",
    .options = {pricing_options, placed_options, cluster_options, job_options,
                own_options},
    .has_wide = true,
    .n_args = {1, 1},
    .run = run_cost,
};
