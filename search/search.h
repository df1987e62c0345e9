/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_SEARCH_H
#define NEUROSHARD_SEARCH_SEARCH_H

#include "base/parallel.h"
#include "core/plan.h"

/*
 * Searches that find plans: the published one, the full one and re-planning.
 * They use no part of a cost model but the oracle contract (core/oracle.h).
 *
 * search_reference is the published search (NeuroShard, MLSys 2023). Its outer
 * loop is a beam search over column halvings. Its inner loop is a greedy
 * placement under a grid of caps on the output width. It differs from the paper
 * in these points:
 *
 * - The grid has one more point, without a cap.
 * - It visits tables in the problem's canonical order, so a permuted list of
 *   tables costs the same.
 * - It uses the problem's memory model and a memory limit per device. It
 *   respects pins, groups and allowed kinds: a group is one unit, and neither
 *   groups nor pinned tables are cut.
 * - It cuts sequence tables in halves or not at all (table_min_width).
 * - If the cost model leads to no assignment, it tries to find one by memory
 *   alone.
 * - It merges pieces of one table that meet on a device if they differ in
 *   width, because TorchRec assumes equal widths there. If the merged plan
 *   costs more, it swaps pieces until it does not. If merging cannot match the
 *   published cost within a ten-thousandth, the pieces stay separate.
 *
 * One problem gives one plan, at any thread count. SIGINT ends the search after
 * the current halving and returns the best plan so far.
 */

/* Best total of the full search over time. From point to point the number of
 * evaluations rises and the total falls. */
struct search_trace {
    struct search_point {
        uint64_t n_evaluations; /* changes priced up to this point */
        double total_ms;
        double seconds; /* wall-clock time since the search began */
    } * points;         /* [n], by mem_grow; the caller who passed the trace
                           frees it */
    size_t n;
};

/* Options of all searches. Members marked "full" affect search_full, and
 * search_replan, which runs it. The beam affects search_reference alone. */
struct search_options {
    struct pool *pool;    /* may be NULL */
    uint64_t seed;        /* seed of the full search; the published search draws
                             no random numbers and only records it */
    unsigned beam_width;  /* K of the paper, 3; 0: grid only */
    unsigned beam_depth;  /* L of the paper, 10 */
    uint64_t effort;      /* full: maximum number of changes to try, or
                             SEARCH_EFFORT_AUTO */
    double time_limit_ms; /* full: time limit; 0: none */
    bool is_logged;       /* writes progress to a log, too */
    const struct tuning *tuning;   /* full: NULL for the default tuning */
    struct search_trace *trace;    /* full: receives the trace; may be NULL */
    const struct oracle *torchrec; /* full: cost model that TorchRec's planner
                                      uses; NULL: the one of the search */
    struct rivals *rivals;         /* full: receives the plans of other planners
                                      (rivals_ask); may be NULL */
    void (*on_found)(void);        /* full: called when there is a first plan,
                                      which an interrupt then keeps; possibly
                                      called again; may be NULL */
    double simplest_frac; /* full: share by which the step time may rise in
                             exchange for fewer pieces (search/finish.h); 0: it
                             may not rise */
};
/* Effort that adapts to the problem: stages run until they gain little. No
 * stage begins after 2,400,000 changes, unless one of the last two stages
 * improved the plan. No stage ends after twice as many. If the oracle is
 * additive, no stage ends after 2,400,000 changes. */
#define SEARCH_EFFORT_AUTO UINT64_MAX
/* Sets the published settings, and SEARCH_EFFORT_AUTO. */
void search_options_init(struct search_options *options);

/* Searches a plan for plan->problem. Arrays of the plan live in the arena. */
typedef int search_fn(struct plan *plan, const struct oracle *oracle,
                      const struct search_options *options, struct arena *arena,
                      struct err *err) MUST_CHECK;

/* Published search. Fills a plan whose problem is set: its shards and their
 * costs by the oracle, search ("reference", or "grid" without a beam), seed,
 * stopped, search_ms and n_evaluations (the number of assignments priced). The
 * plan has passed plan_check. Arrays live in the arena.
 *
 * Fails with ERR_NO_PLAN, whose message names the resource that is short and a
 * size that would fit; with ERR_USAGE if a table may be neither placed whole
 * nor cut by columns; with ERR_INPUT if a group is pinned to two devices or an
 * answer of the oracle is not finite. */
search_fn search_reference;

