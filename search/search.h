/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_SEARCH_H
#define NEUROSHARD_SEARCH_SEARCH_H

#include "base/parallel.h"
#include "core/plan.h"

/*
 * Three searches find plans: the published search, the full search and
 * re-planning. They use a cost model only through the oracle contract
 * (core/oracle.h).
 *
 * search_reference is the published search (NeuroShard, MLSys 2023). Its outer
 * loop is a beam search over column halvings. Its inner loop is a greedy
 * placement under a grid of caps on the output width. This search differs from
 * the paper in these points:
 *
 * - The grid has one more point, without a cap.
 * - It visits tables in the problem's canonical order, so the order of the list
 *   of tables does not change the cost of the plan.
 * - It uses the problem's memory model and a memory limit per device. It
 *   respects pins, groups and allowed kinds: a group is one unit, and neither
 *   groups nor pinned tables are cut.
 * - It cuts sequence tables in halves or not at all (table_min_width).
 * - If the cost model leads to no assignment, it tries to find one by memory
 *   alone.
 * - It merges pieces of one table that meet on a device if they differ in
 *   width, because TorchRec assumes that all pieces of a table on a device have
 *   the same width. If the merged plan costs more, it swaps pieces until the
 *   plan costs no more than before. If merging cannot match the published cost
 *   within a ten-thousandth, the pieces stay separate.
 *
 * A problem gives the same plan at any number of threads. SIGINT ends
 * the search after the current halving and returns the best plan so far.
 */

/* Best total of the full search over time. From each point to the next the
 * number of evaluations rises and the total falls. */
struct search_trace {
    struct search_point {
        uint64_t n_evaluations; /* changes priced up to this point */
        double total_ms;
        double seconds; /* wall-clock time since the search began */
    } * points; /* [n] points, allocated by mem_grow; the caller that passed the
                   trace frees them */
    size_t n;
};

/* Options of all searches. Members marked "full" affect search_full and also
 * search_replan, which runs search_full. beam_width and beam_depth affect
 * search_reference only. */
struct search_options {
    struct pool *pool;    /* may be NULL */
    uint64_t seed;        /* seed of the full search; the published search draws
                             no random numbers and only records it */
    unsigned beam_width;  /* K of the paper, which is 3; 0: no beam search, only
                             the grid of caps */
    unsigned beam_depth;  /* L of the paper, which is 10 */
    uint64_t effort;      /* full: maximum number of changes to try, or
                             SEARCH_EFFORT_AUTO */
    double time_limit_ms; /* full: time limit in ms; 0: none */
    bool is_logged; /* writes progress also if stderr is not a terminal, as a
                       log */
    /* full: tuning parameters; NULL: the default tuning */
    const struct tuning *tuning;
    struct search_trace *trace; /* full: receives the trace; may be NULL */
    /* full: cost model that TorchRec's planner uses; NULL: the cost model of
     * the search */
    const struct oracle *torchrec;
    struct rivals *rivals;  /* full: receives the plans of other planners
                               (rivals_ask); may be NULL */
    void (*on_found)(void); /* full: called when there is a first plan; from
                               then on an interrupt keeps the best plan. It may
                               be called more than once; may be NULL */
    /* full: share by which the step time may rise in exchange for fewer pieces
     * (search/finish.h); 0: no rise. */
    double simplest_frac;
};
/* Effort that adapts to the problem: stages run until they gain little. No
 * stage begins after 2,400,000 changes, unless one of the last two stages
 * improved the plan. No stage goes on after twice this number of changes. If
 * the oracle is additive, no stage ends after 2,400,000 changes. */
#define SEARCH_EFFORT_AUTO UINT64_MAX
/* Sets the beam as in the paper, and the effort to SEARCH_EFFORT_AUTO. */
void search_options_init(struct search_options *options);

/* Searches a plan for plan->problem. Arrays of the plan live in the arena. */
typedef int search_fn(struct plan *plan, const struct oracle *oracle,
                      const struct search_options *options, struct arena *arena,
                      struct err *err) MUST_CHECK;

/* Published search. Fills a plan whose problem is set: its shards and their
 * costs by the oracle, and the members `search` ("reference", or "grid" without
 * a beam), `seed`, `stopped`, `search_ms` and `n_evaluations` (the number of
 * assignments priced). The resulting plan has passed plan_check. Arrays live in
 * the arena.
 *
 * Fails with
 *
 * - ERR_NO_PLAN if no plan is found; the message names the resource that is
 *   short and a size that would be enough;
 * - ERR_USAGE if a table may be neither placed whole nor cut by columns;
 * - ERR_INPUT if a group is pinned to two devices or an answer of the oracle is
 *   not finite. */
