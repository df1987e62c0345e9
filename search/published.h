/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_PUBLISHED_H
#define NEUROSHARD_SEARCH_PUBLISHED_H

#include "search/search.h"
#include "search/state.h"

/* What the published search makes. */
#define SEARCH_PUBLISHED_KINDS (SHARD_TABLE | SHARD_COLUMN)

/* Fills *found with the published assignment of wholes, halves, quarters ... of
 * units, and its total, and sets the plan's stopped and n_evaluations. False,
 * and the total is INFINITY, where a unit can be neither whole nor halved, or
 * its greedy finds no place for some. The same at any thread count. */
bool published_find(struct snapshot *found, struct plan *plan,
                    const struct parts *parts,
                    const struct search_options *options);

/* Pieces that meet become one; where that costs more than total_ms, pieces
 * change places until it does not. Sets the total, INFINITY where some may not
 * be one. Returns how many changes were priced. */
uint64_t published_join(struct snapshot *found, const struct parts *parts);

#endif
