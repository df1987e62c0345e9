/* SPDX-License-Identifier: MIT */
#include "cli/planning.h"
#include "emit/explain.h"
#include "io/plan_json.h"
#include "search/search.h"

#include <string.h>

static int find_table(uint32_t *t, const struct problem *problem,
                      const char *name, struct err *err)
{
    for (*t = 0; *t < problem->n_tables; ++*t)
        if (!strcmp(problem->tables[*t].name, name))
            return 0;
    return err_set(err, ERR_INPUT, "the plan has no table '%s'", name);
}

/* Where a hand-made plan is below the bound, it says nothing. */
static void find_bound(struct explained *explained, const struct plan *plan,
                       const struct oracle *oracle)
{
    struct proven proven;

    search_bound(&proven, &plan->problem, oracle, explained->arena);
    if (!(proven.ms > 0) || proven.ms > plan->total_ms * (1 + 1e-9))
        proven = (struct proven){.ms = NAN};
    explained->bound_ms = proven.ms;
    explained->bound_term = proven.term;
    explained->bound_table = proven.table;
}

static void print(struct explained *explained, struct cli *cli, bool has_table,
                  uint32_t table)
{
    struct buf out = {0};

    if (cli_given(cli, "json")) {
        cli_print_json(has_table ? explain_table_json(explained, table)
                                 : explain_plan_json(explained));
        return;
    }
    if (has_table)
        explain_table(explained, table, &out);
    else
        explain_plan(explained, &out);
    cli_print_report(cli, &out);
}

static int run_explain(struct cli *cli, struct err *err)
{
    struct explained explained = {.arena = cli->arena};
    bool has_table = cli->n_args > 1;
    struct plan plan = {0};
    struct oracle *oracle = NULL;
    uint32_t table = 0;
    const int rc =
        planning_load(&plan, cli->args[0], NULL, cli, err) ||
        (has_table && find_table(&table, &plan.problem, cli->args[1], err)) ||
        planning_oracle_of_plan(&oracle, cli, &plan, err) ||
        plan_price(&plan, oracle, cli->arena, err);

    if (!rc) {
        find_bound(&explained, &plan, oracle);
        what_if_init(&explained.what_if, &plan, oracle);
        print(&explained, cli, has_table, table);
        what_if_release(&explained.what_if);
    }
    oracle_close(oracle);
    return rc ? -1 : 0;
}

const struct command command_explain = {
    .name = "explain",
    .synopsis = "PLAN [TABLE] [options]",
    .summary = "what binds a plan, or why a table is where and as it is",
    .options = {pricing_options, placed_options, cluster_options,
                bandwidth_options, job_options},
    .json = "print JSON instead of the report",
    .has_wide = true,
    .n_args = {1, 2},
    .run = run_explain,
};
