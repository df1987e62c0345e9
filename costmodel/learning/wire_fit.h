/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_LEARNING_WIRE_FIT_H
#define NEUROSHARD_COSTMODEL_LEARNING_WIRE_FIT_H

#include "core/plan.h"

/*
 * Bandwidth of a job's exchanges, as its own times show it. The next plan of
 * the job is priced by it.
 */

struct wire_fit {
    /* measured / predicted time of the exchanges; NAN: unknown */
    double factor;
    bool is_inter; /* true: the bandwidth is one between groups of devices */
    double gbps;   /* the bandwidth found; 0: none */
};

/*
 * Finds the bandwidth at which the exchanges of a plan take the measured times
 * of ids, outputs and gradients, measured_ms[N_STEP_PARTS]; NAN: unknown. Sets
 * it in the cluster of the plan, and prices the plan anew. It is the bandwidth
 * between hosts or NVLink domains if that one limits the exchanges, otherwise
 * the one inside. It changes by a factor of WIRE_FIT_MOST at most, and not at
 * all if it cannot explain the times, as with one device.
 *
 * Fails as oracle_price_plan does. The plan must be priced. Prices the plan ten
 * times at most.
 */
#define WIRE_FIT_MOST 100
int wire_fit(struct wire_fit *fit, struct plan *plan, const double *measured_ms,
             struct arena *arena, struct err *err) MUST_CHECK;

#endif
