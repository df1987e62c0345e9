/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_BWD_MEMO_H
#define NEUROSHARD_CORE_BWD_MEMO_H

#include "core/oracle.h"

/*
 * What the backward exchange took, by the lanes that it hangs on: a search sees
 * the same few widths again and again. Both are floats, as a net has them, so
 * that eight devices are a cache line. Direct mapped, so the latest of two that
 * fall together stays. For one thread.
 */

struct bwd_memo {
    const struct oracle *oracle; /* not owned; has ops->bwd */
    size_t n_devices;
    struct arena arena; /* owned; has what follows */
    float *entries;     /* [BWD_MEMO_ENTRIES][2 R]: lanes, NAN where none are,
                           and their bwd_ms */
    float *lanes;       /* [n][R] */
    double *asked, *answered; /* [n][R] */
    size_t *missing;          /* [n] */
    float **found;            /* [n], entries */
};

#define BWD_MEMO_ENTRIES 16384

/* To be asked for n assignments at a time, at most. */
void bwd_memo_init(struct bwd_memo *memo, const struct oracle *oracle,
                   size_t n);
void bwd_memo_release(struct bwd_memo *memo);

/* lanes[n][R] -> bwd_ms[n][R], as ops->bwd gives them: what is not remembered
 * is asked for in one batch. */
void bwd_memo_price(struct bwd_memo *memo, size_t n, const double *lanes,
                    double *bwd_ms);

#endif
