/* SPDX-License-Identifier: MIT */
#include "base/cli_answer.h"
#include "base/file_write.h"
#include "base/text.h"
#include "cli/plan_grid.h"
#include "cli/plan_groups.h"
#include "cli/plan_report.h"
#include "cli/plan_search.h"
#include "cli/planning.h"
#include "cli/planning_cluster.h"
#include "cli/tiers_offer.h"
#include "core/target_rules.h"
#include "search/search.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct option_spec count_options[] = {
    OPTIONS_HEADED(CLUSTER_HEADING),
    {"gpus", 'g', OPTION_RANGE, "N|N..M|N,M", NULL, 1, PLANNING_MAX_GPUS, NULL,
     "number of GPUs, a range such as 8..64:8, or a list"},
    {"price", 0, OPTION_STRING, "FILE", NULL, 0, 0, NULL,
     "prices per GPU-hour, a line for each GPU: compare the price of 10^9 "
     "samples"},
    {"target-rate", 0, OPTION_STRING, "RATE", NULL, 0, 0, NULL,
     "samples a second that the job needs, such as 30M: mark the cheapest row "
     "that meets it"},
    {0},
};
/* Options for re-planning: the current plan, and limits on its changes. */
static const struct option_spec replanning_options[] = {
    OPTIONS_HEADED(CONSTRAINTS_HEADING),
    {"from", 0, OPTION_STRING, "OLD", NULL, 0, 0, NULL,
     "current plan: the search starts from it and moves few bytes"},
    {"move-limit", 0, OPTION_BYTES, "SIZE", NULL, 0, 0, NULL,
     "with --from: most bytes that may move between GPUs"},
    {"reshardable", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "with --from: make only moves that TorchRec's reshard can make in the "
     "running job"},
    {0},
};
static const struct option_spec own_options[] = {
    OPTIONS_HEADED(CONSTRAINTS_HEADING),
    {"simplest-within", 0, OPTION_PERCENT, "PERCENT", NULL, 0, 100, NULL,
     "of the plans that the full search finds within this percentage of the "
     "best, take the one with the fewest pieces"},
    {"wire", 0, OPTION_CHOICE, "NAME", "limited", 0, 0,
     "limited|robust|nominal",
     "plan for links of unknown bandwidth: limited: the least loss if they are "
     "slower, for 1 % at most; robust: the least loss at any price; nominal: "
     "the best one if they are as assumed"},
    OPTIONS_HEADED(SEARCH_HEADING),
    {"search", 's', OPTION_CHOICE, "NAME", "full", 0, 0, "full|reference|grid",
     "full: all kinds of cuts, by simulated annealing; reference: the "
     "published beam search over column halvings; grid: the published search "
     "of whole tables only"},
    {"effort", 0, OPTION_U64, "N", NULL, 0, 1e12, NULL,
     "changes that the full search tries; default: chosen by the tables"},
    {"time-limit", 0, OPTION_DOUBLE, "S", NULL, 0, 1e9, NULL,
     "stop the full search after this many seconds"},
    {"beam", 0, OPTION_U64, "K", "3", 1, 1024, NULL, "width of the beam"},
    {"depth", 0, OPTION_U64, "L", "10", 1, 1000, NULL,
     "most halvings that the beam tries, one per step"},
    {"trace", 0, OPTION_OUTPUT, "FILE", NULL, 0, 0, NULL,
     "write the progress of the full search to this file, as CSV: evaluations, "
     "best cost, seconds"},
    OPTIONS_HEADED(OUTPUT_HEADING),
    {"output", 'o', OPTION_PLAN, "FILE", NULL, 0, 0, NULL,
     "write the plan, as JSON; '-' is standard output"},
    DETAILS_OPTION,
    {"tables", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "also list where each table is: its cut, GPUs, memory and time"},
    {"no-rivals", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "leave other planners out of the report"},
    {0},
};

/* --- one number of GPUs --- */

