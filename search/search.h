/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_SEARCH_H
#define NEUROSHARD_SEARCH_SEARCH_H

#include "base/parallel.h"
#include "core/plan.h"

/*
 * Finding plans, through the oracle contract only. The published search
 * (NeuroShard, MLSys 2023): a beam over column halvings outside, a greedy over
 * a grid of caps on the output width inside. What is done otherwise:
 *
 * - the grid has one more point, without a cap;
 * - tables are walked in the problem's canonical order, so that a permuted
 *   list costs the same;
 * - memory is that of the problem's model, device by device, pins, groups and
 *   allowed kinds are kept: a group is one unit, neither it nor a pinned table
 *   is cut;
 * - sequence tables are cut in halves or not at all (table_min_width);
 * - where no assignment by cost is found, one by memory alone is tried;
 * - pieces of one table and unequal widths do not stay on one device, as
 *   TorchRec takes them for equal: they are made one, and where that costs
 *   more, pieces change places until it does not. Only where that does not come
 *   within a ten-thousandth of the published cost they stay.
 *
 * One problem gives one plan, at any thread count. SIGINT ends the search
 * after the halving in hand, with the best plan so far.
 */

/* The best so far of the full search as it comes to be: evaluations rise,
 * totals fall. */
struct search_trace {
    struct search_point {
        uint64_t n_evaluations; /* changes that were priced by then */
        double total_ms;
        double seconds; /* by the clock, since the search began */
    } * points;         /* [n], of mem_grow; who gave the trace frees it */
    size_t n;
};

struct search_options {
    struct pool *pool;           /* may be NULL */
    uint64_t seed;               /* of what the full search draws; the published
                                    one draws nothing and only notes it */
    unsigned beam_width;         /* K, 3; 0: grid only */
    unsigned beam_depth;         /* L, 10 */
    uint64_t effort;             /* of the full search: changes that it tries at
                                    most, or SEARCH_EFFORT_AUTO */
    double time_limit_ms;        /* of the full search; 0: none */
    bool is_logged;              /* progress goes to a log, too */
    const struct tuning *tuning; /* of the full search; NULL: as it is best */
    struct search_trace *trace;  /* of the full search; may be NULL */
    const struct oracle *torchrec; /* of the full search: by which TorchRec's
                                      planner plans; NULL: the search's */
    struct rivals *rivals;  /* of the full search: gets what other planners find
                               (rivals_ask); may be NULL */
    void (*on_found)(void); /* of the full search and search_replan: called once
                               there is a plan for an interrupt to keep, perhaps
                               more often; may be NULL */
    double simplest_frac; /* of the full search and search_replan: by which the
                             step may rise for fewer pieces (search/finish.h);
                             0: it may not */
};
/* In stages, till they gain little: none begins after 2,400,000, unless the
 * last gained, or ends after twice as many; if the oracle is additive none ends
 * after 2,400,000. */
#define SEARCH_EFFORT_AUTO UINT64_MAX
/* The published settings, and SEARCH_EFFORT_AUTO. */
void search_options_init(struct search_options *options);

/* A search of a plan whose problem is set; arrays live in the arena. */
typedef int search_fn(struct plan *plan, const struct oracle *oracle,
                      const struct search_options *options, struct arena *arena,
                      struct err *err) MUST_CHECK;

/* Fills a plan whose problem is set: shards and what they cost by the oracle,
 * search ("reference", or "grid" without a beam), seed, stopped, search_ms and
 * n_evaluations (assignments priced); it has passed plan_check. Arrays live in
 * the arena. ERR_NO_PLAN says what is short and what would fit; ERR_USAGE where
 * a table may be neither placed whole nor cut by columns; ERR_INPUT where a
 * group is pinned to two devices or any answer of the oracle is not finite. */
search_fn search_reference;

/*
 * The full search: all kinds chosen together, from the best of many starting
 * points (the published search's result among them), by parallel tempering and
 * simulated annealing (search/temper.h) over moves, swaps, splits, merges and
 * new cuts. It goes by stages, each twice as long as the one before and from
 * the best so far: more effort is never dearer. Its budget is work: one seed
 * gives one plan at any thread count and speed, unless time_limit_ms or SIGINT
 * cuts it short; `stopped` says which. Its plan never costs more than that of
 * search_reference, which it runs where tables x devices <= 30,000, once its
 * pieces that meet are made one (search/trial.h); where that made it dearer,
 * all stages are run to do better than without. Nor does it cost more than what
 * any of the rivals below find (rivals_ask), of cuts that the search knows;
 * what is simpler may.
 *
 * Also sets bound_ms (struct proven). Fails as search_reference does, and
 * plans what that cannot: rows, grids, replicas.
 */
