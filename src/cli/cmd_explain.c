/* SPDX-License-Identifier: MIT */
#include "base/cli_answer.h"
#include "cli/planning.h"
#include "cli/planning_cluster.h"
#include "core/cluster.h"
#include "costmodel/models/oracle_open.h"
#include "costmodel/models/oracles.h"
#include "explain/explain.h"
#include "search/search.h"

#include <string.h>

static const struct option_spec own_options[] = {
    OPTIONS_HEADED("alternatives"),
    {"device", 0, OPTION_U64, "R", NULL, 0, PLANNING_MAX_GPUS - 1, NULL,
     "GPU whose pieces are examined; default: the one that sets the step time"},
    {"anew", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "also the plan of a short search: for these GPUs, for one more, and for "
     "fp16 weights"},
    {0},
};

/* Number of changes that each new search tries, and number of new searches. */
#define ANEW_EFFORT 200000
#define N_ANEW 3

static int find_table(uint32_t *t, const struct problem *problem,
                      const char *name, struct err *err)
{
    for (*t = 0; *t < problem->n_tables; ++*t)
        if (!strcmp(problem->tables[*t].name, name))
            return 0;
    return err_input(err, "the plan has no table '%s'", name);
}

static void halve_weights(struct problem *problem, struct arena *arena)
{
    struct table *tables = ARENA_NEW(arena, struct table, problem->n_tables);

    for (size_t t = 0; t < problem->n_tables; t++) {
        tables[t] = problem->tables[t];
        if (tables[t].precision == PRECISION_FP32)
            tables[t].precision = PRECISION_FP16;
    }
    problem->tables = tables;
}

/* Searches a new plan for the problem and returns its total in ms. Returns NAN
 * if no plan is found or the plan has no price. */
static double plan_anew(const struct problem *problem, const char *cost,
                        struct cli *cli)
{
    struct search_options options;
    struct plan plan = {.problem = *problem};
    struct oracle *oracle = NULL;
    struct err ignored;
    int rc;

    search_options_init(&options);
    options.effort = ANEW_EFFORT;
    options.is_logged = cli_given(cli, "verbose");
    options.pool = pool_open(0);
    rc = oracle_open(&oracle, cost, problem, cli->arena, &ignored) ||
         search_full(&plan, oracle, &options, cli->arena, &ignored);
    pool_close(options.pool);
    return rc ? NAN : plan.total_ms;
}

static void find_anew(struct explained *explained, const struct plan *plan,
                      struct cli *cli)
{
    struct anew *anew = ARENA_NEW(cli->arena, struct anew, N_ANEW);
    double now_ms = plan->total_ms;
    const uint32_t n_more = cluster_whole_hosts(
        &plan->problem.cluster, plan->problem.cluster.n_devices + 1);
    struct problem problems[N_ANEW] = {plan->problem, plan->problem,
                                       plan->problem};

    for (size_t i = 0; i < N_ANEW; i++)
        problems[i].row_cut = plan_row_cut(plan);
    cluster_grow(&problems[1].cluster, n_more, 0, cli->arena);
    halve_weights(&problems[2], cli->arena);
    anew[0].what = "as it is";
    anew[1].what = arena_printf(cli->arena, "on %u GPUs", n_more);
    anew[2].what = "with fp16 weights";
    for (size_t i = 0; i < N_ANEW; i++) {
        anew[i].total_ms = plan_anew(&problems[i], plan->cost.name, cli);
        anew[i].gain_ms = now_ms - anew[i].total_ms;
        if (!i && anew[i].gain_ms > 0)
            now_ms = anew[i].total_ms;
    }
    explained->anew = anew;
    explained->n_anew = N_ANEW;
}

static int check_options(const struct plan *plan, const struct cli *cli,
                         struct err *err)
{
    if (cli->n_args > 1 && (cli_given(cli, "device") || cli_given(cli, "anew")))
        return err_usage(
            err,
            "options '--device' and '--anew' cannot be given with a TABLE");
    if (cli_u64(cli, "device") < plan->problem.cluster.n_devices)
        return 0;
    return err_usage(err, "option '--device': '%s' has GPUs 0 to %u",
                     cli->args[0], plan->problem.cluster.n_devices - 1);
}

static int run_explain(struct cli *cli, struct err *err)
{
    struct explained explained = {.gpu = cli_given(cli, "device")
                                             ? (uint32_t)cli_u64(cli, "device")
                                             : ANY_GPU,
                                  .arena = cli->arena};
    bool has_table = cli->n_args > 1;
    struct plan plan = {0};
    struct oracle *oracle = NULL;
    uint32_t table = 0;
    const int rc =
        planning_load(&plan, cli->args[0], NULL, cli, err) ||
        check_options(&plan, cli, err) ||
        (has_table && find_table(&table, &plan.problem, cli->args[1], err)) ||
        planning_price(&oracle, cli, &plan, err);

    if (!rc) {
        what_if_init(&explained.what_if, &plan, oracle);
        if (cli_given(cli, "anew"))
            find_anew(&explained, &plan, cli);
        cli_print_json(has_table ? explain_table(&explained, table, cli_text())
                                 : explain_plan(&explained, cli_text()));
        what_if_release(&explained.what_if);
    }
    return rc ? -1 : 0;
}

const struct command command_explain = {
    .name = "explain",
    .synopsis = "PLAN [TABLE] [options]",
    .summary = "explain what limits a plan, or why a table is placed as it is",
    .example = "neuroshard explain plan.json C3",
    .options = {own_options, placed_options, cluster_options, problem_options,
                job_options, pricing_options, progress_options},
    .has_wide = true,
    .ends_at_once = true,
    .n_args = {1, 2},
    .run = run_explain,
};
