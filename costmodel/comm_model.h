/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_COMM_MODEL_H
#define NEUROSHARD_COSTMODEL_COMM_MODEL_H

#include "base/mem.h"
#include "core/oracle.h"

#include <stdbool.h>

/*
 * What communication costs by its bytes: the all-to-all of pooled outputs
 * forward, of their gradients backward, and the all-reduce of replicas'
 * gradients. Oracles that have no net for it carry its COMM_LANES additive
 * facts at the end of their vectors and ask here.
 */

/* How the time of an all-to-all inside a host follows from the bytes; across
 * hosts it is always by the busiest port. */
enum comm_form {
    COMM_PORT, /* switched links: the busiest port, max(sent, received) */
    COMM_TOTAL /* shared memory: all bytes go through one copy bandwidth */
};

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

/* 10^9 bytes a second. */
struct comm_curve comm_line(double alpha_us, double gbps);
double comm_curve_us(const struct comm_curve *curve, double bytes);
/* The knot where the line ends that so many bytes are on, and how far along it
 * they are, from 0 to 1 between its knots. */
uint32_t comm_curve_knot(const struct comm_curve *curve, double bytes,
                         double *share);
/* The rate of the last line. */
double comm_curve_gbps(const struct comm_curve *curve);

/* What assignments are priced by. */
struct comm_model {
    enum comm_form form;
    struct comm_curve intra; /* inside a host or an NVLink domain */
    struct comm_curve inter; /* across them */
    const char *source;      /* one phrase, for reports */
};

/* Puts the bandwidths that the cluster asks for (intra_gbps, inter_gbps) in the
 * place of the model's, whatever those rest on; latencies stay, and source says
 * so. An asked one is that of the last line of its curve. */
void comm_model_ask(struct comm_model *model, const struct cluster *cluster,
                    struct arena *arena);

/* What was measured: a curve for each number of ranks and hosts. */
#define COMM_MAX_CURVES 8
struct comm_fit {
    enum comm_form form;
    struct comm_curve curves[COMM_MAX_CURVES];
    uint32_t n_curves; /* >= 1 */
    const char *source;
};
/* Puts the curves of a fit in the place of those that a model has: inside a
 * host and across hosts each the one of the most similar number of ranks. What
 * was not measured stays as it is; false where a cluster of several hosts so
 * keeps the curve that it had across them. */
bool comm_fit_apply(const struct comm_fit *fit, const struct cluster *cluster,
                    struct comm_model *model);

/* First member of an oracle that asks here; the lanes below are the last of its
 * vectors. */
struct comm_oracle {
    struct oracle base;
    struct oracle_ops ops;
    struct comm_model comm;
};
/* Gives a base that is filled, with its comm model set, these ops, and those of
 * communication beside them. */
void comm_oracle_init(struct comm_oracle *oracle, const struct oracle_ops *ops);

/* Bytes a step for the global batch, additive over the shards of a device. */
enum comm_lane {
    COMM_LANE_OUTPUT, /* that this device produces and sends, by comm precision;
                         as many are the gradients that it gets back */
    COMM_LANE_GRAD,   /* dense fp32 gradient that replicas all-reduce */
    COMM_LANES
};

/* The lanes of one shard. A replica serves its own samples: it takes no part
 * in the all-to-all. Indices are not charged: the input distribution overlaps
 * with the step before. */
void comm_embed(const struct problem *problem, const struct shard *shard,
                double out[COMM_LANES]);

/* Whether a device with these lanes has replicas: bytes are whole numbers,
 * which add up and off to none. */
static inline bool comm_has_replicas(const double lanes[COMM_LANES])
{
    return lanes[COMM_LANE_GRAD] > 0;
}

/*
 * Device r keeps 1/R of its S_r bytes: it sends S_r (R-1)/R and receives
 * (sum S - S_r)/R, which share crosses hosts by the same rule, and both levels
 * run at once: the slower one is the time T. Then ops->comm says
 *
 *     bwd_r = T + 2 (R-1)/R x largest dense gradient / slowest level
 *     fwd_r = max over q of (compute_q + bwd_q) - (compute_r + bwd_r) + T
 *
 * An exchange of no bytes costs nothing, any other at least its latency.
 * R = 1: all zero.
 *
 * ops->terms says of each device its compute, what it sends forward, what it
 * sends backward, its all-reduce. What it receives is left out, as that hangs
 * on the others; it is more than what the busiest device sends only where
 * sending is even. Only of COMM_PORT: of COMM_TOTAL no device has a share.
 */
#define COMM_TERMS 4

#endif
