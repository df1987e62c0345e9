/* SPDX-License-Identifier: MIT */
#include "base/rng.h"

#include <assert.h>

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

uint64_t mix64(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* splitmix64 adds GOLDEN to a counter and mixes it. Each stream starts its
 * counter at a different value. Four outputs of splitmix64 in a row are never
 * all zero. */
void rng_init(struct rng *rng, uint64_t seed, uint64_t stream)
{
    uint64_t x = mix64(seed + GOLDEN) ^ mix64(~stream);

    for (int i = 0; i < 4; i++)
        rng->s[i] = mix64(x += GOLDEN);
}

/* Rejects draws below 2^64 mod n, so that the number of accepted values is a
 * multiple of n. */
uint64_t rng_below(struct rng *rng, uint64_t n)
{
    uint64_t n_rejected, x;

    assert(n > 0);
    n_rejected = (0 - n) % n;
    do
        x = rng_u64(rng);
    while (x < n_rejected);
    return x % n;
}

void rng_shuffle(struct rng *rng, uint32_t *idx, uint32_t n)
{
    for (uint32_t i = n; i > 1; i--) {
        uint32_t j = (uint32_t)rng_below(rng, i);
        uint32_t kept = idx[i - 1];

        idx[i - 1] = idx[j];
        idx[j] = kept;
    }
}
