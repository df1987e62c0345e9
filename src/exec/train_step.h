/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_TRAIN_STEP_H
#define NEUROSHARD_EXEC_TRAIN_STEP_H

#include "exec/sync.h"
#include "exec/train_feed.h"
#include "exec/train_result.h"

/* An open training, and its steps. */

/* Times of one step on one rank. */
struct step_times {
    double phases_ms[N_TRAIN_PHASES], wait_ms, step_ms;
};

/* State of a training in this process. It owns its members, except the first
 * two; arrays are in the arena. */
struct train_state {
    const struct exec_train_options *options;
    struct train_result *result;
    struct placement placement;
    struct exchange_set set;
    struct world *second; /* NULL without a pipeline */
    struct gemm_library *blas;
    struct feed feed;
    struct dense_net *nets; /* [R]: nets of the ranks of this process */
    float **d_scratch;      /* [R]: scratch memory of the all-reduce */
    struct train_reference *reference; /* NULL without a comparison */
    struct step_times *times;          /* [n_steps][R] */
    struct sync sync;                  /* zeroed without syncs */
    double *syncs_ms;   /* [result->sync.n] times of the syncs so far */
    double *own_losses; /* [R]: sum of a rank's losses in this step */
};

/* Runs and times a step; `step` counts from 0. With PIPELINE_SDD the input of
 * the step ran during the step before it. Fails with ERR_INTERRUPTED after an
 * interrupt, or as its parts do. Collective. */
int train_step_run(struct train_state *run, unsigned step,
                   struct err *err) MUST_CHECK;
/* Runs and times a sync of the sharding groups, and counts its bytes.
 * Collective. */
int train_sync_run(struct train_state *run, struct err *err) MUST_CHECK;

#endif
