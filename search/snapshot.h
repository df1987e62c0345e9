/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_SNAPSHOT_H
#define NEUROSHARD_SEARCH_SNAPSHOT_H

#include "base/mem.h"
#include "search/piece.h"

/* Snapshot of an assignment: its pieces, total and excess, but no sums, so a
 * copy costs no more than its pieces. A zeroed snapshot is empty. A snapshot is
 * also used as a list of changes of a candidate. */
struct snapshot {
    struct change *pieces; /* [n], owned; the member `piece` is used only in a
                              list of changes */
    uint32_t n;
    size_t capacity;
    double total_ms, excess;
    uint64_t moved_bytes; /* migration; set only for the points of a Pareto
                             front (search/front.h) */
};

void snapshot_release(struct snapshot *snapshot);
/* Returns a new entry at the end, which the caller fills in place. This is
 * faster than to build an entry elsewhere and copy it: the copy would stall on
 * the writes that were just made. */
static inline struct change *snapshot_next(struct snapshot *snapshot)
{
    if (snapshot->n == snapshot->capacity)
        snapshot->pieces =
            mem_room(snapshot->pieces, snapshot->n, &snapshot->capacity,
                     sizeof(*snapshot->pieces));
    return &snapshot->pieces[snapshot->n++];
}
/* Copies the pieces, the total and the excess of a snapshot. */
void snapshot_copy(struct snapshot *to, const struct snapshot *from);

#endif
