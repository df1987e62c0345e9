/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_BWD_MEMO_H
#define NEUROSHARD_CORE_BWD_MEMO_H

#include "core/oracle.h"

/* Cache of backward exchange times, keyed by the lanes that they depend on
 * (oracle->comm_lane). A search prices the same few widths again and again.
 * Keys and times are floats, as a net computes them, so that the entry of eight
 * devices is one cache line. The cache is direct mapped: of two keys with the
 * same index, the later one stays. For one thread. */

struct bwd_memo {
    const struct oracle *oracle; /* not owned; must have ops->bwd */
    size_t n_devices;
    struct arena arena; /* owned; holds the arrays below */
    /* [BWD_MEMO_ENTRIES][2 R]: the lanes, NAN if the entry is empty, and their
     * bwd_ms */
    float *entries;
    float *lanes; /* [n][R]: the lanes of a call */
    /* [n][R]: lanes that are not in the cache, and their times */
    double *asked, *answered;
    size_t *missing; /* [n]: indices of these lanes in the call */
    float **found;   /* [n]: the entry of each lane */
};

#define BWD_MEMO_ENTRIES 16384

/* Initialises the cache for calls with at most n assignments. */
void bwd_memo_init(struct bwd_memo *memo, const struct oracle *oracle,
                   size_t n);
void bwd_memo_release(struct bwd_memo *memo);

/* Fills bwd_ms[n][R] from lanes[n][R] as ops->bwd does. Prices all assignments
 * that are not in the cache in one call. */
void bwd_memo_price(struct bwd_memo *memo, size_t n, const double *lanes,
                    double *bwd_ms);

#endif
