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

/* By a list of keys, the first one that differs: -1, 0 or 1. */
int ranked_compare(const uint64_t *a, const uint64_t *b, size_t n);
/* The same of reals, none of which is NaN. */
int ranked_compare_reals(const double *a, const double *b, size_t n);
/* Of one uint64_t each, for qsort. */
int ranked_compare_u64(const void *left, const void *right);

/* Sorts by key, and equal keys by index. No key is NaN; a key of -0 may become
 * 0. Linear time if there are hundreds of items and their indices rise. */
void ranked_sort(struct ranked *ranked, size_t n);

/* Runs of about equal keys, of an order that is sorted and has no key above 0:
 * that from `begin` on ends before the first that has lost `share` of its
 * first, or more. */
size_t ranked_run_end(const struct ranked *order, size_t n, size_t begin,
                      double share);
/* A share, as small as may be, that leaves no more than `most` runs, >= 1. */
double ranked_share(const struct ranked *order, size_t n, size_t most);

#endif
