/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_BUMP_H
#define NEUROSHARD_SEARCH_BUMP_H

#include "search/state.h"

/*
 * Where a search may start, found as TorchRec's greedy proposer does, under the
 * oracle's costs: all tables are whole, or as they take least, then again and
 * again one of the slowest device, the dearest there, is cut anew, and all is
 * placed afresh (search/build.h). Where a few tables are left over after every
 * device has its share, these alone are cut.
 */

/* How the table is cut anew. */
enum bump {
    BUMP_FINER,    /* the least load with cheaper pieces */
    BUMP_COLUMNS,  /* columns, as many pieces as may be */
    BUMP_ROWS,     /* rows, likewise */
    BUMP_REPLICATE /* a replica on each device */
};
#define N_BUMPS 4

/* The best layout on the way, with its total; false where none was found that
 * fits. Adds to *n_priced. */
bool bump_start(struct snapshot *out, const struct parts *parts, enum bump bump,
                bool is_whole, uint64_t *n_priced);

#endif
