/* SPDX-License-Identifier: MIT */
#include "costmodel/formulas/comm_lanes.h"

#include <math.h>
#include <string.h>

double comm_id_work_ns(const struct id_rate *rate, double bags, double ids)
{
    return ceil(bags * rate->bag_ns + ids * rate->id_ns);
}

/* Returns the time in which a device sorts its share of all lookups of the
 * table by row blocks. The time does not depend on the row blocks that the
 * device holds. */
static double bucketize_ns(const struct problem *problem,
                           const struct shard *shard,
                           const struct id_rate *rate)
{
    const double n_devices = problem->cluster.n_devices;
    struct shard all = *shard;

    all.row_begin = 0;
    all.row_end = problem->tables[shard->table].num_embeddings;
    return comm_id_work_ns(rate, ceil(shard_bags(problem, &all)) / n_devices,
                           ceil(shard_lookups(problem, &all)) / n_devices);
}

void comm_embed(const struct problem *problem, const struct shard *shard,
                const struct id_rates *rates, double out[COMM_LANES])
{
    const double width = (double)(shard->col_end - shard->col_begin);
    const double rows = (double)(shard->row_end - shard->row_begin);
    const double ids = ceil(shard_lookups(problem, shard));
    const double bags = ceil(shard_bags(problem, shard));

    memset(out, 0, COMM_LANES * sizeof(*out));
    if (shard_is_replica(shard->kind)) {
        out[COMM_LANE_GRAD] = rows * width * 4;
        return;
    }
    out[COMM_LANE_INPUT] = PROBLEM_ID_BYTES * ids + PROBLEM_LENGTH_BYTES * bags;
    out[COMM_LANE_PERMUTE] = comm_id_work_ns(&rates->permute, bags, ids);
    if (shard_cuts_rows(shard->kind))
        out[COMM_LANE_BUCKETIZE] =
            bucketize_ns(problem, shard, &rates->bucketize);
    out[COMM_LANE_OUTPUT] = shard_output_bytes(problem, shard);
}
