/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_MARGINAL_H
#define NEUROSHARD_SEARCH_MARGINAL_H

#include "search/choices.h"

/*
 * What a piece costs beside others. Where a cost model is not additive, pieces
 * cost less together than each alone (one launch for all, look-ups that hide
 * each other), so sums of what they take alone mislead. A piece is priced on
 * top of a device's average share of the whole list instead, all other devices
 * having just that share.
 */

/* Sets parts->marginal_ms of parts that were priced; it lives in the arena. */
void marginal_price(struct parts *parts, struct pool *pool,
                    struct arena *arena);

#endif
