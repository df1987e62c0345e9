/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_COMM_FIT_H
#define NEUROSHARD_COSTMODEL_COMM_FIT_H

#include "core/sample.h"
#include "costmodel/comm_model.h"

/*
 * Curves of communication time, fitted to measured all-to-alls.
 *
 * If there are several kinds of measurements, the most direct one is used:
 * nccl, then mpi, shm, copy. Each number of ranks and hosts gets its own curve.
 * It is fitted by least squares of the relative error, with outliers weighted
 * down, over knots that are evenly spaced in the logarithm of the bytes.
 * Tenfold cross-validation chooses the number of knots, and the form: whether
 * the busiest port or the total of bytes decides. With few exchanges only two
 * constants remain, a latency and a rate, in the usual form of the kind.
 */

/* Fits curves to the samples. Returns false if no fit is possible: in every
 * group, no size is twice another one, or times do not increase with the
 * size. */
bool comm_fit_samples(struct comm_fit *fit, const struct comm_sample *samples,
                      size_t n, struct arena *arena);

/*
 * Replaces the curves of a model by those of a fit.
 *
 * Inside a host and across hosts, the curve with the most similar number of
 * ranks and hosts is used. If these numbers differ from the cluster's, latency
 * and rate are extrapolated by the trend between the measured curves. The
 * latency is linear in the ranks. The time of a byte is linear in the number of
 * doublings (doublings of the hosts, or of the ranks inside a host). If there
 * is only one curve, or the curves show no trend, latency and time of a byte
 * grow across hosts as published, and are constant inside a host. They never
 * fall as ranks and hosts increase.
 *
 * The source (in the arena) mentions an extrapolation. A level that was not
 * measured keeps its curve, and the source names the origin of that curve.
 * Returns false if no level of the cluster was measured.
 */
bool comm_fit_apply(const struct comm_fit *fit, const struct cluster *cluster,
                    struct arena *arena, struct comm_model *model);

/* Prediction errors on samples that the fit has not seen. Each tenth of one
 * group's samples is predicted by a fit to the other nine. Errors are fractions
 * of the measured time; NAN if there are too few samples. */
struct comm_errors {
    size_t n, n_uneven;
    double median_frac, p90_frac;
    /* Errors of uneven loads only. */
    double uneven_median_frac, uneven_p90_frac;
};
/* Validates the group of `like`: all samples with its kind, ranks and hosts. */
void comm_fit_validate(struct comm_errors *errors,
                       const struct comm_sample *samples, size_t n,
                       const struct comm_sample *like);

/* Returns true if no earlier sample is of the same group as samples[i]. */
bool comm_fit_is_new_group(const struct comm_sample *samples, size_t i);

/* Returns a text such as "2 ranks 0.5 us, 18.49 GB/s; ...", in the arena. It
 * has the latency of each curve, and its rate for large exchanges. */
const char *comm_fit_text(const struct comm_fit *fit, struct arena *arena);

#endif
