/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_GREEDY_H
#define NEUROSHARD_SEARCH_GREEDY_H

#include "search/choices.h"
#include "search/load_order.h"

/*
 * Greedy of the published search: places pieces in a given order, each on
 * the device with the least predicted compute among those whose memory and
 * output width allow it; ties go to less memory, then to the lower index.
 *
 * It does so under several caps on a device's output width at once. A device
 * that a cap allows is allowed by every looser one, so all caps place pieces
 * alike until a choice exceeds some of them; only then these get a branch of
 * their own. One call of the oracle prices a step of all branches.
 */

#define GREEDY_CAPS 12

/* A piece that may be placed. */
struct cuttable {
    uint32_t part;
    uint32_t half;    /* piece half as wide, or NO_PIECE */
    double output;    /* floats a sample that it sends */
    double single_ms; /* compute of a device that holds it alone */
};

struct greedy_inputs {
    const struct parts *parts;
    const struct cuttable *pieces;
    double caps[GREEDY_CAPS]; /* rising; the last is INFINITY */
    size_t most_placed;       /* pieces, at most */
};

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
        unsigned cap_begin, cap_end; /* caps that it keeps */
        uint32_t at;                 /* place in the order that was chosen */
    } branches[GREEDY_CAPS], *live[GREEDY_CAPS];
    unsigned n_live; /* the first ones of `live`, which has all */
    /* Arguments and answers of the oracle: */
    double *sums;                         /* [GREEDY_CAPS][R][width] */
    double *compute_ms, *fwd_ms, *bwd_ms; /* [GREEDY_CAPS][R] */
    struct arena arena;                   /* owned; has all arrays */
};

/* Result of greedy_place. */
struct greedy_found {
    double capped_ms;    /* least total under a finite cap; INFINITY: no plan */
    double best_ms;      /* under any; of equals the tightest cap's */
    unsigned n_priced;   /* assignments */
    uint32_t *placement; /* [n] the caller's room: devices at best */
};

/* inputs must outlive the greedy. One thread's. */
void greedy_init(struct greedy *greedy, const struct greedy_inputs *inputs);
/* Zeroed is fine. */
void greedy_release(struct greedy *greedy);

/* Places the n pieces. */
void greedy_place(struct greedy *greedy, const uint32_t *pieces, size_t n,
                  struct greedy_found *found);

#endif