static void tell_search(const struct plan *plan)
{
    fprintf(stderr, "searched %llu placements in %.0f ms, stopped by: %s\n",
            (unsigned long long)plan->n_evaluations, plan->search_ms,
            plan->stopped);
    if (plan->bound_ms > 0)
        fprintf(stderr,
                "lower bound %.4f ms, by the %s: the plan is within %.2f %%\n",
                plan->bound_ms, plan->bound_term,
                100 * (plan->total_ms / plan->bound_ms - 1));
}

/* Writes one line for each better plan that the search has found. Only the last
 * column, seconds, differs from run to run. */
static int write_trace(const struct search_trace *trace, const char *path,
                       struct err *err)
{
    struct buf out = {0};
    int rc;

    buf_printf(&out, "evaluations,total_ms,seconds\n");
    for (size_t i = 0; i < trace->n; i++)
        buf_printf(&out, "%" PRIu64 ",%.17g,%.3f\n",
                   trace->points[i].n_evaluations, trace->points[i].total_ms,
                   trace->points[i].seconds);
    rc = file_write(path, out.data, out.len, err);
    buf_release(&out);
    return rc;
}

static int plan_once(struct plan_request *request, struct err *err)
{
    struct plan plan = {.problem = request->problem};
    struct oracle *oracle = NULL;
    const char *path = cli_string(request->cli, "trace");
    const double end_ms = plan_search_end(request);
    const bool has_price = plan_has_target_price(request->cli);
    int rc =
        planning_oracle(&oracle, request->cli, &plan.problem, err) ||
        plan_search(&plan, request, oracle,
                    plan_search_time_left(end_ms) / (has_price ? 2 : 1), err) ||
        (has_price && plan_price_target(request, &plan, oracle,
                                        plan_search_time_left(end_ms), err));

    if (!rc) {
        tell_search(&plan);
        rc = plan_answer(&plan, oracle, request, request->cli, err) ||
             (path && write_trace(&request->trace, path, err));
    } else if (err->code == ERR_NO_PLAN)
        tiers_offer(err, &request->problem, plan_search_time_left(end_ms),
                    request->cli);
    mem_free(request->trace.points);
    return rc ? -1 : 0;
}

/* --- the command --- */

static int check_search(struct cli *cli, struct err *err)
{
    static const struct {
        const char *option, *search;
    } of_one[] = {{"from", "full"},       {"simplest-within", "full"},
                  {"trace", "full"},      {"effort", "full"},
                  {"time-limit", "full"}, {"beam", "reference"},
                  {"depth", "reference"}};
    static const char *const of_from[] = {"move-limit", "reshardable"};
    const char *search = cli_string(cli, "search");

    for (size_t i = 0; i < sizeof of_one / sizeof *of_one; i++)
        if (cli_given(cli, of_one[i].option) &&
            strcmp(search, of_one[i].search) != 0)
            return err_usage(err, "option '--%s' needs the %s search, not '%s'",
                             of_one[i].option, of_one[i].search, search);
    if (cli_given(cli, "trace") &&
        (cli_given(cli, "from") || plan_has_grid(cli)))
        return err_usage(err, "option '--trace' needs one full search, without "
                              "a range of GPUs and without '--from'");
    if (cli_given(cli, "tables") && cli_value(cli, "gpus")->is_range)
        return err_usage(err, "option '--tables' needs one number of GPUs");
    for (size_t i = 0; i < sizeof of_from / sizeof *of_from; i++)
        if (cli_given(cli, of_from[i]) && !cli_given(cli, "from"))
            return err_usage(
                err, "option '--%s' needs '--from', the plan that moves",
                of_from[i]);
    if (cli_given(cli, "reshardable") && cli_given(cli, "simplest-within"))
        return err_usage(err, "option '--reshardable' keeps all cuts, so "
                              "'--simplest-within' cannot be given with it");
    return 0;
}

