/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_BOUND_H
#define NEUROSHARD_SEARCH_BOUND_H

#include "search/choices.h"
#include "search/search.h"

/*
 * A proven lower bound on the total of every plan, for additive oracles: there
 * a device's terms are the sums of its pieces', so
 *
 *     total = sum over k of max over r >= sum over k of mean over r
 *           = what all pieces take alone, added up, over R
 *
 * and each table takes at least what its cheapest cut takes, of those whose
 * pieces are no dearer than the total less what stands on every device anyway:
 * replicas and row blocks over all of tables that such limits leave no other
 * way. Where the cheapest cuts do not fit the memory, bytes are given a price,
 * the one that proves most (Lagrange). Plans of which this holds: each table
 * whole, in columns of any widths that are multiples of 4, replicated, in equal
 * row blocks as search/choices.h lists them, or such blocks of columns of any
 * widths.
 */
void bound_find(struct proven *proven, const struct parts *parts);

#endif
