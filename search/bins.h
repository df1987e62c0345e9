/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_BINS_H
#define NEUROSHARD_SEARCH_BINS_H

#include <stdint.h>

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
