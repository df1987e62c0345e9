/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_STATE_H
#define NEUROSHARD_SEARCH_STATE_H

#include "core/plan.h"
#include "search/search_space.h"

/*
 * Assignment of pieces to devices: the state of a search. It lists the pieces
 * by unit and by device, and keeps the sum of the pieces of each device. There
 * are two ways to change it: to commit a priced candidate (assignment_commit),
 * and to load a whole snapshot (snapshot_load). So everything that it keeps is
 * always up to date; search/assignment.c lists the invariants. For one thread
 * at a time.
 */

/* Index that stands for "no piece" or "no device". */
#define NO_PIECE UINT32_MAX
/* Special values of move_limit_bytes in re-planning. NO_MOVE_LIMIT: there is no
 * limit, and candidates do not count their migration. COUNT_MOVES: there is no
 * limit, but candidates count it. */
#define NO_MOVE_LIMIT UINT64_MAX
#define COUNT_MOVES (UINT64_MAX - 1)

/* A piece of an assignment. In a candidate: a changed piece, a new piece
 * (`piece` is NO_PIECE) or a removed piece (`part` is NO_TYPE). */
struct change {
    uint32_t piece; /* index in the assignment */
    uint32_t type;  /* piece type; NO_TYPE: the entry is free */
    uint32_t device;
    uint32_t range; /* column range of its unit; pieces of one range are its row
                       blocks */
    uint32_t block; /* row block; 0 if rows are not cut */
};

/* Position of a piece in the lists of the assignment. */
struct link {
    uint32_t next; /* next piece of its unit, or NO_PIECE */
    uint32_t slot; /* index in the list of its device */
};

/* Pieces on one device, in any order. Random draws choose an index of it. */
struct holding {
    uint32_t *pieces; /* [n], owned */
    uint32_t n;
    size_t capacity;
};

/* The assignment. R is the number of devices. "Terms" are those of the oracle
 * (core/oracle.h). */
struct assignment {
    const struct search_space *space; /* search space, not owned */
    struct arena arena;               /* holds the arrays that do not grow */
    uint32_t n_devices;
    struct change *pieces; /* [n_pieces], with free entries between */
    struct link *links;    /* [n_pieces] */
    size_t capacity, links_capacity;
    /* entries of `pieces`; first free entry or NO_PIECE; pieces */
    uint32_t n_pieces, first_free, n_live;
    uint32_t *first_of; /* [n_units]: first piece of a unit, or NO_PIECE */
    struct holding *holdings; /* [R] */
    uint32_t *n_commits;      /* [R]: commits since the sums were last added up
                                 from the pieces */
    double *sums;             /* [R][width] */
    double *compute_ms;       /* [R] */
    uint32_t n_terms; /* number of terms whose maxima make the total; 1 if the
                         oracle has none: then compute takes their place, though
                         the total comes from comm */
    double *terms_ms; /* [R][n_terms]; equals compute_ms if the oracle has no
                         terms */
    double *block_ms; /* [assignment_n_blocks][n_terms]: maximum of each term
                         over a block of devices */
    double *load_ms;  /* [R]: total of the terms of the device; if the oracle
                         has no terms, sum of the load_ms of its pieces */
    uint64_t *bytes;  /* [R] */
    double excess;    /* sum of assignment_excess over the devices, plus
                         migration_excess */
    uint64_t move_limit_bytes; /* limit on migration; NO_MOVE_LIMIT until the
                                  caller sets it */
    uint64_t *moved_bytes;     /* [n_units]: migration of each unit; NULL unless
                                  in re-planning; updated by assignment_price alone
                                  if move_limit_bytes is NO_MOVE_LIMIT */
    uint64_t all_moved_bytes;  /* sum of moved_bytes */
    double total_ms;           /* from the terms, or from comm if the oracle has
                                  none */
    uint32_t mix;    /* move mix of its chain: index into tuning->changes */
    bool is_partial; /* pieces are still missing; the caller sets it */
    uint32_t n_unchecked;              /* commits since the last check
                                          (assignment_check_every) */
    double most_ms[ORACLE_MAX_TERMS];  /* [n_terms]: maximum of each term over
                                          the devices */
    uint32_t leader[ORACLE_MAX_TERMS]; /* [n_terms]: first device that has the
                                          maximum */
    /* [n_terms]: rise of the total per rise of the term's maximum, as of the
     * last assignment_price. 1 if the total is the sum of the maxima. 0 if
     * another term hides this one by a wide margin: then it need not be
     * lowered. */
    double weight[ORACLE_MAX_TERMS];
};

/* Size of a block of devices. The maximum of each term is kept per block, so
 * the maximum over all devices except a few is found without visiting each of
 * them. */
