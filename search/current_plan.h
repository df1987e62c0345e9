/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_CURRENT_PLAN_H
#define NEUROSHARD_SEARCH_CURRENT_PLAN_H

#include "core/plan_moves.h"
#include "search/piece.h"

/* The current plan, which a new plan replaces. */
struct current_plan {
    struct table_pieces *before; /* [n_tables] pieces of each table in the
                                    current plan; `table` is NULL if the table
                                    is new */
    /* [n_tables]: the pieces in `before`, adapted to the number of rows that
     * the table has today. Row blocks begin at the same rows as before, and the
     * last block ends at the end of the table. Row blocks whose rows no longer
     * exist are left out. Pieces of a table that are then on the same device
     * are merged, as plan_join_columns does, and the kinds of the shards are
     * derived again. A table has no pieces here if it is new or if its number
     * of columns has changed. With keeps_cuts the pieces are those in `before`,
     * and none are merged. */
    struct table_pieces *standing;
    struct shard *shards; /* [n_shards]: all pieces of `standing`, sorted */
    size_t n_shards;
    uint64_t held_bytes; /* bytes in the current plan of all tables that still
                            exist */
    /* Assignment nearest to the current plan, sorted by unit: unit u has the
     * pieces nearest[nearest_of[u]] to nearest[nearest_of[u + 1] - 1]. Both are
     * NULL until current_keep_nearest (search/carry_over.h). */
    struct change *nearest;
    uint32_t *nearest_of; /* [n_units + 1] */
    /* true: all pieces keep their rows and columns, so a new plan changes their
     * devices alone (search/reshardable.h). `range` of a piece is then its
     * number among the pieces of its table in `standing`. */
    bool keeps_cuts;
};

/* Finds the tables of `from`, the current plan, in the problem by name. `from`
 * must live longer than `current`. The arrays of `current` live in the
 * arena. */
void current_init(struct current_plan *current, const struct problem *problem,
                  const struct plan *from, struct arena *arena);

#endif
