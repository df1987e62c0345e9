/* SPDX-License-Identifier: MIT */
#include "cli/planning_target.h"

#include "base/cli_answer.h"
#include "base/text.h"
#include "core/target_rules.h"

int planning_set_target(struct problem *problem, const struct problem *like,
                        struct cli *cli, struct err *err)
{
    const bool is_given = cli_given(cli, "target");
    const char *name = cli_string(cli, "target");
    const int which = text_choice(target_names, name);
    const bool any_rows =
        cli_given(cli, "row-cut") && cli_choice(cli, "row-cut") == ROW_CUT_ANY;
    enum target_rows rows;
    double rate;

    if (which < 0)
        return err_usage(err,
                         "option '--target' names the framework that runs the "
                         "plan, one of %s, not '%s'%s",
                         text_list(target_names, " or ", cli->arena), name,
                         text_to_rate(name, &rate)
                             ? "; samples a second are for '--target-rate'"
                             : "");
    problem->target = is_given || !target_is_named(like->target)
                          ? (enum target)which
                          : like->target;
    rows = problem_target(problem)->rows[OUTPUT_POOLED];
    if (any_rows && (rows == TARGET_ROWS_HOST || rows == TARGET_ROWS_ALL)) {
        if (is_given)
            return err_usage(err,
                             "option '--row-cut any' contradicts '--target "
                             "%s', which cuts rows in the order of the GPUs",
                             name);
        problem->target = TARGET_ANY;
    }
    /* TorchRec has no row-wise Adagrad for grids over several hosts */
    if (!is_given && problem->asks_for_grids &&
        problem->cluster.hosts_per_domain > 1)
        problem->target = TARGET_ANY;
    if (cli_given(cli, "row-cut"))
        problem->row_cut = (enum row_cut)cli_choice(cli, "row-cut");
    else
        problem->row_cut = rows == TARGET_ROWS_HOST || rows == TARGET_ROWS_ALL
                               ? ROW_CUT_RANKS
                               : ROW_CUT_ANY;
    return 0;
}

int planning_adopt_target(struct problem *problem, struct cli *cli,
                          struct err *err)
{
    target_adopt(problem);
    if (!target_check_tables(problem, err))
        return 0;
    if (cli_given(cli, "target") || problem->target != TARGET_TORCHREC)
        return err_prefix(err, "%s: '--target %s'", problem->source,
                          problem_target(problem)->name);
    cli_warn(NULL, text_say(cli->arena, "%s; TorchRec cannot run the plan",
                            err->msg));
    *err = (struct err){0};
    problem->target = TARGET_ANY;
    return 0;
}
