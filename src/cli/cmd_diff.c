/* SPDX-License-Identifier: MIT */
#include "base/cli_answer.h"
#include "base/text.h"
#include "cli/planning.h"
#include "cli/planning_cluster.h"
#include "core/target_rules.h"
#include "costmodel/models/oracle_open.h"
#include "costmodel/models/oracles.h"
#include "emit/plan_diff.h"
#include "emit/reshard.h"

#include <string.h>

static const struct option_spec own_options[] = {
    OPTIONS_HEADED(COST_HEADING),
    {"cost", 0, OPTION_STRING, "COST", NULL, 0, 0, NULL,
     "cost model that prices both plans; default: the plans' own"},
    {"checkpoint-gbps", 0, OPTION_DOUBLE, "X", "0.8", 1e-6, 1e6, NULL,
     "with --format reshard: GB/s at which each GPU writes and reads a "
     "checkpoint"},
    OPTIONS_HEADED(OUTPUT_HEADING),
    {"format", 'f', OPTION_CHOICE, "FORMAT", "moves", 0, 0, "moves|reshard",
     "moves: all moves; reshard: the tables that TorchRec can move in a "
     "running "
     "job"},
    {0},
};

/* Prices both plans by the same cost model. If --cost is given, it names the
 * model. Without --cost, plans that the same model has priced keep their
 * prices; otherwise the model of the new plan prices both plans, if it can. */
static int price_both(struct plan_diff *diff, struct cli *cli, struct err *err)
{
    const char *spec = cli_string(cli, "cost");
    struct plan priced[2] = {diff->plans[0], diff->plans[1]};
    struct err ignored = {0};

    if (!spec && diff_is_priced(diff->plans))
        return 0;
    if (!spec)
        spec = diff->plans[1].cost.name;
    for (int i = 0; spec && i < 2; i++)
        if (oracle_price_plan(&priced[i], spec, cli->arena, &ignored)) {
            if (!cli_given(cli, "cost"))
                return 0;
            *err = ignored;
            return err_prefix(err, "%s", diff->paths[i]);
        }
    if (spec)
        memcpy(diff->plans, priced, sizeof(priced));
    return 0;
}

/* Warns if the target of a plan deals rows: its row blocks stand for rows that
 * are spread over the table, so the rows that two plans share are unknown. */
static void warn_dealt(const struct plan *plan, const char *path,
                       struct cli *cli)
{
    const struct target_traits *target = problem_target(&plan->problem);

    for (size_t i = 0; i < plan->n_shards; i++)
        if (target->rows[OUTPUT_POOLED] == TARGET_ROWS_DEALT &&
            shard_cuts_rows(plan->shards[i].kind)) {
            cli_warn(NULL, text_say(cli->arena,
                                    "%s: %s deals rows round robin, so the "
                                    "bytes of tables cut by rows that move are "
                                    "a guess",
                                    path, target->framework));
            return;
        }
}

static int run_diff(struct cli *cli, struct err *err)
{
    struct plan_diff diff = {.paths = {cli->args[0], cli->args[1]}};
    const bool is_reshard = !strcmp(cli_string(cli, "format"), "reshard");

    if (cli_given(cli, "checkpoint-gbps") && !is_reshard)
        return err_usage(err,
                         "option '--checkpoint-gbps' needs '--format reshard'");
    for (int i = 0; i < 2; i++)
        if (planning_load(&diff.plans[i], diff.paths[i], NULL, cli, err))
            return -1;
    if (problem_n_groups(&diff.plans[0].problem) !=
        problem_n_groups(&diff.plans[1].problem))
        return err_input(err, "%s has %u groups, but %s has %u", diff.paths[0],
                         problem_n_groups(&diff.plans[0].problem),
                         diff.paths[1],
                         problem_n_groups(&diff.plans[1].problem));
    for (int i = 0; i < 2; i++) {
        diff.paths[i] = text_shown(diff.paths[i], cli->arena);
        warn_dealt(&diff.plans[i], diff.paths[i], cli);
    }
    if (price_both(&diff, cli, err))
        return -1;
    plan_diff_find(&diff, cli->arena);
    if (is_reshard) {
        const double gbps = cli_double(cli, "checkpoint-gbps");

        if (problem_n_groups(&diff.plans[0].problem) > 1)
            return err_usage(err, "option '--format reshard' needs plans of "
                                  "one group");
        cli_print_json(reshard_to_json(&diff, gbps));
        reshard_print(&diff, gbps, cli_text());
        return 0;
    }
    cli_print_json(plan_diff_to_json(&diff));
    plan_diff_print(&diff, cli_text());
    return 0;
}

const struct command command_diff = {
    .name = "diff",
    .synopsis = "OLD NEW [options]",
    .summary = "show which pieces move between two plans, and the gain",
    .example = "neuroshard diff plan.json new.json",
    .options = {placed_options, cluster_options, problem_options, own_options},
    .has_wide = true,
    .ends_at_once = true,
    .n_args = {2, 2},
    .run = run_diff,
};
