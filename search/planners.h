/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_PLANNERS_H
#define NEUROSHARD_SEARCH_PLANNERS_H

#include "search/search.h"

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
 * planner has the limit RIVAL_EFFORT, and is not run on more than
 * RIVAL_MOST_TABLES tables. A planner that would begin after
 * inputs.end_ms has no plan, and the time limit is its reason. If end_ms is not
 * 0, an interrupt is a reason, too. */
int rivals_ask(struct rivals *rivals, const struct problem *problem,
               struct contender_inputs inputs, struct err *err) MUST_CHECK;
/* Limit for TorchRec's planner: number of proposals times number of tables. It
 * takes about 40 ms. */
#define RIVAL_EFFORT 1500000
/* Most tables for TorchRec's planner. It cuts long lists into very many pieces:
 * pricing its plan of 200,000 tables on 64 GPUs takes 20 s and 1.5 GB. */
#define RIVAL_MOST_TABLES 50000

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
