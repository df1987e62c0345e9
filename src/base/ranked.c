/* SPDX-License-Identifier: MIT */
#include "base/ranked.h"

#include <stdlib.h>

int ranked_compare(const uint64_t *a, const uint64_t *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
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
