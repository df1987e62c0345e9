/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_LESSONS_H
#define NEUROSHARD_COSTMODEL_LESSONS_H

#include "costmodel/dataset.h"

/*
 * What a net on a roofline learns from beside few samples: sets of their tables
 * that nobody measured, with times that a Gaussian process gives them
 * (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, 2.7
 * and 5.4). It says measured over estimated time, by the totals of a device and
 * the features of its tables in the mean, of each of which the samples say how
 * much it counts. Noise is Student's, of four degrees of freedom, so that a
 * disturbed sample counts little (Lange, Little, Taylor 1989).
 */

/* Adds n samples without times to a dataset, each as one that is there, but its
 * tables from any of the same setting, cut to the columns of the first, as a
 * plan groups tables. */
void lessons_add(struct dataset *dataset, size_t n, uint64_t seed,
                 struct arena *arena);
/* Times of those of a scaled dataset behind the first n_known, by what these
 * say. */
void lessons_price(struct dataset *all, size_t n_known);

#endif
