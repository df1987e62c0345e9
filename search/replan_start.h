/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_REPLAN_START_H
#define NEUROSHARD_SEARCH_REPLAN_START_H

#include "search/homes.h"
#include "search/snapshot.h"

/* The layout nearest to an old plan: pieces stay on their device where it still
 * exists and the table can be cut so; pieces whose device is gone, and tables
 * that are new, go to where most memory is free. It may exceed the memory. */
void replan_start(struct snapshot *out, const struct parts *parts,
                  const struct homes *homes);

#endif
