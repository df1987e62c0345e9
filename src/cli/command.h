/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_COMMAND_H
#define NEUROSHARD_CLI_COMMAND_H

#include "base/cli.h"

/* Headings of options in --help, and of sections of the manual pages. */
#define PROBLEM_HEADING "problem"
#define JOB_HEADING "training job"
#define CLUSTER_HEADING "cluster"
#define COST_HEADING "cost model"
#define CONSTRAINTS_HEADING "constraints"
#define SEARCH_HEADING "search"

/* Opens the processes of '--ranks', or those that a launcher started. The
 * process that starts the processes of '--ranks' waits until they are done, and
 * *out is then NULL. */
struct world;
int command_open_world(struct world **out, const struct cli *cli,
                       struct err *err) MUST_CHECK;
/* Ends all processes of the world after one process has failed, so that no
 * other process waits for it forever. Prints the error as main would. Often all
 * processes fail in the same way, and one message is enough. So a process
 * other than process 0 first waits 2 s for process 0 to print and to end all
 * processes. It then waits a little longer for the processes of lower rank. If
 * the world has only one process, the function does nothing. */
void command_end_all(struct world *world, const struct err *err);

/* The commands; src/cli/main.c lists them. Each lives in cmd_NAME.c. A command
 * of two words lives in the file of its first word. */
extern const struct command command_bench, command_compare, command_cost,
    command_db_check, command_db_export, command_db_import, command_db_info,
    command_db_merge, command_diff, command_emit, command_eval, command_explain,
    command_gpus, command_model_import, command_model_info, command_plan,
    command_record, command_report, command_retrain, command_run,
    command_tables, command_tables_import, command_tables_profile,
    command_train;

#endif
