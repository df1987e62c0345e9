/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_RADIX_SORT_H
#define NEUROSHARD_BASE_RADIX_SORT_H

#include <stddef.h>
#include <stdint.h>

/*
 * A stable radix sort (Knuth, The Art of Computer Programming 3, 5.2.5) of
 * items by key & mask. Items that are equal in these bits keep their order.
 * Bits of a key outside the mask move with the key, and may hold a payload.
 *
 * A pass moves all items from one list to the other, in the order of one digit
 * of the keys. A digit has at most 11 bits. It starts at a bit of the mask, so
 * bits that are equal in all keys cost no pass if the mask leaves them out. The
 * time is O(n) per pass, with as many passes as there are digits. Lists that do
 * not fit in a cache are sorted by the highest digit first, so that the later
 * passes work on memory that is close together.
 *
 * All lists belong to the caller. The sort allocates nothing, takes 48 KiB of
 * stack and cannot fail.
 */
struct radix_sort {
    /* two lists of n keys; keys[0] holds the keys to sort */
    void *keys[2];
    /* Two lists of n values, or NULL. values[0][i] moves with key i. */
    uint32_t *values[2];
    size_t n;           /* < 2^32 */
    unsigned key_bytes; /* 4 or 8: keys are uint32_t or uint64_t */
    uint64_t mask;      /* only bits that a key has */
};

/* Returns a mask of all bits that numbers from 0 to `largest` need. */
static inline uint64_t radix_mask(uint64_t largest)
{
    return largest ? UINT64_MAX >> __builtin_clzll(largest) : 0;
}

/* Sorts the items. Returns the index of the sorted lists, 0 or 1. The other
 * lists then hold the same items in some order, unless the mask is 0. */
unsigned radix_sort(const struct radix_sort *sort);

/* Turns the counts of a pass into places in the output. At the start,
 * counts[n_chunks][stride] holds how often each of n_digits digits occurs in
 * each chunk of the items. Each count is replaced by the place of the chunk's
 * first item with this digit. Places are ordered by digit, then by chunk. */
void radix_places(uint32_t *counts, size_t n_chunks, size_t stride,
                  uint32_t n_digits);

#endif
