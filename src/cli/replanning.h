/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_REPLANNING_H
#define NEUROSHARD_CLI_REPLANNING_H

#include "cli/command.h"
#include "core/oracle.h"
#include "core/plan.h"

/*
 * plan --from OLD: the plan that stands now, and what the new one changes.
 */

/* Entries of a command's option table. */
#define REPLANNING_OPTIONS                                              \
    {"from",                                                            \
     0,                                                                 \
     OPTION_STRING,                                                     \
     "OLD",                                                             \
     NULL,                                                              \
     0,                                                                 \
     0,                                                                 \
     NULL,                                                              \
     "plan that stands now: the search starts there and moves little"}, \
    {                                                                   \
        "move-limit", 0, OPTION_BYTES, "SIZE", NULL, 0, 0, NULL,        \
            "with --from: bytes that may move from GPU to GPU"          \
    }

/* Loads --from. ERR_USAGE where --move-limit stands without it, or --from
 * beside another search than the full one. */
int replanning_load(struct plan *from, struct cli *cli,
                    struct err *err) MUST_CHECK;

/* What moves from the one to the other, and both totals: by this oracle, with
 * the tables of today where the old plan holds all of them. Two lines. */
void replanning_report(const struct plan *from, const struct plan *plan,
                       const struct oracle *oracle, struct cli *cli,
                       struct buf *out);

#endif
