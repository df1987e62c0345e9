/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_RNG_H
#define NEUROSHARD_BASE_RNG_H

#include <stdint.h>

/*
 * Seeded random numbers that are the same on every machine: xoshiro256**
 * (Blackman, Vigna 2018) seeded by splitmix64. For stateless draws in device
 * code see device/stream_math.h.
 */

struct rng {
    uint64_t s[4];
};

/* Starts a generator. Streams of one seed with different `stream` numbers are
 * independent. */
void rng_init(struct rng *rng, uint64_t seed, uint64_t stream);

static inline uint64_t rng_u64(struct rng *rng)
{
    uint64_t *s = rng->s;
    uint64_t x = s[1] * 5, result = ((x << 7) | (x >> 57)) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = (s[3] << 45) | (s[3] >> 19);
    return result;
}

/* Returns a random whole number, uniform in [0, n), without modulo bias; n >
 * 0. */
uint64_t rng_below(struct rng *rng, uint64_t n);
/* Returns a random whole number in [0, n). It is faster than rng_below, for n
 * below 2^32. Its bias of n / 2^32 does not matter in a search. */
static inline uint32_t rng_draw(struct rng *rng, uint32_t n)
{
    return (uint32_t)((rng_u64(rng) >> 32) * n >> 32);
}

/* Returns a random real, uniform in [0, 1), with 53 random bits. */
static inline double rng_uniform(struct rng *rng)
{
    return (double)(rng_u64(rng) >> 11) * 0x1p-53;
}

/* Shuffles idx[0..n) by Fisher-Yates. */
void rng_shuffle(struct rng *rng, uint32_t *idx, uint32_t n);

/* Returns the 64 bits of x well mixed, without any state: the finaliser of
 * splitmix64. */
uint64_t mix64(uint64_t x);

#endif