/*
 * Full search. It chooses among all kinds of shards at once. It starts from the
 * best of many starting points, one of which is the result of the published
 * search. It improves them by parallel tempering and simulated annealing
 * (search/temper.h) with moves, swaps, splits, merges and new shardings.
 *
 * It works in stages. Each stage is twice as long as the one before and begins
 * at the best plan so far, so more effort never gives a dearer plan. The budget
 * counts work, not time: one seed gives one plan at any thread count and speed,
 * unless time_limit_ms or SIGINT cuts the search short. `stopped` holds the
 * reason why it ended.
 *
 * The plan never costs more than
 *
 * - the plan of the published search, with pieces that meet on a device merged
 *   (search/candidate.h). The published search is part of the full one if
 *   tables x devices <= 30,000. If merging made its plan dearer, all stages are
 *   run to become cheaper than the plan before merging;
 * - the plan of any other planner (rivals_ask), if the search knows the
 *   shardings in it.
 *
 * A simplified plan (simplest_frac) may cost more than that.
 *
 * Also sets bound_ms (struct proven). Fails as search_reference does, but also
 * plans tables that need rows, grids or replicas.
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
     * and only pieces that have no place in it any more are placed anew. */
    struct replan_point standing;
    bool standing_fits; /* whether `standing` keeps the memory limits */
    /* Pareto front of migration against cost: bytes rise and totals fall, each
     * by at least a ten-thousandth. Lives in the arena. Filled if a plan is
     * found. */
    struct replan_point *front; /* [n_front] */
    size_t n_front;
};

/*
 * Finds a plan that replaces `from` and moves at most limit_bytes. A limit of
 * UINT64_MAX means no limit.
 *
 * Method. The search builds a Pareto front of assignments by migration and
 * cost, and picks the cheapest one within the limit. The search is the same for
 * all limits, so a higher limit never gives a worse plan. It takes two to three
 * times as long as search_full. Without a limit its plan costs no more than
 * that of search_full, to a ten-thousandth. Its steps:
 *
 * 1. Start from the current plan grown in place (search/migration.h), and from
 *    the plan of search_full with its GPUs renamed so that little moves.
 * 2. Anneal without a limit, and under limits between zero and the bytes that
 *    the cheapest assignment moves.
 * 3. Take each assignment found back towards the current plan, unit by unit.
 *
 * Early end. The search ends early if the picked plan reaches the lower bound,
 * or the time that the host takes to queue a step. The current plan itself is
 * the answer, and the only point of the front, in two cases:
 *
 * - its total reaches one of these two times;
 * - nothing may move, and no table is new, has new rows, or is a replica that
 *   would be cheaper in another sharding.
 *
 * Simplification (simplest_frac) never moves more bytes than the limit or, if
 * there is no limit, more than the plan before it was simplified.
 *
 * Memory. Under the current plan, the tables of today may take more of a GPU
 * than its reserve leaves. That GPU may keep as much, but never more than that
 * and never more than its memory. This holds if there is a limit, and without a
 * limit if no other plan is found. The reserve of the GPU in plan->problem is
 * then smaller by these bytes.
 *
 * Sets plan->search to "replan". report may be NULL. `from` has passed
 * plan_check. Fails as search_full does. Also fails with ERR_NO_PLAN if no plan
 * is found within the limit. The message then gives the least migration found,
 * and how much of it comes from GPUs that are gone and from tables cut by rows
 * into equal blocks.
 */
int search_replan(struct plan *plan, const struct plan *from,
                  uint64_t limit_bytes, const struct oracle *oracle,
                  const struct search_options *options,
                  struct replan_report *report, struct arena *arena,
                  struct err *err) MUST_CHECK;

/*
 * Lower bound of the total of all plans of a problem. It holds for plans in
 * which each table has a sharding that search/search_space.h lists, or columns
 * of any widths that are multiples of its width step.
 *
 * There is a bound for additive oracles only. With them the terms of a device
 * are the sums of the terms of its pieces, so for R devices
 *
 *     total  = sum over terms k of (max over devices r)
 *           >= sum over terms k of (mean over devices r)
 *            = sum of the standalone costs of all pieces / R
 *
 * Each table costs at least as much as its cheapest sharding whose pieces stay
 * below a limit. The limit of a piece is the total less the load that all
 * devices have anyway: replicas and row blocks over all devices, of those
 * tables that must be cut this way to stay below their own limits.
 *
 * If the cheapest shardings together exceed the memory, each byte gets a price
 * (Lagrangian relaxation). The price that gives the highest bound is used.
 */
struct proven {
    double ms;         /* NAN: there is no bound for this cost model */
    const char *term;  /* the reason for the bound: "mean load", "largest piece"
                          or "memory"; NULL if there is no bound */
    const char *table; /* for "largest piece": the table whose least cost the
                          limit raises most */
};
void search_bound(struct proven *proven, const struct problem *problem,
                  const struct oracle *oracle, struct arena *arena);
/* Computes the bound from a search space (search/search_space.h). */
struct search_space;
void bound_find(struct proven *proven, const struct search_space *space);

/* Runs the published search on a search space. Fills *found with an assignment
 * of wholes, halves, quarters and so on of units, and its total. Sets stopped
 * and n_evaluations of the plan. Returns false, with a total of INFINITY, if a
 * unit can be neither whole nor halved, or if the greedy finds no place for
 * some pieces. The result is the same at any thread count. */
struct snapshot;
bool published_find(struct snapshot *found, struct plan *plan,
                    const struct search_space *space,
                    const struct search_options *options);
/* Merges column pieces of a unit that meet on a device. If the result costs
 * more than found->total_ms did, pieces are swapped until it does not. Sets
 * found->total_ms, to INFINITY if some pieces may not be merged. Returns the
 * number of changes priced. */
