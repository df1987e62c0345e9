/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_MIGRATION_H
#define NEUROSHARD_SEARCH_MIGRATION_H

#include "search/search_space.h"
#include "search/snapshot.h"

/*
 * Migration: bytes that move to another GPU if a new plan replaces the current
 * plan. It is counted as in core/plan_moves.h.
 */

/* Special values of move_limit_bytes in re-planning. Both mean that migration
 * has no limit. With NO_MOVE_LIMIT candidates do not count their migration;
 * with COUNT_MOVES they do. */
#define NO_MOVE_LIMIT UINT64_MAX
#define COUNT_MOVES (UINT64_MAX - 1)

/* Excess of a device that is one byte over its limit. */
#define ASSIGNMENT_ANY_EXCESS 0.002
/* Returns the excess of bytes over a limit: 0 if the bytes keep the limit, else
 * ASSIGNMENT_ANY_EXCESS plus the bytes above the limit as a share of `whole`.
 * For a device `whole` is its usable memory. */
static inline double excess_over(uint64_t limit, uint64_t bytes, uint64_t whole)
{
    if (bytes <= limit)
        return 0;
    return ASSIGNMENT_ANY_EXCESS +
           (double)(bytes - limit) / ((double)whole + 1);
}
/* Returns the excess of these bytes of tables in the memory of a host. */
static inline double space_host_excess(const struct search_space *space,
                                       uint64_t bytes)
{
    const uint64_t room = space->problem->cluster.host_bytes;

    return excess_over(room, bytes, room);
}
/* Returns the excess of these bytes over a limit on migration: 0 if the bytes
 * keep the limit, else a constant plus the bytes above the limit as a share of
 * the bytes of all tables. */
double migration_excess(const struct search_space *space, uint64_t limit_bytes,
                        uint64_t moved_bytes);
/* Returns the bytes that a unit migrates if it has these pieces, in any order.
 * Derives the shards of the pieces and compares them with the shards of the
 * current plan. */
uint64_t migration_of_unit(const struct search_space *space,
                           const struct snapshot *pieces);

#endif