search_fn search_full;

/*
 * A plan to replace another: for new tables, tables that grew or shrank, other
 * GPUs or changed loads, with little movement. What moves is counted as
 * core/plan_moves.h does; tables and rows that are new are no movement.
 */

struct replan_point {
    uint64_t moved_bytes;
    double total_ms;
};
struct replan_report {
    /* The old plan as it stands, with the tables of today: grown in place, what
     * has no place beside it; and whether that fits. */
    struct replan_point standing;
    bool standing_fits;
    /* What movement buys: bytes rise, totals fall, each by a ten-thousandth at
     * least. In the arena; filled where the plan is found. */
    struct replan_point *front; /* [n_front] */
    size_t n_front;
};

/*
 * One search, whatever the limit, looks for layouts of which none both moves
 * and costs more than another, and the limit picks the cheapest that moves no
 * more: so more movement never makes a plan worse. It starts from the old plan
 * grown in place (search/movement.h) and from what search_full finds, with
 * its GPUs named such that little moves; it anneals without a limit, then under
 * limits that rise from nothing to what the cheapest layout moves; and what it
 * finds goes back home unit by unit. Takes two to three times what search_full
 * does, and without a limit costs no more, to a ten-thousandth. It ends early
 * if the plan that the limit picks reaches the lower bound or the time that the
 * host takes to queue a step. If what stands reaches it, or if nothing may move
 * and no table is new, has new rows or is a replica that would be cheaper in
 * another form, what stands is the answer, and the front has that point
 * alone. Where what is
 * found is to be simpler no more moves than the limit, or where there is none
 * than does without.
 *
 * Where a GPU holds more under the old plan, with the tables of today, than its
 * reserve leaves, it may go on to, but never more than that or than it has:
 * under a limit, and where nothing is found else. plan->problem then has so
 * much less reserve there.
 *
 * plan->search is "replan"; report may be NULL, and a limit of UINT64_MAX is
 * none. ERR_NO_PLAN also where nothing
 * was found within the limit: the sentence says how much movement would do, and
 * how much of it is of GPUs that are gone and of tables cut by rows into equal
 * blocks. `from` has passed plan_check.
 */
int search_replan(struct plan *plan, const struct plan *from,
                  uint64_t limit_bytes, const struct oracle *oracle,
                  const struct search_options *options,
                  struct replan_report *report, struct arena *arena,
                  struct err *err) MUST_CHECK;

/*
 * What no plan of a problem undercuts, of the cuts that the search knows. For
 * additive oracles, for which alone something is proven, a device's terms are
 * the sums of its pieces', so
 *
 *     total = sum over k of max over r >= sum over k of mean over r
 *           = what all pieces take alone, added up, over R
 *
 * and each table takes at least what its cheapest cut takes, of those whose
 * pieces are no dearer than the total less what stands on every device anyway:
 * replicas and row blocks over all of tables that such limits leave no other
 * way. Where the cheapest cuts do not fit the memory, bytes are given a price,
 * the one that proves most (Lagrange). Plans of which this holds: each table
 * in a form that search/choices.h lists, or in columns of any widths that are
 * multiples of its quantum.
 */
struct proven {
    double ms;         /* NAN: nothing is proven for this cost model */
    const char *term;  /* what sets it: "mean load", "largest piece" or
                          "memory"; NULL where nothing is proven */
    const char *table; /* of a largest piece: the one that must be cut most
                          dearly */
};
void search_bound(struct proven *proven, const struct problem *problem,
                  const struct oracle *oracle, struct arena *arena);
/* The same of parts that were listed (search/choices.h). */
struct parts;
void bound_find(struct proven *proven, const struct parts *parts);

/* What the published search makes of parts: fills *found with the assignment of
 * wholes, halves, quarters ... of units, and its total, and sets the plan's
 * stopped and n_evaluations. False, and the total is INFINITY, where a unit can
 * be neither whole nor halved, or its greedy finds no place for some. The same
 * at any thread count. */
struct snapshot;
bool published_find(struct snapshot *found, struct plan *plan,
                    const struct parts *parts,
                    const struct search_options *options);
/* Pieces that meet become one; where that costs more than total_ms, pieces
 * change places until it does not. Sets the total, INFINITY where some may not
 * be one. Returns how many changes were priced. */
uint64_t published_join(struct snapshot *found, const struct parts *parts);

/*
 * All planners, to be compared with each other: the published baselines, those
 * that users have today by their published rules, and ours. Each places by its
 * own costs, whatever prices the plan afterwards, and within the problem's
 * memory as everything here counts it.
 */

