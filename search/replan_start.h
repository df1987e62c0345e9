/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_REPLAN_START_H
#define NEUROSHARD_SEARCH_REPLAN_START_H

#include "search/homes.h"
#include "search/snapshot.h"

/*
 * The layout nearest to an old plan: pieces stay on their device where it still
 * exists and the table can be cut so. Pieces whose device is gone go, dearest
 * first, to the least loaded device that has room; then tables that are new, or
 * cannot stay as they are, each in the form and on the devices that cost least
 * beside all others and keep the limits. It may exceed the memory, and the
 * limit on movement.
 */
void replan_start(struct snapshot *out, const struct parts *parts,
                  const struct homes *homes);

/*
 * A layout made even by few moves: again and again the slowest device gives a
 * piece, or half of the columns of one, to one of the fastest: the one that
 * gains most a byte moved (load rebalancing: Aggarwal, Motwani, Zhu 2003).
 * Until that gains nothing any more, or would exceed a limit.
 */
void replan_rebalance(struct snapshot *snapshot, const struct parts *parts);

#endif
