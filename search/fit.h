/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_FIT_H
#define NEUROSHARD_SEARCH_FIT_H

#include "search/state.h"

/*
 * A layout that keeps the memory, whatever it costs: by a greedy packing, then
 * by an exact one of whole tables and even pieces (bins_pack), in the end
 * by annealing what exceeds (search/temper.h).
 */

struct fit_failure {
    bool is_proven; /* every way to place what may not be cut was ruled out */
    uint64_t lacking_bytes; /* by which the nearest layout exceeds the memory;
                               UINT64_MAX where none was looked at */
};

/* Fills *out, but its total_ms, and returns true; false and *failure where none
 * was found, after some seconds. Where nobody asks why, and failure is NULL, it
 * takes hundredths of a second, and finds less. */
bool fit_by_memory(struct snapshot *out, const struct parts *parts,
                   struct fit_failure *failure);

/*
 * Why there is no plan, and what would help. "No plan fits" is said where that
 * is proven: of the bytes that the tables take however they are cut, of a piece
 * as small as it may be, of pins, or of every placement of what may not be cut;
 * else "no plan was found". Then comes a change near the least that would do:
 * memory of a device, number of devices, or a kind that is not allowed; each
 * was tried by packing quickly.
 *
 * search_kinds are those that the search makes at all; proofs are about all
 * that table, problem and oracle allow.
 */

/* Before a search, where failure is NULL: 0, or ERR_NO_PLAN where sums alone
 * tell. After one that found none: ERR_NO_PLAN. */
int infeasible_check(const struct problem *problem, const struct oracle *oracle,
                     unsigned search_kinds, const struct fit_failure *failure,
                     struct err *err) MUST_CHECK;

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
