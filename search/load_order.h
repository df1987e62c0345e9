/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_LOAD_ORDER_H
#define NEUROSHARD_SEARCH_LOAD_ORDER_H

#include <stdint.h>

/*
 * Devices sorted by load, the least loaded first, and kept sorted while they
 * are filled. Among devices with equal loads the one with fewer bytes comes
 * first, then the one with the lower index. So an assignment is the same on any
 * machine and at any number of threads. An update after a change of one device
 * takes O(log R) comparisons, and shifts the devices between its old and its
 * new position.
 */

struct load_rank {
    double load; /* load of the device; not NaN */
    uint64_t bytes;
    uint32_t device;
};

/* Sorts n devices by load. */
void load_order_sort(struct load_rank *order, uint32_t n);
/* Returns the index of the entry that equals *rank. The list must have such an
 * entry. */
uint32_t load_order_find(const struct load_rank *order, uint32_t n,
                         const struct load_rank *rank);
/* Restores the order after the entry at this index has changed. */
void load_order_restore(struct load_rank *order, uint32_t n, uint32_t pos);

#endif
