/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_FIT_H
#define NEUROSHARD_SEARCH_FIT_H

#include "search/state.h"

/*
 * A layout that keeps the memory, whatever it costs: by a greedy packing, then
 * by an exact one of whole tables and even pieces (bins_pack), in the end
 * by annealing what exceeds (search/temper.h).
 */

enum fit_effort {
    FIT_QUICK, /* hundredths of a second; finds less */
    FIT_HARD,  /* some seconds, where it finds nothing */
};

struct fit_failure {
    bool is_proven; /* every way to place what may not be cut was ruled out */
    uint64_t lacking_bytes; /* by which the nearest layout exceeds the memory;
                               UINT64_MAX where none was looked at */
};

/* Fills *out, but its total_ms, and returns true; false and *failure where none
 * was found. */
bool fit_by_memory(struct snapshot *out, const struct parts *parts,
                   enum fit_effort effort, struct fit_failure *failure);

/*
 * Bin packing with bins of uneven room: items of given sizes, none of which may
 * be cut, and no other question than whether there is a place for each.
 */

enum bins_answer {
    BINS_PACKED,
    BINS_NONE,    /* proven: every way was ruled out */
    BINS_GAVE_UP, /* the work was spent */
};

/* bin_of[n] is set where they are packed. Work is counted, not timed: 10^8 take
 * some two seconds. Deterministic. */
enum bins_answer bins_pack(uint32_t *bin_of, const uint64_t *sizes, uint32_t n,
                           const uint64_t *rooms, uint32_t n_bins,
                           uint64_t max_work);

#endif
