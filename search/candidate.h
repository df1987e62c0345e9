/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_CANDIDATE_H
#define NEUROSHARD_SEARCH_CANDIDATE_H

#include "core/bwd_memo.h"
#include "search/assignment.h"

/*
 * Candidates: a candidate is a set of changes of an assignment, evaluated
 * without changing the assignment. It costs nothing unless it is committed. The
 * functions are called in this order:
 *
 *     candidate_clear     forgets the previous candidate
 *     candidate_send ...  add changes: pieces to remove, move or add
 *                     (search/moves.h proposes them)
 *     candidate_join      merges column pieces that meet on a device
 *     candidate_sum       adds up the touched devices, and the excess
 *     evaluators_price   prices them, and the total
 *     assignment_commit   applies the candidate; left out if it is rejected
 *
 * Each takes O(size of the changes), except that comm prices all devices.
 *
 * Pieces that meet. If a device has several column pieces of a table, TorchRec
 * assumes that all are as wide as the first one. Several pieces also cost more
 * than one piece of their total width. They can always be merged into one,
 * because columns may be given out in any order. So a candidate leaves at most
 * one column piece of a unit on a device, and one piece of each row block.
 * Pieces that a builder placed together and no candidate changed are merged in
 * the plan (plan_join_columns). In re-planning only, pieces of equal widths
 * that do not touch may stay separate, as in the current plan.
 */

/* Migration of one unit. */
struct unit_moved {
    uint32_t unit;
    uint64_t bytes;
};

/* Estimated state of a device while a ruin-and-recreate move is built
 * (search/moves.h). */
struct device_estimate {
    double load_ms;
    uint64_t bytes;
    uint32_t free_steps, held_steps; /* width steps of the unit being placed:
                                          that it has room for, that it gets */
};

/* A candidate. R is the number of devices of the assignment. "Afterwards" means
 * after the candidate is committed. */
struct candidate {
    struct arena arena;      /* holds the arrays */
    struct snapshot changes; /* list of the changes */
    uint32_t *devices; /* [n_devices] that it touches; has room for all R */
    uint32_t n_devices;
    uint32_t *place; /* [R]: index of the device in `devices`, or NO_PIECE */
    uint32_t *n_in_block; /* [assignment_n_blocks]: number of devices that it
                             touches in each block of devices */
    uint32_t *first_on; /* [R]: scratch of candidate_join, and of search/moves.h
                           to keep pieces apart; NO_PIECE otherwise */
    bool is_apart;      /* candidate_join is not needed: the pieces that it adds
                           share no device with others of their unit, or only as
                           in the current plan */
    int64_t *n_held;    /* [n_devices]: number of pieces afterwards */
    uint64_t *bytes;    /* [n_devices] afterwards */
    double *sums;       /* [n_devices][width] afterwards */
    double *compute_ms; /* [n_devices]; if the oracle has no terms, this points
                           into the `struct pricing` that priced it last */
    double *terms_ms;   /* [n_devices][n_terms]; if the oracle has no terms, the
                           same as compute_ms */
    bool is_given_up;   /* the candidate is known to be rejected; it is not
                           priced if the oracle has terms */
    double limit_ms;    /* higher totals are accepted only by chance, at the
                           temperature of the chain; INFINITY: no limit */
    double temperature_ms;
    double total_ms;          /* afterwards */
    double excess;            /* of the assignment afterwards */
    struct unit_moved *moved; /* [n_moved] units that it touches and their
                                 migration; in re-planning only; has room for
                                 all units */
    uint32_t n_moved;
    uint64_t all_moved_bytes; /* migration of the assignment afterwards */
    struct device_estimate
        *estimates; /* [R]: scratch while changes are chosen */
};

/* Forgets all changes and sums. */
void candidate_clear(struct candidate *candidate);
/* Returns true if the candidate has to be priced. A given-up candidate does
 * not, unless assignments are checked: then search/temper.c asserts that it
 * would have been rejected. */
static inline bool candidate_is_priced(const struct candidate *candidate)
{
    return !candidate->is_given_up || assignment_check_every;
}
/* Returns the highest total at which the chain accepts the candidate, given the
 * next random number of rng. Does not advance rng. */
double candidate_limit_ms(const struct candidate *candidate,
                          const struct rng *rng);
/* Moves n_width_steps width steps of a column piece to another device. Moves
 * the whole piece if n_width_steps is 0 or its full width. */
void candidate_send(struct candidate *candidate,
                    const struct assignment *assignment, uint32_t piece,
                    uint32_t n_width_steps, uint32_t device);
