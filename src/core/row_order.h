/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_ROW_ORDER_H
#define NEUROSHARD_CORE_ROW_ORDER_H

#include "core/table.h"

EXTERN_C_BEGIN

/* The order of a table's rows by heat (enum row_order): a permutation that maps
 * rank 0 to the hottest row, rank 1 to the second hottest row, and so on. The
 * planner uses it to find hot rows, and index streams use it to place ranks.
 * man/neuroshard-tables.5 describes the permutation for users, who may apply it
 * to their own ids. The permutation uses only integers, so host and device code
 * compute the same rows. */

/* A pseudo-random permutation of [0, n): a four-round Feistel network over the
 * fewest bits that hold n. The network is applied again to its result until the
 * result is below n (Black and Rogaway, "Ciphers with arbitrary finite
 * domains", 2002, method 2). Fewer than two applications are needed on average,
 * because at least half of the values are below n. */
struct permutation {
    uint64_t n;
    uint32_t right_bits, left_mask, right_mask;
    uint32_t keys[4];
};

void permutation_init(struct permutation *permutation, uint64_t n,
                      uint64_t seed);

HOST_DEVICE uint32_t permutation_round(uint32_t half, uint32_t key)
{
    half = (half + key) * 0x85ebca6bu;
    half = (half ^ (half >> 15)) * 0xc2b2ae35u;
    return half ^ (half >> 16);
}

HOST_DEVICE void permutation_mix(const struct permutation *permutation,
                                 uint32_t *left, uint32_t *right)
{
    const uint32_t *keys = permutation->keys;

    *right ^= permutation_round(*left, keys[0]) & permutation->right_mask;
    *left ^= permutation_round(*right, keys[1]) & permutation->left_mask;
    *right ^= permutation_round(*left, keys[2]) & permutation->right_mask;
    *left ^= permutation_round(*right, keys[3]) & permutation->left_mask;
}

/* Applies the Feistel network once to i and returns the result; n < 2^32. */
HOST_DEVICE uint32_t permutation_step(const struct permutation *permutation,
                                      uint32_t i)
{
    uint32_t left = i >> permutation->right_bits;
    uint32_t right = i & permutation->right_mask;

    permutation_mix(permutation, &left, &right);
    return left << permutation->right_bits | right;
}

/* Returns the value of the permutation at i; i < n < 2^32. */
HOST_DEVICE uint32_t permute(const struct permutation *permutation, uint32_t i)
{
    do
        i = permutation_step(permutation, i);
    while (i >= permutation->n);
    return i;
}

/* Returns the value of the permutation at i < n, for any n. */
HOST_DEVICE uint64_t permute_wide(const struct permutation *permutation,
                                  uint64_t i)
{
    do {
        uint32_t left = (uint32_t)(i >> permutation->right_bits);
        uint32_t right = (uint32_t)i & permutation->right_mask;

        permutation_mix(permutation, &left, &right);
        i = (uint64_t)left << permutation->right_bits | right;
    } while (i >= permutation->n);
    return i;
}

/* Map from ranks to rows, for a table of n rows. */
struct row_map {
    enum row_order order;
    struct permutation hashed;
    /* for ROW_ORDER_UNIFORM: row = (first + rank x stride) modulo n */
    uint64_t first, stride;
};

/* Initialises *map for a table of n >= 1 rows. row_seed is the table's member
 * `row_seed` (struct table). */
void row_map_init(struct row_map *map, enum row_order order, uint64_t n,
                  uint64_t row_seed);

/* Returns the row that has this rank, rank < n; rank 0 is the hottest row. With
 * ROW_ORDER_UNIFORM, (rank + 1) x n must be below 2^64. */
HOST_DEVICE uint64_t row_of_rank(const struct row_map *map, uint64_t rank)
{
    const struct permutation *hashed = &map->hashed;

    if (map->order == ROW_ORDER_FREQUENCY)
        return rank;
    if (map->order == ROW_ORDER_UNIFORM)
        return (map->first + rank * map->stride) % hashed->n;
    return hashed->n >> 32 ? permute_wide(hashed, rank)
                           : permute(hashed, (uint32_t)rank);
}

EXTERN_C_END

#endif
