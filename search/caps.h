/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_CAPS_H
#define NEUROSHARD_SEARCH_CAPS_H

#include "search/choices.h"

/*
 * The published inner search. Its greedy places pieces, dearest first, each on
 * the device with the least predicted compute among those whose memory and
 * output width allow it; ties go to less memory, then to the lower index. It
 * does so under each of a grid of caps on a device's output width, 1.0, 1.05
 * ... 1.5 times the mean, and the assignment with the least total wins. One
 * point without a cap is added, which finds plans where every cap is too tight.
 *
 * Caps ascend, and what one allows the next allows too. So the caps that have
 * placed alike so far are a range, a branch, which splits where a tighter cap
 * forbids what a looser one takes. A branch is placed and priced once for all
 * its caps, and the heads of all branches go to the oracle together.
 */

#define N_CAPS 11               /* as published */
#define CAP_POINTS (N_CAPS + 1) /* and one without */

/* What is placed, all of it in the arena of halves_init. */
struct halves {
    struct parts parts;
    double *single_ms;  /* [n_parts]: compute of a device that holds it alone */
    double *output;     /* [n_parts]: floats a sample that it sends */
    uint32_t *rank;     /* [n_parts]: place in the order of the greedy */
    double mean_output; /* of a device */
    double empty_ms;    /* compute of a device that holds nothing */
};

/* Fails as parts_init_halves. */
int halves_init(struct halves *halves, const struct problem *problem,
                const struct oracle *oracle, struct pool *pool,
                struct arena *arena, struct err *err) MUST_CHECK;

struct branch {
    unsigned cap_begin, cap_end;
    uint32_t chosen; /* device of the piece in hand */
    double *sums;    /* [R][oracle->width] */
    struct branch_device {
        double compute_ms; /* 0 while it is empty */
        double output;     /* width so far */
        uint64_t bytes;    /* memory so far */
        uint32_t n_held;   /* pieces */
    } * devices;           /* [R] */
    uint32_t *placement;   /* [n]: device of piece i */
};

/* One worker's room, in the arena of its init, used again and again. */
struct caps {
    const struct halves *halves; /* not owned */
    double caps[CAP_POINTS];
    struct branch branches[CAP_POINTS];
    unsigned n_branches; /* alive: every cap that found a place */
    double *heads;       /* [CAP_POINTS][width], gathered */
    double *compute_ms;  /* [CAP_POINTS][R], also of empty devices */
    double *fwd_ms, *bwd_ms;
};

struct caps_result {
    double capped_ms;  /* best of the published caps; INFINITY for no plan */
    double best_ms;    /* best of all points */
    unsigned n_priced; /* assignments that were priced */
};

/* For up to max_pieces pieces. */
void caps_init(struct caps *caps, const struct halves *halves,
               size_t max_pieces, struct arena *arena);

/* Pieces are parts in the order of their ranks. Where `placement` is not NULL
 * it gets the device of each piece in the best assignment, if there is one. Of
 * equal totals the tighter cap wins. */
void caps_search(struct caps *caps, const uint32_t *pieces, size_t n,
                 struct caps_result *result, uint32_t *placement);

#endif