/* Removes a piece. */
static inline void candidate_remove(struct candidate *candidate, uint32_t piece)
{
    *snapshot_next(&candidate->changes) =
        (struct change){.piece = piece, .type = NO_TYPE};
}
/* Removes all pieces of a unit. */
static inline void candidate_remove_unit(struct candidate *candidate,
                                         const struct assignment *assignment,
                                         uint32_t unit)
{
    for (uint32_t i = assignment->first_of[unit]; i != NO_PIECE;
         i = assignment->links[i].next)
        candidate_remove(candidate, i);
}
/* Adds a new piece. Ignores piece.piece. */
static inline void candidate_add(struct candidate *candidate,
                                 struct change piece)
{
    piece.piece = NO_PIECE;
    *snapshot_next(&candidate->changes) = piece;
}
/* Iterator over the pieces that a unit will have after the candidate: first the
 * pieces that the candidate adds or moves, in its order, then those that it
 * leaves alone. To begin, set unit, c to the first change to visit, and held to
 * first_of[unit], and zero the rest. */
struct unit_walk {
    uint32_t unit;
    uint32_t c; /* index of the change after the one that gave `piece` */
    /* next piece of the assignment to visit; index at which the search for a
     * change of it begins */
    uint32_t held, next;
    bool is_held;        /* `piece` is in the assignment and left alone */
    struct change piece; /* current piece */
};
/* Goes to the next piece; returns false at the end. The caller may alter the
 * visited change and append changes meanwhile. */
bool candidate_walk(struct unit_walk *walk, const struct candidate *candidate,
                    const struct assignment *assignment);
/* Merges column pieces that the candidate would place on a device with other
 * column pieces of their unit. Call it before candidate_sum. Does nothing if
 * candidate->is_apart. Returns false if the candidate is not allowed, because
 *
 * - the merged piece would be a whole table that may only be cut,
 * - pieces of one row block meet on a device, or
 * - columns of a sequence table would have several widths. */
bool candidate_join(struct candidate *candidate,
                    const struct assignment *assignment);

/* Adds up the pieces of each touched device, and the excess. */
void candidate_sum(struct candidate *candidate,
                   const struct assignment *assignment);
/* Returns the sums, [width], of one device alone. Many candidates are rejected
 * on these sums alone. Call it before candidate_sum. */
const double *candidate_sum_on(struct candidate *candidate,
                               const struct assignment *assignment,
                               uint32_t device);

/* Buffers to price up to n candidates in one batch. Unused if the oracle has
 * terms. */
struct pricing {
    struct bwd_memo memo; /* known backward exchanges; zeroed if comm is used */
    /* [n][R][width], owned; the block also holds the arrays below. First the
     * sums of all touched devices, gathered for ops->compute. Then the sums of
     * all devices of each candidate; with a memo only the lane that it needs,
     * [n][R]. */
    double *sums;
    /* [n][R] each; rows_ms has the compute times of the gathered devices. */
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
    struct pricing alone; /* buffers for this evaluator alone; without a memo,
                             because a memo is large */
    uint64_t n_priced;    /* number of candidates priced */
    struct snapshot best; /* best candidate noted: its changes, its excess, and
                             its value as total_ms */
};

void evaluator_init(struct evaluator *evaluator,
                    const struct search_space *space);
/* Frees the contents. Returns the number of candidates priced. */
uint64_t evaluator_release(struct evaluator *evaluator);

/* Prices the candidates of n evaluators in one batch. All have been summed up
 * by candidate_sum. Totals may be NaN. */
void evaluators_price(struct evaluator *const *evaluators, uint32_t n,
                      struct pricing *pricing);

/* Prices evaluator->trial, to which all changes have been added. Merges pieces
 * that meet, and sets its total and its excess. Returns the total, or INFINITY
 * if it is not finite or if the candidate is not allowed (candidate_join).
 * assignment_commit may follow. */
double evaluator_price(struct evaluator *evaluator);

/* Begins to look for the best of several candidates, which are evaluated one
 * after the other. The best has the least excess, then the least value; among
 * equals the first wins. It must be better than this excess and value. */
void evaluator_seek(struct evaluator *evaluator, double excess, double value);
/* Notes the priced candidate with this value if it is the best so far. Ignores
 * values that are not finite. */
void evaluator_note(struct evaluator *evaluator, double value);
/* Commits the best candidate noted. Returns false if no candidate was noted. */
bool evaluator_make(struct evaluator *evaluator);

#endif
