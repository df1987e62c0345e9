/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_LOAD_ORDER_H
#define NEUROSHARD_SEARCH_LOAD_ORDER_H

#include <stdint.h>

/*
 * Devices sorted by load, the least loaded first, and kept sorted while they
 * are filled. Ties go to the device with fewer bytes, then to the lower index.
 * So an assignment is the same on any machine and at any number of threads. An
 * update takes O(log R) comparisons and shifts the devices in between.
 */

struct load_rank {
    double load; /* not NaN */
    uint64_t bytes;
    uint32_t device;
};

/* Sorts n devices. */
void load_order_sort(struct load_rank *order, uint32_t n);
/* Returns the index of the entry that equals *rank. There must be one. */
uint32_t load_order_find(const struct load_rank *order, uint32_t n,
                         const struct load_rank *rank);
/* Restores the order after the entry at this index has changed. */
void load_order_restore(struct load_rank *order, uint32_t n, uint32_t pos);

#endif
