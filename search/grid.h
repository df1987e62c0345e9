/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_GRID_H
#define NEUROSHARD_SEARCH_GRID_H

#include "search/greedy.h"

/*
 * The published inner search: the greedy under each of a grid of caps on a
 * device's output width, 1.0, 1.05 ... 1.5 times the mean; the assignment
 * with the least total wins. One point without a cap is added, which finds
 * plans where every cap is too tight.
 */

#define GRID_CAPS 11                /* as published */
#define GRID_POINTS (GRID_CAPS + 1) /* and one without */

struct grid_result {
    double capped_ms;  /* best of the published caps; INFINITY for no plan */
    double best_ms;    /* best of all points */
    unsigned n_priced; /* assignments that were priced */
};

/* One worker's room. */
struct grid {
    struct greedy greedy;
    double caps[GRID_POINTS];
    double *compute_ms; /* [GRID_POINTS][R], also of empty devices */
    double *fwd_ms, *bwd_ms;
};

void grid_init(struct grid *grid, const struct units *units, size_t max_pieces,
               struct arena *arena);

/* Pieces are item indices in the order of their ranks. Where `placement` is
 * not NULL it gets the device of each piece in the best assignment, if there
 * is one. Of equal totals the tighter cap wins. */
void grid_search(struct grid *grid, const uint32_t *pieces, size_t n,
                 struct grid_result *result, uint32_t *placement);

#endif
