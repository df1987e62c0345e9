/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_WHAT_IF_ANSWERS_H
#define NEUROSHARD_CLI_WHAT_IF_ANSWERS_H

#include "cli/command.h"
#include "explain/scenarios.h"

/* Scenarios of `explain`: the answers to its options --what-if and --anew, and
 * the command that makes a plan fit. */

/* Options of fresh plans: --effort and --time-limit. */
extern const struct option_spec fresh_plan_options[];

/* Fills the list of scenarios for the questions of --what-if. The first is the
 * plan itself. A question about the number of GPUs gets a fresh plan; others
 * keep the placement and price it anew. The plan must be priced. */
int what_if_answers(const struct scenario **list, size_t *n,
                    const struct plan *plan, struct cli *cli,
                    struct err *err) MUST_CHECK;
/* Fills the list of scenarios of --anew: fresh plans for the same GPUs, for
 * more GPUs, and for fp16 weights. After an interrupt the list is shorter. */
int what_if_anew(const struct scenario **list, size_t *n,
                 const struct plan *plan, struct cli *cli,
                 struct err *err) MUST_CHECK;

/* Returns a command line that plans the problem of the plan, with the plan in
 * the file `path` as the current one; in the arena. */
const char *what_if_command(const struct plan *plan, const char *path,
                            struct arena *arena);

#endif
