/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_COMMAND_H
#define NEUROSHARD_CLI_COMMAND_H

#include "base/cli.h"

/* Opens the processes of '--ranks', or those that a launcher started. In the
 * process that started those of '--ranks', returns when they are done and sets
 * *out to NULL. */
struct world;
int command_open_world(struct world **out, const struct cli *cli,
                       struct err *err) MUST_CHECK;
/* Ends all processes after a failure of one, so that the others do not wait for
 * it. Prints the error as main would. Often all processes fail in the same way,
 * and one message is enough: the others wait 2 s for process 0, and then for
 * processes of lower rank. In a world of one process it only returns. */
void command_end_all(struct world *world, const struct err *err);

/* The commands; src/cli/main.c lists them. Each lives in cmd_NAME.c. A command
 * of two words lives in the file of its first word. */
extern const struct command command_bench, command_compare, command_cost,
    command_db_check, command_db_export, command_db_import, command_db_info,
    command_db_merge, command_diff, command_emit, command_eval, command_explain,
    command_model_import, command_model_info, command_plan, command_record,
    command_report, command_retrain, command_run, command_tables,
    command_tables_import, command_tables_profile, command_train;

#endif
