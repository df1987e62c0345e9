/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_COMM_FIT_H
#define NEUROSHARD_COSTMODEL_COMM_FIT_H

#include "core/cluster.h"
#include "core/sample.h"
#include "costmodel/comm_model.h"

/*
 * Curves of communication time, fitted to measured all-to-alls.
 *
 * If there are several kinds of measurements, the most direct kind is used. The
 * order of preference is nccl, mpi, shm, copy. Each pair of a number of ranks
 * and a number of hosts gets its own curve. The curve is fitted by least
 * squares of the relative error, with outliers weighted down, over knots that
 * are evenly spaced in the logarithm of the bytes. Tenfold cross-validation
 * chooses the number of knots, and the rule (enum comm_form) by which either
 * the bytes of the busiest port or the total bytes determine the time. With few
 * exchanges the curve has only two constants, a latency and a rate, and the
 * kind's default rule is used.
 */

/* Fits curves to the samples. Returns false if no group can be fitted. A group
 * cannot be fitted if none of its sizes is twice another, or if its times do
 * not increase with the size. */
bool comm_fit_samples(struct comm_fit *fit, const struct comm_sample *samples,
                      size_t n, struct arena *arena);

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
bool comm_fit_apply(const struct comm_fit *fit, const struct cluster *cluster,
                    struct arena *arena, struct comm_model *model);

/* Prediction errors on samples that the fit has not seen. Each tenth of one
 * group's samples is predicted by a fit to the other nine. Errors are fractions
 * of the measured time; NAN if there are too few samples. */
struct comm_errors {
    size_t n, n_uneven;
    double median_frac, p90_frac;
    /* Errors on uneven loads only. */
    double uneven_median_frac, uneven_p90_frac;
};
/* Validates fits to the group of `like`: all samples that have its kind, ranks
 * and hosts. */
void comm_fit_validate(struct comm_errors *errors,
                       const struct comm_sample *samples, size_t n,
                       const struct comm_sample *like);

/* Returns true if samples[i] is the first sample of its group (samples with the
 * same kind, ranks and hosts). */
bool comm_fit_is_new_group(const struct comm_sample *samples, size_t i);

/* Returns a text such as "2 ranks 0.5 us, 18.49 GB/s; ...", in the arena. The
 * text gives the latency of each curve, and its rate for large exchanges. */
const char *comm_fit_text(const struct comm_fit *fit, struct arena *arena);

#endif
