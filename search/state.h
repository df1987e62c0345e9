/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_STATE_H
#define NEUROSHARD_SEARCH_STATE_H

#include "core/plan.h"
#include "search/choices.h"

/*
 * An assignment of pieces to devices that is changed step by step: the pieces,
 * by unit and by device, and what each device has in sum. It is never changed
 * but by a trial that was priced and comes true (layout_commit), or as a whole
 * (snapshot_load), so what it keeps is always right; search/state.c says what
 * that means. One thread uses it at a time.
 */

#define NO_PIECE UINT32_MAX
/* Of the bytes that a layout moves, where a plan is to be replaced: none, and
 * trials do not count them; or none, but they do. */
#define NO_MOVE_LIMIT UINT64_MAX
#define COUNT_MOVES (UINT64_MAX - 1)

/* A piece of a layout, or one that a trial changes, brings (piece NO_PIECE) or
 * takes away (part NO_PART). */
struct change {
    uint32_t piece; /* in the layout */
    uint32_t part;  /* NO_PART: free */
    uint32_t device;
    uint32_t range; /* column range of its unit that it is of: pieces of
                       one range are its row blocks */
    uint32_t block; /* row block, 0 where rows are not cut */
};

/* Where a layout lists it. */
struct link {
    uint32_t next; /* of its unit, or NO_PIECE */
    uint32_t slot; /* in its device's list */
};

/* Pieces on one device, in any order: draws are of slots. */
struct holding {
    uint32_t *pieces; /* [n], owned */
    uint32_t n;
    size_t capacity;
};

struct layout {
    const struct parts *parts; /* not owned */
    struct arena arena;        /* of what does not grow */
    uint32_t n_devices;
    struct change *pieces; /* [n_pieces], with holes */
    struct link *links;    /* [n_pieces] */
    size_t capacity, links_capacity;
    uint32_t n_pieces, first_free, n_live;
    uint32_t *first_of;       /* [n_units]: a piece, or NO_PIECE */
    struct holding *holdings; /* [R] */
    uint32_t *n_commits;      /* [R] since sums were last added up afresh */
    double *sums;             /* [R][width] */
    double *compute_ms;       /* [R] */
    uint32_t n_terms;         /* whose maxima make the total; 1 where there are
                                 none: compute stands for it, though totals
                                 are comm's */
    double *terms_ms;         /* [R][n_terms]; or compute_ms */
    double *block_ms;         /* [layout_n_blocks][n_terms]: the largest of each
                                 over a block of devices */
    double *load_ms;          /* [R]: the sum of its pieces' load_ms; or,
                                 where there are terms, their total */
    uint64_t *bytes;          /* [R] */
    double excess;            /* sum over the devices of layout_excess, and
                                 homes_excess */
    uint64_t move_limit_bytes; /* NO_MOVE_LIMIT until the caller sets it */
    uint64_t *moved_bytes;     /* [n_units]; NULL without homes; as of
                                  layout_price where there is no limit */
    uint64_t all_moved_bytes;  /* their sum */
    double total_ms;           /* of comm, or where there are terms of those */
    uint32_t style;            /* of its chain: tuning->changes[style] */
    bool is_partial;           /* pieces are to come: the caller says so */
    uint32_t n_unchecked;      /* commits since: layout_check_every */
    double most_ms[ORACLE_MAX_TERMS];  /* [n_terms]: the largest of each over
                                          the devices, */
    uint32_t leader[ORACLE_MAX_TERMS]; /* and the first that has it */
    /* When all was last priced: by how much the total rises with each term's
     * largest; 1 where terms add up. What another term hides, and does not
     * come near, is 0 and need not be lowered. */
    double weight[ORACLE_MAX_TERMS];
};

/* Devices whose terms have a common maximum, so that the largest of all but a
 * few devices is found without a look at each. */
