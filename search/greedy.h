/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_GREEDY_H
#define NEUROSHARD_SEARCH_GREEDY_H

#include "search/units.h"

/*
 * The published greedy: pieces, dearest first, each to the device with the
 * least predicted compute among those whose memory and output width allow it;
 * ties go to less memory, then to the lower index. A cap bounds the output
 * width of a device; the greedy runs for all caps at once.
 *
 * Caps ascend, and what one allows the next allows too. So the caps that have
 * placed alike so far are a range, a branch, which splits where a tighter cap
 * forbids what a looser one takes. A branch is placed and priced once for all
 * its caps, and the heads of all branches go to the oracle together.
 */

struct branch {
    unsigned cap_begin, cap_end;
    double *sums; /* [R][oracle->width] */
    struct branch_device {
        double compute_ms; /* 0 while it is empty */
        double output;     /* width so far */
        uint64_t bytes;    /* memory so far */
        uint32_t n_held;   /* pieces */
    } * devices;           /* [R] */
    uint32_t *placement;   /* [n]: device of piece i */
};

/* One worker's room, used again and again. */
struct greedy {
    const struct units *units; /* not owned */
    const double *caps;        /* [n_caps], ascending; not owned */
    unsigned n_caps;
    struct branch *branches; /* [n_caps] */
    unsigned n_branches;     /* alive: every cap that found a place */
    double *gathered;        /* [n_caps][width] */
    double *gathered_ms;     /* [n_caps] */
    uint32_t *chosen;        /* [n_caps]: device of the piece in hand */
};

/* For up to max_pieces pieces; everything lives in the arena. */
void greedy_init(struct greedy *greedy, const struct units *units,
                 const double *caps, unsigned n_caps, size_t max_pieces,
                 struct arena *arena);

/* Places pieces (item indices, in the order of their ranks). Afterwards the
 * branches are those that placed everything, none where nothing fits. */
void greedy_run(struct greedy *greedy, const uint32_t *pieces, size_t n);

#endif
