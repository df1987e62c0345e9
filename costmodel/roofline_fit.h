/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_ROOFLINE_FIT_H
#define NEUROSHARD_COSTMODEL_ROOFLINE_FIT_H

#include "costmodel/estimate.h"

/*
 * Corrects a roofline by a few measurements.
 *
 * The fit finds the factors by which a GPU launches, issues, moves bytes and
 * follows long bags more slowly than its figures say, and the extra time for
 * lookups of hot rows. It also fits a small power of each total, for effects
 * that no roofline covers. All corrections are pulled towards no correction, so
 * twenty samples correct only the effects that they show.
 */

/*
 * Fits estimate->gpu and the powers of the totals to n >= 1 devices with
 * sums[n][width] that took ms[n] > 0. Also sets the scale of the totals.
 * Returns the loss per sample (smaller is better).
 *
 * The lanes in sums[] must be those of the GPU before the fit. The fitted GPU
 * has other lanes, so the caller has to compute them again.
 */
double roofline_fit(struct estimate *estimate, const double *sums,
                    const double *ms, size_t n);

#endif
