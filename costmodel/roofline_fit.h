/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_ROOFLINE_FIT_H
#define NEUROSHARD_COSTMODEL_ROOFLINE_FIT_H

#include "costmodel/estimate.h"

/*
 * A roofline that a few measurements correct: by how much slower than its
 * figures say a GPU launches, issues, moves bytes and follows long bags, what
 * look-ups of hot rows take besides, and small powers of the totals for what no
 * roofline knows. All are pulled towards none, so that twenty samples correct
 * what they show and leave the rest.
 */

/* Fits estimate->gpu and the powers of its totals to sums[n][width] of n >= 1
 * devices that took ms[n] > 0; the lanes in sums are of the GPU as it was
 * before, those of the one that it becomes are others. Also the totals' scale.
 * Returns how well it fits, the smaller the better. */
double roofline_fit(struct estimate *estimate, const double *sums,
                    const double *ms, size_t n);

#endif