uint64_t published_join(struct snapshot *found,
                        const struct search_space *space);

/*
 * Planners to compare with each other: the published baselines, the planners
 * that users have today by their published rules, and ours. Each plans by its
 * own costs, whichever oracle prices the plan afterwards. All have to keep the
 * memory limits of the problem by its memory model.
 */

struct contender_inputs {
    const struct oracle *oracle;   /* prices the plan; planners make only shards
                                      that it can price */
    const struct oracle *torchrec; /* cost model of TorchRec's planner */
    const struct oracle *reference; /* cost model of search_reference; NULL:
                                       `oracle` */
    const struct search_options *search; /* options of our own searches */
    uint64_t seed;                       /* seed of the baselines */
    double limit_ms; /* wall-clock limit of TorchRec's planner, which then
                        returns its best plan so far; 0: none */
    uint64_t limit_proposals; /* limit on the proposals of TorchRec's planner;
                                 gives the same plan on any machine; 0: none */
};

struct placing;
/* A planner. One of the three groups of members is set: `search` for our own
 * searches, `author` and `rule` for planners of others, `figure` for the
 * baselines (NULL for the random one). */
struct contender {
    const char *name;
    search_fn *search;
    /* Author of the planner, which supports neither pins nor groups. The rule
     * sets shards and n_evaluations of the plan. It sets `stopped` unless that
     * is "done". */
    const char *author;
    int (*rule)(struct placing *placing, struct err *err);
    /* Figure that a baseline orders tables by, the largest first; NULL: tables
     * are placed at random. */
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
/* Runs a planner. Fills a plan whose problem is set, as search_reference does.
 * Fails with ERR_NO_PLAN if the rule finds no plan, or if the problem has pins
 * or groups and the rule does not support them. */
int contender_place(struct plan *plan, const struct contender *self,
                    const struct contender_inputs *inputs, struct arena *arena,
                    struct err *err) MUST_CHECK;

/* Result of one planner. */
struct rival {
    const struct contender *by;
    struct plan plan;    /* total_ms is INFINITY if there is no plan */
    const char *why_not; /* reason in one sentence, in the arena; set if there
                            is no plan */
};
/* Runs a planner and stores its plan, or the reason why it has none. No plan,
 * or tables that the planner cannot plan, are results, not errors. Fails on all
 * other errors. */
int rival_ask(struct rival *rival, const struct contender *by,
              const struct problem *problem,
              const struct contender_inputs *inputs, struct arena *arena,
              struct err *err) MUST_CHECK;

/* Results of all planners except our own. The full search starts from them, and
 * its plan is compared with them. */
#define N_RIVALS 7
struct rivals {
    struct arena *arena;         /* holds their plans */
    struct rival list[N_RIVALS]; /* in the order of search_contenders; `by` is
                                  NULL if the planner was not run */
};
/* Runs all these planners on the problem, TorchRec's with RIVAL_EFFORT. */
int rivals_ask(struct rivals *rivals, const struct problem *problem,
               struct contender_inputs inputs, struct err *err) MUST_CHECK;
/* Proposals times tables that TorchRec's planner may take: about 40 ms. */
#define RIVAL_EFFORT 1500000

/* The rules of others, each in its own file. */
int rival_torchrec(struct placing *placing, struct err *err) MUST_CHECK;
int rival_hugectr(struct placing *placing, struct err *err) MUST_CHECK;

/* Least width of the equal column shards that TorchRec cuts. */
#define TORCHREC_MIN_COLUMNS 128u

/* State of a rule. A rule fills the devices many times. The plan gets the
 * shards of the assignment whose most loaded device has the least load. */
struct placing {
    const struct contender *self;
    const struct contender_inputs *inputs;
    const struct problem *problem;
    struct plan *plan;    /* search, stopped and seed are set */
    struct arena *arena;  /* holds the shards of the plan */
    struct arena scratch; /* holds everything else */
    uint32_t n_tables, n_devices;
    uint64_t *room_bytes; /* [n_devices] usable memory */
    struct filling {
        double load; /* by the rule's own costs */
        uint64_t free_bytes;
    } * devices;          /* [n_devices] */
    struct ranked *order; /* [n_tables] scratch in which the rule sorts */
    double least_load;    /* load of the most loaded device of the best
                             assignment so far; INFINITY before the first */
};

/* Returns the kinds, a mask, that the table may be cut into and that the oracle
 * can price. */
unsigned placing_kinds(const struct placing *placing, uint32_t table);
/* Empties all devices, to begin another assignment. */
void placing_begin(struct placing *placing);
/* Returns true if the current assignment is the best so far. Then the shards of
 * the plan are cleared, and the caller adds those of this assignment. */
bool placing_is_best(struct placing *placing);

/* Returns piece i of n of a table, on the device. SHARD_ROW gives equal row
 * blocks, of which the last ones may have fewer rows or none. SHARD_COLUMN
 * gives equal column ranges. All other kinds give the whole table. */
struct shard rival_piece(const struct problem *problem, uint32_t table,
                         enum shard_kind kind, uint32_t i, uint32_t n,
                         uint32_t device);

#endif
