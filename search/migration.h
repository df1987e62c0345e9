/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_MIGRATION_H
#define NEUROSHARD_SEARCH_MIGRATION_H

#include "core/plan_moves.h"
#include "search/candidate.h"
#include "search/finish.h"
#include "search/search.h"

/*
 * Current plan and migration, for re-planning. Migration is counted as in
 * core/plan_moves.h. An assignment knows the widths and devices of its column
 * pieces but not their columns. So each column piece is given columns such that
 * few columns move.
 */

/* The current plan, which a new plan replaces. */
struct current_plan {
    struct table_pieces *before; /* [n_tables] pieces of each table in the
                                    current plan; `table` is NULL if the table
                                    is new */
    /* [n_tables]: the pieces in `before`, adapted to the number of rows that
     * the table has today. Row blocks begin at the same rows as before, and the
     * last block ends at the end of the table. Row blocks whose rows no longer
     * exist are left out. Pieces of a table that are then on the same device
     * are merged, as plan_join_columns does, and the kinds of the shards are
     * derived again. A table has no pieces here if it is new or if its number
     * of columns has changed. */
    struct table_pieces *standing;
    struct shard *shards; /* [n_shards]: all pieces of `standing`, sorted */
    size_t n_shards;
    uint64_t held_bytes; /* bytes in the current plan of all tables that still
                            exist */
    /* assignment nearest to the current plan; the caller fills it with
     * carry_over and releases it */
    struct assignment nearest;
};

/* Finds the tables of `from`, the current plan, in the problem by name. `from`
 * must live longer than `current`. The arrays of `current` live in the
 * arena. */
void current_init(struct current_plan *current, const struct problem *problem,
                  const struct plan *from, struct arena *arena);

/* Adds changes to the candidate that place this unit as it is in the current
 * plan. Adds nothing if the unit is already placed like this. */
void current_propose(struct candidate *candidate,
                     const struct assignment *assignment, uint32_t unit);

/* Sorts the n column pieces of a table; the pieces then get their columns in
 * this order. The order is chosen such that few columns move. It is built piece
 * by piece. The next piece is the one with the largest advantage of this
 * position over its best later position, counted in columns that its device
 * keeps. If the pieces are the same as in the current plan, they get the same
 * columns as in the current plan. The result does not depend on the initial
 * order of the pieces. Takes O(n^2). */
void current_order(const struct search_space *space, uint32_t table,
                   struct change *pieces, uint32_t n);

/* Counts the migration of all units of the assignment. */
void migration_count(struct assignment *assignment);
/* Counts the migration of the units that the candidate changes, and adds the
 * excess over the migration limit to the excess of the candidate. */
void migration_count_candidate(struct candidate *candidate,
                               const struct assignment *assignment);

/* Returns the excess of these bytes over the migration limit of the assignment:
 * 0 if the bytes keep the limit, else a constant plus the bytes above the limit
 * as a share of the bytes of all tables. */
double migration_excess(const struct assignment *assignment,
                        uint64_t moved_bytes);

/*
 * Renames the GPUs of an assignment such that few bytes move: a GPU gets the
 * name of a GPU that already holds many of its bytes in the current plan. This
 * is the assignment problem of combinatorial optimization. It is solved by
 * swaps of two names, first for the GPUs of each pair of hosts, then for the
 * hosts. GPUs of one host stay on one host. So the cost does not change if the
 * cost model treats all GPUs and all hosts the same. The caller prices the
 * result.
 *
 * Pieces on every GPU, row blocks in the order of the ranks and pinned pieces
 * stay where they are. Nothing is renamed if there are more than
 * RENAME_MAX_GPUS GPUs per host, more than RENAME_MAX_GPUS hosts, or more than
 * RENAME_MOST_GPUS GPUs in all. For RENAME_MOST_GPUS GPUs the matrix of pairs
 * takes 512 MiB.
 */
