/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_VALUES_H
#define NEUROSHARD_EXEC_VALUES_H

#include "core/table.h"

/*
 * Values of weights, states and gradients in an execution. Each value is a
 * function of its position in the *unsharded* table or batch. So all pieces of
 * a table, its replicas and the reference agree exactly, and no process has to
 * hold the whole table.
 */

/* Writes the initial weights idx .. idx + n of the table, idx = row * dim +
 * column, as a table of this precision (fp32 or fp16) stores them. */
void values_weights(float *out, uint64_t table_seed, uint64_t idx, uint32_t n,
                    enum precision precision);
/* Convert n numbers to and from the storage format of a precision (fp32 or
 * fp16). */
void values_store(void *to, const float *from, size_t n,
                  enum precision precision);
void values_load(float *to, const void *from, size_t n,
                 enum precision precision);

/* Returns the initial row-wise Adagrad state of one row of a piece. It is about
 * as large as the amount that the gradient of one lookup adds to it. So an
 * error in reading the state shows, and so does an error in adding to it. */
float values_state(uint64_t table_seed, uint64_t row, uint32_t col_begin);

/* Writes the gradient of the loss with respect to columns col .. col + n of the
 * table's output, for one bag (sample x num_outputs + output). The values are
 * as the exchange carries them: fp32, or rounded to fp16. They have both signs
 * and a magnitude of up to 0.01. */
void values_gradient(float *out, uint64_t table_seed, uint64_t bag,
                     uint32_t col, uint32_t n, enum precision precision);

#endif
