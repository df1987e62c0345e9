/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_COMM_MODEL_H
#define NEUROSHARD_COSTMODEL_COMM_MODEL_H

#include "core/oracle.h"

/*
 * What a step costs beside its look-ups and updates: communication by its
 * bytes, of ids, of pooled outputs, of their gradients and of replicas'
 * gradients, and putting ids in order; and what all of it comes to
 * (core/step.h). Oracles that have no net for it carry its COMM_LANES additive
 * facts at the end of their vectors and ask here.
 */

/* How the time of an all-to-all inside a host follows from the bytes; across
 * hosts it is always by the busiest port. */
enum comm_form {
    COMM_PORT, /* switched links: the busiest port, max(sent, received) */
    COMM_TOTAL /* shared memory: all bytes go through one copy bandwidth */
};
extern const char *const comm_form_names[];

/*
 * Latency and bandwidth by message size: the time is a line between any two
 * knots, from bytes[0] = 0, whose time is the latency, and the last line goes
 * on. Two knots are the classic alpha + bytes / bandwidth.
 */
#define COMM_MAX_KNOTS 34
struct comm_curve {
    uint32_t n_ranks, n_hosts;    /* it was measured between; 0: any */
    uint32_t n_knots;             /* 0: nothing is known, else at least 2 */
    double bytes[COMM_MAX_KNOTS]; /* rising, bytes[0] = 0 */
    double us[COMM_MAX_KNOTS];    /* not falling, from 0 up */
};

/* 10^9 bytes a second. The second knot is the bytes of a second, COMM_LINE_US
 * after the latency. */
#define COMM_LINE_US 1e6
struct comm_curve comm_line(double alpha_us, double gbps);
double comm_curve_us(const struct comm_curve *curve, double bytes);
/* The knot where the line ends that so many bytes are on, and how far along it
 * they are, from 0 to 1 between its knots. */
uint32_t comm_curve_knot(const struct comm_curve *curve, double bytes,
                         double *share);
/* The rate of the last line. */
double comm_curve_gbps(const struct comm_curve *curve);

/* Devices of a host, or of the NVLink domain that stands for one. */
uint32_t comm_group_devices(const struct cluster *cluster);

/* What ids take before they are looked up, by operations that go over bags and
 * the ids in them. */
struct id_rates {
    struct id_rate {
        double base_us, bag_ns, id_ns;
    } permute,     /* of ids that came, to the order of tables */
        bucketize, /* of a device's own batch, by row blocks */
        check;     /* that they are inside their tables, in the look-up */
};

/* What a device does with the ids of its own batch where the job de-duplicates
 * ids: finds those that differ; copies their vectors to all that asked and adds
 * up the gradients, by ids and, in the place of bags, bytes. */
struct dedup_rates {
    struct id_rate find, copy;
};

/* Without the base, in whole ns. */
double comm_id_work_ns(const struct id_rate *rate, double bags, double ids);

/* What assignments are priced by. */
struct comm_model {
    enum comm_form form;
    struct comm_curve intra; /* inside a host or an NVLink domain */
    struct comm_curve inter; /* across them */
    struct id_rates ids;
    struct dedup_rates dedup;
    /* Beside a shard's look-ups: what its operation takes, of the forward and
     * of the backward, by which compute is split. */
    double forward_base_ms, backward_base_ms;
    double overlap_cost[N_PHASES], host_ms; /* of struct step */
    const char *source;                     /* one phrase, for reports */
    struct cost_error error;                /* of exchanges */
};

/* Puts the bandwidths that the cluster asks for (intra_gbps, inter_gbps) in the
 * place of the model's, whatever those rest on; latencies stay, and source says
 * so. An asked one is that of the last line of its curve. */
void comm_model_ask(struct comm_model *model, const struct cluster *cluster,
                    struct arena *arena);

/* The step of the problem's job, by what phases cost each other. Each chunk of
 * an exchange has its latency, and each of a look-up its operation. */
struct step comm_model_step(const struct comm_model *model,
                            const struct problem *problem);

/* What was measured: a curve for each number of ranks and hosts. */
#define COMM_MAX_CURVES 8
struct comm_fit {
    enum comm_form form;
    struct comm_curve curves[COMM_MAX_CURVES];
    uint32_t n_curves; /* >= 1 */
    const char *source;
};

/* First member of an oracle that asks here; the lanes below are the last of its
 * vectors. */
struct comm_oracle {
    struct oracle base;
    struct oracle_ops ops;
    struct comm_model comm;
    struct step step;
    /* Compute of a device, and the forward of it; NULL: that is split by its
     * lanes. */
    double (*device_ms)(const struct comm_oracle *oracle, const double *sums,
                        double *forward_ms);
    uint32_t per_group; /* devices of a host, or of an NVLink domain */
    double find_ms;     /* of the model's dedup; to copy counts as dense part */
    /* Of what it has in all a device sends inside its group and across, and of
     * its gradient in an all-reduce. */
    double near, far, ring;
};
/* Gives a base that is filled, with its comm model set, these ops, and those of
 * communication and of the step of its problem's job beside them. */
void comm_oracle_init(struct comm_oracle *oracle, const struct oracle_ops *ops);

/* Of the global batch, a step; additive over the shards of a device. What shows
 * by being 0 is counted in whole numbers, which add up and off to 0. */
enum comm_lane {
    COMM_LANE_INPUT,     /* bytes of ids and bags' lengths that come */
    COMM_LANE_PERMUTE,   /* ns that those take, but for the base */
    COMM_LANE_BUCKETIZE, /* likewise: of row blocks, a device's own batch */
    COMM_LANE_OUTPUT,    /* bytes that it produces and sends, by comm precision;
                            as many are the gradients that it gets back */
    COMM_LANE_GRAD,    /* bytes of dense fp32 gradient that replicas all-reduce;
                          above 0 where there are some */
    COMM_LANE_FORWARD, /* ms of each shard alone, but for what any operation
                          takes: by these and the next compute is split; where
                          the oracle tells its forward, of replicas alone */
    COMM_LANE_BACKWARD,
    COMM_LANE_UPDATE, /* ms of the replicas' dense optimizer, of compute */
    COMM_LANES
};

/* The lanes of one shard but the last three. A replica serves its own samples:
 * it takes no part in the all-to-alls. */
void comm_embed(const struct problem *problem, const struct shard *shard,
                const struct id_rates *ids, double out[COMM_LANES]);

/*
 * Of ids, outputs and gradients a device keeps 1/R: if it sends S_r of them in
 * all (of ids: receives), it sends S_r (R-1)/R, of which what goes to other
 * hosts crosses, and both levels run at once: the slower one is the time. What
 * it receives is never more than what the busiest device sends, unless the last
 * host is smaller than the others. The all-reduce takes 2 (R-1)/R x
 * largest dense gradient / slowest level. An exchange of no bytes costs
 * nothing, any other at least its latency.
 *
 * Ids are permuted where they came; before, a device that has row blocks
 * bucketizes its own batch, the Rth part of all bags and ids. Compute without
 * the replicas' update is split into forward and backward by what the device's
 * shards take alone. Then ops->phases says what the phases of core/step.h take,
 * exchanges as all ranks wait for them, and ops->comm of the step
 *
 *     bwd_r = gradient exchange + all-reduce
 *     fwd_r = step - (compute_r + bwd_r)
 *
 * R = 1: no exchange takes anything.
 *
 * ops->terms are the step's, of what a device sends. Only of COMM_PORT: of
 * COMM_TOTAL no device has a share.
 */

#endif
