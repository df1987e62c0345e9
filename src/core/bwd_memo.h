/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_BWD_MEMO_H
#define NEUROSHARD_CORE_BWD_MEMO_H

#include "core/oracle.h"

/* Cache of backward exchange times. The key of an entry is the values of one
 * lane of all devices (oracle->comm_lane), because the times depend only on
 * this lane. The cache pays because a search prices the same few widths again
 * and again. Keys and times are floats, as in the neural nets that compute the
 * times, so that an entry for eight devices is one cache line. The cache is
 * direct mapped: if two keys have the same index, the later key replaces the
 * earlier one. A cache may be used by one thread only. */

struct bwd_memo {
    const struct oracle *oracle; /* not owned; must have ops->bwd */
    size_t n_devices;
    struct arena arena; /* owned; holds the arrays of this struct */
    /* [BWD_MEMO_ENTRIES][2 R]: R values of the lane, then R times bwd_ms. The
     * values of an empty entry are NAN. */
    float *entries;
    float *lanes; /* [n][R]: the lane values of the current call */
    /* [n][R]: `asked` holds lane values that are not in the cache, and
     * `answered` holds their times */
    double *asked, *answered;
    /* [n]: index in the current call of each assignment that is not in the
     * cache */
    size_t *missing;
    /* [n]: cache entry of each assignment of the current call */
    float **found;
};

#define BWD_MEMO_ENTRIES 16384

/* Initialises the cache for calls of bwd_memo_price with at most n
 * assignments. */
void bwd_memo_init(struct bwd_memo *memo, const struct oracle *oracle,
                   size_t n);
void bwd_memo_release(struct bwd_memo *memo);

/* Fills bwd_ms[n][R] from lanes[n][R], with the same results as ops->bwd of the
 * oracle. Calls ops->bwd once, for all assignments that are not in the
 * cache. */
void bwd_memo_price(struct bwd_memo *memo, size_t n, const double *lanes,
                    double *bwd_ms);

#endif
