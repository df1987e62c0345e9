/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_FORMULAS_COMM_MODEL_H
#define NEUROSHARD_COSTMODEL_FORMULAS_COMM_MODEL_H

#include "core/cluster.h"
#include "core/oracle.h"
#include "costmodel/formulas/comm_curve.h"
#include "costmodel/formulas/comm_lanes.h"

/*
 * Cost of a training step apart from lookups and updates. It consists of
 * ordering the ids, and of communicating ids, pooled outputs, their gradients
 * and the gradients of replicas; communication is priced by bytes.
 *
 * This file also combines all phases into the time of a step (core/step.h). An
 * oracle that has no net for communication appends the COMM_LANES additive
 * facts to its vectors and uses the functions of this file.
 */

/* Work of a device on the ids of its own batch if the job deduplicates ids.
 * `find` finds the distinct ids. `copy` copies their vectors to all places that
 * need them, and adds up the gradients. The member bag_ns of `copy` is the time
 * for one byte. */
struct dedup_rates {
    struct id_rate find, copy;
};

/* Returns the number of devices in a host, or in an NVLink domain if one is
 * used in place of a host. */
uint32_t comm_group_devices(const struct cluster *cluster);

/* Constants that determine the price of the communication of an assignment. */
struct comm_model {
    struct comm_rules rules;
    struct comm_curve intra; /* exchanges inside a host or NVLink domain */
    struct comm_curve inter; /* exchanges between hosts or NVLink domains */
    /* Latency of an all-reduce across hosts; 0: the latency of `inter`. */
    double reduce_us;
    struct id_rates ids;
    struct dedup_rates dedup;
    /* Base times of a lookup operation, one in the forward and one in the
     * backward. They determine how compute is split into forward and
     * backward. */
    double forward_base_ms, backward_base_ms;
    double overlap_cost[N_PHASES]; /* member of struct step (core/step.h) */
    enum host_basis host;          /* member of struct cost_source */
    /* the curve comes from measured exchanges */
    bool measured_intra, measured_inter;
    /* Origin of the constants, one phrase for reports. */
    const char *source;
    /* Prediction error of the exchanges. */
    struct cost_error error;
};

/* Replaces the model's bandwidths by the bandwidths that the cluster sets
 * (intra_gbps, inter_gbps), even if the model's bandwidths were measured.
 * Latencies do not change. The last line of a curve gets the bandwidth that the
 * cluster sets. The model's `source` mentions the change. */
void comm_model_ask(struct comm_model *model, const struct cluster *cluster,
                    struct arena *arena);

/* Returns the step of the problem's job, with the costs of overlap. Each chunk
 * of an exchange costs the latency of the exchange. Each chunk of a lookup
 * costs the base of the lookup operation. With the layers of a dense part, CPUs
 * of several hosts exchange the ids in a thread that waits for the network, so
 * this exchange costs only the copies of its bytes. */
struct step comm_model_step(const struct comm_model *model,
                            const struct problem *problem);

/* Ranks of an all-reduce. */
struct reduction_ring {
    uint32_t n_ranks;
    uint32_t per_group; /* ranks of a host, or of an NVLink domain */
    double sent;        /* bytes that a rank sends for each byte that it has */
};

/* Time of a device that only lanes of busy devices and of tiers hold, by the
 * part of the step. */
struct comm_added {
    double cache_ms, forward_ms, backward_ms;
    double slowdown; /* all compute takes 1 + slowdown times as long */
};

/* First member of every oracle that uses the communication model. The lanes of
 * enum comm_lane are the last lanes of its vectors, except for those of enum
 * busy_lane. */
struct comm_oracle {
    struct oracle base;
    struct oracle_ops ops;
    struct comm_model comm;
    /* communication over all devices of the job: `comm` if they are one
     * sharding group, or else filled before comm_oracle_init */
    struct comm_model all;
    struct step step;
    /* Returns the compute time of a device and stores its forward part. If
     * NULL, compute is split in proportion to COMM_LANE_FORWARD and
     * COMM_LANE_BACKWARD. */
    double (*device_ms)(const struct comm_oracle *oracle, const double *sums,
                        double *forward_ms);
    /* index of the first comm lane of a vector, and of the first busy lane, or
     * 0 if there are no busy lanes */
    uint32_t comm_at, busy_at;
    /* index of the lane with the bytes that a sync of sharding groups averages,
     * or 0 if there is one group */
    uint32_t sync_at;
    struct oracle_ops unbusy;   /* functions that know no busy lanes */
    struct oracle_ops untiered; /* functions that know no lanes of tiers */
    /* Tables in host memory (costmodel/formulas/comm_tiers.h); NULL: none. The
     * function adds their time. */
    const struct comm_tiers *tiers;
    void (*add_tiers_ms)(const struct comm_oracle *oracle, const double *sums,
                         struct comm_added *added);
    struct oracle_ops unsynced; /* functions that do not know sync_at */
    uint32_t per_group;         /* devices of a host, or of an NVLink domain */
    /* Time of the communication model's dedup.find. The time of dedup.copy is
     * part of step.dense_ms. */
    double find_ms;
    struct dense_cost dense; /* see dense_cost_add */
    /* Fractions of its bytes that a device sends inside its group, and to other
     * groups. */
    double near, far;
    /* rings over all devices of the job, and over a replica group of it */
    struct reduction_ring reduction, sync;
    double n_sharing; /* sharding groups that have devices in one host */
};
/* Completes an oracle after its base and its communication model were filled.
 * The oracle gets the functions in `ops`, the functions for communication, and
 * the function for the step of the problem's job. */
