/* SPDX-License-Identifier: MIT */
#include "base/text.h"
#include "cli/planning.h"
#include "emit/emit.h"
#include "io/plan_json.h"
#include "search/search.h"

#include <stdio.h>
#include <string.h>

static const struct option_spec plan_options[] = {
    PLANNING_OPTIONS,
    {"search", 's', OPTION_CHOICE, "NAME", "reference", 0, 0, "reference|grid",
     "reference: beam over column halvings; grid: whole tables only"},
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
    if (!strcmp(cli_string(cli, "search"), "grid"))
        options->beam_width = 0;
}

static int find_plan(struct plan *plan, const struct oracle *oracle,
                     struct cli *cli, struct err *err)
{
    struct search_options options;
    unsigned n_threads =
        cli_given(cli, "threads") ? (unsigned)cli_u64(cli, "threads") : 0;
    int rc;

    choose_search(&options, cli);
    options.pool = pool_open(n_threads);
    rc = search_reference(plan, oracle, &options, cli_arena(cli), err);
    pool_close(options.pool);
    if (rc)
        return -1;
    fprintf(stderr, "searched %llu placements in %.0f ms\n",
            (unsigned long long)plan->n_evaluations, plan->search_ms);
    return planning_finish(plan, oracle, cli_arena(cli), err);
}

/* The plan to the file, the report (or, asked for, the JSON) to stdout. */
static int write_plan(const struct plan *plan, struct cli *cli, struct err *err)
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
    fwrite(report.data, 1, report.len, stdout);
    buf_release(&report);
    return 0;
}

static int run_plan(struct cli *cli, struct err *err)
{
    struct plan plan = {0};
    struct oracle *oracle = NULL;
    int rc = -1;

    if (planning_problem(&plan.problem, cli, err))
        goto out;
    if (planning_oracle(&oracle, cli, &plan.problem, err))
        goto out;
    if (find_plan(&plan, oracle, cli, err))
        goto out;
    if (write_plan(&plan, cli, err))
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
