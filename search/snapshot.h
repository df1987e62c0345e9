/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_SNAPSHOT_H
#define NEUROSHARD_SEARCH_SNAPSHOT_H

#include "core/plan.h"
#include "search/layout.h"

/*
 * A layout laid by: its pieces and its total. Zeroed is empty.
 */

struct snapshot {
    struct change *pieces; /* [n], owned; all with piece = NO_PIECE */
    uint32_t n, capacity;
    double total_ms;
};

void snapshot_release(struct snapshot *snapshot);
void snapshot_add(struct snapshot *snapshot, struct change piece);
void snapshot_copy(struct snapshot *to, const struct snapshot *from);
void snapshot_save(struct snapshot *snapshot, const struct layout *layout);
void snapshot_load(const struct snapshot *snapshot, struct layout *layout);

/* Sets total_ms, as comm prices it; returns the layout's excess. */
double snapshot_price(struct snapshot *snapshot, const struct parts *parts);

/* The shards of a table: columns are given out from the widest piece on. The
 * shards live in the arena. */
void snapshot_to_plan(const struct snapshot *snapshot,
                      const struct parts *parts, struct plan *plan,
                      struct arena *arena);
/* Of a plan of table and column shards, pieces that meet joined
 * (search/join.h); false where a width is none of the parts'. */
bool snapshot_from_plan(struct snapshot *snapshot, const struct parts *parts,
                        const struct plan *plan);

#endif
