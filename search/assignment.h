/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_ASSIGNMENT_H
#define NEUROSHARD_SEARCH_ASSIGNMENT_H

#include "core/plan.h"
#include "search/migration.h"

/*
 * Assignment of pieces to devices: the state of a search. It lists the pieces
 * by unit and by device, and keeps the sum of the pieces of each device. An
 * assignment changes in two ways only: by a commit of a priced candidate
 * (assignment_commit), and by loading a whole snapshot (snapshot_load). So its
 * lists and sums are always up to date; search/assignment.c lists the
 * invariants. Only one thread at a time may use an assignment.
 */

/* Position of a piece in the lists of the assignment. */
struct link {
    uint32_t next; /* next piece of its unit, or NO_PIECE */
    uint32_t slot; /* index of the piece in the list of its device */
};

/* List of the pieces on one device, in any order. A random piece of the device
 * is drawn by its index in the list. */
struct holding {
    uint32_t *pieces; /* [n], owned */
    uint32_t n;
    size_t capacity;
};

/* The assignment. R is the number of devices. "Terms" are the terms of the
 * oracle's cost (core/oracle.h). */
struct assignment {
    const struct search_space *space; /* search space, not owned */
    struct arena arena;               /* holds the arrays that do not grow */
    uint32_t n_devices;
    struct change *pieces; /* [n_pieces] pieces, with free entries among them */
    struct link *links;    /* [n_pieces] */
    size_t capacity, links_capacity;
    /* n_pieces: entries of `pieces`, free ones included. first_free: first free
     * entry, or NO_PIECE. n_live: number of pieces. */
    uint32_t n_pieces, first_free, n_live;
    uint32_t *first_of; /* [n_units]: first piece of a unit, or NO_PIECE */
    struct holding *holdings; /* [R] */
    uint32_t *n_commits;      /* [R]: commits since the sums were last added up
                                 from the pieces */
    double *sums;             /* [R][width] */
    double *compute_ms;       /* [R] */
    uint32_t n_terms; /* number of terms whose maxima add up to the total. If
                         the oracle has no terms, the number is 1: compute takes
                         the place of a term, and the total comes from comm */
    double *terms_ms; /* [R][n_terms]; equals compute_ms if the oracle has no
                         terms */
    double *block_ms; /* [assignment_n_blocks][n_terms]: maximum of each term
                         over each block of devices */
    /* [R]: load of each device, the sum of its terms. If the oracle has no
     * terms, it is the sum of the load_ms of the pieces on the device. */
    double *load_ms;
    uint64_t *bytes; /* [R] */
    /* [hosts]: bytes in the memory of each host; NULL if all tables are in the
     * memory of devices */
    uint64_t *host_bytes;
    double excess; /* sum of assignment_excess over the devices, and of
                        space_host_excess over the hosts, plus
                        migration_excess */
    uint64_t move_limit_bytes; /* limit on migration in bytes; NO_MOVE_LIMIT
                                  until the caller sets another */
    uint64_t *moved_bytes; /* [n_units]: migration of each unit; NULL except in
                              re-planning. If move_limit_bytes is NO_MOVE_LIMIT,
                              only assignment_price updates it */
    uint64_t all_moved_bytes; /* sum of moved_bytes */
    double total_ms; /* total, from the terms; from comm if the oracle has no
                        terms */
    uint32_t mix; /* move mix of the chain that uses the assignment: index into
                     tuning->changes */
    bool is_partial;      /* pieces are still missing; set by the caller */
    uint32_t n_unchecked; /* commits since the last check
                             (assignment_check_every) */
    double most_ms[ORACLE_MAX_TERMS];  /* [n_terms]: maximum of each term over
                                          the devices */
    uint32_t leader[ORACLE_MAX_TERMS]; /* [n_terms]: first device that has the
                                          maximum of the term */
    /* [n_terms]: rise of the total per rise of the term's maximum, computed by
     * the last assignment_price. The weight is 1 if the total is the sum of the
     * maxima. It is 0 if another term hides this term by a wide margin; then
     * there is no need to lower this term. */
    double weight[ORACLE_MAX_TERMS];
};

