/* SPDX-License-Identifier: MIT */
#include "base/cli_answer.h"
#include "base/text.h"
#include "cli/planning.h"
#include "cli/planning_cluster.h"
#include "cli/what_if_answers.h"
#include "core/plan_fit.h"
#include "explain/explain.h"

#include <string.h>

static const struct option_spec own_options[] = {
    OPTIONS_HEADED("alternatives"),
    {"device", 0, OPTION_U64, "R", NULL, 0, PLANNING_MAX_GPUS - 1, NULL,
     "list and examine the pieces of this GPU; default: examine those of the "
     "GPU that others wait for"},
    {"what-if", 0, OPTION_STRINGS, "SETTINGS", NULL, 0, 0, NULL,
     "also the plan with other settings, such as batch=131072,reserve=30%, or "
     "a fresh plan for gpus=16; may be repeated"},
    {"anew", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "also fresh plans by short searches: for these GPUs, for more, and with "
     "fp16 weights"},
    {0},
};

static const char *nearest_table(const struct problem *problem,
                                 const char *name)
{
    const char **names = mem_alloc(problem->n_tables + 1, sizeof(*names));
    const char *nearest;

    for (size_t t = 0; t < problem->n_tables; t++)
        names[t] = problem->tables[t].name;
    nearest = text_nearest(names, name);
    mem_free(names);
    return nearest;
}

static int find_table(uint32_t *t, const struct problem *problem,
                      const char *name, struct err *err)
{
    const char *nearest;

    for (*t = 0; *t < problem->n_tables; ++*t)
        if (!strcmp(problem->tables[*t].name, name))
            return 0;
    nearest = nearest_table(problem, name);
    return err_input(err, "the plan has no table '%s'%s%s%s", name,
                     nearest ? "; did you mean '" : "", nearest ? nearest : "",
                     nearest ? "'?" : "");
}

static int check_options(const struct plan *plan, const struct cli *cli,
                         struct err *err)
{
    static const char *const of_plan[] = {"device", "what-if", "anew"};

    for (size_t i = 0; i < sizeof of_plan / sizeof *of_plan; i++)
        if (cli->n_args > 1 && cli_given(cli, of_plan[i]))
            return err_usage(err, "option '--%s' cannot be given with a TABLE",
                             of_plan[i]);
    if (cli_u64(cli, "device") < plan->problem.cluster.n_devices)
        return 0;
    return err_usage(err, "option '--device': '%s' has GPUs 0 to %u",
                     cli->args[0], plan->problem.cluster.n_devices - 1);
}

/* Explains the plan. Returns 0, or the exit status of ERR_NO_PLAN if the plan
 * does not fit, or does not fit under settings of --what-if. */
static int answer(struct explained *explained, const struct plan *plan,
                  struct cli *cli, struct err *err)
{
    bool fits = !plan_find_lack(plan).n_gpus;

    if (!fits)
        explained->command = what_if_command(plan, cli->args[0], cli->arena);
    if (what_if_answers(&explained->what_ifs, &explained->n_what_ifs, plan, cli,
                        err) ||
        (cli_given(cli, "anew") &&
         what_if_anew(&explained->anew, &explained->n_anew, plan, cli, err)))
        return -1;
    for (size_t i = 0; i < explained->n_what_ifs; i++)
        fits &= !explained->what_ifs[i].why_not;
    cli_print_json(explain_plan(explained, cli_text()));
    return fits ? 0 : err_exit_status(ERR_NO_PLAN);
}

static int run_explain(struct cli *cli, struct err *err)
{
    struct explained explained = {.gpu = cli_given(cli, "device")
                                             ? (uint32_t)cli_u64(cli, "device")
                                             : ANY_GPU,
                                  .n_columns = cli_columns(cli),
                                  .arena = cli->arena};
    bool has_table = cli->n_args > 1;
    struct plan plan = {0};
    struct oracle *oracle = NULL;
    uint32_t table = 0;
    int rc;

    if (planning_load(&plan, cli->args[0], NULL, cli, err) ||
        check_options(&plan, cli, err) ||
        (has_table && find_table(&table, &plan.problem, cli->args[1], err)) ||
        planning_price(&oracle, cli, &plan, err))
        return -1;
    what_if_init(&explained.what_if, &plan, oracle);
    if (has_table) {
        cli_print_json(explain_table(&explained, table, cli_text()));
        rc = 0;
    } else
        rc = answer(&explained, &plan, cli, err);
    what_if_release(&explained.what_if);
    return rc;
}

const struct command command_explain = {
    .name = "explain",
    .synopsis = "PLAN [TABLE] [options]",
    .summary = "explain what limits a plan, or why a table is placed as it is",
    .example = "neuroshard explain plan.json C3",
    .options = {own_options, placed_options, cluster_options, problem_options,
                job_options, pricing_options, fresh_plan_options,
                progress_options},
    .has_wide = true,
    .ends_at_once = true,
    .n_args = {1, 2},
    .run = run_explain,
};