/* Checks that the search and the current plan suit the target. A current plan
 * that breaks the rules of the default target is replaced without a target, and
 * a warning says so. */
static int check_target(struct plan_request *request, struct err *err)
{
    struct problem *problem = &request->problem;
    struct cli *cli = request->cli;
    const struct target_traits *target = problem_target(problem);
    const bool is_from = cli_given(cli, "from");
    struct err fault = {0};

    if (cli_given(cli, "reshardable") && !target->has_reshard)
        return err_usage(
            err, "option '--reshardable' needs TorchRec, not '--target %s'",
            target->name);
    if (plan_has_groups(cli) && !target->has_groups)
        return err_usage(err,
                         "option '--groups' needs TorchRec, not '--target %s'",
                         target->name);
    if (target->keeps_apart && strcmp(cli_string(cli, "search"), "full") != 0)
        return err_usage(err,
                         "option '--target %s' needs the full search, not '%s'",
                         target->name, cli_string(cli, "search"));
    if (is_from && target->rows[OUTPUT_POOLED] == TARGET_ROWS_DEALT)
        return err_usage(err,
                         "option '--from' counts rows that stay, but %s deals "
                         "rows to all its GPUs anew",
                         target->framework);
    if (!is_from || problem->target != TARGET_TORCHREC ||
        cli_given(cli, "target") ||
        !target_check_as(&request->from, TARGET_TORCHREC, &fault))
        return 0;
    cli_warn(NULL, text_say(cli->arena, "%s: %s; the new plan has no target",
                            cli_shown(cli, "from"), fault.msg));
    problem->target = TARGET_ANY;
    return 0;
}

/* Checks that the search, and no other part of the request, chooses tiers. */
static int check_tiers(const struct plan_request *request, struct err *err)
{
    struct cli *cli = request->cli;

    if (request->from.problem.cluster.host_bytes)
        return err_usage(err,
                         "option '--from': %s has tables in host memory; only "
                         "tables in the memory of GPUs can be re-planned",
                         cli_shown(cli, "from"));
    if (!cli_given(cli, "tiers"))
        return 0;
    if (cli_given(cli, "from") || plan_has_groups(cli))
        return err_usage(err, "option '--tiers' contradicts '--%s'",
                         cli_given(cli, "from") ? "from" : "groups");
    if (strcmp(cli_string(cli, "search"), "full") != 0)
        return err_usage(err, "option '--tiers' needs '--search full'");
    return 0;
}

static int run_plan(struct cli *cli, struct err *err)
{
    struct plan_request request = {.cli = cli};

    if (check_search(cli, err) || plan_groups_check(cli, err) ||
        (cli_given(cli, "from") &&
         planning_load(&request.from, cli_string(cli, "from"), cli->args[0],
                       cli, err)) ||
        planning_problem(&request.problem, cli->args[0], &request.from.problem,
                         cli, err) ||
        check_target(&request, err))
        return -1;
    if (problem_n_groups(&request.from.problem) > 1)
        return err_usage(err, "option '--from': %s is a plan of %u groups",
                         cli_shown(cli, "from"),
                         problem_n_groups(&request.from.problem));
    if (check_tiers(&request, err))
        return -1;
    if (plan_has_grid(cli))
        return plan_grid(&request, err);
    if (plan_has_groups(cli))
        return plan_groups(&request, err);
    return plan_once(&request, err);
}

const struct command command_plan = {
    .name = "plan",
    .synopsis = "TABLES --gpus N|N..M [options]",
    .summary = "find the best placement of the tables and report it",
    .example = "neuroshard plan tables.csv --gpus 8 --gpu h200 -o plan.json",
    .options = {batch_options, count_options, cluster_options, problem_options,
                job_options, groups_options, planning_options,
                replanning_options, own_options, seed_options,
                progress_options},
    .has_wide = true,
    .ends_at_once = true,
    .n_args = {1, 1},
    .run = run_plan,
};
