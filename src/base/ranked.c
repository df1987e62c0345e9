/* SPDX-License-Identifier: MIT */
#include "base/ranked.h"

#include <math.h>
#include <stdlib.h>

int ranked_compare(const uint64_t *a, const uint64_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

int ranked_compare_reals(const double *a, const double *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

int ranked_compare_u64(const void *left, const void *right)
{
    return ranked_compare(left, right, 1);
}

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;

    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return (a->idx > b->idx) - (a->idx < b->idx);
}

void ranked_sort(struct ranked *ranked, size_t n)
{
    qsort(ranked, n, sizeof(*ranked), compare_ranked);
}

size_t ranked_run_end(const struct ranked *order, size_t n, size_t begin,
                      double share)
{
    size_t end = begin + 1;

    while (end < n && order[end].key <= order[begin].key * (1 - share))
        end++;
    return end;
}

double ranked_share(const struct ranked *order, size_t n, size_t most)
{
    double share = 1e-9;

    for (;; share = fmax(2 * share, 1e-3)) {
        size_t n_runs = 0;

        for (size_t i = 0; i < n; i = ranked_run_end(order, n, i, share))
            n_runs++;
        if (n_runs <= most || share >= 1)
            return share;
    }
}
