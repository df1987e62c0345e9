/* SPDX-License-Identifier: MIT */
#include "base/ranked.h"

#include "base/mem.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Items from which on a radix sort is faster than qsort. */
#define MANY 256

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

/* Bits of the item's place in the order: of its index, then of its key, so that
 * a larger key has larger bits. */
static uint64_t digits_of(const struct ranked *item, bool is_key)
{
    const double key = item->key + 0.0; /* -0 equals 0 */
    uint64_t bits;

    if (!is_key)
        return item->idx;
    memcpy(&bits, &key, sizeof(bits));
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

/* Stable, by one byte. Returns false, and moves nothing, if all have the same
 * one. */
static bool sort_by_byte(struct ranked *to, const struct ranked *from, size_t n,
                         bool is_key, unsigned shift)
{
    size_t ends[257] = {0};

    for (size_t i = 0; i < n; i++)
        ends[(digits_of(&from[i], is_key) >> shift & 255) + 1]++;
    if (ends[(digits_of(&from[0], is_key) >> shift & 255) + 1] == n)
        return false;
    for (unsigned b = 0; b < 256; b++)
        ends[b + 1] += ends[b];
    for (size_t i = 0; i < n; i++)
        to[ends[digits_of(&from[i], is_key) >> shift & 255]++] = from[i];
    return true;
}

/* Radix sort, the least byte first: an order of thousands takes a tenth of the
 * time of qsort. */
static void sort_many(struct ranked *ranked, size_t n)
{
    struct ranked *spare = mem_alloc(n, sizeof(*spare));
    struct ranked *from = ranked, *to = spare, *sorted;

    for (unsigned byte = 0; byte < 4 + 8; byte++) {
        const bool is_key = byte >= 4;

        if (!sort_by_byte(to, from, n, is_key, 8 * (is_key ? byte - 4 : byte)))
            continue;
        sorted = to;
        to = from;
        from = sorted;
    }
    if (from != ranked)
        memcpy(ranked, from, n * sizeof(*ranked));
    mem_free(spare);
}

void ranked_sort(struct ranked *ranked, size_t n)
{
    if (n < MANY)
        qsort(ranked, n, sizeof(*ranked), compare_ranked);
    else
        sort_many(ranked, n);
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