search_fn search_reference;

/*
 * Full search. It chooses among all kinds of shards at once. It starts from the
 * best of many starting points, one of which is the result of the published
 * search. It improves them by parallel tempering and simulated annealing
 * (search/temper.h) with moves, swaps, splits, merges and new shardings.
 *
 * The search works in stages. Each stage is twice as long as the one before and
 * begins at the best plan so far, so more effort never gives a dearer plan. The
 * budget counts work, not time. So the same seed gives the same plan at any
 * number of threads and on any machine, unless time_limit_ms or SIGINT ends the
 * search early. `stopped` holds the reason why the search ended.
 *
 * The plan never costs more than
 *
 * - the plan of the published search, after pieces that meet on a device have
 *   been merged (search/candidate.h). The published search is part of the full
 *   one if tables x devices <= 30,000. If merging made that plan dearer, all
 *   stages are run in order to get below its cost before merging;
 * - the plan of any other planner (rivals_ask), if the search space has the
 *   shardings of that plan. Planners that would begin after the time limit are
 *   left out if a start was found before.
 *
 * A simplified plan (simplest_frac) may cost more than these plans.
 *
 * Also sets bound_ms, the lower bound (struct proven). Fails with the same
 * errors as search_reference, but can also plan tables that may only be cut by
 * rows, as grids or as replicas.
 */
search_fn search_full;

/*
 * Re-planning: finds a plan that replaces another one with little migration,
 * for new tables, tables that grew or shrank, other GPUs or changed loads.
 * Migration is counted as in core/plan_moves.h. New tables and new rows do not
 * count as migration.
 */

struct replan_point {
    uint64_t moved_bytes;
    double total_ms;
};
struct replan_report {
    /* The current plan applied to the tables of today: tables grow in place,
     * and only pieces that can no longer stay where they are are placed
     * anew. */
    struct replan_point standing;
    bool standing_fits; /* whether `standing` keeps the memory limits */
    /* Pareto front of migration against cost: bytes rise and totals fall, each
     * by at least a ten-thousandth. The front lives in the arena. It is filled
     * if a plan is found. */
    struct replan_point *front; /* [n_front] points */
    size_t n_front;
};

/*
 * Finds a plan that replaces `from` and moves at most limit_bytes. A limit of
 * UINT64_MAX means no limit.
 *
 * Method. The search builds a Pareto front of assignments by migration and
 * cost, and picks the cheapest one within the limit. The search is the same for
 * all limits, so a higher limit never gives a worse plan. It takes two to three
 * times as long as search_full. Without a limit on migration its plan costs no
 * more than the plan of search_full, up to a ten-thousandth. The steps are:
 *
 * 1. Start from the current plan grown in place (search/migration.h), and from
 *    the plan of search_full with its GPUs renamed so that few bytes move.
 * 2. Anneal without a limit on migration, and under limits between zero and the
 *    migration of the cheapest assignment.
 * 3. Move each assignment that was found back towards the current plan, unit by
 *    unit.
 *
 * Early end. The search ends early if the total of the picked plan is down to
 * the lower bound, or down to the time that the host takes to queue a step. The
 * current plan itself is the answer, and the only point of the front, in two
 * cases:
 *
 * - its total is down to the lower bound or to the time of the host;
 * - the limit on migration is 0, no table is new, no table has new rows, and no
 *   table has replicas but would be cheaper in another sharding.
 *
 * Simplification (simplest_frac) never raises the migration above the limit. If
 * there is no limit, it never raises the migration above that of the plan
 * before simplification.
 *
 * Memory. Under the current plan, the tables of today may take more of a GPU
 * than its reserve leaves. That GPU may keep this number of bytes, but no more,
 * and never more than its memory. The exception always applies if migration has
 * a limit. Without a limit it applies only if no other plan is found. In
 * plan->problem the reserve of the GPU is then smaller by the bytes above the
 * usable memory.
 *
 * Sets plan->search to "replan". report may be NULL. `from` must have passed
 * plan_check. Fails with the same errors as search_full. Also fails with
 * ERR_NO_PLAN if no plan is found within the limit. The message then gives the
 * least migration found, and the parts of it that are due to GPUs that no
 * longer exist, and to tables that are cut by rows into equal blocks.
 */
