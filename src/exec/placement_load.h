/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_PLACEMENT_LOAD_H
#define NEUROSHARD_EXEC_PLACEMENT_LOAD_H

#include "exec/placement.h"

/* Device memory of a placement: outputs, gradients, and weights in turns. */

/* Frees all memory of the placement that is not in the arena; accepts a zeroed
 * placement. */
void placement_release(struct placement *placement);

/* Returns the bytes of a rank's weights and states. The rank's weights must not
 * be loaded yet. */
size_t placement_weight_bytes(const struct placement *placement, uint32_t rank);
/* Allocates the outputs and dense gradients of the ranks of this process, and
 * fills the gradients with zeros. */
int placement_open(struct placement *placement, struct err *err) MUST_CHECK;
/* Loads the weights and states of a turn, with their initial values. If the
 * turn is loaded already, does nothing and keeps the updated values. */
int placement_load(struct placement *placement, uint32_t turn,
                   struct err *err) MUST_CHECK;

/* A sequence of items that the host computes and uploads chunk by chunk. */
struct made {
    /* Computes items [begin, end) of the current chunk and writes them to
     * `out`. Several threads call it at the same time, for different items. */
    void (*make)(void *made, uint64_t begin, uint64_t end, unsigned thread);
    const void *ctx;
    size_t item_bytes;
    /* Index of the first item of the chunk; placement_upload sets it. */
    uint64_t first;
    /* [number of items in a chunk][item_bytes]; placement_upload allocates and
     * frees it. */
    char *out;
};
/* Computes n items and uploads them to device memory at d_at. */
int placement_upload(const struct placement *placement, void *d_at, uint64_t n,
                     struct made *made, struct err *err) MUST_CHECK;

#endif
