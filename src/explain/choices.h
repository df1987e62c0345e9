/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXPLAIN_CHOICES_H
#define NEUROSHARD_EXPLAIN_CHOICES_H

#include "core/plan.h"

/* The shardings that the search has for one table, written as shards. */

/*
 * A sharding of a table, or of all tables of its group.
 *
 * Its shards are on slots. If is_fixed is true, a slot is a device. Otherwise
 * the slots are divided into places of place_size slots each, and a place may
 * be put on any device (place_size is 1) or on any host (place_size is the
 * number of devices of a host). There are as many slots as devices, so more
 * pieces than that share slots.
 */
struct choice {
    enum shard_kind kind;
    /* [n]: shards as in plan->shards; `device` is the slot of the shard. Unless
     * is_fixed is true, shards[0] is on slot 0. */
    struct shard *shards;
    size_t n;
    uint32_t n_blocks, n_ranges; /* numbers of row blocks and column ranges */
    uint32_t place_size;
    uint32_t n_places; /* number of places if no slot is shared */
    /* first device of the place on which the shards may not be, or NO_PLACE */
    uint32_t but;
    bool is_fixed;
};
#define NO_PLACE UINT32_MAX

struct choices {
    struct choice *choices; /* [n], in the order of the search */
    size_t n;
};

/* Finds the shardings of a table of the plan. All tables of a group get the
 * sharding together. The oracle is not asked for prices, only for the kinds
 * that it can price. Kinds, pins and rows_over of the tables are ignored, so
 * some of the shardings may not be allowed. Rows are cut at any place only if
 * the plan cuts them so (plan_row_cut). Arrays live in the arena. */
void choices_find(struct choices *choices, const struct plan *plan,
                  const struct oracle *oracle, uint32_t table,
                  struct arena *arena);

#endif
