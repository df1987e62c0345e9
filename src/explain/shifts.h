/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXPLAIN_SHIFTS_H
#define NEUROSHARD_EXPLAIN_SHIFTS_H

#include "core/what_if.h"

/* Alternative places for the pieces of one GPU. A shift moves one piece to
 * another GPU, or swaps it with a piece of the other GPU. The rest of the plan
 * stays as it is. The plan after a shift is priced and checked like any other
 * plan. */

struct shift {
    /* indices into plan->shards: `shard` is the piece that moves, `other` is
     * the piece that takes its place (NO_SHARD: none) */
    size_t shard, other;
    uint32_t gpu;    /* GPU that `shard` moves to */
    double total_ms; /* step time of the plan with the shift */
    double gain_ms;  /* reduction of the step time */
    /* names of the tables of `shard` and of `other`, or NULL */
    const char *table, *other_table;
    /* reason why the shift is not allowed, in the arena; or NULL */
    const char *why_not;
};
#define NO_SHARD SIZE_MAX

#define MAX_GAINS 10
struct shifts {
    /* [n_places], in the arena: the cheapest other GPU for each piece that may
     * move without a swap and that fits on another GPU */
    struct shift *places;
    /* shifts that are allowed and reduce the step time, the shortest step time
     * first */
    struct shift gains[MAX_GAINS];
    size_t n_places, n_gains;
    uint64_t n_moves, n_swaps; /* number of moves and swaps that were tried */
};

/* Finds shifts of the pieces of `gpu`. Tries to move each piece to the 32 GPUs
 * that finish compute and backward communication first. Tries to swap it with
 * each piece of the first 8 of these GPUs. Stops after 20,000 shifts. Does not
 * move replicas, pinned tables, tables of groups, or row blocks whose GPU is
 * determined by the index of the block. */
void shifts_find(struct shifts *shifts, struct what_if *what_if, uint32_t gpu,
                 struct arena *arena);

#endif
