/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_FIT_H
#define NEUROSHARD_SEARCH_FIT_H

#include "search/assignment.h"

/*
 * Finds an assignment that keeps the memory limits, whatever it costs. It tries
 * a greedy packing, then an exact packing of whole tables and even pieces
 * (bins_pack), and finally anneals an assignment that exceeds the limits
 * (search/temper.h).
 */

struct fit_failure {
    bool is_proven; /* no placement of the units that may not be cut keeps the
                       limits */
    uint64_t lacking_bytes; /* excess bytes of the best assignment found;
                               UINT64_MAX if there was no attempt */
};

/* Fills *out, except for its total_ms, and returns true. Returns false and
 * fills *failure if no assignment was found, after some seconds. failure may be
 * NULL if the caller does not need the reason: then it takes hundredths of a
 * second, and finds fewer assignments. */
bool fit_by_memory(struct snapshot *out, const struct search_space *space,
                   struct fit_failure *failure);

/*
 * Explains why there is no plan, and what would help. The message says "no plan
 * fits" if there is a proof. A proof uses the bytes that the tables need
 * however they are cut, the smallest allowed piece, the pins, or all placements
 * of the units that may not be cut. Without a proof it says "no plan was
 * found". Then it gives changes that would suffice, near the least ones: memory
 * of a device, number of devices, or a kind that is not allowed. Each has been
 * tested with a quick packing.
 *
 * search_kinds are the kinds that the search makes. Proofs cover all kinds that
 * tables, problem and oracle allow.
 */

/* Before a search failure is NULL: returns 0, or fails with ERR_NO_PLAN if sums
 * alone prove that there is no plan. After a search without a plan: fails with
 * ERR_NO_PLAN. */
int infeasible_check(const struct problem *problem, const struct oracle *oracle,
                     unsigned search_kinds, const struct fit_failure *failure,
                     struct err *err) MUST_CHECK;

/*
 * Bin packing with bins of different sizes: decides whether items of given
 * sizes, which cannot be cut, all fit into the bins.
 */

enum bins_answer {
    BINS_PACKED,
    BINS_NONE,    /* proven: the items do not fit */
    BINS_GAVE_UP, /* max_work was spent without an answer */
};

/* Packs n items. Sets bin_of[n], the bin of each item, if the answer is
 * BINS_PACKED. The result is deterministic, because the limit counts work, not
 * time: a max_work of 10^8 takes about two seconds. */
enum bins_answer bins_pack(uint32_t *bin_of, const uint64_t *sizes, uint32_t n,
                           const uint64_t *rooms, uint32_t n_bins,
                           uint64_t max_work);

#endif
