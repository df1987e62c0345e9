/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_BUILD_H
#define NEUROSHARD_SEARCH_BUILD_H

#include "search/forms.h"
#include "search/state.h"

/*
 * Where a search starts: a form for each unit, and its pieces on devices,
 * dearest first, each to the least loaded device that has room (Graham 1969:
 * longest first). A piece that finds no room goes first in the next try
 * (squeaky wheel optimization, Joslin and Clements 1999).
 */

/* Of a starting point: more make long plans. */
#define BUILD_MAX_REPLICAS (1u << 16)

struct build_options {
    /* Of each unit the form with the least load_ms + bytes x ms_per_byte whose
     * pieces take at most peak_ms and peak_bytes, or else come nearest to
     * it. */
    double peak_ms, ms_per_byte;
    double replica_frac; /* the load of replicas counts this much: alone, each
                            looks dearer than it is beside others */
    uint64_t peak_bytes;
    bool by_memory;        /* the load is bytes; the oracle is not asked */
    bool may_exceed;       /* a device may be given more than it has room for */
    uint32_t max_replicas; /* pieces that are replicas, in all */
    uint64_t max_work;     /* pieces placed, and devices looked at for them, in
                              all tries; 0: as many as it takes */
};

struct build_outcome {
    uint32_t stuck; /* NO_PIECE, or a unit that found no room */
    uint64_t work;
};

/* Fills *out (its total_ms stays what it was) and returns true; false where
 * not all pieces found room, or not within max_work. */
bool build(struct snapshot *out, const struct parts *parts,
           const struct build_options *options, struct build_outcome *outcome);

/* The least load that all units may come to, of a device on average; and of
 * that what stands on every device alike, once no piece may be dearer than the
 * mean: replicas, and rows that are cut over all devices. */
struct build_load {
    double mean_ms, spread_ms;
    double all_bytes; /* the least memory that all units may come to */
};
struct build_load build_least_load(const struct parts *parts);

#endif
