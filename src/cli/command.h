/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_COMMAND_H
#define NEUROSHARD_CLI_COMMAND_H

#include "base/cli.h"

/* The processes of '--ranks', or that a launcher started; NULL in the one that
 * started those of '--ranks', once they are done. */
struct world;
int command_open_world(struct world **out, const struct cli *cli,
                       struct err *err) MUST_CHECK;
/* A process that fails must not leave the others waiting: says why, as main
 * would, and ends all of them. Often all fail alike; so that one sentence is
 * enough, the others give process 0, and those before them, a moment to say it.
 * A world of one returns without a word. */
void command_end_all(struct world *world, const struct err *err);

/* The commands; src/cli/main.c lists them. Each lives in cmd_NAME.c, those of
 * two words in that of the first. */
extern const struct command command_bench, command_compare, command_cost,
    command_db_check, command_db_export, command_db_import, command_db_info,
    command_db_merge, command_diff, command_emit, command_eval, command_explain,
    command_model_import, command_model_info, command_plan, command_record,
    command_report, command_retrain, command_run, command_tables,
    command_tables_import, command_tables_profile, command_train;

#endif
