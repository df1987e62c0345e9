/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_TRUST_H
#define NEUROSHARD_COSTMODEL_TRUST_H

#include "costmodel/model_file.h"

/*
 * What a model's price of a plan is worth: the interval of the slowest device's
 * class, and what it was asked that lies outside of what it learned from: the
 * columns, rows and look-ups of pieces, the pieces and look-ups of a device,
 * the batch. What is within TRUST_MARGIN of a range is inside: few samples do
 * not reach the ends of what they were drawn from.
 *
 * So many octaves outside a device's interval is (1 + octaves) times as wide,
 * by its logarithm: what trainings on a half of data/measurements came to on
 * the other half, cut by rows, columns, look-ups or tables, or less, but for a
 * net's answer to four times the look-ups that it knows.
 */
#define TRUST_MARGIN 0.5 /* octaves */

/* Of shards[n], by table, as the model sees them: for struct oracle_ops.
 * *error is that of all devices, or 0, and becomes that of the slowest one. */
size_t trust_judge(const struct model *model, const struct problem *problem,
                   const struct shard *shards,
                   const struct feature_input *inputs, size_t n,
                   const double *compute_ms, struct cost_error *error,
                   struct cost_outside **outside, struct arena *arena);

/* The interval of a class, or of all, for who prints it: of "94 held-out
 * samples (few tables)"; in the arena. 0 where there is none. */
struct cost_error interval_cost_error(const struct interval_list *intervals,
                                      const char *class, struct arena *arena);

#endif
