/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_BEAM_H
#define NEUROSHARD_SEARCH_BEAM_H

#include "search/grid.h"
#include "search/search.h"

/*
 * The published outer search: a beam over column halvings. From each kept set
 * of pieces, each of the largest and the dearest ones is halved in turn and
 * the grid prices the result; the K best sets go on, L times.
 *
 * The published beam has no point without a cap. Here such an assignment
 * competes for the best plan, but does not decide which sets go on while a
 * capped one exists: so the beam walks the published path, and its result is
 * never worse than the published one.
 */

struct beam_result {
    uint32_t *pieces;    /* [n_pieces] items, in the order of their ranks */
    uint32_t *placement; /* [n_pieces] devices */
    size_t n_pieces;
    double total_ms; /* INFINITY where no plan was found */
    uint64_t n_priced;
    bool is_interrupted; /* the user stopped it; the best so far is given */
};

/* Arrays live in the arena. The same result at any thread count. */
void beam_search(struct beam_result *result, const struct units *units,
                 const struct search_options *options, struct arena *arena);

#endif