void comm_oracle_init(struct comm_oracle *oracle, const struct oracle_ops *ops);
/* Adds a lane with the bytes that a sync of sharding groups averages to the
 * vectors of a complete oracle, after comm_oracle_add_busy. Problems with
 * several groups have no busy_ms. With one group nothing changes. */
void comm_oracle_add_sync(struct comm_oracle *oracle);
/* Returns the forward part of a device's compute, without the update of
 * replicas. compute_ms is the compute without struct comm_added. */
double comm_forward_ms(const struct comm_oracle *oracle, const double *sums,
                       double compute_ms);
/* Returns the compute of a device with struct comm_added, from the compute
 * without it. */
double comm_compute_ms(const struct comm_oracle *oracle, const double *sums,
                       double compute_ms);
/* Returns the time of a ring all-reduce of a gradient of `bytes` among all
 * devices of the job. */
double comm_allreduce_ms(const struct comm_oracle *oracle, double bytes);

/* Lanes in ms (costmodel/formulas/comm_busy.h): the time of a device for tables
 * that the plan does not place, and the time by which measured lookups exceed
 * the prediction. An exchange ends on all ranks together, so all devices have
 * the largest time of the exchange. The last lane is no time: the slowdown of
 * the device, less 1. It is a factor on all of the device's compute. */
enum busy_lane {
    LANE_BUSY_INPUT,
    LANE_BUSY_CACHE,
    LANE_BUSY_FORWARD,
    /* exchange of outputs; gradient_more_ms of the step has the difference to
     * that of the gradients */
    LANE_BUSY_OUTPUT,
    LANE_BUSY_BACKWARD,
    LANE_SLOWDOWN,
    N_BUSY_LANES
};

/*
 * How exchanges are priced if there are R devices:
 *
 * - A device keeps 1/R of its ids, outputs and gradients. Let S_r be the bytes
 *   that device r sends in all, or receives in the exchange of ids. Device r
 *   sends S_r (R-1)/R to other devices; the part for other hosts crosses the
 *   network. Transfers inside and across hosts run at once, so the time is
 *   that of the slower level.
 * - A device never receives more than the busiest device sends, unless the last
 *   host has fewer devices than the other hosts.
 * - If the devices of a host share a port, the mean of their bytes takes the
 *   place of the bytes of the busiest device, on the way to other hosts.
 * - The all-reduce takes 2 (R-1)/R x largest dense gradient / slowest level.
 *   Across hosts, each of the GPUs of a host sends its share by its own network
 *   adapter.
 * - With G sharding groups, exchanges are those of a group, the all-reduce is
 *   over the devices of all groups, and a sync takes 2 (G-1)/G x the bytes of
 *   the device with most weights and optimizer state / the link of its replica
 *   group. A step has 1/K of a sync. Groups in one host share its memory
 *   (COMM_TOTAL).
 * - An exchange of no bytes costs nothing; any other exchange costs at least
 *   its latency. With R = 1 no exchange takes any time.
 * - Ids are permuted on arrival. Before the exchange, a device that has row
 *   blocks bucketizes its own batch, which is 1/R of all bags and ids.
 * - Compute without the replicas' update is split into forward and backward in
 *   proportion to the standalone costs of the device's shards.
 *
 * ops->phases fills the phases of core/step.h; the time of an exchange is the
 * time that all ranks wait for it. ops->comm splits the step into
 *
 *     bwd_r = gradient exchange + all-reduce
 *     fwd_r = step - (compute_r + bwd_r)
 *
 * ops->terms gives the terms of the step, computed from the bytes that a device
 * sends. The terms exist only for COMM_PORT with a port for each device,
 * because otherwise the time cannot be attributed to single devices.
 */

#endif