int search_replan(struct plan *plan, const struct plan *from,
                  uint64_t limit_bytes, const struct oracle *oracle,
                  const struct search_options *options,
                  struct replan_report *report, struct arena *arena,
                  struct err *err) MUST_CHECK;

/*
 * Lower bound of the total of all plans of a problem. It holds for plans in
 * which each table has a sharding that search/search_space.h lists, or is cut
 * into columns of any widths that are multiples of its width step.
 *
 * A bound exists only for additive oracles. Under an additive oracle the terms
 * of a device are the sums of the terms of its pieces, so for R devices
 *
 *     total  = sum over terms k of (max over devices r)
 *           >= sum over terms k of (mean over devices r)
 *            = sum of the standalone costs of all pieces / R
 *
 * Each table costs at least as much as its cheapest sharding whose pieces stay
 * below a limit. The limit of a piece is the total less the load that every
 * device has in any case. That load comes from tables that can stay below their
 * own limits only as replicas or as row blocks over all devices.
 *
 * If the cheapest shardings together exceed the memory, each byte of memory
 * gets a price (Lagrangian relaxation). The price that gives the highest bound
 * is used.
 */
struct proven {
    double ms; /* lower bound of the total in ms; NAN: there is no bound for
                  this cost model */
    const char *term;  /* the reason for the bound: "mean load", "largest piece"
                          or "memory"; NULL if there is no bound */
    const char *table; /* only if term is "largest piece": the table whose least
                          cost the limit on its pieces raises most */
};
void search_bound(struct proven *proven, const struct problem *problem,
                  const struct oracle *oracle, struct arena *arena);
/* Computes the lower bound from a search space (search/search_space.h). */
struct search_space;
void bound_find(struct proven *proven, const struct search_space *space);

/* Runs the published search on a search space. Fills *found with an assignment
 * and its total. Pieces of the assignment are whole units, halves, quarters and
 * so on. Sets `stopped` and `n_evaluations` of the plan. Returns false, with a
 * total of INFINITY, if a unit can be neither whole nor halved, or if the
 * greedy placement finds no device for some pieces. The result is the same at
 * any thread count. */
struct snapshot;
bool published_find(struct snapshot *found, struct plan *plan,
                    const struct search_space *space,
                    const struct search_options *options);
/* Merges column pieces of a unit that meet on a device. If the merged
 * assignment costs more than found->total_ms, pieces are swapped until it costs
 * no more. Sets found->total_ms to the new total, or to INFINITY if some pieces
 * may not be merged. Returns the number of changes priced. */
uint64_t published_join(struct snapshot *found,
                        const struct search_space *space);

/*
 * Planners to compare with each other: the published baselines, the planners
 * that users have today by their published rules, and ours. Each planner
 * decides by its own costs, whichever oracle prices the plan afterwards. All
 * planners have to keep the memory limits of the problem by its memory model.
 */

struct contender_inputs {
    const struct oracle *oracle; /* oracle that prices the plans; planners make
                                    only shards that this oracle can price */
    const struct oracle *torchrec;  /* cost model of TorchRec's planner */
    const struct oracle *reference; /* cost model of search_reference; NULL: the
                                       member `oracle` */
    const struct search_options *search; /* options of our own searches */
    uint64_t seed;                       /* seed of the baselines */
    double limit_ms; /* wall-clock limit of TorchRec's planner, which then
                        returns its best plan so far; 0: none */
    uint64_t limit_proposals; /* limit on the number of proposals of TorchRec's
                                 planner, with which it gives the same plan on
                                 any machine; 0: none */
    double end_ms; /* rivals_ask runs no planner after this time on clock_ms();
                      0: no limit */
};

struct placing;
/* A planner. One of the three groups of members is set: `search` for the
 * searches of this program, `author` and `rule` for planners of other authors,
 * `figure` for the baselines. The random baseline has a NULL `figure`. */
struct contender {
    const char *name;
    search_fn *search;
    /* Author of the planner, which supports neither pins nor groups. `rule`
     * sets the shards and `n_evaluations` of the plan. It also sets `stopped`,
     * unless the value is "done". */
    const char *author;
    int (*rule)(struct placing *placing, struct err *err);
    /* Figure of a table by which a baseline sorts the tables, the largest
     * first. NULL: tables are placed at random. */
    double (*figure)(const struct table *table);
};
/*
 * All planners. The last entry has a NULL name.
 *
 *   random, dim, lookup, size, size-lookup
 *              the published baselines, which place whole tables by one figure
 *   torchrec   TorchRec's greedy proposer (by the largest shard, by the sum)
 *              and its uniform proposer over its sharding types, in device
 *              memory only; its greedy partitioner places each proposal
 *   hugectr    the planner of HugeCTR's DLRM sample at its settings: small
 *              tables are replicated, hot ones are halved repeatedly, and
 *              twenty greedy rounds place them; it cuts by columns if the
 *              oracle cannot price its row shards
 *   reference  search_reference
 *   neuroshard search_full
 */
