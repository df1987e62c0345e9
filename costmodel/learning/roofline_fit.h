/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_LEARNING_ROOFLINE_FIT_H
#define NEUROSHARD_COSTMODEL_LEARNING_ROOFLINE_FIT_H

#include "costmodel/formulas/estimate.h"

/*
 * Corrects a roofline by a few measurements.
 *
 * The fit finds the factors by which a GPU launches, issues, moves bytes and
 * follows long bags more slowly than its figures say, and the extra time for
 * lookups of hot rows. It also fits a small power of each total, for effects
 * that no roofline covers. Penalties pull every factor towards 1 and every
 * power towards 0, so a fit to twenty samples corrects only the effects that
 * these samples show.
 */

/*
 * Fits estimate->gpu and the powers of the totals to n >= 1 devices. The powers
 * of an estimate for a monotone net are at least 0.
 * sums[n][width] are the vectors of the devices, and ms[n] > 0 their measured
 * times. Also sets the scale of the totals. Returns the loss per sample
 * (smaller is better).
 *
 * The lanes in sums[] must be those of the GPU before the fit. The fitted GPU
 * has other lanes, so the caller has to compute them again.
 */
double roofline_fit(struct estimate *estimate, const double *sums,
                    const double *ms, size_t n);

#endif
