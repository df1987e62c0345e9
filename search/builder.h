/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_BUILDER_H
#define NEUROSHARD_SEARCH_BUILDER_H

#include "search/assignment.h"

/*
 * Greedy construction of an assignment in which each unit has a given sharding.
 * The dearest units go first, and each piece goes to the least loaded device
 * that has room for it (Graham 1969: longest first). If a unit finds no room,
 * it goes first in the next try (squeaky wheel optimization, Joslin and
 * Clements 1999).
 */

/* Prices and limits of one construction. They decide which sharding each unit
 * gets (starts.c) and where its pieces go. */
struct view {
    double peak_ms, ms_per_byte; /* maximum standalone cost of a piece; price of
                                    a byte */
    double ms_per_piece; /* price of a piece, which keeps their number low */
    double all_ms;       /* least load of all units together */
    double replica_frac; /* share of its standalone cost at which a replica is
                            counted, because it costs less together with other
                            pieces */
    double room_frac;    /* share of the usable memory that may be filled */
    uint64_t peak_bytes; /* maximum bytes of a piece */
    unsigned barred;     /* mask of 1 << sharding_kind: kinds of sharding that a
                            unit     gets only if it has no other */
    bool by_memory;      /* loads are bytes; the oracle is not asked */
    bool may_exceed;     /* devices may exceed their usable memory */
};

/* Maximum work of one construction: pieces placed plus devices tried for them.
 * Also the maximum work of all starting points once one has been found. It
 * takes about a second of one core. */
#define BUILDER_MAX_WORK 20000000

/* Fills *out, except for its total_ms, from shardings[n_units]: the sharding of
 * each unit as an index into the shardings of that unit. Leaves *out empty if a
 * piece finds no room or if the work exceeds BUILDER_MAX_WORK. Sets *is_short
 * if a piece found no room in one of the tries. Returns the work done. */
uint64_t builder_run(struct snapshot *out, bool *is_short,
                     const struct search_space *space, const struct view *view,
                     const uint32_t *shardings);

#endif
