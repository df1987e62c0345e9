/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_SEARCH_H
#define NEUROSHARD_SEARCH_SEARCH_H

#include "base/parallel.h"
#include "core/plan_error.h"
#include "search/tuning.h"

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

/* How the recommended plan depends on a wire of unknown bandwidth
 * (search/wire_choice.h). */
enum wire_choice { WIRE_LIMITED, WIRE_ROBUST, WIRE_NOMINAL };

/* Wall-clock time in ms that a full search takes whatever its effort. A further
 * search of the same problem takes about as long. */
struct search_overhead {
    double setup_ms;  /* from its begin to its first starting point */
    double finish_ms; /* from its last change to its plan */
};

/* Options of all searches. Members marked "full" affect search_full and also
 * search_replan, which runs search_full. beam_width and beam_depth affect
 * search_reference only. */
struct rivals;
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
    const char *label;    /* label of the line of progress; NULL: "searching" */
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
    /* full: an interrupt after the first plan ends the search without a plan,
     * with ERR_INTERRUPTED, because the caller has another plan, or no time for
     * this one */
    bool gives_up;
    /* full: share by which the total may rise above the cheapest assignment
     * found in exchange for a simpler one (search/local_search.h); 0: no rise,
     * SIMPLEST_BY_ERROR: the error of the ratio of two totals */
    double simplest_frac;
    /* full: total of a cheaper plan of the same tables, or 0. The rise begins
     * there if the cheapest assignment found is not cheaper. */
    double best_ms;
    /* full: [n_given] plans of the same tables to start from, at most
     * STARTS_KEPT; none: the search finds its own starting points. With given
     * plans no other planner is run, and the stages fit the effort. */
    const struct plan *given;
    unsigned n_given;
    /* advised: choice for a wire of unknown bandwidth, and the cost model at
     * the shares wire_shares[1] and [2] of the assumed bandwidth; NULL if the
     * bandwidth is known (search/wire_choice.h) */
    enum wire_choice wire;
    const struct oracle *slower[N_WIRES - 1];
    /* advised: the cost model at the shares wires_between of the assumed
     * bandwidth; only for WIRE_ROBUST */
    const struct oracle *between[N_WIRES_BETWEEN];
    /* re-planning: the new plan differs only by changes that TorchRec's reshard
     * can make in a running job (search/reshardable.h) */
    bool reshardable;
    struct plan *found; /* full: receives the cheapest plan found, before it was
                           simplified at a rise; it lives in the arena of the
                           search; may be NULL */
    struct search_overhead *overhead; /* full: receives the overhead; may be
                                         NULL */
};
/* Value of simplest_frac. If the error of the ratio is unknown, only changes
 * that cost nothing are made. */
#define SIMPLEST_BY_ERROR (-1.0)
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
 * If a rise of the total is allowed (simplest_frac), the result is the simplest
 * one (search/simplicity.h) within it: the simplified plan, or the plan of
 * another planner. It may cost more than these plans.
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
 * 1. Start from the current plan grown in place (search/carry_over.h), and from
 *    the plan of search_full with its GPUs renamed so that few bytes move.
 * 2. Anneal without a limit on migration, and under limits between zero and the
 *    migration of the cheapest assignment.
 * 3. Move each assignment that was found back towards the current plan, unit by
 *    unit.
 *
 * With options->reshardable only whole pieces of some tables move, and all
 * other tables stay (search/reshardable.h). Step 1 then starts from the current
 * plan alone, and there is no simplification.
 *
 * Early end. The search ends early if the total of the picked plan is down to
 * the lower bound. The current plan itself is the answer, and the only point of
 * the front, in two cases:
 *
 * - its total is down to the lower bound;
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
 * ERR_NO_PLAN if no plan is found within the limit, and with ERR_INPUT if
 * reshard cannot change the current plan to one of this problem. The message
 * of the former gives the least migration found, and the parts of it that are
 * due to GPUs that no longer exist, and to tables that are cut by rows into
 * equal blocks.
 */
int search_replan(struct plan *plan, const struct plan *from,
                  uint64_t limit_bytes, const struct oracle *oracle,
                  const struct search_options *options,
                  struct replan_report *report, struct arena *arena,
                  struct err *err) MUST_CHECK;

#endif
