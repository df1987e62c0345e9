/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_FORMULAS_COMM_LANES_H
#define NEUROSHARD_COSTMODEL_FORMULAS_COMM_LANES_H

#include "core/problem.h"

/* Additive facts about the communication of a shard. */

/* Times of operations on ids before the lookups. Each operation has a base
 * time, a time for each bag and a time for each id. */
struct id_rates {
    struct id_rate {
        double base_us, bag_ns, id_ns;
    } permute,     /* puts received ids in the order of tables */
        bucketize, /* splits a device's own batch by row blocks */
        check;     /* checks in the lookup that ids are inside their tables */
};

/* Returns the time of an operation on this many bags and ids, without the base
 * of the operation, rounded up to whole ns. */
double comm_id_work_ns(const struct id_rate *rate, double bags, double ids);

/* Lanes that describe the communication of a shard in one step of the global
 * batch. They add up over the shards of a device. A lane that is compared with
 * 0 holds whole numbers, so that it returns to exactly 0 when all shards are
 * subtracted again. */
enum comm_lane {
    COMM_LANE_INPUT,   /* bytes of ids and bag lengths received */
    COMM_LANE_PERMUTE, /* ns to permute received ids, less the base */
    /* ns to bucketize the ids of a device's own batch for row blocks, without
     * the base. */
    COMM_LANE_BUCKETIZE,
    /* Bytes of output that the device sends, at the communication precision.
     * The device receives as many bytes of gradients. */
    COMM_LANE_OUTPUT,
    /* Bytes of the dense fp32 gradient that replicas all-reduce; it is above 0
     * if there are replicas. */
    COMM_LANE_GRAD,
    /* ms of the forward of the shards, each priced alone and without the base.
     * Compute is split in proportion to this lane and COMM_LANE_BACKWARD. If
     * the oracle has the function device_ms, this lane holds replicas only. */
    COMM_LANE_FORWARD,
    COMM_LANE_BACKWARD,
    /* ms of the dense optimizer's update of replicas, a part of compute. */
    COMM_LANE_UPDATE,
    COMM_LANES
};

/* Fills the lanes of one shard except the last three (COMM_LANE_FORWARD,
 * COMM_LANE_BACKWARD, COMM_LANE_UPDATE). A replica serves its own samples, so
 * it takes no part in the all-to-alls. */
void comm_embed(const struct problem *problem, const struct shard *shard,
                const struct id_rates *ids, double out[COMM_LANES]);

#endif
