/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_LOAD_ORDER_H
#define NEUROSHARD_SEARCH_LOAD_ORDER_H

#include <stdint.h>

/*
 * Devices in the order of their loads, kept while they are filled: the least
 * loaded first. Ties go to the device with fewer bytes, then to the lower
 * index, so that a layout is the same on any machine and at any number of
 * threads. A change costs O(log R) comparisons and moves the devices between.
 */

struct load_rank {
    double load; /* not NaN */
    uint64_t bytes;
    uint32_t device;
};

void load_order_sort(struct load_rank *order, uint32_t n);
/* Index of this device, which the order has as it is here. */
uint32_t load_order_find(const struct load_rank *order, uint32_t n,
                         const struct load_rank *rank);
/* Moves the entry at this index, which has changed, to its place. */
void load_order_restore(struct load_rank *order, uint32_t n, uint32_t at);

#endif
