/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_EVALUATOR_H
#define NEUROSHARD_SEARCH_EVALUATOR_H

#include "core/bwd_memo.h"
#include "search/candidate.h"

/* Prices candidates: one at a time, or those of many chains in one batch. */

/* Buffers to price up to n candidates in one batch. The buffers are not used if
 * the oracle has terms. */
struct pricing {
    struct bwd_memo memo; /* backward exchanges that were priced before; zeroed
                             if the oracle's comm prices them */
    /* [n][R][width], owned; the memory block also holds the arrays below. Each
     * batch fills `sums` twice: first with the sums of all touched devices,
     * gathered for ops->compute, and then with the sums of all devices of each
     * candidate. With a memo the second filling has only the lane that the memo
     * needs, [n][R]. */
    double *sums;
    /* Four arrays of [n][R]. rows_ms has the compute times of the touched
     * devices, gathered in one list. */
    double *compute_ms, *fwd_ms, *bwd_ms, *rows_ms;
};

/* Allocates buffers for up to n candidates. */
void pricing_init(struct pricing *pricing, const struct search_space *space,
                  uint32_t n);
void pricing_release(struct pricing *pricing);

/* Evaluator: an assignment and one candidate of it at a time. */
struct evaluator {
    struct assignment assignment;
    struct candidate candidate;
    struct pricing alone; /* buffers to price one candidate of this evaluator;
                             they have no memo, because a memo is large */
    uint64_t n_priced;    /* number of candidates priced */
    struct snapshot best; /* changes and excess of the best candidate noted
                             since evaluator_seek; total_ms is its value */
};

void evaluator_init(struct evaluator *evaluator,
                    const struct search_space *space);
/* Frees the contents. Returns the number of candidates priced. */
uint64_t evaluator_release(struct evaluator *evaluator);

/* Prices the candidates of n evaluators in one batch. candidate_sum must have
 * been called for all of these candidates. The resulting totals may be NaN. */
void evaluators_price(struct evaluator *const *evaluators, uint32_t n,
                      struct pricing *pricing);

/* Prices the candidate of the evaluator, to which all changes have been added.
 * Merges pieces that meet on a device, and sets the total and the excess of the
 * candidate. Returns the total, or INFINITY if the total is not finite or if
 * the candidate is not allowed (candidate_join). candidate_commit may
 * follow. */
double evaluator_price(struct evaluator *evaluator);

/* Begins to look for the best of several candidates, which are evaluated one
 * after the other. The best has the least excess, then the least value; among
 * equals the first wins. The best must also be better than the excess and the
 * value given here. */
void evaluator_seek(struct evaluator *evaluator, double excess, double value);
/* Notes the priced candidate if, with this value, it is the best since
 * evaluator_seek. Ignores values that are not finite. */
void evaluator_note(struct evaluator *evaluator, double value);
/* Commits the best candidate noted. Returns false if no candidate was noted. */
bool evaluator_make(struct evaluator *evaluator);

#endif
