/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_PLAN_DIFF_H
#define NEUROSHARD_EMIT_PLAN_DIFF_H

#include "base/json.h"
#include "core/plan_moves.h"
#include "emit/diff_gain.h"
#include "emit/diff_tiers.h"

/* Differences between two plans, as text and as JSON. */

struct plan_diff {
    const char *paths[2];
    struct plan plans[2]; /* plan before, plan after */
    struct plan_moves moves;
    struct diff_gain gain;
    struct diff_tiers tiers;
};

/* Finds the moves and the gain of the plans. They live in the arena. */
void plan_diff_find(struct plan_diff *diff, struct arena *arena);
/* Prints the differences between the plans. The text ends in a newline. */
void plan_diff_print(const struct plan_diff *diff, struct buf *out);
/* Two functions that return JSON, which the caller decrefs: the migrations, and
 * all differences between the plans. */
json_t *plan_moves_to_json(const struct plan_moves *moves);
json_t *plan_diff_to_json(const struct plan_diff *diff);

#endif
