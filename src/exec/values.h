/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_VALUES_H
#define NEUROSHARD_EXEC_VALUES_H

#include "core/table.h"

/*
 * The numbers that an execution runs on, each a function of where it stands in
 * the *unsharded* table or batch. So every piece of a table, each replica and
 * the reference agree exactly, and no one has to hold the whole table.
 */

/* Initial weights idx .. idx + n of the table, idx = row * dim + column, as a
 * table of this precision (fp32 or fp16) holds them. */
void values_weights(float *out, uint64_t table_seed, uint64_t idx, uint32_t n,
                    enum precision precision);
/* n numbers into and from memory of a precision (fp32 or fp16). */
void values_store(void *to, const float *from, size_t n,
                  enum precision precision);
void values_load(float *to, const void *from, size_t n,
                 enum precision precision);

/* Initial row-wise Adagrad state of a row of a piece: of the size that one
 * look-up's gradient adds, so that reading it and adding to it both show. */
float values_state(uint64_t table_seed, uint64_t row, uint32_t col_begin);

/* Gradient of the loss by columns col .. col + n of the table's output for one
 * bag (sample x num_outputs + output), as the exchange carries it: in fp32 or
 * rounded to fp16. Of both signs, up to 0.01. */
void values_gradient(float *out, uint64_t table_seed, uint64_t bag,
                     uint32_t col, uint32_t n, enum precision precision);

#endif
