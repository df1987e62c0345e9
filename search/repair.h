/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_REPAIR_H
#define NEUROSHARD_SEARCH_REPAIR_H

#include "search/snapshot.h"

/*
 * Where packing is stuck: all is placed, whether it fits or not, and moved,
 * swapped, split and cut otherwise, at random but mostly off the fullest
 * device, by annealing until none holds more than it may. Costs are not looked
 * at.
 */

/* Mends a layout that exceeds memory and returns 0, or the bytes by which it
 * still does in the end; *io is then as it was. Takes at most a second, or so
 * many as there is patience. */
uint64_t repair(struct snapshot *io, const struct parts *parts,
                unsigned patience);

#endif
