/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_BOUND_H
#define NEUROSHARD_SEARCH_BOUND_H

#include "search/choices.h"

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

enum bound_term { BOUND_NONE, BOUND_MEAN, BOUND_PIECE, BOUND_MEMORY };

struct bound {
    double ms; /* NAN for BOUND_NONE: the oracle is not additive */
    enum bound_term term;
    uint32_t unit; /* of BOUND_PIECE: the one that must be cut most dearly */
};

/* "mean load", "largest piece", "memory"; NULL for BOUND_NONE. */
const char *bound_term_name(enum bound_term term);

void bound_find(struct bound *bound, const struct parts *parts);

#endif
