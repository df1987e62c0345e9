/* SPDX-License-Identifier: MIT */
#include "core/row_order.h"

#include "base/rng.h"

/* Value of `counter` with which draw computes the seed of the row order from a
 * table's row_seed. */
#define SALT_ROWS 1
/* (sqrt(5) - 1) / 2. The first n multiples of this number, modulo 1, are spread
 * as evenly as possible for any n. */
#define GOLDEN_RATIO 0.61803398874989484820

/* Returns a pseudo-random number from a seed and a counter. A copy of
 * stream_random (device/stream_math.h). */
static uint64_t draw(uint64_t seed, uint64_t counter)
{
    return mix64(seed + (counter + 1) * 0x9e3779b97f4a7c15u);
}

void permutation_init(struct permutation *permutation, uint64_t n,
                      uint64_t seed)
{
    /* least number of bits that can hold n - 1 */
    const uint32_t bits = n > 1 ? 64 - (uint32_t)__builtin_clzll(n - 1) : 0;

    permutation->n = n;
    permutation->right_bits = bits - bits / 2;
    permutation->left_mask = (uint32_t)((1ull << (bits / 2)) - 1);
    permutation->right_mask = (uint32_t)((1ull << permutation->right_bits) - 1);
    for (uint32_t round = 0; round < 4; round++)
        permutation->keys[round] = (uint32_t)draw(seed, round);
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

void row_map_init(struct row_map *map, enum row_order order, uint64_t n,
                  uint64_t row_seed)
{
    map->order = order;
    map->stride = (uint64_t)((double)n * GOLDEN_RATIO + 0.5);
    while (common_divisor(map->stride, n) > 1)
        map->stride++;
    permutation_init(&map->hashed, n, draw(row_seed, SALT_ROWS));
    map->first = permute_wide(&map->hashed, 0);
}
