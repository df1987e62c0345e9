/* SPDX-License-Identifier: MIT */
#include "cli/planning.h"
#include "io/plan_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct option_spec count_options[] = {
    {"gpus", 'g', OPTION_RANGE, "N|N..M", NULL, 1, PLANNING_MAX_GPUS, NULL,
     "number of GPUs"},
    {0},
};
static const struct option_spec own_options[] = {
    {"search", 's', OPTION_CHOICE, "NAME", "full", 0, 0, "full|reference|grid",
     "full: every kind of cut, annealed; reference: the published beam over "
     "column halvings; grid: its whole tables only"},
    {"effort", 0, OPTION_U64, "N", NULL, 0, 1e12, NULL,
     "changes that the full search tries; without it as the list asks for"},
    {"time-limit", 0, OPTION_DOUBLE, "S", NULL, 0, 1e9, NULL,
     "seconds after which the full search stops, wherever it is"},
    {"beam", 0, OPTION_U64, "K", "3", 1, 1024, NULL, "width of the beam"},
    {"depth", 0, OPTION_U64, "L", "10", 1, 1000, NULL,
     "halvings that the beam tries, one a step"},
    {"simplest-within", 0, OPTION_PERCENT, "PERCENT", NULL, 0, 100, NULL,
     "of the plans that the full search finds within that of the best, the one "
     "with the fewest pieces"},
    {"trace", 0, OPTION_OUTPUT, "FILE", NULL, 0, 0, NULL,
     "write there how the full search came to the plan, as CSV: evaluations, "
     "best cost, seconds"},
    {"no-rivals", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "leave other planners out of the report"},
    {"output", 'o', OPTION_PLAN, "FILE", NULL, 0, 0, NULL,
     "write the plan, as JSON; '-' is standard output"},
    {0},
};

static void tell_search(const struct plan *plan)
{
    fprintf(stderr, "searched %llu placements in %.0f ms, till %s\n",
            (unsigned long long)plan->n_evaluations, plan->search_ms,
            plan->stopped);
    if (plan->bound_ms > 0)
        fprintf(stderr,
                "at least %.4f ms, by the %s: the plan is within %.2f %%\n",
                plan->bound_ms, plan->bound_term,
                100 * (plan->total_ms / plan->bound_ms - 1));
}

/* The plan to the file, the report (or, asked for, the JSON) to stdout. */
static int write_plan(const struct plan_request *request,
                      const struct plan *plan, const struct oracle *oracle,
                      struct err *err)
{
    struct cli *cli = request->cli;
    const char *path = cli_string(cli, "output");
    const bool is_from = cli_given(cli, "from");

    if (path && strcmp(path, "-") && plan_save(plan, path, err))
        return -1;
    if (!plan_is_printed(cli)) {
        plan_report(plan, oracle,
                    cli_given(cli, "no-rivals") ? NULL : &request->rivals, cli);
        if (is_from)
            replanning_report(request, plan);
    } else if (is_from && cli_given(cli, "json"))
        cli_print_document(replanning_to_json(request, plan));
    else
        cli_print_text(plan_to_json(plan, cli->arena));
    return 0;
}

/* A line a better plan, what differs from run to run last. */
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

static int check_search(const struct cli *cli, struct err *err)
{
    static const char *const of_full[] = {"from", "simplest-within", "trace"};
    const char *search = cli_string(cli, "search");

    for (size_t i = 0; i < sizeof of_full / sizeof *of_full; i++)
        if (cli_given(cli, of_full[i]) && strcmp(search, "full") != 0)
            return err_set(err, ERR_USAGE,
                           "option '--%s' needs the full search, not '%s'",
                           of_full[i], search);
    if (cli_given(cli, "trace") &&
        (cli_given(cli, "from") || cli_value(cli, "gpus")->is_range))
        return err_set(err, ERR_USAGE,
                       "option '--trace' is of one full search, neither of a "
                       "range of GPUs nor '--from' a plan");
    return 0;
}

static int plan_once(struct plan_request *request, struct err *err)
{
    struct plan plan = {.problem = request->problem};
    struct oracle *oracle = NULL;
    const char *path = cli_string(request->cli, "trace");
    int rc = planning_oracle(&oracle, request->cli, &plan.problem, err) ||
             find_plan(&plan, request, oracle, err);

    if (!rc) {
        tell_search(&plan);
        rc = write_plan(request, &plan, oracle, err) ||
             (path && write_trace(&request->trace, path, err));
    }
    mem_free(request->trace.points);
    oracle_close(oracle);
    return rc ? -1 : 0;
}

static int run_plan(struct cli *cli, struct err *err)
{
    struct plan_request request = {.cli = cli};

    if (check_search(cli, err) || replanning_load(&request, err) ||
        planning_problem(&request.problem, cli->args[0], &request.from.problem,
                         cli, err))
        return -1;
    if (cli_value(cli, "gpus")->is_range)
        return find_plans_by_count(&request, err);
    return plan_once(&request, err);
}

const struct command command_plan = {
    .name = "plan",
    .synopsis = "TABLES --gpus N|N..M [options]",
    .summary = "find the best placement of the tables and report it",
    .options = {count_options, cluster_options, bandwidth_options, job_options,
                planning_options, replanning_options, progress_options,
                own_options},
    .has_wide = true,
    .n_args = {1, 1},
    .run = run_plan,
};