#define RENAME_MAX_GPUS 1024u
#define RENAME_MOST_GPUS 8192u
void rename_gpus(struct snapshot *snapshot, const struct search_space *space);

/* Assigns a different column to each of n rows and writes it to column_of[n].
 * Starts with column i for row i, and swaps the columns of two rows as long as
 * this raises the sum of value[row * stride + column]. No value may be
 * negative. Returns the sum. If each row has a value above 0 in one column
 * only, and this column differs from row to row, every row gets its column: the
 * swap with the row that holds the column raises the sum. */
double assign_by_swaps(uint32_t *column_of, const double *value, size_t stride,
                       uint32_t n);

/* Converts a plan of this problem to an assignment. Pieces of a table that are
 * on the same device are merged. Returns false if the plan has pieces that the
 * search space does not have. */
bool snapshot_from_plan(struct snapshot *out, const struct search_space *space,
                        const struct plan *plan);

/*
 * Fills *out with the assignment nearest to the current plan (space->current).
 * Pieces stay on their device if the device still exists and the table can
 * still be cut in this way. All other pieces are placed one by one, those of
 * the dearest units first:
 *
 * - A piece whose device is gone goes to the best device.
 * - A table that is new, or that can no longer be cut as it is, gets the best
 *   sharding. rebuild (search/moves.h) places its pieces.
 *
 * The best choice is the one after which the assignment so far has the least
 * excess. Among equal excess it is the one with the least total. The result may
 * exceed the memory and the migration limit.
 */
void carry_over(struct snapshot *out, const struct search_space *space);

/*
 * Pareto front and state of search_replan.
 */

/* Maximum number of points of the front. If there would be more, the point with
 * the least gain is dropped. The first and the last point are never dropped. */
#define FRONT_MAX 64
/* Least difference between two totals, as a share, that counts as an
 * improvement. Smaller differences are rounding errors, because sums are added
 * up in different orders. A new assignment that is better by less does not
 * replace the current one. */
#define ROUNDING_FRAC 1e-9
/* Pareto front: assignments that keep the memory limits. No point has both more
 * migration and a higher total than another point. Migration rises and totals
 * fall from point to point. */
struct front {
    struct snapshot points[FRONT_MAX]; /* priced, owned */
    uint32_t n;
};

/* Adds a point to the front. Returns its snapshot, which the caller fills,
 * including the total, or NULL if the point does not belong on the front. */
struct snapshot *front_add(struct front *front, uint64_t moved_bytes,
                           double total_ms);
/* Returns the cheapest point within this limit on migration, or NULL. */
const struct snapshot *front_within(const struct front *front,
                                    uint64_t limit_bytes);
/* Removes each point that is cheaper than the point before it by less than the
 * share gain_frac. */
void front_thin(struct front *front, double gain_frac);
void front_release(struct front *front);

/* State of search_replan. */
struct replan {
    const struct search_options *options;
    const struct plan *from;
    uint64_t limit_bytes;
    struct plan *plan; /* receives the plan found */
    struct replan_report *report;
    struct checked_oracle checked;
    struct arena scratch;
    struct current_plan current; /* the current plan */
    struct search_space space;
    struct proven bound;
    /* assignment nearest to the current plan, by carry_over */
    struct snapshot nearest;
    struct evaluator evaluator; /* holds the current assignment of the search */
    struct front front;
    /* best gain of this cycle. The gain of a new point is the share by which it
     * is cheaper than the cheapest older point with no more migration; INFINITY
     * if there was no such older point */
    double gain;
};

/* Offers the assignment of replan->evaluator to the front. Returns true if the
 * front took it. */
bool replan_offer_assignment(struct replan *replan);

/* Moves the assignment of replan->evaluator back towards the current plan, one
 * unit after the other. Each step places one unit as it is in the current plan.
 * Units whose return costs least per byte of migration saved come first. Offers
 * the assignment after every step to the front. */
void replan_lessen(struct replan *replan);

#endif
