/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_LOOKUP_REF_H
#define NEUROSHARD_TESTS_LOOKUP_REF_H

#include "device/lookup.h"

/* Forward and backward in plain C, double accumulation, no threads: what every
 * body is checked against. All pointers are host pointers; weights fp32 or
 * fp16. out and grad as above; updated rows are written back rounded to the
 * table's precision. */
void lookup_forward_ref(const struct lookup_table *tables, uint32_t n_tables,
                        uint32_t batch, const struct lookup_batch *lookups,
                        double *out);
void lookup_backward_ref(const struct lookup_table *tables, uint32_t n_tables,
                         uint32_t batch, const struct lookup_batch *lookups,
                         const float *grad, float learning_rate,
                         enum optimizer optimizer);

#endif
