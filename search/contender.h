/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_CONTENDER_H
#define NEUROSHARD_SEARCH_CONTENDER_H

#include "search/search.h"

/* A planner to compare with others (search/planners.h), and the state in which
 * the rule of a planner of another author places tables. */

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
    /* The planner in messages, such as "TorchRec's planner" or "caching all
     * tables whole". It supports neither pins nor groups. `rule` sets the
     * shards and `n_evaluations` of the plan. It also sets `stopped`, unless
     * the value is "done". */
    const char *author;
    int (*rule)(struct placing *placing, struct err *err);
    bool needs_tiers; /* plans only with host memory for tables */
    /* Figure of a table by which a baseline sorts the tables, the largest
     * first. NULL: tables are placed at random. */
    double (*figure)(const struct table *table);
};
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
