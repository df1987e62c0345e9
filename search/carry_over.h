/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_CARRY_OVER_H
#define NEUROSHARD_SEARCH_CARRY_OVER_H

#include "search/movement.h"
#include "search/state.h"

/*
 * The layout nearest to an old plan: pieces stay on their device where it still
 * exists and the table can be cut so. Pieces whose device is gone go, dearest
 * first, to the least loaded device that has room and where they meet no other
 * (search/trial.h); then tables that are new, or cannot stay as they are, each
 * in the form and on the devices that cost least beside all others and keep the
 * limits. It may exceed the memory, and the limit on movement.
 */
void carry_over(struct snapshot *out, const struct parts *parts,
                const struct homes *homes);

#endif
