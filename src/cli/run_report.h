/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_RUN_REPORT_H
#define NEUROSHARD_CLI_RUN_REPORT_H

#include "cli/command.h"
#include "exec/exec.h"
#include "io/store.h"

/* What `neuroshard run` says of a plan that was executed. */

struct run {
    struct cli *cli;
    struct world *world; /* owned */
    struct plan plan;
    struct device *device; /* owned */
    struct store *store;   /* owned; of process 0, and only with --db */
    struct exec_options options;
    struct exec_result result;
    uint32_t slowest; /* rank with the largest measured total */
};

/* Whether there are predictions to be compared with. */
bool run_is_priced(const struct run *run);
void run_print_report(const struct run *run);
void run_print_json(const struct run *run);
/* {name, isa, threads}, which bench says as well. */
json_t *run_machine_to_json(const struct device *device);

#endif
