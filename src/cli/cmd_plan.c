/* SPDX-License-Identifier: MIT */
#include "base/text.h"
#include "cli/planning.h"
#include "cli/replanning.h"
#include "core/plan_check.h"
#include "emit/emit.h"
#include "io/plan_json.h"
#include "search/replan.h"

#include <stdio.h>
#include <string.h>

static const struct option_spec plan_options[] = {
    PLANNING_OPTIONS,
    REPLANNING_OPTIONS,
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
    {"output", 'o', OPTION_STRING, "FILE", NULL, 0, 0, NULL,
     "write the plan, as JSON; '-' is standard output"},
    {"json", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "print the plan as JSON instead of the report"},
    {0},
};

static void choose_search(struct search_options *options, const struct cli *cli)
{
    search_options_init(options);
    options->seed = cli_u64(cli, "seed");
    options->beam_width = (unsigned)cli_u64(cli, "beam");
    options->beam_depth = (unsigned)cli_u64(cli, "depth");
    if (cli_given(cli, "effort"))
        options->effort = cli_u64(cli, "effort");
    if (cli_given(cli, "time-limit"))
        options->time_limit_ms = 1000 * cli_double(cli, "time-limit");
    if (!strcmp(cli_string(cli, "search"), "grid"))
        options->beam_width = 0;
}

/* What the search found, priced and judged; the bound that it proved was for
 * the same costs. */
static int finish(struct plan *plan, const struct oracle *oracle,
                  struct cli *cli, struct err *err)
{
    double bound_ms = plan->bound_ms;

    fprintf(stderr, "searched %llu placements in %.0f ms, till %s\n",
            (unsigned long long)plan->n_evaluations, plan->search_ms,
            plan->stopped);
    if (planning_finish(plan, oracle, cli_arena(cli), err))
        return -1;
    if (!(bound_ms > 0))
        return 0;
    plan->bound_ms = bound_ms;
    fprintf(stderr, "at least %.4f ms, by the %s: the plan is within %.2f %%\n",
            bound_ms, plan->bound_term, 100 * (plan->total_ms / bound_ms - 1));
    return plan_check(plan, err);
}

static int find_plan(struct plan *plan, const struct plan *from,
                     const struct oracle *oracle, struct cli *cli,
                     struct err *err)
{
    struct search_options options;
    unsigned n_threads =
        cli_given(cli, "threads") ? (unsigned)cli_u64(cli, "threads") : 0;
    bool is_full = !strcmp(cli_string(cli, "search"), "full");
    int rc;

    choose_search(&options, cli);
    options.pool = pool_open(n_threads);
    if (cli_given(cli, "from"))
        rc = search_replan(plan, from,
                           cli_given(cli, "move-limit")
                               ? cli_bytes(cli, "move-limit")
                               : NO_MOVE_LIMIT,
                           oracle, &options, cli_arena(cli), err);
    else if (is_full)
        rc = search_full(plan, oracle, &options, cli_arena(cli), err);
    else
        rc = search_reference(plan, oracle, &options, cli_arena(cli), err);
    pool_close(options.pool);
    return rc ? -1 : finish(plan, oracle, cli, err);
}

/* The plan to the file, the report (or, asked for, the JSON) to stdout. */
static int write_plan(const struct plan *plan, const struct plan *from,
                      const struct oracle *oracle, struct cli *cli,
                      struct err *err)
{
    const char *path = cli_string(cli, "output");
    struct buf report = {0};

    if (path && strcmp(path, "-") && plan_save(plan, path, err))
        return -1;
    if (cli_flag(cli, "json") || (path && !strcmp(path, "-"))) {
        fputs(plan_to_json(plan, cli_arena(cli)), stdout);
        return 0;
    }
    emit_report(plan, &report);
    if (cli_given(cli, "from")) {
        buf_printf(&report, "\n");
        replanning_report(from, plan, oracle, cli, &report);
    }
    fwrite(report.data, 1, report.len, stdout);
    buf_release(&report);
    return 0;
}

static int run_plan(struct cli *cli, struct err *err)
{
    struct plan plan = {0}, from = {0};
    struct oracle *oracle = NULL;
    int rc = -1;

    if (planning_problem(&plan.problem, cli_arg(cli, 0), cli, err))
        goto out;
    if (planning_oracle(&oracle, cli, &plan.problem, err))
        goto out;
    if (replanning_load(&from, cli, err))
        goto out;
    if (find_plan(&plan, &from, oracle, cli, err))
        goto out;
    if (write_plan(&plan, &from, oracle, cli, err))
        goto out;
    rc = 0;
out:
    oracle_close(oracle);
    return rc;
}

const struct command command_plan = {
    .name = "plan",
    .synopsis = "TABLES --gpus N [options]",
    .summary = "find the best placement of the tables and report it",
    .options = plan_options,
    .min_args = 1,
    .max_args = 1,
    .run = run_plan,
};
