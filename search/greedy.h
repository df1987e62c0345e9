/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_GREEDY_H
#define NEUROSHARD_SEARCH_GREEDY_H

#include "search/load_order.h"
#include "search/search_space.h"

/*
 * Greedy placement of the published search. It places pieces in a given order,
 * each on the device with the least predicted compute among those whose memory
 * and output width allow it. Ties go to less memory, then to the lower index.
 *
 * It places them under several caps on the output width of a device at once. A
 * device that one cap allows is allowed by every looser cap. So all caps place
 * the pieces the same way until a choice exceeds some of the caps. From then on
 * the exceeded caps have a branch of their own. One call of the oracle prices a
 * step of all branches.
 */

/* Number of caps, one of which is no cap at all. */
#define GREEDY_CAPS 12

/* A piece that may be placed. */
struct cuttable {
    uint32_t type;    /* piece type */
    uint32_t half;    /* index of the piece half as wide, or NO_PIECE */
    double output;    /* floats per sample that it sends */
    double single_ms; /* compute of a device that holds it alone */
};

struct greedy_inputs {
    const struct search_space *space;
    const struct cuttable *pieces; /* indexed by the pieces to place */
    double caps[GREEDY_CAPS]; /* output floats per sample, ascending; the last
                                 is INFINITY */
    size_t most_placed;       /* maximum number of pieces to place */
};

/* State of the greedy. R is the number of devices. */
struct greedy {
    const struct greedy_inputs *inputs; /* not owned */
    double empty_ms;                    /* compute of an empty device */
    struct branch {
        double *sums; /* [R][width] */
        struct filled {
            double compute_ms; /* 0 while it is empty */
            double output;
            uint64_t bytes;
            uint32_t n_pieces;
        } * devices;                 /* [R] */
        struct load_rank *order;     /* [R]; loads are compute_ms */
        uint32_t *placement;         /* [n]: device of each piece */
        unsigned cap_begin, cap_end; /* caps that this branch keeps */
        uint32_t chosen; /* index in `order` of the device chosen last */
    } branches[GREEDY_CAPS], *live[GREEDY_CAPS];
    unsigned n_live; /* number of live branches: the first entries of `live`,
                        which lists all branches */
    /* Arguments and answers of the oracle. */
    double *sums;                         /* [GREEDY_CAPS][R][width] */
    double *compute_ms, *fwd_ms, *bwd_ms; /* [GREEDY_CAPS][R] */
    struct arena arena;                   /* owned; holds all arrays */
};

/* Result of greedy_place. */
struct greedy_found {
    double capped_ms;    /* least total under a finite cap; INFINITY if no
                            assignment was found */
    double best_ms;      /* least total under any cap; ties go to the tightest
                            cap */
    unsigned n_priced;   /* number of assignments priced */
    uint32_t *placement; /* [n], owned by the caller: devices of the assignment
                            of best_ms */
};

/* Allocates a greedy for one thread. inputs must outlive it. */
void greedy_init(struct greedy *greedy, const struct greedy_inputs *inputs);
/* Accepts a zeroed struct. */
void greedy_release(struct greedy *greedy);

/* Places the n pieces, in this order, and fills *found. */
void greedy_place(struct greedy *greedy, const uint32_t *pieces, size_t n,
                  struct greedy_found *found);

#endif
