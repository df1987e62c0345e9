/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_COMM_MODEL_H
#define NEUROSHARD_COSTMODEL_COMM_MODEL_H

#include "core/oracle.h"

/*
 * Cost of a step apart from lookups and updates: the communication of ids, of
 * pooled outputs, of their gradients and of the replicas' gradients, by bytes;
 * and the ordering of ids. Also combines all phases into the time of a step
 * (core/step.h). An oracle that has no net for communication carries the
 * COMM_LANES additive facts at the end of its vectors and uses the functions of
 * this file.
 */

/* Rule by which the time of an all-to-all inside a host follows from the bytes.
 * Across hosts the busiest port always decides. */
enum comm_form {
    /* Switched links: the busiest port decides, by max(sent, received). */
    COMM_PORT,
    COMM_TOTAL /* shared memory: all bytes go through one copy bandwidth */
};
extern const char *const comm_form_names[];

/*
 * Time of an exchange by message size, as a piecewise linear curve. It begins
 * at bytes[0] = 0 with the latency; beyond the last knot the last line
 * continues. A curve of two knots is the classic alpha + bytes / bandwidth.
 */
#define COMM_MAX_KNOTS 34
struct comm_curve {
    /* Ranks and hosts of the measurement; 0: any number. */
    uint32_t n_ranks, n_hosts;
    uint32_t n_knots;             /* 0: the curve is unknown; else at least 2 */
    double bytes[COMM_MAX_KNOTS]; /* increasing, bytes[0] = 0 */
    double us[COMM_MAX_KNOTS];    /* >= 0, never decreasing */
};

/* Returns the curve of two knots with this latency and bandwidth, in 10^9 bytes
 * a second. The second knot is the number of bytes that are moved in one
 * second. Its time is the latency plus COMM_LINE_US. */
#define COMM_LINE_US 1e6
struct comm_curve comm_line(double alpha_us, double gbps);
double comm_curve_us(const struct comm_curve *curve, double bytes);
/* Returns the knot at which the line for this number of bytes ends. *share is
 * the position on the line, from 0 at its first knot to 1 at its second. */
uint32_t comm_curve_knot(const struct comm_curve *curve, double bytes,
                         double *share);
/* Returns the bandwidth of the last line. */
double comm_curve_gbps(const struct comm_curve *curve);

/* Returns the devices of a host, or of the NVLink domain that is used in place
 * of a host. */
uint32_t comm_group_devices(const struct cluster *cluster);

/* Times of operations on ids before the lookups: a base, and a time for each
 * bag and for each id. */
struct id_rates {
    struct id_rate {
        double base_us, bag_ns, id_ns;
    } permute,     /* puts received ids in the order of tables */
        bucketize, /* splits a device's own batch by row blocks */
        check;     /* checks in the lookup that ids are inside their tables */
};

/* Work of a device on the ids of its own batch if the job deduplicates ids.
 * `find` finds the distinct ids. `copy` copies their vectors to all places that
 * need them, and adds up the gradients; its bag_ns is the time for one byte. */
struct dedup_rates {
    struct id_rate find, copy;
};

/* Returns the time of the operation without its base, rounded up to whole
 * ns. */
double comm_id_work_ns(const struct id_rate *rate, double bags, double ids);

/* Constants that assignments are priced by. */
struct comm_model {
    enum comm_form form;
    struct comm_curve intra; /* inside a host or an NVLink domain */
    struct comm_curve inter; /* between hosts or NVLink domains */
    struct id_rates ids;
    struct dedup_rates dedup;
    /* Base time of a lookup operation, in the forward and in the backward. They
     * are needed to split compute into forward and backward. */
    double forward_base_ms, backward_base_ms;
    double overlap_cost[N_PHASES], host_ms; /* see struct step */
    const char *source;                     /* one phrase, for reports */
    struct cost_error error;                /* error of the exchanges */
};

/* Replaces the model's bandwidths by those that the cluster sets (intra_gbps,
 * inter_gbps), whatever the model's are based on. Latencies stay. The set
 * bandwidth is that of the last line of its curve. The source mentions the
 * change. */
void comm_model_ask(struct comm_model *model, const struct cluster *cluster,
                    struct arena *arena);

/* Returns the step of the problem's job, with the costs of overlap. Each chunk
 * of an exchange costs a latency, each chunk of a lookup the base of its
 * operation. */
struct step comm_model_step(const struct comm_model *model,
                            const struct problem *problem);

/* Measured communication: a curve for each number of ranks and hosts. */
#define COMM_MAX_CURVES 8
struct comm_fit {
    enum comm_form form;
    struct comm_curve curves[COMM_MAX_CURVES];
    uint32_t n_curves; /* >= 1 */
    const char *source;
};

/* First member of an oracle that uses the communication model. The lanes below
 * are the last of its vectors. */
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
    uint32_t per_group; /* devices of a host, or of an NVLink domain */
    /* Time of the model's dedup.find; dedup.copy counts as dense part. */
    double find_ms;
    /* Fractions of a device's bytes that it sends inside its group and to other
     * groups, and bytes that it sends in an all-reduce for each byte of its
     * gradient. */
    double near, far, ring;
};
/* Completes an oracle whose base and communication model are filled. Its
 * functions are those in `ops`, plus those for communication and for the step
 * of the problem's job. */
void comm_oracle_init(struct comm_oracle *oracle, const struct oracle_ops *ops);

/* Lanes of one step of the global batch. They add up over the shards of a
 * device. A lane that is compared with 0 holds whole numbers, so that it
 * returns to exactly 0 when all shards are subtracted again. */
enum comm_lane {
    COMM_LANE_INPUT,   /* bytes of ids and lengths of bags that arrive */
    COMM_LANE_PERMUTE, /* ns to permute them, without the base */
    /* ns to bucketize a device's own batch for row blocks, without the base. */
    COMM_LANE_BUCKETIZE,
    /* Bytes of output that the device sends, by the communication precision. As
     * many bytes of gradients come back. */
    COMM_LANE_OUTPUT,
    /* Bytes of the dense fp32 gradient that replicas all-reduce; above 0 if
     * there are replicas. */
    COMM_LANE_GRAD,
    /* ms of each shard alone, without the base. Compute is split in proportion
     * to this lane and the next. If the oracle has device_ms, this lane holds
     * replicas only. */
    COMM_LANE_FORWARD,
    COMM_LANE_BACKWARD,
    /* ms of the replicas' dense optimizer, a part of compute. */
    COMM_LANE_UPDATE,
    COMM_LANES
};

/* Fills the lanes of one shard except the last three. A replica serves its own
 * samples, so it takes no part in the all-to-alls. */
void comm_embed(const struct problem *problem, const struct shard *shard,
                const struct id_rates *ids, double out[COMM_LANES]);

/*
 * How exchanges are priced, for R devices:
 *
 * - A device keeps 1/R of its ids, outputs and gradients. Let S_r be the bytes
 *   that device r sends in all (for ids: receives). It sends S_r (R-1)/R to
 *   others; the part for other hosts crosses. Both levels run at once, so the
 *   time is that of the slower one.
 * - A device never receives more than the busiest device sends, unless the last
 *   host is smaller than the others.
 * - The all-reduce takes 2 (R-1)/R x largest dense gradient / slowest level.
 * - An exchange of no bytes costs nothing; any other costs at least its
 *   latency. With R = 1 no exchange takes any time.
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
 * ops->terms are those of the step, computed from the bytes that a device
 * sends. They exist only for COMM_PORT: with COMM_TOTAL the time cannot be
 * attributed to single devices.
 */

#endif
