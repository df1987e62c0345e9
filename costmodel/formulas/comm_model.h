/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_FORMULAS_COMM_MODEL_H
#define NEUROSHARD_COSTMODEL_FORMULAS_COMM_MODEL_H

#include "core/cluster.h"
#include "core/oracle.h"
#include "core/sample.h"

/*
 * Cost of a training step apart from lookups and updates. It consists of
 * ordering the ids, and of communicating ids, pooled outputs, their gradients
 * and the gradients of replicas; communication is priced by bytes.
 *
 * This file also combines all phases into the time of a step (core/step.h). An
 * oracle that has no net for communication appends the COMM_LANES additive
 * facts to its vectors and uses the functions of this file.
 */

/* Rule by which the time of an all-to-all inside a host follows from the bytes.
 * Across hosts the bytes of the busiest port always determine the time. A port
 * belongs to one device, or to all devices of a host (shares_port). */
enum comm_form {
    /* Switched links: the bytes of the busiest port determine the time, by
     * max(sent, received). */
    COMM_PORT,
    COMM_TOTAL /* shared memory: all bytes go through one copy bandwidth */
};
extern const char *const comm_form_names[];

/* Rules by which the time of an all-to-all follows from the bytes. */
struct comm_rules {
    enum comm_form form; /* inside a host */
    /* True if the devices of a host share one port to other hosts. The mean of
     * their bytes then determines the time of an exchange across hosts, so that
     * a bandwidth is still that of one device. */
    bool shares_port;
};
/* Returns the bytes that determine the time of a measured exchange. A port does
 * not carry the bytes that stay on its rank. Across hosts it does not carry the
 * bytes that stay on its host. If the bytes of the hosts are unknown, those of
 * the busiest rank are used for a shared port, too. */
double comm_rules_bytes(struct comm_rules rules,
                        const struct comm_sample *sample);

/*
 * Time of an exchange as a piecewise linear function of its message size. The
 * curve begins with the latency at bytes[0] = 0. Beyond the last knot it
 * continues its last line. A curve of two knots is the classic alpha + bytes /
 * bandwidth.
 */
#define COMM_MAX_KNOTS 34
struct comm_curve {
    /* Numbers of ranks and hosts at which the curve was measured; 0: it holds
     * for any number. */
    uint32_t n_ranks, n_hosts;
    /* Number of knots: 0 if the curve is unknown, else at least 2. */
    uint32_t n_knots;
    /* Bytes at each knot, increasing, bytes[0] = 0. */
    double bytes[COMM_MAX_KNOTS];
    /* Time at each knot, >= 0, never decreasing. */
    double us[COMM_MAX_KNOTS];
};

/* Returns the curve of two knots with this latency and bandwidth, in 10^9 bytes
 * a second. At the second knot the bytes are those moved in one second
 * (COMM_LINE_US), and the time is the latency plus COMM_LINE_US. */
#define COMM_LINE_US 1e6
struct comm_curve comm_line(double alpha_us, double gbps);
double comm_curve_us(const struct comm_curve *curve, double bytes);
/* Returns the index of the knot at the end of the line that holds this number
 * of bytes. Sets *share to the position on the line, from 0 at its first knot
 * to 1 at its second. */
uint32_t comm_curve_knot(const struct comm_curve *curve, double bytes,
                         double *share);
/* Returns the bandwidth of the last line of the curve, in 10^9 bytes a
 * second. */
double comm_curve_gbps(const struct comm_curve *curve);

/* Returns the number of devices in a host, or in an NVLink domain if one is
 * used in place of a host. */
uint32_t comm_group_devices(const struct cluster *cluster);

/* Times of operations on ids before the lookups. Each operation has a base
 * time, a time for each bag and a time for each id. */
struct id_rates {
    struct id_rate {
        double base_us, bag_ns, id_ns;
    } permute,     /* puts received ids in the order of tables */
        bucketize, /* splits a device's own batch by row blocks */
        check;     /* checks in the lookup that ids are inside their tables */
};

/* Work of a device on the ids of its own batch if the job deduplicates ids.
 * `find` finds the distinct ids. `copy` copies their vectors to all places that
 * need them, and adds up the gradients. The member bag_ns of `copy` is the time
 * for one byte. */
struct dedup_rates {
    struct id_rate find, copy;
};

/* Returns the time of an operation on this many bags and ids, without the base
 * of the operation, rounded up to whole ns. */
double comm_id_work_ns(const struct id_rate *rate, double bags, double ids);

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

/* First member of every oracle that uses the communication model. The lanes of
 * enum comm_lane are the last lanes of its vectors, except for those of enum
 * busy_lane. */
struct comm_oracle {
    struct oracle base;
    struct oracle_ops ops;
    struct comm_model comm;
    struct step step;
    /* Returns the compute time of a device and stores its forward part. If
     * NULL, compute is split in proportion to COMM_LANE_FORWARD and
     * COMM_LANE_BACKWARD. */
    double (*device_ms)(const struct comm_oracle *oracle, const double *sums,
                        double *forward_ms);
    /* index of the first comm lane of a vector, and of the first busy lane, or
     * 0 if there are no busy lanes */
    uint32_t comm_at, busy_at;
    struct oracle_ops unbusy; /* functions that know no busy lanes */
    uint32_t per_group;       /* devices of a host, or of an NVLink domain */
    /* Time of the communication model's dedup.find. The time of dedup.copy is
     * part of step.dense_ms. */
    double find_ms;
    struct dense_cost dense; /* see dense_cost_add */
    /* near, far: fractions of its bytes that a device sends inside its group,
     * and to other groups. ring: bytes that a device sends in an all-reduce for
     * each byte of its gradient. */
    double near, far, ring;
};
/* Completes an oracle after its base and its communication model were filled.
 * The oracle gets the functions in `ops`, the functions for communication, and
 * the function for the step of the problem's job. */
void comm_oracle_init(struct comm_oracle *oracle, const struct oracle_ops *ops);
/* Return parts of a device's compute: its forward, without the update of
 * replicas, and all work that only the busy lanes hold. compute_ms is the
 * compute without the busy lanes. */
double comm_forward_ms(const struct comm_oracle *oracle, const double *sums,
                       double compute_ms);
double comm_busy_compute_ms(const struct comm_oracle *oracle,
                            const double *sums);
/* Returns the time of a ring all-reduce of a gradient of `bytes` among all
 * devices. */
double comm_allreduce_ms(const struct comm_oracle *oracle, double bytes);

/* Lanes in ms (costmodel/formulas/comm_busy.h): the time of a device for tables
 * that the plan does not place, and the time by which measured lookups exceed
 * the prediction. An exchange ends on all ranks together, so all devices have
 * the largest time of the exchange. */
enum busy_lane {
    LANE_BUSY_INPUT,
    LANE_BUSY_CACHE,
    LANE_BUSY_FORWARD,
    /* exchange of outputs; gradient_more_ms of the step has the difference to
     * that of the gradients */
    LANE_BUSY_OUTPUT,
    LANE_BUSY_BACKWARD,
    N_BUSY_LANES
};

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