extern const struct contender search_contenders[];
/* Runs a planner. Fills the same members of a plan as search_reference;
 * plan->problem must be set. Fails with ERR_NO_PLAN if the rule finds no plan,
 * or if the problem has pins or groups and the planner does not support
 * them. */
int contender_place(struct plan *plan, const struct contender *self,
                    const struct contender_inputs *inputs, struct arena *arena,
                    struct err *err) MUST_CHECK;

/* Result of one planner. */
struct rival {
    const struct contender *by;
    struct plan plan; /* plan of the planner; its total_ms is INFINITY if there
                         is no plan */
    const char *why_not; /* only if there is no plan: the reason in one
                            sentence, in the arena */
};
/* Runs a planner and stores its plan, or the reason why it has no plan. It is
 * not an error if the planner finds no plan or cannot plan such tables. All
 * other failures are errors. */
int rival_ask(struct rival *rival, const struct contender *by,
              const struct problem *problem,
              const struct contender_inputs *inputs, struct arena *arena,
              struct err *err) MUST_CHECK;

/* Results of all planners except those of this program. The full search starts
 * from their plans, and its own plan is compared with them. */
#define N_RIVALS 7
struct rivals {
    struct arena *arena;         /* holds the plans of the planners */
    struct rival list[N_RIVALS]; /* in the order of search_contenders; `by` is
                                  NULL if the planner was not run */
};
/* Runs all planners except those of this program on the problem. TorchRec's
 * planner has the limit RIVAL_EFFORT. A planner that would begin after
 * inputs.end_ms has no plan, and the time limit is its reason. */
int rivals_ask(struct rivals *rivals, const struct problem *problem,
               struct contender_inputs inputs, struct err *err) MUST_CHECK;
/* Limit for TorchRec's planner: number of proposals times number of tables. It
 * takes about 40 ms. */
#define RIVAL_EFFORT 1500000

/* Rules of the planners of other authors. Each rule is in a file of its own. */
int rival_torchrec(struct placing *placing, struct err *err) MUST_CHECK;
int rival_hugectr(struct placing *placing, struct err *err) MUST_CHECK;

/* Least width of the equal column shards that TorchRec cuts. */
#define TORCHREC_MIN_COLUMNS 128u

/* State of the rule of a planner. A rule makes many assignments, one after the
 * other. The plan gets the shards of the assignment whose most loaded device
 * has the least load. */
struct placing {
    const struct contender *self;
    const struct contender_inputs *inputs;
    const struct problem *problem;
    struct plan *plan;    /* plan to fill; its members `search`, `stopped` and
                             `seed` are set already */
    struct arena *arena;  /* holds the shards of the plan */
    struct arena scratch; /* holds everything else */
    uint32_t n_tables, n_devices;
    uint64_t *room_bytes; /* [n_devices] usable memory */
    struct filling {
        double load; /* load of the device by the rule's own costs */
        uint64_t free_bytes;
    } * devices;          /* [n_devices] */
    struct ranked *order; /* [n_tables] scratch in which the rule sorts */
    double least_load;    /* load of the most loaded device of the best
                             assignment so far; INFINITY before the first */
};

/* Returns a mask of the kinds of shards that the table may be cut into and that
 * the oracle can price. */
unsigned placing_kinds(const struct placing *placing, uint32_t table);
/* Empties all devices, to begin another assignment. */
void placing_begin(struct placing *placing);
/* Returns true if the current assignment is the best so far. In this case it
 * clears the shards of the plan, and the caller adds the shards of the current
 * assignment. */
bool placing_is_best(struct placing *placing);

/* Returns piece i of the n pieces of a table as a shard on the device.
 * SHARD_ROW gives equal row blocks; the last blocks may have fewer rows or no
 * rows. SHARD_COLUMN gives equal column ranges. All other kinds give the whole
 * table. */
struct shard rival_piece(const struct problem *problem, uint32_t table,
                         enum shard_kind kind, uint32_t i, uint32_t n,
                         uint32_t device);

#endif
