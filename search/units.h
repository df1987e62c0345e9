/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_UNITS_H
#define NEUROSHARD_SEARCH_UNITS_H

#include "search/search_space.h"

/* Fills the units, their allowed kinds and the usable memory, without piece
 * types and shardings. Arrays live in the arena. Fails with ERR_INPUT if a
 * group is pinned to two devices. */
int space_collect(struct search_space *space, const struct problem *problem,
                  const struct oracle *oracle, struct arena *arena,
                  struct err *err) MUST_CHECK;

#endif
