/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_LEARNING_PSEUDO_LABELS_H
#define NEUROSHARD_COSTMODEL_LEARNING_PSEUDO_LABELS_H

#include "costmodel/learning/dataset.h"

/*
 * Pseudo-labels: additional training data for a net on a roofline if there are
 * few samples. They are sets of the samples' tables that nobody measured. Their
 * times are predicted by a Gaussian process (Rasmussen and Williams, Gaussian
 * Processes for Machine Learning, 2006, 2.7 and 5.4).
 *
 * The process predicts the ratio of measured to estimated time. Its inputs are
 * the totals of a device and the mean features of its tables. The importance of
 * each input is fitted to the samples. Noise has Student's distribution with
 * four degrees of freedom, so that a disturbed sample counts little (Lange,
 * Little, Taylor 1989).
 */

/* Adds n samples without times to a dataset. Each new sample is a copy of a
 * random sample, in which random tables of the same setting replace the tables.
 * Tables that are wider than the first table are cut to the columns of the
 * first table, since a plan groups tables in this way. */
void pseudo_labels_add(struct dataset *dataset, size_t n, uint64_t seed,
                       struct arena *arena);
/* Sets the times of all samples after the first n_known of a scaled dataset.
 * The times are predicted from the first n_known samples. */
void pseudo_labels_price(struct dataset *all, size_t n_known);

#endif
