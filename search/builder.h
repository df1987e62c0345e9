/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_BUILDER_H
#define NEUROSHARD_SEARCH_BUILDER_H

#include "search/search_space.h"
#include "search/snapshot.h"

/*
 * Greedy construction of an assignment in which each unit has a given sharding.
 * Units are placed in order of cost, the dearest first. Each piece goes to the
 * least loaded device that has room for it (Graham 1969: longest first). If
 * there is no room for a unit, it is placed first in the next try (squeaky
 * wheel optimization, Joslin and Clements 1999).
 */

/* Prices and limits of one construction. They decide which sharding each unit
 * gets (search/starts.c) and on which devices its pieces are placed. */
struct view {
    double peak_ms, ms_per_byte; /* maximum standalone cost of a piece; price in
                                    ms of a byte of memory */
    double ms_per_piece; /* price in ms of each piece; it keeps the number of
                            pieces low */
    double all_ms;       /* least load of all units together, in ms */
    double replica_frac; /* cost at which a replica is counted, as a share of
                            its standalone cost; a replica costs less together
                            with other pieces than alone */
    double room_frac;    /* share of the usable memory that may be filled */
    uint64_t peak_bytes; /* maximum bytes of a piece */
    unsigned barred;     /* mask of 1 << sharding_kind: kinds of sharding that a
                            unit gets only if it has no other kind */
    unsigned barred_tiers; /* mask of 1 << tier: tiers that a unit gets only if
                              it has no other tier */
    bool by_memory;  /* the load of a device is its bytes; the oracle is not
                            asked */
    bool may_exceed; /* devices may exceed their usable memory */
};

/* Maximum work of one construction: pieces placed plus devices tried for the
 * pieces. Once one starting point has been found, the same number limits the
 * work of all starting points together. This work takes about a second of one
 * core. */
#define BUILDER_MAX_WORK 20000000

/* Fills *out, except for its total_ms, from shardings[n_units]: the sharding of
 * each unit as an index into the shardings of that unit. Leaves *out empty if
 * no device has room for a piece, or if the work exceeds BUILDER_MAX_WORK. Sets
 * *is_short if in one of the tries no device had room for a piece. Returns the
 * work done. */
uint64_t builder_run(struct snapshot *out, bool *is_short,
                     const struct search_space *space, const struct view *view,
                     const uint32_t *shardings);

#endif
