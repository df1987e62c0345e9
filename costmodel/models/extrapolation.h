/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_MODELS_EXTRAPOLATION_H
#define NEUROSHARD_COSTMODEL_MODELS_EXTRAPOLATION_H

#include "costmodel/modelfile/model.h"

/*
 * Judges the price of a plan: finds the prediction interval of the slowest
 * device's class, and lists the values outside the model's training range. The
 * values are the columns, rows, lookups and lookups a bag of pieces, the pieces
 * and lookups of a device, and the batch. Values within EXTRAPOLATION_MARGIN of
 * a range count as inside, because a small set of samples does not reach the
 * ends of the distribution that it was drawn from.
 *
 * If values of a device are n octaves outside, its interval becomes (1 + n)
 * times as wide, in the logarithm. This rule was calibrated by training on one
 * half of data/measurements and testing on the other, split by rows, columns,
 * lookups or tables. The errors were inside the widened intervals, except for a
 * net at four times the lookups of its training.
 */
#define EXTRAPOLATION_MARGIN 0.5 /* octaves */

/* Judges the price of shards[n], which are sorted by table; used by a function
 * of struct oracle_ops. inputs[n] are the shards as the model sees them. On
 * entry *error is the interval of all devices, or 0 if the model has no
 * interval. On return it is the interval of the slowest device. */
size_t extrapolation_judge(const struct model *model,
                           const struct problem *problem,
                           const struct shard *shards,
                           const struct feature_input *inputs, size_t n,
                           const double *compute_ms, struct cost_error *error,
                           struct cost_outside **outside, struct arena *arena);

/* Returns the prediction interval of a class, or of all devices, with a
 * description such as "94 held-out samples (few tables)", in the arena. Returns
 * 0 if there is no interval. */
struct cost_error interval_cost_error(const struct interval_list *intervals,
                                      const char *class, struct arena *arena);

#endif
