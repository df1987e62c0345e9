/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_LEARNING_COMM_FIT_H
#define NEUROSHARD_COSTMODEL_LEARNING_COMM_FIT_H

#include "core/sample.h"
#include "costmodel/formulas/comm_curves.h"

/*
 * Curves of communication time, fitted to measured all-to-alls.
 *
 * If there are several kinds of measurements, the most direct kind is used. The
 * order of preference is nccl, mpi, shm, copy. Each pair of a number of ranks
 * and a number of hosts gets its own curve. The curve is fitted by least
 * squares of the relative error, with outliers weighted down, over knots that
 * are evenly spaced in the logarithm of the bytes. Tenfold cross-validation
 * chooses the number of knots, and the rules by which bytes determine the time.
 * Inside a host these are the bytes of the busiest port or all bytes (enum
 * comm_form). Across hosts they are the bytes of the busiest rank, or of the
 * busiest host if its ranks share a port. With few exchanges the curve has only
 * two constants, a latency and a rate, and the kind's default rules are used.
 */

/* Fits curves to the samples. Returns false if no group can be fitted. A group
 * cannot be fitted if none of its sizes is twice another, or if its times do
 * not increase with the size. */
bool comm_fit_samples(struct comm_curves *fit,
                      const struct comm_sample *samples, size_t n,
                      struct arena *arena);

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

#endif
