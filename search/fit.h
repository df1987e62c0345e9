/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_FIT_H
#define NEUROSHARD_SEARCH_FIT_H

#include "search/search_space.h"
#include "search/snapshot.h"

/*
 * Finds an assignment that keeps the memory limits, whatever it costs. It tries
 * a greedy packing, then an exact packing of whole tables and even pieces
 * (bins_pack), and finally anneals an assignment that exceeds the limits
 * (search/temper.h).
 */

struct fit_failure {
    bool is_proven; /* proven: no placement of the units that may not be cut
                       keeps the memory limits */
    uint64_t lacking_bytes; /* bytes by which the best assignment found exceeds
                               the memory limits; UINT64_MAX if no assignment
                               was tried */
};

/* Fills *out, except for its total_ms, and returns true. If it finds no
 * assignment, returns false and fills *failure; this takes some seconds.
 * `failure` may be NULL if the caller does not need the reason. A failure then
 * takes only hundredths of a second, but some assignments that the longer
 * search finds are missed. */
bool fit_by_memory(struct snapshot *out, const struct search_space *space,
                   struct fit_failure *failure);

/*
 * Bin packing with bins of different sizes: decides whether items of given
 * sizes, which cannot be cut, all fit into the bins.
 */

enum bins_answer {
    BINS_PACKED,
    BINS_NONE,    /* proven: the items do not fit */
    BINS_GAVE_UP, /* max_work was used up before an answer was found */
};

/* Packs n items. Sets bin_of[n], the bin of each item, if the answer is
 * BINS_PACKED. The result is deterministic, because the limit counts work, not
 * time: a max_work of 10^8 takes about two seconds. At first the largest items
 * are packed alone, which takes some milliseconds more at most. */
enum bins_answer bins_pack(uint32_t *bin_of, const uint64_t *sizes, uint32_t n,
                           const uint64_t *rooms, uint32_t n_bins,
                           uint64_t max_work);

#endif
