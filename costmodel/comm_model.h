/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_COMM_MODEL_H
#define NEUROSHARD_COSTMODEL_COMM_MODEL_H

#include "core/problem.h"

/*
 * What communication costs by a latency and a bandwidth (alpha-beta): the
 * all-to-all of pooled outputs forward, of their gradients backward, and the
 * all-reduce of replicas' gradients. Oracles that have no net for it carry
 * its COMM_LANES additive facts in their vectors and ask here.
 */

/* How the time of an all-to-all follows from the bytes. */
enum comm_form {
    COMM_PORT, /* switched links: the busiest port, max(sent, received) */
    COMM_TOTAL /* shared memory: all bytes go through one copy bandwidth */
};

/* 10^9 bytes a second and direction, of one device. */
struct comm_model {
    enum comm_form form;
    double alpha_us, intra_gbps;       /* inside a host */
    double inter_alpha_us, inter_gbps; /* across hosts */
    const char *source;                /* one phrase, for reports */
};

/* Bytes a step for the global batch, additive over the shards of a device. */
enum comm_lane {
    COMM_LANE_FWD,   /* outputs this device produces, by comm precision */
    COMM_LANE_BWD,   /* gradients of them that it gets back */
    COMM_LANE_INDEX, /* 8 B a look-up. Carried, not charged: the input
                        distribution overlaps with the step before */
    COMM_LANE_GRAD,  /* dense fp32 gradient that replicas all-reduce */
    COMM_LANES
};

/* The lanes of one shard. A replica serves its own samples: it takes no part
 * in the all-to-all. */
void comm_embed(const struct problem *problem, const struct shard *shard,
                double out[COMM_LANES]);

/*
 * Prices n assignments of the problem's R devices: the lanes of device r of
 * assignment i start at sums[(i * R + r) * width + first_lane], its compute is
 * compute_ms[i * R + r]; fwd_ms and bwd_ms are [n][R].
 *
 * Device r keeps 1/R of its S_r bytes: it sends S_r (R-1)/R and receives
 * (sum S - S_r)/R, which share crosses hosts by the same rule, and both levels
 * run at once: the slower one is the time T. Then
 *
 *     bwd_r = T_bwd + 2 (R-1)/R x largest dense gradient / slowest level
 *     fwd_r = max over q of (compute_q + bwd_q) - (compute_r + bwd_r) + T_fwd
 *
 * An exchange of no bytes costs nothing, any other at least its latency.
 * R = 1: all zero.
 */
void comm_price(const struct comm_model *model, const struct problem *problem,
                size_t n, const double *sums, uint32_t width,
                uint32_t first_lane, const double *compute_ms, double *fwd_ms,
                double *bwd_ms);

#endif
