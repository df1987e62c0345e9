/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_LOOKUP_SORT_H
#define NEUROSHARD_DEVICE_LOOKUP_SORT_H

#include "base/parallel.h"

#include <stddef.h>
#include <stdint.h>

/* Words of counts that a chunk of the sort needs. */
#define LOOKUP_SORT_COUNTS 2048

/* The look-ups of one table. */
struct lookup_sort {
    const uint32_t *indices; /* of the batch, as offsets counts them; of wide
                                ones the low words */
    size_t index_step;       /* words from one index to the next: 1 or 2 */
    const uint64_t *offsets; /* [batch + 1] of this table */
    uint32_t batch;
    uint32_t n_rows;
    uint32_t *pairs;   /* out: [n][2] row and bag, by row, then by bag */
    uint32_t *scratch; /* [n][2] */
    uint32_t *counts;  /* [n_chunks][LOOKUP_SORT_COUNTS] */
    size_t n_chunks;   /* >= 1: parts that threads work on side by side */
};

/* Stable, so that the result does not depend on pool or chunks. A NULL pool
 * sorts here. The table has less than 2^32 look-ups. */
void lookup_sort(struct pool *pool, const struct lookup_sort *sort);

#endif
