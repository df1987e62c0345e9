/* SPDX-License-Identifier: MIT */
/*
 * Memory of shards and devices. Buffers are the memory that a step allocates
 * and frees, in contrast to weights and optimizer state. Each figure follows an
 * allocation in TorchRec 1.9 or FBGEMM. "Memory of a step" in
 * neuroshard-prices(7) names the function of each and the moments at which it
 * is allocated.
 */
#ifndef NEUROSHARD_CORE_MEMORY_H
#define NEUROSHARD_CORE_MEMORY_H

#include "core/problem.h"

/* Bytes per row of a cached piece, for the index of its table. */
#define CACHE_MAP_BYTES 4

/* Buffers of a shard or of a device's samples, in bytes. */
struct step_buffers {
    double input;   /* ids, lengths and offsets */
    double outputs; /* looked-up vectors, gradients, and sorted ids */
};

/*
 * Returns the buffers of a shard by the problem's rule. L is the number of its
 * lookups, b of its bags, V of its vectors, o the bytes of a vector in the
 * precision in which it is sent.
 *
 *     traced
 *         input    8 L + 4 b for each received copy, 12 b for each batch that
 *                  is looked up, and 8 L + 4 b for pieces, whose ids are sent
 *                  in addition
 *         outputs  V o for gradients, and the larger of two buffers that are
 *                  not needed at the same time: V o for the copy that the
 *                  all-to-all sends, and the sorted ids (40 L, or 48 L for
 *                  sequences)
 *         replica  8 L + 16 b for each batch that is looked up, the sorted ids,
 *                  and its dense gradient twice
 *     copies
 *         input    8 L + 4 b for each permuted copy, one more for row pieces
 *         outputs  2 V o
 *         replica  its dense gradient, in addition
 *
 * A cached piece (TIER_CACHED) has 4 L more, for the slots of its rows, and
 * outputs are at least 48 L, for the ids whose rows are fetched. In the
 * pipeline that fills caches a batch ahead, it has 8 L + 48 L more instead.
 *
 * The lookups of a row block are the mean of all blocks if problem->hot is
 * NULL.
 */
struct step_buffers shard_buffers(const struct problem *problem,
                                  const struct shard *shard);

/* Returns the buffers of a device's own samples: the batches that the loader
 * delivers, the ids in the order in which they are sent, and the outputs of all
 * tables with their gradients. Takes O(n_tables) time. */
struct step_buffers sample_buffers(const struct problem *problem);

/*
 * Returns the memory of one shard by the problem's memory model. The items
 * `nccl` and `reserve`, which do not belong to shards, are 0, and so are the
 * slots of caches (core/cache_pools.h). Sums saturate at UINT64_MAX.
 *
 *     weights    by precision and layout, with the table's row overhead
 *     optimizer  sgd: 0
 *                row-wise Adagrad: 4 B per row of the shard
 *                Adagrad: 1 x the elements
 *                Adam, AdamA, LAMB: 2 x the elements
 *                partial row-wise Adam and LAMB: 1 x the elements and 4 B
 *                per row
 *                An element has 4 B, or the size that the layout sets. Replicas
 *                use the problem's dense optimizer.
 *     cache_state  4 B per row of a cached piece
 *     host       weights without the row overhead, and the optimizer's values
 *                per element, of a piece that is not in TIER_HBM. Its weights
 *                and optimizer count the rest.
 *     input,     buffers of the step (shard_buffers). MEMORY_BATCH has no
 *     outputs    input, and 8 B per lookup in addition to the outputs of
 *                BUFFERS_COPIES.
 */
struct memory_items shard_memory(const struct problem *problem,
                                 const struct shard *shard);
/* Returns the memory of a device's own B / R samples, which does not depend on
 * its shards: buffers of the step (shard_buffers), and the dense part. Takes
 * O(n_tables) time. */
struct memory_items sample_memory(const struct problem *problem);
/* Fills room_bytes[R] with the usable memory of each device: the bytes that are
 * left for shards after the reserve and the device's samples, possibly 0. */
void problem_room_bytes(const struct problem *problem, uint64_t *room_bytes);

#endif