#define ASSIGNMENT_BLOCK 32u
static inline uint32_t assignment_n_blocks(uint32_t n_devices)
{
    return (n_devices + ASSIGNMENT_BLOCK - 1) / ASSIGNMENT_BLOCK;
}

/* to[i] = from[i] + sign x vector[i] for i < width. from may equal to. */
static inline void add_lanes(double *to, const double *from,
                             const double *vector, double sign, size_t width)
{
    for (size_t w = 0; w < width; w++)
        to[w] = from[w] + sign * vector[w];
}

/* Returns true if candidates count their migration: in re-planning, unless
 * move_limit_bytes is NO_MOVE_LIMIT. Then assignment_price alone counts it. */
static inline bool assignment_counts_moves(const struct assignment *assignment)
{
    return assignment->space->current &&
           assignment->move_limit_bytes != NO_MOVE_LIMIT;
}

/* Allocates an assignment. It cannot be used before a snapshot has been loaded
 * (snapshot_load). */
void assignment_init(struct assignment *assignment,
                     const struct search_space *space);
void assignment_release(struct assignment *assignment);

/* Excess of a device that is one byte over its limit. */
#define ASSIGNMENT_ANY_EXCESS 0.002
/* Returns the excess of bytes over a limit: 0 if they keep it, else
 * ASSIGNMENT_ANY_EXCESS plus the exceeding bytes as a share of `whole`. For a
 * device `whole` is its usable memory. */
static inline double excess_over(uint64_t limit, uint64_t bytes, uint64_t whole)
{
    if (bytes <= limit)
        return 0;
    return ASSIGNMENT_ANY_EXCESS +
           (double)(bytes - limit) / ((double)whole + 1);
}
static inline double assignment_excess(const struct assignment *assignment,
                                       uint32_t device, uint64_t bytes)
{
    uint64_t room = assignment->space->room_bytes[device];

    return excess_over(room, bytes, room);
}

/* Applies a candidate that has been priced. */
struct candidate;
void assignment_commit(struct assignment *assignment,
                       const struct candidate *candidate);
/* The checker runs on every Nth commit of an assignment and aborts if something
 * is wrong; 0: never. N is 256 in debug and sanitizer builds (make
 * CHECK_EVERY=256) and 0 in others; tests set it before a search. The checker
 * is linked in those builds alone: tests/unit/search/assignment_check.h. */
extern uint32_t assignment_check_every;
extern void (*assignment_checker)(const struct assignment *assignment);
/* Adds everything up from the pieces and prices it. */
void assignment_price(struct assignment *assignment);
/* Returns the total by comm of a priced assignment (oracle_total_ms). */
double assignment_true_total(const struct assignment *assignment);

/* Snapshot of an assignment: its pieces, total and excess, but no sums, so a
 * copy costs no more than its pieces. A zeroed snapshot is empty. Also used as
 * a list of changes. */
struct snapshot {
    struct change *pieces; /* [n], owned; `piece` is unused in an assignment */
    uint32_t n;
    size_t capacity;
    double total_ms, excess;
    uint64_t moved_bytes; /* set for the points of a Pareto front only:
                             search/migration.h */
};

void snapshot_release(struct snapshot *snapshot);
/* Returns a new entry at the end, which the caller fills in place. A copy of an
 * entry built elsewhere would stall on the writes just made to it. */
static inline struct change *snapshot_next(struct snapshot *snapshot)
{
    if (snapshot->n == snapshot->capacity)
        snapshot->pieces =
            mem_room(snapshot->pieces, snapshot->n, &snapshot->capacity,
                     sizeof(*snapshot->pieces));
    return &snapshot->pieces[snapshot->n++];
}
/* Copies the pieces, total and excess. */
void snapshot_copy(struct snapshot *to, const struct snapshot *from);
/* Takes a snapshot of the assignment. */
void snapshot_save(struct snapshot *snapshot,
                   const struct assignment *assignment);
/* Replaces the whole assignment, and prices it. */
void snapshot_load(const struct snapshot *snapshot,
                   struct assignment *assignment);

/* Sets the excess, and the total by comm. */
void snapshot_price(struct snapshot *snapshot,
                    const struct search_space *space);

/* Writes the shards of the plan; they live in the arena. The pieces of a table
 * get their columns from the widest piece on. In re-planning they get columns
 * such that few of them move (search/migration.h). */
void snapshot_to_plan(const struct snapshot *snapshot,
                      const struct search_space *space, struct plan *plan,
                      struct arena *arena);
/* Merges column pieces that meet on a device, as candidate_join does
 * (search/candidate.h). Returns false if some may not be merged. */
bool snapshot_join(struct snapshot *snapshot, const struct search_space *space);

#endif
