/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_STARTS_H
#define NEUROSHARD_SEARCH_STARTS_H

#include "search/search_space.h"
#include "search/snapshot.h"

/*
 * Starting points of the full search. A starting point has a sharding for each
 * unit, and its pieces are placed on devices, the most expensive first.
 * Different starting points use different prices of memory, pieces and
 * replicas.
 *
 * Families. A job launches separate kernels for replicas and for row blocks, so
 * it pays a fixed cost for the first replica and for the first row block. A
 * plan saves the fixed cost of replicas only after its last replica is gone,
 * and the fixed cost of row blocks only after its last row block is gone. No
 * single change achieves this if there are many. So there is a starting point
 * of each of these families:
 *
 * - all shardings, or row blocks of all tables that can be cut by rows (the
 *   cheaper of the two),
 * - no replicas,
 * - no row blocks,
 * - neither replicas nor row blocks.
 *
 * The first family is also built with 85 and 70 % of the memory, because an
 * assignment found with less memory may be cheaper. If costs are additive there
 * are no fixed costs. In this case the cheapest starting points are kept,
 * whatever their families.
 *
 * Evidence: rise of the total in % if only one starting point is annealed, or
 * the cheapest ones of all families instead of one per family (three seeds
 * each):
 *
 *   instead         tables            cost model             rise in %
 *   one             HugeCTR's seven   TorchRec's formulas    0.5 to 1.9
 *   cheapest        DCNv2             roofline, no overlap   0.2 to 1.2
 *                   other lists                             -0.7 to 0.3
 *
 * starts_find fills the empty array best[] with the starting points that can be
 * built. All of them have different totals. Some or all entries may stay empty.
 * The work of starts_find is bounded. Once there is one starting point, SIGINT
 * also ends it, and so does the clock at end_ms (INFINITY: never). Returns the
 * number of assignments priced.
 */
uint64_t starts_find(struct snapshot best[STARTS_KEPT],
                     const struct search_space *space, struct pool *pool,
                     double end_ms);

/* Builds an assignment by memory alone, with pieces as large as possible up to
 * peak_bytes, and fills *out except for its total_ms. With may_exceed, devices
 * may exceed their usable memory. Returns false if it finds no place for some
 * pieces. */
bool starts_by_memory(struct snapshot *out, const struct search_space *space,
                      uint64_t peak_bytes, bool may_exceed);

#endif
