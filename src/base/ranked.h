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
/* As ranked_compare, for reals. None of them is NaN. */
int ranked_compare_reals(const double *a, const double *b, size_t n);
/* Compares one uint64_t each; for qsort. */
int ranked_compare_u64(const void *left, const void *right);

/* Sorts by key, and equal keys by index. No key is NaN; a key of -0 may become
 * 0. Takes linear time if there are hundreds of items and their indices
 * rise. */
void ranked_sort(struct ranked *ranked, size_t n);

/* Returns the end of the run of about equal keys that starts at `begin`. The
 * keys are sorted and at most 0. A run ends before the first key whose
 * magnitude is less than 1 - share of the magnitude of the run's first key. */
size_t ranked_run_end(const struct ranked *order, size_t n, size_t begin,
                      double share);
/* Returns a share for ranked_run_end, as small as possible, that gives at most
 * `most` runs; most >= 1. */
double ranked_share(const struct ranked *order, size_t n, size_t most);

#endif
