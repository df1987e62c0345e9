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
 * pieces but not their columns. So the columns are given out such that few of
 * them move.
 */

/* The current plan, which a new plan replaces. */
struct current_plan {
    struct table_pieces *before; /* [n_tables] pieces of each table in the
                                    current plan; `table` is NULL if the table
                                    is new */
    /* [n_tables]: the pieces in `before` with the rows of today. Row blocks
     * begin where they did, and the last one ends where the table does. Blocks
     * whose rows are gone are left out. Pieces that then meet on a device are
     * merged, as plan_join_columns does, and the kinds follow from the result.
     * Empty if the table is new or has another number of columns. */
    struct table_pieces *standing;
    struct shard *shards; /* [n_shards]: all pieces of `standing`, sorted */
    size_t n_shards;
    uint64_t held_bytes;       /* bytes of all tables that stay, in the current
                                  plan */
    struct assignment nearest; /* assignment nearest to the current plan; filled
                              (carry_over) and released by the caller */
};

/* Finds the tables of `from`, the current plan, in the problem by name. `from`
 * must outlive homes, whose arrays live in the arena. */
void current_init(struct current_plan *current, const struct problem *problem,
                  const struct plan *from, struct arena *arena);

/* Adds changes to the candidate that put this unit back to its place in the
 * current plan. Adds nothing if the unit is there already. */
void current_propose(struct candidate *candidate,
                     const struct assignment *assignment, uint32_t unit);

/* Sorts the n column pieces of a table by the columns that they will get, such
 * that few columns move. Picks the pieces one by one: next is the piece whose
 * device keeps most columns at this position, compared with its best later
 * position. Pieces that equal those of the current plan get the same columns as
 * there. Order-independent. O(n^2). */
void current_order(const struct search_space *space, uint32_t table,
                   struct change *pieces, uint32_t n);

/* Counts the migration of all units. */
void migration_count(struct assignment *assignment);
/* Counts the migration of the units that the candidate changes, and adds the
 * resulting excess to its own. */
void migration_count_candidate(struct candidate *candidate,
                               const struct assignment *assignment);

/* Returns the excess of these bytes over the migration limit of the assignment:
 * 0 if they keep it, else a constant plus the exceeding bytes as a share of the
 * bytes of all tables. */
double migration_excess(const struct assignment *assignment,
                        uint64_t moved_bytes);

/*
 * Renames the GPUs of an assignment such that each finds many of its bytes on
 * the GPU of that name already. This is the assignment problem, solved first
 * for the GPUs of each pair of hosts and then for the hosts, by swaps of two
 * names. The GPUs of a host stay together. So the price does not change if the
 * cost model treats all GPUs and all hosts the same. The caller prices the
 * result.
 *
 * Pieces on every GPU, row blocks in the order of the ranks and pinned pieces
 * stay where they are. Does nothing for more than RENAME_MAX_GPUS per host,
 * more than RENAME_MAX_GPUS hosts, or more than RENAME_MOST_GPUS in all, whose
 * matrix of pairs takes 512 MiB.
 */
#define RENAME_MAX_GPUS 1024u
#define RENAME_MOST_GPUS 8192u
void rename_gpus(struct snapshot *snapshot, const struct search_space *space);

/* Assigns a different column to each of n rows and writes it to column_of[n].
 * Starts with column i for row i, and swaps the columns of two rows as long as
 * this raises the sum of value[row * stride + column]. No value may be
 * negative. If each row has a value above 0 in one column only, and no two rows
 * in the same one, then every row gets that column, because each swap with the
 * row that holds it gains. Returns the sum. */
double assign_by_swaps(uint32_t *column_of, const double *value, size_t stride,
                       uint32_t n);

/* Converts a plan of this problem to an assignment, with pieces merged that
 * meet on a device. Returns false if the plan has pieces that the search space
 * does not have. */
bool snapshot_from_plan(struct snapshot *out, const struct search_space *space,
                        const struct plan *plan);

/*
 * Fills the assignment nearest to the current plan (space->homes). Pieces stay
 * on their device if it still exists and the table can still be cut that way.
 * The rest is placed one by one, the dearest units first:
 *
 * - A piece whose device is gone goes to the best device.
 * - A table that is new or cannot stay as it is gets the best sharding, as
 *   rebuild places it.
 *
 * The best choice is the one with the least excess and then the least total of
 * the assignment so far. The result may exceed the memory and the migration
 * limit.
 */
void carry_over(struct snapshot *out, const struct search_space *space);

/*
 * Pareto front and state of search_replan.
 */

/* Maximum number of points of the front. If there are more, the point with the
 * least gain is dropped, but never the first or the last. */
#define FRONT_MAX 64
/* Share by which a total must be lower to count as lower. Smaller differences
 * are rounding, as sums are added up in another order; then the current
 * assignment stays. */
#define ROUNDING_FRAC 1e-9
/* Pareto front: assignments that keep the memory limits, none of which has both
 * more migration and a higher total than another. Migration rises and totals
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
/* Removes points that are cheaper than the point before by less than this
 * share. */
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
    struct snapshot nearest;    /* nearest to the current plan: carry_over */
    struct evaluator evaluator; /* holds the current assignment of the search */
    struct front front;
    double gain; /* best gain of this cycle: largest share by which a new point
                    is cheaper than the best point with no more migration;
                    INFINITY if there was no such point */
};

/* Offers the assignment of replan->tryout to the front. Returns true if the
 * front took it. */
bool replan_offer_assignment(struct replan *replan);

/* Moves the assignment of replan->tryout back towards the current plan: puts
 * units back to their old places, first those that cost least per byte of
 * migration saved. Offers every assignment on the way to the front. */
void replan_lessen(struct replan *replan);

#endif
