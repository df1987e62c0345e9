/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_MOVEMENT_H
#define NEUROSHARD_SEARCH_MOVEMENT_H

#include "core/plan_moves.h"
#include "search/finish.h"
#include "search/search.h"
#include "search/trial.h"

/*
 * Where the tables stand now, when a plan is to replace another, and what a
 * layout moves, counted as core/plan_moves.h does. A layout says
 * how wide its column pieces are and on which device, not which columns they
 * have; so the columns are given out such that few move.
 */

struct homes {
    struct table_pieces *before; /* [n_tables]; table is NULL where it is new */
    /* [n_tables]: the same pieces with the rows of today. Blocks begin where
     * they did, the last ones end where the table does, and those of rows that
     * are gone are left out; those that meet then are joined, as
     * plan_join_columns does; kinds are as that amounts to. None where the
     * table is new or has other columns. */
    struct table_pieces *standing;
    struct shard *shards; /* [n_shards]: all of these, sorted */
    size_t n_shards;
    uint64_t held_bytes;   /* of all tables that stay */
    struct layout nearest; /* to how all stands now, as the caller fills it
                              (carry_over), and releases it */
};

/* Finds the tables of `from` in the problem, by name; `from` must outlive
 * homes, whose arrays live in the arena. */
void homes_init(struct homes *homes, const struct problem *problem,
                const struct plan *from, struct arena *arena);

/* Adds to the trial that this unit goes back to where it stands; nothing where
 * it moves nothing as it is. */
void homes_propose(struct trial *trial, const struct layout *layout,
                   uint32_t unit);

/* Puts the n column pieces of a table in the order of their columns: at each
 * column the piece whose device keeps the most, less what it could keep further
 * on. Where the pieces are those of before, so are their columns. The outcome
 * does not hang on the order they come in. O(n^2). */
void homes_order(const struct parts *parts, uint32_t table,
                 struct change *pieces, uint32_t n);

/* Counts what all units move. */
void homes_count_layout(struct layout *layout);
/* Counts what the units move that the trial changes, and adds to its excess
 * what follows. */
void homes_count_trial(struct trial *trial, const struct layout *layout);

/* How far the bytes exceed the layout's limit: 0 where they do not, else as a
 * share of what all tables hold, and a constant. */
double homes_excess(const struct layout *layout, uint64_t moved_bytes);

/*
 * GPUs that are alike may change names. A layout's are renamed such that much
 * of what they hold is there already: the assignment problem, first of the GPUs
 * of each two hosts, then of the hosts, by swaps of two names. Hosts stay
 * together, so that nothing else changes for a cost model that treats GPUs and
 * hosts alike; the caller prices it.
 *
 * Pieces that stand on every GPU, row blocks in the order of the ranks and
 * pinned ones stay where they are. Not done beyond RENAME_MAX_GPUS a host,
 * or so many hosts, or RENAME_MOST_GPUS, whose pairs take 512 MiB.
 */
#define RENAME_MAX_GPUS 1024u
#define RENAME_MOST_GPUS 8192u
void rename_gpus(struct snapshot *snapshot, const struct parts *parts);

/* Gives each of n rows a column of its own, column_of[n]: from its own number
 * on, two change places as long as that gains something of
 * value[row * stride + column], none of which is negative. Where each row has
 * but one column of value it gets it: every swap with who is there brings one
 * home. Returns the sum. */
double assign_by_swaps(uint32_t *column_of, const double *value, size_t stride,
                       uint32_t n);

/* The pieces of a plan of this very problem, those that meet joined; false
 * where it has others than there are parts of. */
bool snapshot_from_plan(struct snapshot *out, const struct parts *parts,
                        const struct plan *plan);

/*
 * The layout nearest to the plan that parts->homes are of: pieces stay on their
 * device where it still exists and the table can be cut so. Then come, dearest
 * first, pieces whose device is gone, on the device, and tables that are new or
 * cannot stay as they are, in the form (rebuild), that exceeds least and then
 * costs least beside all others. It may exceed the memory, and the limit on
 * movement.
 */
void carry_over(struct snapshot *out, const struct parts *parts);

/*
 * What search_replan finds, and how it goes about it.
 */

/* Layouts that fit, none of which both moves and costs more than another: the
 * bytes rise, the totals fall. Where there are too many the one goes that gains
 * least, but never the first or the last. */
#define FRONT_MAX 64
/* A total that is lower by so little is so by rounding: sums are added up in
 * another order, and what stands stays. */
#define ROUNDING_FRAC 1e-9
struct front {
    struct snapshot points[FRONT_MAX]; /* priced, owned */
    uint32_t n;
};

/* Room for a layout where the front wants it, else NULL; whoever asks fills it,
 * and sets its total. */
struct snapshot *front_add(struct front *front, uint64_t moved_bytes,
                           double total_ms);
/* The cheapest that moves at most so much, or NULL. */
const struct snapshot *front_within(const struct front *front,
                                    uint64_t limit_bytes);
/* Leaves out what gains less than that share of its total. */
void front_thin(struct front *front, double gain_frac);
void front_release(struct front *front);

struct replan {
    const struct search_options *options;
    const struct plan *from;
    uint64_t limit_bytes;
    struct plan *plan; /* gets what is found, */
    struct replan_report *report;
    struct watch watch;
    struct arena scratch;
    struct homes homes;
    struct parts parts;
    struct proven bound;
    struct snapshot nearest; /* to the old plan: carry_over */
    struct tryout tryout;    /* the layout in hand */
    struct front front;
    double gain; /* of this cycle: the largest share by which a layout that the
                    front took is cheaper than what moves no more; INFINITY if
                    nothing moves so little */
};

/* Offers the layout in hand to the front; whether that wanted it. */
bool replan_offer_layout(struct replan *replan);

/* The layout in hand goes towards the old plan: units back to where they stand,
 * the ones first that cost least a byte. All on the way is offered. */
void replan_lessen(struct replan *replan);

#endif
