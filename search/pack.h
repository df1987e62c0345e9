/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_PACK_H
#define NEUROSHARD_SEARCH_PACK_H

#include "search/units.h"

/*
 * Packing by memory alone: pieces, largest first, each to the device with the
 * least memory used, halved where it fits nowhere. Not a plan to be proud of,
 * but one: the published search falls back on it where its greedy is stuck.
 */

struct packing {
    uint32_t *pieces;    /* [n_pieces] items */
    uint32_t *placement; /* [n_pieces] devices */
    size_t n_pieces;
};

/* False where a piece fits nowhere. */
bool pack(struct packing *packing, const struct units *units,
          struct arena *arena);

#endif
