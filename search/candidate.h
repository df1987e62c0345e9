/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_CANDIDATE_H
#define NEUROSHARD_SEARCH_CANDIDATE_H

#include "core/bwd_memo.h"
#include "search/assignment.h"

/*
 * Candidates: a candidate is a set of changes of an assignment, evaluated
 * without changing the assignment. So to reject a candidate costs nothing. The
 * functions are called in this order:
 *
 *     candidate_clear     forgets the previous candidate
 *     candidate_send ...  add changes: pieces to remove, move or add
 *                     (search/moves.h proposes them)
 *     candidate_join      merges column pieces that meet on a device
 *     candidate_sum       adds up the touched devices, and the excess
 *     evaluators_price   prices them, and the total
 *     candidate_commit   applies the candidate; left out if it is rejected
 *
 * Each function takes O(size of the changes), except that the oracle's comm
 * prices all devices.
 *
 * Pieces that meet. If a device has several column pieces of a table, TorchRec
 * assumes that all of these pieces are as wide as the first. Several pieces
 * also cost more than one piece of their total width. The pieces can always be
 * merged into one, because the columns of a table may be given to its pieces in
 * any order. So a candidate leaves at most one column piece of a unit on a
 * device, and at most one piece of each row block. Pieces that a builder placed
 * on the same device, and that no candidate has changed, are merged only in the
 * plan (plan_join_columns). In re-planning only, pieces of equal widths that do
 * not touch may stay separate, as in the current plan.
 */

/* Estimated state of a device while a ruin-and-recreate move is built
 * (search/moves.h). */
struct device_estimate {
    double load_ms;
    uint64_t bytes;
    /* for the unit that is being placed: width steps that the device has room
     * for; width steps that it gets */
    uint32_t free_steps, held_steps;
};

/* A candidate. R is the number of devices of the assignment. "Afterwards"
 * means: after the candidate is committed. */
struct candidate {
    struct arena arena;      /* arena that holds the arrays below */
    struct snapshot changes; /* list of the changes */
    struct effect after;     /* values after the candidate is committed */
    uint32_t
        *place; /* [R]: index of the device in after.devices, or NO_PIECE */
    uint32_t *n_in_block; /* [assignment_n_blocks]: number of devices that the
                             candidate touches in each block of devices */
    uint32_t *first_on;   /* [R]: scratch of candidate_join. search/moves.h uses
                             it, too, to keep pieces of a unit on different
                             devices. NO_PIECE while unused */
    bool is_apart; /* candidate_join is not needed, because each piece that the
                      candidate adds is the only piece of its unit on its
                      device, or shares its device with other pieces of the unit
                      only as in the current plan */
    uint64_t *host_bytes; /* [hosts]: bytes of tables in the memory of each
                             host, which candidate_sum adds up; NULL if no
                             table may be there */
    /* [after.n_devices]: number of pieces on the device afterwards */
    int64_t *n_held;
    bool is_given_up; /* the candidate is sure to be rejected; if the oracle has
                         terms, it is then not priced */
    double limit_ms;  /* a total above this limit is accepted only by chance, by
                         the temperature of the chain; INFINITY: no limit */
    double temperature_ms;
    /* [R]: scratch that is used while changes are chosen */
    struct device_estimate *estimates;
};

/* Removes all changes and sums from the candidate. */
void candidate_clear(struct candidate *candidate);
/* Returns true if the candidate has to be priced. A candidate that is given up
 * is not priced, unless assignments are checked (assignment_check_every): then
 * search/temper.c asserts that it would have been rejected. */
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
/* Adds the removal of a piece to the candidate. */
static inline void candidate_remove(struct candidate *candidate, uint32_t piece)
{
    *snapshot_next(&candidate->changes) =
        (struct change){.piece = piece, .type = NO_TYPE};
}
/* Adds the removal of all pieces of a unit to the candidate. */
static inline void candidate_remove_unit(struct candidate *candidate,
                                         const struct assignment *assignment,
                                         uint32_t unit)
{
    for (uint32_t i = assignment->first_of[unit]; i != NO_PIECE;
         i = assignment->links[i].next)
        candidate_remove(candidate, i);
}
/* Adds a new piece to the candidate. The member piece.piece is ignored. */
static inline void candidate_add(struct candidate *candidate,
                                 struct change piece)
{
    piece.piece = NO_PIECE;
    *snapshot_next(&candidate->changes) = piece;
}
/* Iterator over the pieces that a unit will have after the candidate: first the
 * pieces that the candidate adds or moves, in the order of its changes, then
 * the pieces that it does not change. Before the first step set `unit` to the
 * unit, `c` to the index of the first change to visit, `held` to
 * first_of[unit], and the other members to 0. */
struct unit_walk {
    uint32_t unit;
    uint32_t c; /* index of the next change to visit */
    /* held: next piece of the assignment to visit. next: index of the change at
     * which the search for a change of this piece begins. */
    uint32_t held, next;
    bool is_held; /* `piece` is in the assignment and the candidate does not
                     change it */
    struct change piece; /* current piece */
};
/* Goes to the next piece; returns false at the end. During the iteration the
 * caller may alter the change that is being visited, and append changes. */
bool candidate_walk(struct unit_walk *walk, const struct candidate *candidate,
                    const struct assignment *assignment);
/* Merges column pieces that the candidate would place on a device with other
 * column pieces of their unit. Call it before candidate_sum. Does nothing if
 * candidate->is_apart. Returns false if the candidate is not allowed, because
 *
 * - the merged piece would be a whole table that may only be cut,
 * - pieces would be merged that keep their columns (current->keeps_cuts),
 * - pieces of one row block meet on a device, or
 * - column pieces of a sequence table would have different widths. */
bool candidate_join(struct candidate *candidate,
                    const struct assignment *assignment);

/* Adds up the pieces of each device that the candidate touches, and the excess
 * of the assignment. */
void candidate_sum(struct candidate *candidate,
                   const struct assignment *assignment);
/* Applies a candidate that has been priced (search/evaluator.h) to its
 * assignment. */
static inline void candidate_commit(struct assignment *assignment,
                                    const struct candidate *candidate)
{
    assignment_commit(assignment, &candidate->changes, &candidate->after);
}
/* Adds up the pieces of one device only, and returns its sums, [width]. The
 * sums of one device are enough to reject many candidates. Call it before
 * candidate_sum. */
const double *candidate_sum_on(struct candidate *candidate,
                               const struct assignment *assignment,
                               uint32_t device);

#endif
