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

/* Mends a layout that exceeds memory; false where it could not, and *io is as
 * it was. Takes at most a second. */
bool repair(struct snapshot *io, const struct parts *parts);

#endif
