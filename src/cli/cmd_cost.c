/* SPDX-License-Identifier: MIT */
#include "base/version.h"
#include "cli/plan_report.h"
#include "cli/planning.h"
#include "cli/planning_cluster.h"
#include "cli/what_if_answers.h"
#include "core/plan_check.h"
#include "core/plan_fit.h"

static const struct option_spec own_options[] = {
    OPTIONS_HEADED(OUTPUT_HEADING),
    {"output", 'o', OPTION_PLAN, "FILE", NULL, 0, 0, NULL,
     "write the plan with its predicted costs, as JSON"},
    DETAILS_OPTION,
    {0},
};

static int run_cost(struct cli *cli, struct err *err)
{
    struct plan plan = {0};
    struct oracle *oracle = NULL;

    if (planning_load(&plan, cli->args[0], NULL, cli, err))
        return -1;
    plan_derive_kinds(&plan);
    if (planning_price(&oracle, cli, &plan, err))
        return -1;
    if (plan_check_fit(&plan, err))
        return err_suffix(err, "; next: %s",
                          what_if_command(&plan, cli->args[0], cli->arena));
    plan.version = NEUROSHARD_VERSION;
    plan.build = build_id;
    plan.inputs_hash = plan_inputs_hash(&plan, cli->arena);
    if (plan_check(&plan, err))
        return -1;
    return plan_answer(&plan, oracle, NULL, cli, err);
}

const struct command command_cost = {
    .name = "cost",
    .synopsis = "PLAN [options]",
    .summary = "predict the step time of a plan, also of a hand-made one",
    .example = "neuroshard cost plan.json --cost roofline:h200",
    .options = {placed_options, cluster_options, problem_options, job_options,
                pricing_options, own_options},
    .has_wide = true,
    .ends_at_once = true,
    .n_args = {1, 1},
    .run = run_cost,
};
