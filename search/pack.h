/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_PACK_H
#define NEUROSHARD_SEARCH_PACK_H

#include "search/units.h"

/*
 * Packing by memory alone: pieces, largest first, each to the device with the
 * least memory used, halved where it fits nowhere. Not a plan to be proud of,
 * but one: the search falls back on it where its greedy is stuck, and it
 * tells what it would take where nothing fits.
 */

struct packing {
    uint32_t *pieces;    /* [n_pieces] items */
    uint32_t *placement; /* [n_pieces] devices */
    size_t n_pieces;
    uint32_t stuck; /* the item that fits nowhere, where pack failed */
};

/* room_bytes[n_devices] is what each device can hold; devices beyond those of
 * the problem may be asked for. 0 and the packing, or -1 and `stuck`. */
int pack(struct packing *packing, const struct units *units,
         const uint64_t *room_bytes, uint32_t n_devices, struct arena *arena);

/* ERR_NO_PLAN: what is short, and the least change that would fit. */
int no_plan(const struct units *units, struct err *err);

#endif
