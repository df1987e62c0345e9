/* SPDX-License-Identifier: MIT */
#include "search/load_order.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_before(const struct load_rank *a, const struct load_rank *b)
{
    if (a->load != b->load)
        return a->load < b->load;
    return a->bytes != b->bytes ? a->bytes < b->bytes : a->device < b->device;
}

static int compare(const void *left, const void *right)
{
    const struct load_rank *a = left, *b = right;

    return is_before(b, a) - is_before(a, b);
}

void load_order_sort(struct load_rank *order, uint32_t n)
{
    qsort(order, n, sizeof(*order), compare);
}

/* Returns the index of the first entry in [begin, end) that does not come
 * before `rank`. Returns `end` if all entries come before it. */
static uint32_t seek(const struct load_rank *order, uint32_t begin,
                     uint32_t end, const struct load_rank *rank)
{
    while (begin < end) {
        const uint32_t middle = begin + (end - begin) / 2;

        if (is_before(&order[middle], rank))
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

uint32_t load_order_find(const struct load_rank *order, uint32_t n,
                         const struct load_rank *rank)
{
    const uint32_t pos = seek(order, 0, n, rank);

    assert(pos < n && order[pos].device == rank->device);
    return pos;
}

void load_order_restore(struct load_rank *order, uint32_t n, uint32_t pos)
{
    const struct load_rank rank = order[pos];
    uint32_t to;

    if (pos && is_before(&rank, &order[pos - 1])) {
        to = seek(order, 0, pos, &rank);
        memmove(order + to + 1, order + to, (pos - to) * sizeof(*order));
    } else {
        to = seek(order, pos + 1, n, &rank) - 1;
        memmove(order + pos, order + pos + 1, (to - pos) * sizeof(*order));
    }
    order[to] = rank;
}
