/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_RANKED_H
#define NEUROSHARD_BASE_RANKED_H

#include <stddef.h>
#include <stdint.h>

/* What stands in an order: by a key, then by an index. */
struct ranked {
    double key;
    uint32_t idx;
};

/* The least key first, and of equal ones the lower index. No key is NaN. */
void ranked_sort(struct ranked *ranked, size_t n);

#endif
