/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_RANKED_H
#define NEUROSHARD_BASE_RANKED_H

#include <stddef.h>
#include <stdint.h>

/* An item to be sorted by a key, then by an index. */
struct ranked {
    double key;
    uint32_t idx;
};

/* Compares two lists of n keys by the first key that differs; returns -1, 0 or
 * 1. */
int ranked_compare(const uint64_t *a, const uint64_t *b, size_t n);
/* Compares two lists of n reals by the first real that differs; returns -1, 0
 * or 1. No real may be NaN. */
int ranked_compare_reals(const double *a, const double *b, size_t n);
/* Compares two uint64_t, one behind each pointer; for qsort. */
int ranked_compare_u64(const void *left, const void *right);

/* Sorts items by key, and items with equal keys by index. No key may be NaN. A
 * key of -0 may be changed to 0. Takes linear time if there are hundreds of
 * items and their indices rise. */
void ranked_sort(struct ranked *ranked, size_t n);

/* Returns the end of the run of about equal keys that starts at `begin`. The
 * keys are sorted and at most 0. A run ends before the first key whose
 * magnitude is less than 1 - share of the magnitude of the run's first key. */
size_t ranked_run_end(const struct ranked *order, size_t n, size_t begin,
                      double share);
/* Returns the share with which ranked_run_end finds at most `most` runs. The
 * share is as small as possible. `most` must be at least 1. */
double ranked_share(const struct ranked *order, size_t n, size_t most);

#endif
