/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_LEARNING_PRODUCT_FIT_H
#define NEUROSHARD_COSTMODEL_LEARNING_PRODUCT_FIT_H

#include "costmodel/formulas/product_times.h"

/* Fills `times` with measured products of one device, in the arena, and judges
 * them: each product is predicted from the others. Times are rounded to five
 * digits. Leaves out products that were measured while the device was
 * disturbed, unless takes_disturbed is set, times below PRODUCT_TIMES_MIN_MS,
 * and all after the first PRODUCT_TIMES_MAX. Returns the number of products
 * that were left out. */
size_t product_fit(struct product_times *times,
                   const struct product_sample *samples, size_t n,
                   bool takes_disturbed, struct arena *arena);

#endif
