/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_SHIFTS_H
#define NEUROSHARD_CORE_SHIFTS_H

#include "core/what_if.h"

/* Alternative places for the pieces of one GPU. A shift moves one piece to
 * another GPU, or swaps it with a piece of that GPU, and leaves the rest of the
 * plan as it is. Each shift is priced and checked like any plan. */

struct shift {
    /* indices into the plan's shards; other: the piece swapped in, or
     * NO_SHARD */
    size_t shard, other;
    uint32_t gpu;                    /* GPU that the first piece moves to */
    double total_ms;                 /* step time of the plan with the shift */
    double gain_ms;                  /* reduction of the step time */
    const char *table, *other_table; /* tables of the two pieces, or NULL */
    /* reason why the shift is not allowed, in the arena; or NULL */
    const char *why_not;
};
#define NO_SHARD SIZE_MAX

#define MAX_GAINS 10
struct shifts {
    /* [n_places], in the arena: the cheapest place of each piece that may move
     * alone and fits on another GPU */
    struct shift *places;
    /* shifts that are allowed and cheaper than the plan, the cheapest first */
    struct shift gains[MAX_GAINS];
    size_t n_places, n_gains;
    uint64_t n_moves, n_swaps; /* number of moves and swaps that were tried */
};

/* Finds shifts of the pieces of `gpu`. Tries to move each piece to the 32 GPUs
 * that finish compute and backward communication first, and to swap it with
 * each piece of the first 8 of them, until 20,000 shifts are tried. Replicas,
 * pinned tables, groups and row blocks in the order of the GPUs are not
 * moved. */
void shifts_find(struct shifts *shifts, struct what_if *what_if, uint32_t gpu,
                 struct arena *arena);

#endif