#define LAYOUT_BLOCK 32u
static inline uint32_t layout_n_blocks(uint32_t n_devices)
{
    return (n_devices + LAYOUT_BLOCK - 1) / LAYOUT_BLOCK;
}

/* to = from + sign x vector, where from may be to. */
static inline void add_lanes(double *to, const double *from,
                             const double *vector, double sign, size_t width)
{
    for (size_t w = 0; w < width; w++)
        to[w] = from[w] + sign * vector[w];
}

/* Without a limit movement is counted when all is priced, not in trials. */
static inline bool layout_counts_moves(const struct layout *layout)
{
    return layout->parts->homes && layout->move_limit_bytes != NO_MOVE_LIMIT;
}

/* It is no layout before pieces are loaded (snapshot_load). */
void layout_init(struct layout *layout, const struct parts *parts);
void layout_release(struct layout *layout);

/* A device that exceeds its memory by a byte is this bad. */
#define LAYOUT_ANY_EXCESS 0.002
/* How far bytes exceed a limit: 0 where they do not, else the excess as a share
 * of the whole, and a constant; of a device its memory. */
static inline double excess_over(uint64_t limit, uint64_t bytes, uint64_t whole)
{
    if (bytes <= limit)
        return 0;
    return LAYOUT_ANY_EXCESS + (double)(bytes - limit) / ((double)whole + 1);
}
static inline double layout_excess(const struct layout *layout, uint32_t device,
                                   uint64_t bytes)
{
    uint64_t room = layout->parts->room_bytes[device];

    return excess_over(room, bytes, room);
}

/* Makes the trial, which was priced, come true. */
struct trial;
void layout_commit(struct layout *layout, const struct trial *trial);
/* Every so manieth commit of a layout is looked at by the checker, which aborts
 * where something is wrong; 0: none. 256 in debug and sanitizer builds (make
 * CHECK_EVERY=256), else 0; tests set it before a search. The checker is linked
 * there alone: tests/unit/search/state_check.h. */
extern uint32_t layout_check_every;
extern void (*layout_checker)(const struct layout *layout);
/* Adds everything up afresh and prices it. */
void layout_price(struct layout *layout);
/* What comm says of a layout that was priced: oracle_total_ms. */
double layout_true_total(const struct layout *layout);

/* A layout laid by: its pieces, its total and its excess, but no sums, so that
 * best layouts are copied at the price of their pieces. Zeroed is empty. Also a
 * list of changes. */
struct snapshot {
    struct change *pieces; /* [n], owned; of a layout `piece` is no matter */
    uint32_t n;
    size_t capacity;
    double total_ms, excess;
    uint64_t moved_bytes; /* of what stands on a front: search/movement.h */
};

void snapshot_release(struct snapshot *snapshot);
/* Where one more goes, to be filled in place: a copy of what was put together a
 * moment ago would be waited for. */
static inline struct change *snapshot_next(struct snapshot *snapshot)
{
    if (snapshot->n == snapshot->capacity)
        snapshot->pieces =
            mem_room(snapshot->pieces, snapshot->n, &snapshot->capacity,
                     sizeof(*snapshot->pieces));
    return &snapshot->pieces[snapshot->n++];
}
void snapshot_copy(struct snapshot *to, const struct snapshot *from);
void snapshot_save(struct snapshot *snapshot, const struct layout *layout);
void snapshot_load(const struct snapshot *snapshot, struct layout *layout);

/* Sets the excess, and the total as comm prices it. */
void snapshot_price(struct snapshot *snapshot, const struct parts *parts);

/* Columns are given out from the widest piece on; or where a plan is to be
 * replaced such that few move (search/movement.h). The shards live in the
 * arena. */
void snapshot_to_plan(const struct snapshot *snapshot,
                      const struct parts *parts, struct plan *plan,
                      struct arena *arena);
/* Column pieces that meet become one, as trial_join does (search/trial.h). */
bool snapshot_join(struct snapshot *snapshot, const struct parts *parts);

#endif
