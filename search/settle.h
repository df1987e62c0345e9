/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_SETTLE_H
#define NEUROSHARD_SEARCH_SETTLE_H

#include "search/state.h"

/*
 * A layout that is good already, made better by single moves and swaps, the
 * best one at a time: deterministic, and of bounded work.
 */

/* Until the total is most_ms or nothing lowers it. By memory: off the device
 * that is fullest by its share of room, as long as that lowers the largest
 * share and the total stays as it is. Returns how many changes were priced. */
uint64_t settle(struct snapshot *snapshot, const struct parts *parts,
                bool by_memory, double most_ms);

#endif
