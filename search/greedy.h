/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_GREEDY_H
#define NEUROSHARD_SEARCH_GREEDY_H

#include "search/load_order.h"
#include "search/search_space.h"

/*
 * Greedy placement of the published search. It places pieces in a given order.
 * Each piece goes to the device with the least predicted compute among the
 * devices whose memory and output width have room for it. Among devices with
 * equal compute it goes to the one with fewer bytes, then to the one with the
 * lower index.
 *
 * The pieces are placed under several caps on the output width of a device at
 * once. A device that one cap allows is allowed by every looser cap. So the
 * placements under all caps are equal until the chosen device exceeds some of
 * the caps. From then on the exceeded caps have a placement (a branch) of their
 * own. One call of the oracle prices the next step of all branches.
 */

/* Number of caps. The last cap is INFINITY, which is no limit. */
#define GREEDY_CAPS 12

/* A piece that may be placed. */
struct cuttable {
    uint32_t type;    /* piece type */
    uint32_t half;    /* index of the piece that is half as wide, or NO_PIECE */
    double output;    /* floats per sample that the piece sends */
    double single_ms; /* compute of a device that holds only this piece */
};

struct greedy_inputs {
    const struct search_space *space;
    /* all pieces that may be placed; greedy_place gets indices into this
     * array */
    const struct cuttable *pieces;
    double caps[GREEDY_CAPS]; /* caps on the output of a device in floats per
                                 sample, ascending; the last is INFINITY */
    size_t most_placed;       /* maximum number of pieces to place */
};

/* State of the greedy placement. R is the number of devices. */
struct greedy {
    const struct greedy_inputs *inputs; /* not owned */
    double *empty_ms; /* [R]: compute of each device without pieces */
    struct branch {
        double *sums; /* [R][width] */
        struct filled {
            double compute_ms; /* compute of the device; 0 while the device is
                                  empty */
            double output;
            uint64_t bytes;
            uint32_t n_pieces;
        } * devices;             /* [R] */
        struct load_rank *order; /* [R] devices by load, which is compute_ms */
        uint32_t *placement;     /* [n]: device of each piece */
        unsigned cap_begin,
            cap_end;     /* range of the caps that this branch keeps */
        uint32_t chosen; /* index in `order` of the device chosen last */
    } branches[GREEDY_CAPS], *live[GREEDY_CAPS];
    unsigned n_live; /* number of branches in use: the first n_live entries of
                        `live`, which lists all branches */
    /* Arguments for the oracle, and its answers. */
    double *sums;                         /* [GREEDY_CAPS][R][width] */
    double *compute_ms, *fwd_ms, *bwd_ms; /* [GREEDY_CAPS][R] */
    struct arena arena;                   /* owned; holds all arrays */
};

/* Result of greedy_place. */
struct greedy_found {
    double capped_ms; /* least total under a finite cap; INFINITY if no
                         assignment was found */
    double best_ms; /* least total under any cap; among equal totals the one of
                       the tightest cap */
    unsigned n_priced;   /* number of assignments priced */
    uint32_t *placement; /* [n]: device of each piece in the assignment that has
                            best_ms; owned by the caller */
};

/* Allocates the state of a greedy placement for one thread. `inputs` must live
 * longer than the state. */
void greedy_init(struct greedy *greedy, const struct greedy_inputs *inputs);
/* Frees the state. Accepts a zeroed struct. */
void greedy_release(struct greedy *greedy);

/* Places the n pieces in the order of the list, under all caps, and fills
 * *found. */
void greedy_place(struct greedy *greedy, const uint32_t *pieces, size_t n,
                  struct greedy_found *found);

#endif
