/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_VALUES_H
#define NEUROSHARD_EXEC_VALUES_H

#include "core/dense.h"

/*
 * Values of weights, states and gradients in an execution.
 *
 * Each value is a function of its position in the *unsharded* table or batch.
 * So all pieces of a table, its replicas and the reference have exactly the
 * same values, and no process has to hold the whole table.
 */

/* Writes the n initial weights of the table that begin at index idx = row * dim
 * + column. The weights are rounded as a table of this precision (fp32 or fp16)
 * stores them. */
void values_weights(float *out, uint64_t table_seed, uint64_t idx, uint32_t n,
                    enum precision precision);
/* Two functions that convert n numbers to and from the storage format of a
 * precision (fp32 or fp16). */
void values_store(void *to, const float *from, size_t n,
                  enum precision precision);
void values_load(float *to, const void *from, size_t n,
                 enum precision precision);

/* Returns the initial row-wise Adagrad state of one row of a piece. The state
 * is about as large as the amount that one lookup's gradient adds to it. So the
 * comparison detects an error in reading the state, and also an error in adding
 * to it. */
float values_state(uint64_t table_seed, uint64_t row, uint32_t col_begin);

/* Writes the gradient of the loss with respect to columns col .. col + n of the
 * table's output for one bag. The number of the bag is sample x num_outputs +
 * output. The values are rounded as the exchange carries them: fp32 or fp16.
 * They have both signs and a magnitude of up to 0.01. */
void values_gradient(float *out, uint64_t table_seed, uint64_t bag,
                     uint32_t col, uint32_t n, enum precision precision);

/*
 * Values of the dense part. `seed` is the seed of the placement. `sample`
 * counts over batches: batch number x samples of a batch + sample, so each
 * batch has its own data.
 */

/* Writes the initial parameters out[dense->n_parameters]: for each product in
 * the order of dense->products its weights [out][in], then its bias [out] if it
 * has one. They are uniform in +-1 / sqrt(in) of their product. */
void values_parameters(float *out, uint64_t seed, const struct dense *dense);
/* Writes the n dense features of a sample, uniform in [-1, 1). */
void values_features(float *out, uint64_t seed, uint64_t sample, uint32_t n);
/* Returns the label of an output: 0 or 1 with equal probability. idx = sample x
 * width of the last top layer + output. */
float values_label(uint64_t seed, uint64_t idx);

#endif
