/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_FORMULAS_COMM_CURVES_H
#define NEUROSHARD_COSTMODEL_FORMULAS_COMM_CURVES_H

#include "costmodel/formulas/comm_model.h"

/* Curves of measured communication, one for each number of ranks and hosts. */
#define COMM_MAX_CURVES 8
struct comm_curves {
    struct comm_rules rules;
    struct comm_curve curves[COMM_MAX_CURVES];
    uint32_t n_curves; /* >= 1 */
    const char *source;
};

/*
 * Replaces the curves of a model by those of a fit.
 *
 * There is one curve inside a host and one across hosts. For each, the measured
 * curve with the most similar number of ranks and hosts is used. If these
 * numbers differ from the cluster's, latency and rate are extrapolated by the
 * trend between the measured curves. The latency is linear in the ranks. The
 * time of a byte is linear in the number of doublings: across hosts in
 * doublings of the hosts, inside a host in doublings of the ranks. If there is
 * only one curve, or the curves show no trend, latency and time of a byte grow
 * across hosts by the published figures (gpu_spec.c), and are constant inside a
 * host. Latency and time of a byte never fall as ranks and hosts increase.
 *
 * The model's `source` (a text in the arena) mentions any extrapolation. A
 * level that was not measured keeps the model's curve, and `source` names the
 * origin of that curve. Returns false if no level of the cluster was measured.
 */
bool comm_curves_apply(const struct comm_curves *fit,
                       const struct cluster *cluster, struct arena *arena,
                       struct comm_model *model);

/* Returns a text such as "2 ranks 0.5 us, 18.49 GB/s; ...", in the arena. The
 * text gives the latency of each curve, and its rate for large exchanges. */
const char *comm_curves_text(const struct comm_curves *fit,
                             struct arena *arena);

#endif
