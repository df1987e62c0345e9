/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_COMM_FIT_H
#define NEUROSHARD_COSTMODEL_COMM_FIT_H

#include "core/sample.h"
#include "costmodel/comm_model.h"

/*
 * Curves of communication time, fitted to measured all-to-alls.
 *
 * Of several kinds the best witness counts: nccl, then mpi, then copy. Each
 * number of ranks and hosts gets its curve: least squares of the relative
 * error, with outliers weighing less, over knots that are evenly spaced in the
 * logarithm of the bytes. How many knots, and whether the busiest port or all
 * bytes decide, is chosen by tenfold cross-validation. Of few exchanges that
 * leaves two constants, the latency and the rate, of what usually decides.
 */

/* False where there is nothing to fit: in no group sizes of which one is twice
 * another, or times that do not grow. */
bool comm_fit_samples(struct comm_fit *fit, const struct comm_sample *samples,
                      size_t n, struct arena *arena);

/*
 * Puts the curves of a fit in the place of those that a model has: inside a
 * host and across hosts each that of the most similar number of ranks and
 * hosts. Where it was measured between others, its latency and its rate change
 * as they do from curve to curve: latency in a line with the ranks, the time
 * of a byte with each doubling, of the hosts or inside a host of the ranks.
 * Where the curves do not tell, and there is but one, latency and time across
 * hosts grow as published and inside a host not at all. Neither ever falls as
 * ranks and hosts become more. The source, in the arena, says so. A level that
 * was not measured stays as it is, and the source says whose it is; false where
 * that is all that the cluster has.
 */
bool comm_fit_apply(const struct comm_fit *fit, const struct cluster *cluster,
                    struct arena *arena, struct comm_model *model);

/* How well that predicts what it has not seen: each tenth of one group's
 * samples by a fit to the other nine. Fractions of the measured time; NAN
 * where there are too few. */
struct comm_errors {
    size_t n, n_uneven;
    double median_frac, p90_frac;
    double uneven_median_frac, uneven_p90_frac; /* of uneven loads alone */
};
/* The group is that of the samples like `like` in kind, ranks and hosts. */
void comm_fit_validate(struct comm_errors *errors,
                       const struct comm_sample *samples, size_t n,
                       const struct comm_sample *like);

/* Whether no earlier sample is of the same group as samples[i]. */
bool comm_fit_is_new_group(const struct comm_sample *samples, size_t i);

/* "2 ranks 0.5 us, 18.49 GB/s; ...": latency and the rate of large ones, in
 * the arena. */
const char *comm_fit_text(const struct comm_fit *fit, struct arena *arena);

#endif
