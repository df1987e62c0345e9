/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_RNG_NORMAL_H
#define NEUROSHARD_TESTS_RNG_NORMAL_H

#include <math.h>

#include "base/rng.h"

/* Normally distributed noise. It uses no libm, so its arithmetic rounds alike
 * on all machines. */

/* Returns ln x for a normal x > 0, to about 1e-15: x = m * 2^e with m around 1,
 * and ln m = 2 artanh((m - 1) / (m + 1)) as a series. The log of libm rounds
 * differently from machine to machine. */
static inline double portable_log(double x)
{
    int exponent;
    double m = frexp(x, &exponent), t, t2, sum = 0;

    if (m < 0.70710678118654752) {
        m *= 2;
        exponent--;
    }
    t = (m - 1) / (m + 1);
    t2 = t * t;
    for (int k = 21; k > 0; k -= 2)
        sum = sum * t2 + 1.0 / k;
    return 2 * t * sum + exponent * 0.69314718055994531;
}

/* Returns a standard normal number by Marsaglia's polar method. The second
 * number of each pair is discarded. */
static inline double rng_normal(struct rng *rng)
{
    double x, y, r2;

    do {
        x = 2 * rng_uniform(rng) - 1;
        y = 2 * rng_uniform(rng) - 1;
        r2 = x * x + y * y;
    } while (r2 >= 1 || r2 == 0);
    return x * sqrt(-2 * portable_log(r2) / r2);
}

#endif
