/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_SHIFTS_H
#define NEUROSHARD_CORE_SHIFTS_H

#include "core/what_if.h"

/*
 * Where the pieces of a GPU could go, all else as it is: one of them to another
 * GPU, or in exchange for a piece of that one. Each is priced and judged as any
 * plan is.
 */

struct shift {
    size_t shard, other; /* of the plan's; other: comes back, or NO_SHARD */
    uint32_t gpu;        /* to which the first one goes */
    double total_ms;     /* of the plan then */
    double gain_ms;      /* what it takes less */
    const char *table, *other_table; /* whose pieces they are; or NULL */
    const char *why_not; /* it is not allowed, in the arena; or NULL */
};
#define NO_SHARD SIZE_MAX

#define MAX_GAINS 10
struct shifts {
    struct shift *places; /* [n_places], in the arena: the cheapest place of
                             each piece that may go alone and fits somewhere */
    struct shift gains[MAX_GAINS]; /* allowed, and cheaper than the plan: the
                                      cheapest first */
    size_t n_places, n_gains;
    uint64_t n_moves, n_swaps; /* that were tried */
};

/* Tries the 32 GPUs that are ready soonest, of 8 of them every exchange, as
 * long as that makes no more than 20,000. Neither replicas, pins, groups nor
 * row blocks in the order of the GPUs go anywhere. */
void shifts_find(struct shifts *shifts, struct what_if *what_if, uint32_t gpu,
                 struct arena *arena);

#endif
