/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_LAYOUT_H
#define NEUROSHARD_SEARCH_LAYOUT_H

#include "search/choices.h"

/*
 * An assignment of pieces to devices that is changed step by step: the pieces,
 * by unit and by device, and what each device has in sum. A trial is a change
 * of some pieces, priced on the side: it costs the layout nothing unless it is
 * committed.
 */

#define NO_PIECE UINT32_MAX
/* Of the bytes that a layout moves, where a plan is to be replaced: none, and
 * trials do not count them; or none, but they do. */
#define NO_MOVE_LIMIT UINT64_MAX
#define COUNT_MOVES (UINT64_MAX - 1)

struct piece {
    uint32_t part; /* NO_PART: free */
    uint32_t device;
    uint32_t range;      /* column range of its unit that it is of: pieces of
                            one range are its row blocks */
    uint32_t block;      /* row block, 0 where rows are not cut */
    uint32_t prev, next; /* of its unit, or NO_PIECE */
    uint32_t slot;       /* in its device's list */
};

/* Pieces on one device. */
struct holding {
    uint32_t *pieces; /* [n], owned */
    uint32_t n, capacity;
};

struct layout {
    const struct parts *parts; /* not owned */
    uint32_t n_devices;
    struct piece *pieces; /* [n_pieces], with holes */
    uint32_t n_pieces, capacity, first_free, n_live;
    uint32_t *first_of;        /* [n_units]: a piece, or NO_PIECE */
    struct holding *holdings;  /* [R] */
    uint32_t *n_commits;       /* [R] since sums were last added up afresh */
    double *sums;              /* [R][width] */
    double *compute_ms;        /* [R] */
    double *terms_ms;          /* [R][n_terms]; NULL where there are none */
    double *local_ms;          /* [R]: sum of its terms, or its compute */
    double *load_ms;           /* [R]: local_ms where there are terms, else the
                                  sum of its pieces' marginal_ms */
    uint64_t *bytes;           /* [R] */
    double excess;             /* sum over the devices of layout_excess, and
                                  homes_excess */
    uint64_t move_limit_bytes; /* NO_MOVE_LIMIT until the caller sets it */
    uint64_t *moved_bytes;     /* [n_units]; NULL without homes; as of
                                  layout_price where there is no limit */
    uint64_t all_moved_bytes;  /* their sum */
    double total_ms;           /* of comm, or where there are terms of those */
    uint32_t slowest, fastest; /* devices, by local_ms */
    bool is_partial;           /* pieces are to come: the caller says so */
    uint32_t n_unchecked;      /* commits since: search/layout_check.h */
    struct top *tops;          /* [n_terms] */
};

/* The largest of a term over the devices, and the runners-up. */
#define TOP_DEVICES 5
struct top {
    uint32_t n, device[TOP_DEVICES];
    double ms[TOP_DEVICES];
};

struct unit_moved {
    uint32_t unit;
    uint64_t bytes;
};

/* A piece that goes (part NO_PART), comes (piece NO_PIECE) or changes. */
struct change {
    uint32_t piece, part, device, range, block;
};

struct trial {
    struct change *changes; /* [n_changes] */
    uint32_t n_changes, changes_capacity;
    uint32_t *devices; /* [n_devices] that it touches */
    uint32_t n_devices, devices_capacity;
    uint32_t *place;    /* [R]: in `devices`, or NO_PIECE */
    uint32_t *first_on; /* [R]: NO_PIECE but while pieces are joined or set
                           apart: search/join.h, search/rebuild.h */
    bool is_home;       /* puts pieces where the plan to be replaced has them */
    int64_t *n_held;    /* [n_devices] pieces then */
    uint64_t *bytes;    /* [n_devices] */
    double *sums;       /* [n_devices][width] */
    double *compute_ms; /* [n_devices] */
    double *terms_ms;   /* [n_devices][n_terms] */
    double total_ms;
    double excess;            /* the layout's then */
    struct unit_moved *moved; /* [n_moved] units that it touches, with homes
                                 only */
    uint32_t n_moved, moved_capacity;
    uint64_t all_moved_bytes; /* the layout's then */
    /* Room for estimates while a change is thought of: search/rebuild.h. All
     * [R]. */
    double *load_ms;
    uint64_t *load_bytes;
    uint32_t *room_quanta, *held_quanta;
};

/* Without a limit movement is counted when all is priced, not in trials. */
static inline bool layout_counts_moves(const struct layout *layout)
{
    return layout->parts->homes && layout->move_limit_bytes != NO_MOVE_LIMIT;
}

void layout_init(struct layout *layout, const struct parts *parts);
void layout_release(struct layout *layout);
void layout_clear(struct layout *layout);
/* Puts a piece there (change->piece is not looked at); layout_price must
 * follow. */
void layout_insert(struct layout *layout, const struct change *change);

void trial_init(struct trial *trial, const struct layout *layout);
void trial_release(struct trial *trial);
void trial_clear(struct trial *trial);
/* The piece becomes one of this part, on this device. */
void trial_change(struct trial *trial, const struct layout *layout,
                  uint32_t piece, uint32_t part, uint32_t device);
void trial_move(struct trial *trial, const struct layout *layout,
                uint32_t piece, uint32_t device);
/* So many quanta of a column piece, but not all, go to another device. */
void trial_split(struct trial *trial, const struct layout *layout,
                 uint32_t piece, uint32_t n_quanta, uint32_t device);
void trial_remove(struct trial *trial, uint32_t piece);
void trial_remove_unit(struct trial *trial, const struct layout *layout,
                       uint32_t unit);
/* A piece comes; which one is not looked at. */
void trial_add(struct trial *trial, struct change piece);
/* What the trial does with this piece, or NULL. *next is where to look first,
 * 0 for a first piece: where many change, they do in the order of their unit's
 * list. */
const struct change *trial_find(const struct trial *trial, uint32_t piece,
                                uint32_t *next);
/* Adds up what the touched devices would hold. */
void trial_sum(struct trial *trial, const struct layout *layout);
/* The total by terms; compute_ms must be there. */
void trial_price_terms(struct trial *trial, const struct layout *layout);

/* Eighth power: devices near the slowest one count, the others hardly do. */
static inline double layout_heaviness(double ms, double most_ms)
{
    double x = most_ms > 0 ? ms / most_ms : 0;

    x *= x;
    x *= x;
    return x * x * most_ms;
}

/* A device that exceeds its memory by a byte is this bad. */
#define LAYOUT_ANY_EXCESS 0.002
/* How far a device exceeds its memory: 0 where it does not, else the excess as
 * a share of its room, and a constant. */
static inline double layout_excess(const struct layout *layout, uint32_t device,
                                   uint64_t bytes)
{
    uint64_t room = layout->parts->units->room_bytes[device];

    return bytes <= room ? 0
                         : LAYOUT_ANY_EXCESS +
                               (double)(bytes - room) / ((double)room + 1);
}

/* Makes the trial, which was priced, come true. */
void layout_commit(struct layout *layout, const struct trial *trial);
/* Adds everything up afresh and prices it. */
void layout_price(struct layout *layout);
/* What comm says of a layout that was priced: oracle_total_ms. */
double layout_true_total(const struct layout *layout);

#endif
