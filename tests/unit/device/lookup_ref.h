/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_LOOKUP_REF_H
#define NEUROSHARD_TESTS_LOOKUP_REF_H

#include "device/lookup.h"

/* Reference forward and backward in plain C, with double accumulation and no
 * threads. Every implementation is checked against it. All pointers are host
 * pointers; weights are fp32 or fp16. out and grad have the layout that
 * device/lookup.h defines. Updated rows are written back rounded to the table's
 * precision. */
void lookup_forward_ref(const struct lookup_table *tables, uint32_t n_tables,
                        uint32_t batch, const struct lookup_batch *lookups,
                        double *out);
void lookup_backward_ref(const struct lookup_table *tables, uint32_t n_tables,
                         uint32_t batch, const struct lookup_batch *lookups,
                         const float *grad, float learning_rate,
                         enum optimizer optimizer);

#endif