/* Size of a block of devices. The maximum of each term is kept per block, so
 * the maximum over all devices except a few is found without visiting every
 * device. */
#define ASSIGNMENT_BLOCK 32u
static inline uint32_t assignment_n_blocks(uint32_t n_devices)
{
    return (n_devices + ASSIGNMENT_BLOCK - 1) / ASSIGNMENT_BLOCK;
}

/* to[i] = from[i] + sign x vector[i] for i < width. `from` and `to` may be the
 * same array. */
static inline void add_lanes(double *to, const double *from,
                             const double *vector, double sign, size_t width)
{
    for (size_t w = 0; w < width; w++)
        to[w] = from[w] + sign * vector[w];
}

/* Returns true if candidates count their migration: in re-planning, unless
 * move_limit_bytes is NO_MOVE_LIMIT. With NO_MOVE_LIMIT only assignment_price
 * counts migration. */
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
/* Makes `to` equal to `from`, except for its mix. Both have been initialised
 * for one search space. This is about ten times as fast as loading a
 * snapshot. */
void assignment_copy(struct assignment *to, const struct assignment *from);

static inline double assignment_excess(const struct assignment *assignment,
                                       uint32_t device, uint64_t bytes)
{
    uint64_t room = assignment->space->room_bytes[device];

    return excess_over(room, bytes, room);
}

/* Migration of one unit. */
struct unit_moved {
    uint32_t unit;
    uint64_t bytes;
};

/* Effect of changes on an assignment: the values of the devices and units that
 * they touch, afterwards. R is the number of devices of the assignment. */
struct effect {
    uint32_t *devices; /* [n_devices] touched devices; has room for all R */
    uint32_t n_devices;
    uint64_t *bytes;    /* [n_devices]: bytes on the device */
    double *sums;       /* [n_devices][width]: sums of the device */
    double *compute_ms; /* [n_devices]: compute of the device. If the oracle has
                           no terms, this points into the `struct pricing` that
                           priced the changes last (search/evaluator.h) */
    double *terms_ms;   /* [n_devices][n_terms]: terms of the device; same as
                           compute_ms if the oracle has no terms */
    double total_ms;    /* total of the assignment */
    double excess;      /* excess of the assignment */
    /* [n_moved] touched units with their migration; only in re-planning; has
     * room for all units */
    struct unit_moved *moved;
    uint32_t n_moved;
    uint64_t all_moved_bytes; /* bytes of migration of the assignment */
};

/* Applies changes whose effect is known. */
void assignment_commit(struct assignment *assignment,
                       const struct snapshot *changes,
                       const struct effect *effect);
/* Number of commits of an assignment from one check of its invariants to the
 * next; 0: no checks. The default is 256 in debug and sanitizer builds (make
 * CHECK_EVERY=256), and 0 in other builds. Tests set it before a search. */
extern uint32_t assignment_check_every;
/* Checks the invariants, and aborts the program if one does not hold. It is
 * linked only in debug and sanitizer builds and in tests
 * (tests/unit/search/assignment_check.h); NULL in other programs. */
extern void (*assignment_checker)(const struct assignment *assignment);
/* Adds up all sums of the assignment from its pieces, and prices it. */
void assignment_price(struct assignment *assignment);
/* Returns the total of a priced assignment by the oracle's comm
 * (oracle_total_ms). */
double assignment_true_total(const struct assignment *assignment);

/* Takes a snapshot of the assignment. */
void snapshot_save(struct snapshot *snapshot,
                   const struct assignment *assignment);
/* Replaces the whole assignment by the snapshot, and prices the assignment. */
void snapshot_load(const struct snapshot *snapshot,
                   struct assignment *assignment);

/* Sets the excess of the snapshot, and its total by the oracle's comm. */
void snapshot_price(struct snapshot *snapshot,
                    const struct search_space *space);

#endif