struct contender_inputs {
    const struct oracle *oracle;    /* what prices the plan: no shard is made
                                       that it cannot price */
    const struct oracle *torchrec;  /* by which TorchRec's planner plans */
    const struct oracle *reference; /* and search_reference, instead of
                                       oracle; NULL: by that */
    const struct search_options *search; /* of our own */
    uint64_t seed;                       /* of what the baselines draw */
    double limit_ms; /* of wall-clock for TorchRec's planner; its best so far
                        is given. 0: none */
    uint64_t limit_proposals; /* likewise, and the same on any machine */
};

struct placing;
struct contender {
    const char *name;
    search_fn *search; /* of our own */
    /* Of others', whose, who knows no pins or groups: the rule, which sets the
     * plan's shards and n_evaluations, and `stopped` unless it is done. */
    const char *author;
    int (*rule)(struct placing *placing, struct err *err);
    /* Of a baseline, which is what is neither: by which tables go, the largest
     * first; NULL: at random. */
    double (*figure)(const struct table *table);
};
/*
 * NULL-name-terminated:
 *
 *   random, dim, lookup, size, size-lookup
 *              the published baselines: whole tables, by one figure
 *   torchrec   TorchRec's greedy proposer (by the largest shard, by the sum)
 *              and its uniform one over its sharding types, in device memory
 *              only; each proposal is placed by its greedy partitioner
 *   hugectr    the planner of HugeCTR's DLRM sample at its settings: small
 *              tables replicated, hot ones halved and halved again, twenty
 *              greedy rounds; cuts by columns where the oracle prices no such
 *              rows
 *   reference  search_reference
 *   neuroshard search_full
 */
extern const struct contender search_contenders[];
/* Fills a plan whose problem is set, as search_reference does. ERR_NO_PLAN
 * where the rule finds none, or knows no pins or groups and there are some. */
int contender_place(struct plan *plan, const struct contender *self,
                    const struct contender_inputs *inputs, struct arena *arena,
                    struct err *err) MUST_CHECK;

/* What a planner finds. */
struct rival {
    const struct contender *by;
    struct plan plan;    /* total_ms INFINITY where there is none */
    const char *why_not; /* then a sentence, in the arena */
};
/* That it finds no plan, or cannot plan such tables, is an answer; fails of
 * anything else. */
int rival_ask(struct rival *rival, const struct contender *by,
              const struct problem *problem,
              const struct contender_inputs *inputs, struct arena *arena,
              struct err *err) MUST_CHECK;

/* All but our own, for our plan to begin from and to be compared with. */
#define N_RIVALS 7
struct rivals {
    struct arena *arena;       /* of what they find */
    struct rival of[N_RIVALS]; /* as search_contenders; `by` NULL: not asked */
};
/* The one rule: all are asked, TorchRec's with RIVAL_EFFORT. */
int rivals_ask(struct rivals *rivals, const struct problem *problem,
               struct contender_inputs inputs, struct err *err) MUST_CHECK;
/* Of TorchRec's planner, proposals times tables: some 40 ms of them. */
#define RIVAL_EFFORT 1500000

/* The rules of others, each in a file of its own. */
int rival_torchrec(struct placing *placing, struct err *err) MUST_CHECK;
int rival_hugectr(struct placing *placing, struct err *err) MUST_CHECK;

/* TorchRec cuts columns in equal parts of at least so many. */
#define TORCHREC_MIN_COLUMNS 128u

/* What a rule works on: devices are filled, ever again, and the plan gets the
 * shards of the fairest of these assignments. */
struct placing {
    const struct contender *self;
    const struct contender_inputs *inputs;
    const struct problem *problem;
    struct plan *plan;    /* search, stopped and seed are set */
    struct arena *arena;  /* of the shards */
    struct arena scratch; /* of all else */
    uint32_t n_tables, n_devices;
    uint64_t *room_bytes; /* [n_devices] */
    struct filling {
        double load; /* by the rule's own costs */
        uint64_t free_bytes;
    } * devices;          /* [n_devices] */
    struct ranked *order; /* [n_tables], for the rule to sort */
    double least_load;    /* of the best assignment's most loaded device;
                             INFINITY while there is none */
};

/* Kinds that a table may be cut into and the oracle prices. */
unsigned placing_kinds(const struct placing *placing, uint32_t table);
/* All devices as they are to begin with, for another assignment. */
void placing_begin(struct placing *placing);
/* Whether what stands is the best: then its shards are to be added. */
bool placing_is_best(struct placing *placing);

/* Piece i of n of a table: equal blocks of rows, of which the last ones may
 * have fewer or none, or equal columns; whole and replicas alike. */
struct shard rival_piece(const struct problem *problem, uint32_t table,
                         enum shard_kind kind, uint32_t i, uint32_t n,
                         uint32_t device);

#endif
