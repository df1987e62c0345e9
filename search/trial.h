/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_TRIAL_H
#define NEUROSHARD_SEARCH_TRIAL_H

#include "core/bwd_memo.h"
#include "search/state.h"

/*
 * A change of some pieces, priced on the side: it costs the layout nothing
 * unless it is committed. In this order
 *
 *     trial_clear     of what was tried before
 *     trial_send ...  what goes and what comes (search/moves.h proposes)
 *     trial_join      pieces that meet become one
 *     trial_sum       what the touched devices would hold, and the excess
 *     tryouts_price   what they would cost, and the total
 *     layout_commit   or nothing
 *
 * All is O(what the changes touch), except that comm is asked of all devices.
 *
 * Pieces that meet. TorchRec takes all column pieces of a table on one device
 * for as wide as the first, and several cost more than one that is as wide as
 * all of them; as columns may be given out in any order, one it can always be.
 * So a change leaves one piece of the columns of a unit on a device at most,
 * and one piece of each row block; what was built together and never changed is
 * joined in the plan (plan_join_columns). Only where a plan is to be replaced,
 * pieces of equal widths that do not touch may stay as they stand.
 */

struct unit_moved {
    uint32_t unit;
    uint64_t bytes;
};

/* What a device has, as rebuild goes on (search/moves.h). */
struct estimate {
    double load_ms;
    uint64_t bytes;
    uint32_t room_quanta, held_quanta; /* of the unit that is poured */
};

struct trial {
    struct arena arena; /* of all that is [R] */
    struct snapshot changes;
    uint32_t *devices; /* [n_devices] that it touches; room for all */
    uint32_t n_devices;
    uint32_t *place; /* [R]: in `devices`, or NO_PIECE */
    uint32_t
        *n_in_block;    /* [layout_n_blocks]: devices of each that it touches */
    uint32_t *first_on; /* [R]: NO_PIECE but while pieces are joined or set
                           apart: trial_join, search/moves.h */
    bool is_apart;      /* what it puts meets nothing, or as in the plan to be
                           replaced: it is not joined */
    int64_t *n_held;    /* [n_devices] pieces then */
    uint64_t *bytes;    /* [n_devices] */
    double *sums;       /* [n_devices][width] */
    double *compute_ms; /* [n_devices]; where there are no terms the pricing's
                           that had it last, and so is: */
    double *terms_ms;   /* [n_devices][n_terms] */
    bool is_given_up;   /* whoever tries it knows that it will not come true:
                           it is not priced, where there are terms */
    double limit_ms;    /* what is worse may come true by chance alone, at a
                           chain's temperature; INFINITY: all may */
    double temperature_ms;
    double total_ms;
    double excess;            /* the layout's then */
    struct unit_moved *moved; /* [n_moved] units that it touches, with homes
                                 only; room for all */
    uint32_t n_moved;
    uint64_t all_moved_bytes;   /* the layout's then */
    struct estimate *estimates; /* [R]: while a change is thought of */
};

void trial_clear(struct trial *trial);
/* Where layouts are checked what is given up is made and priced all the same:
 * search/temper.c looks whether it is turned down. */
static inline bool trial_is_priced(const struct trial *trial)
{
    return !trial->is_given_up || layout_check_every;
}
/* The most that a layout may cost to come true, by the next draw, which stays
 * to be made. */
double trial_limit_ms(const struct trial *trial, const struct rng *rng);
/* So many quanta of a column piece go to another device; or, where n_quanta is
 * 0 or all that it has, the piece. */
void trial_send(struct trial *trial, const struct layout *layout,
                uint32_t piece, uint32_t n_quanta, uint32_t device);
static inline void trial_remove(struct trial *trial, uint32_t piece)
{
    *snapshot_next(&trial->changes) =
        (struct change){.piece = piece, .part = NO_PART};
}
/* All pieces of a unit go. */
static inline void trial_remove_unit(struct trial *trial,
                                     const struct layout *layout, uint32_t unit)
{
    for (uint32_t i = layout->first_of[unit]; i != NO_PIECE;
         i = layout->links[i].next)
        trial_remove(trial, i);
}
/* A piece comes; which one is not looked at. */
static inline void trial_add(struct trial *trial, struct change piece)
{
    piece.piece = NO_PIECE;
    *snapshot_next(&trial->changes) = piece;
}
/* The pieces that a unit has once the trial has come true: those that it puts,
 * in its order, then those that it leaves alone. It begins with the unit, the
 * first change to look at, and held = first_of[unit]. */
struct unit_walk {
    uint32_t unit;
    uint32_t c;          /* the change behind that of `piece` */
    uint32_t held, next; /* where it goes on */
    bool is_held;        /* the layout has `piece` already */
    struct change piece;
};
/* False at the end. What is walked may be changed, changes may be added. */
bool trial_walk(struct unit_walk *walk, const struct trial *trial,
                const struct layout *layout);
/* Before a trial is summed up: column pieces that it puts where some of their
 * unit are become one. False where it may not come true: where that would be a
 * whole table that may only be cut, where pieces of one row block meet, or
 * where columns of a sequence would be of several widths.
 * Nothing where trial->is_apart. */
bool trial_join(struct trial *trial, const struct layout *layout);

/* Adds up what the touched devices would hold. */
void trial_sum(struct trial *trial, const struct layout *layout);
/* The same of one device alone, before that: many trials need no more. */
const double *trial_sum_on(struct trial *trial, const struct layout *layout,
                           uint32_t device);

/* Where trials are priced, some together. */
struct pricing {
    struct bwd_memo memo; /* zeroed where comm is asked */
    double *sums; /* [n][R][width]: of touched devices, gathered, for compute;
                     then as of the trials, or of the memo's lane alone
                     [n][R]; owned, with: */
    double *compute_ms, *fwd_ms, *bwd_ms, *rows_ms; /* [n][R]; the last of what
                                                       was gathered */
};

/* Of n trials at most. */
void pricing_init(struct pricing *pricing, const struct parts *parts,
                  uint32_t n);
void pricing_release(struct pricing *pricing);

/* A layout, and one change of it at a time. */
struct tryout {
    struct layout layout;
    struct trial trial;
    struct pricing alone; /* of this one; without a memo, which is large */
    uint64_t n_priced;
    struct snapshot best; /* of several: its changes; its excess, and what it
                             comes to */
};

void tryout_init(struct tryout *tryout, const struct parts *parts);
/* Returns how many trials were priced. */
uint64_t tryout_release(struct tryout *tryout);

/* Prices the n trials, which were summed up. Totals may be no numbers. */
void tryouts_price(struct tryout *const *tryouts, uint32_t n,
                   struct pricing *pricing);

/* Prices tryout->trial, whose changes are in, pieces that meet joined: its
 * total, INFINITY where that is no number or pieces meet that must not
 * (trial_join), and its excess. layout_commit may follow. */
double tryout_price(struct tryout *tryout);

/* The best of several changes, one after the other: the least excess, then the
 * least of what they come to, the first of equal ones; it must be less than
 * these. */
void tryout_seek(struct tryout *tryout, double excess, double value);
/* The trial that was priced comes to so much, and to its excess; where that is
 * no number it is not the best. */
void tryout_note(struct tryout *tryout, double value);
/* The best that was noted comes true; false where there is none. */
bool tryout_make(struct tryout *tryout);

#endif
