/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_PLAN_DIFF_H
#define NEUROSHARD_EMIT_PLAN_DIFF_H

#include "base/json.h"
#include "core/plan_moves.h"

/* What changes from one plan to another, in words and as JSON. */

struct plan_diff {
    const char *paths[2];
    struct plan plans[2]; /* before, after */
    struct plan_moves moves;
};

/* Whether one cost model has priced both. */
bool plan_diff_is_priced(const struct plan_diff *diff);
/* Ends in a newline. */
void plan_diff_print(const struct plan_diff *diff, struct buf *out);
/* With all that moves; the caller decrefs it. */
json_t *plan_moves_to_json(const struct plan_moves *moves);
json_t *plan_diff_to_json(const struct plan_diff *diff);

#endif
