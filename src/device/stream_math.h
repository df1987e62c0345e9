/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_STREAM_MATH_H
#define NEUROSHARD_DEVICE_STREAM_MATH_H

#include "core/row_order.h"
#include "device/device.h"

#include <string.h>

/*
 * Arithmetic of index streams and of the values of device_fill, for host and
 * device code. Element i of a stream is a function of the stream and i alone.
 * The code uses integers and plain IEEE double operations only, no libm, so
 * that every machine computes the same bits. Contraction to fused multiply-add
 * must be off (gcc, clang: -ffp-contract=off; nvcc: -fmad=false).
 */

/* Finaliser of splitmix64: a bijection of 64 bits. */
HOST_DEVICE uint64_t stream_mix64(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Returns 64 random bits, a function of seed and counter. */
HOST_DEVICE uint64_t stream_random(uint64_t seed, uint64_t counter)
{
    return stream_mix64(seed + (counter + 1) * 0x9e3779b97f4a7c15u);
}

/* Returns the fp32 value that device_fill stores at index idx: an odd multiple
 * of 0.05 * 2^-23. Two neighbouring elements share one hash. */
HOST_DEVICE float stream_fill_value(uint64_t seed, uint64_t idx)
{
    uint64_t bits = stream_random(seed, idx >> 1);
    uint32_t half = (uint32_t)(idx & 1 ? bits >> 32 : bits);

    return (float)((int32_t)(half >> 9) * 2 + 1 - (1 << 23)) *
           (0.1f / (1 << 24));
}

/* Returns the natural logarithm of a normal x > 0, accurate to a few units in
 * the last place. */
HOST_DEVICE double stream_log(double x)
{
    uint64_t bits;
    int exponent;
    double s, z;

    memcpy(&bits, &x, sizeof bits);
    /* x = m 2^exponent with m in [0.707, 1.414] */
    exponent = (int)((bits + 0x00095f619980c433u) >> 52) - 1023;
    bits -= (uint64_t)(int64_t)exponent << 52;
    memcpy(&x, &bits, sizeof x);
    /* log m = 2 artanh s = 2 (s + s^3/3 + s^5/5 ...), |s| < 0.172 */
    s = (x - 1) / (x + 1);
    z = s * s;
    z *= 1.0 / 3 +
         z * (1.0 / 5 +
              z * (1.0 / 7 +
                   z * (1.0 / 9 +
                        z * (1.0 / 11 +
                             z * (1.0 / 13 +
                                  z * (1.0 / 15 +
                                       z * (1.0 / 17 + z * (1.0 / 19))))))));
    return exponent * 0.69314718055994530942 + 2 * (s + s * z);
}

/* Returns e^x, accurate to a few units in the last place; 0 for x below -700,
 * e^700 for x above 700. */
HOST_DEVICE double stream_exp(double x)
{
    double clamped = x < -700 ? -700 : x > 700 ? 700 : x, scale, r, sum;
    uint64_t bits;
    int n;

    n = (int)(clamped * 1.44269504088896340736 + (x < 0 ? -0.5 : 0.5));
    r = clamped - n * 6.93147180369123816490e-01; /* first 32 bits of ln 2 */
    r -= n * 1.90821492927058770002e-10;          /* remaining bits of ln 2 */
    /* sum = 1 + r + r^2/2! ... r^13/13!, computed as two independent halves */
    sum = r * r * r;
    sum *= sum * r; /* r^7 */
    sum *=
        1.0 / 5040 +
        r * (1.0 / 40320 +
             r * (1.0 / 362880 +
                  r * (1.0 / 3628800 +
                       r * (1.0 / 39916800 + r * (1.0 / 479001600 +
                                                  r * (1.0 / 6227020800.0))))));
    sum +=
        1 +
        r * (1 + r * (1.0 / 2 +
                      r * (1.0 / 6 + r * (1.0 / 24 +
                                          r * (1.0 / 120 + r * (1.0 / 720))))));
    bits = (uint64_t)(int64_t)(n + 1023) << 52;
    memcpy(&scale, &bits, sizeof scale);
    return x < -700 ? 0 : sum * scale;
}

/* Returns (e^x - 1) / x, also at x = 0. */
HOST_DEVICE double stream_expm1_ratio(double x)
{
    if (x > -0.01 && x < 0.01)
        return 1 + x * (0.5 + x * (1.0 / 6 + x * (1.0 / 24 + x / 120)));
    return (stream_exp(x) - 1) / x;
}

/* Returns log(1 + x) / x, also at x = 0; x >= -1. */
HOST_DEVICE double stream_log1p_ratio(double x)
{
    if (x > -0.01 && x < 0.01)
        return 1 - x * (0.5 - x * (1.0 / 3 - x * (0.25 - x * (0.2 - x / 6))));
    return stream_log(1 + x) / x;
}

/*
 * Draws Zipf ranks 1 .. n: the probability of a rank is proportional to
 * rank^-alpha, for alpha >= 0. The method is rejection-inversion (Hoermann and
 * Derflinger, ACM TOMACS 6(3), 1996). H is the integral of h(x) = x^-alpha from
 * 1. The formula for H is written so that alpha = 1 is no special case. More
 * than four of five attempts are accepted.
 */
struct stream_zipf {
    double alpha, n;
    double low, high; /* values of H at both ends of the range of ranks */
    double sure;      /* a draw x is accepted at once if rank - x <= sure */
};

HOST_DEVICE double stream_zipf_integral(const struct stream_zipf *zipf,
                                        double x)
{
    double log_x = stream_log(x);

    return log_x * stream_expm1_ratio((1 - zipf->alpha) * log_x);
}

HOST_DEVICE double stream_zipf_inverse(const struct stream_zipf *zipf, double u)
{
    double x = u * (1 - zipf->alpha);

    if (x < -1) /* x can be below -1 only by rounding */
        x = -1;
    return stream_exp(stream_log1p_ratio(x) * u);
}

HOST_DEVICE double stream_zipf_mass(const struct stream_zipf *zipf, double x)
{
    return stream_exp(-zipf->alpha * stream_log(x));
}

HOST_DEVICE void stream_zipf_init(struct stream_zipf *zipf, double alpha,
                                  uint32_t n)
{
    zipf->alpha = alpha;
    zipf->n = n;
    zipf->low = stream_zipf_integral(zipf, 1.5) - 1;
    zipf->high = stream_zipf_integral(zipf, n + 0.5);
    zipf->sure = 2 - stream_zipf_inverse(zipf, stream_zipf_integral(zipf, 2.5) -
                                                   stream_zipf_mass(zipf, 2));
}

/* Makes one attempt at draw i of a Zipf stream. The caller passes the seed of
 * this draw, stream_random(seed, i). Returns the rank, or 0 if the attempt is
 * rejected. */
HOST_DEVICE uint32_t stream_zipf_attempt(const struct stream_zipf *zipf,
                                         uint64_t own_seed, uint64_t attempt)
{
    int64_t bits = (int64_t)(stream_random(own_seed, attempt) >> 12);
    double uniform = ((double)bits + 0.5) * 0x1p-52;
    double u = zipf->high + uniform * (zipf->low - zipf->high);
    double x = stream_zipf_inverse(zipf, u);
    double rank = x < 1 ? 1 : x > zipf->n ? zipf->n : x;

    rank = (double)(int64_t)(rank + 0.5);
    if (rank - x <= zipf->sure || u >= stream_zipf_integral(zipf, rank + 0.5) -
                                           stream_zipf_mass(zipf, rank))
        return (uint32_t)(int64_t)rank;
    return 0;
}

/* Returns the rank of draw i of a Zipf stream, counted from 0. */
HOST_DEVICE uint32_t stream_zipf_draw(const struct stream_zipf *zipf,
                                      uint64_t seed, uint32_t i)
{
    uint64_t own_seed = stream_random(seed, i), attempt = 0;
    uint32_t rank;

    do
        rank = stream_zipf_attempt(zipf, own_seed, attempt++);
    while (!rank);
    return rank - 1;
}

/* Rows of one bin of the reuse histogram. `n_more` of the rows are looked up
 * count + 1 times each; the others are looked up `count` times each. */
struct stream_bin {
    /* first lookup of these rows, before lookups are permuted */
    uint32_t first_lookup;
    uint32_t first_rank; /* lowest rank of these rows */
    uint32_t n_more, count;
};

/* State from which the lookups of one batch are computed; set by
 * stream_batch_init. */
struct stream_batch {
    int use_bins;
    uint32_t n_rows, n_lookups;
    uint64_t seed; /* seed of the draws of a Zipf stream */
    struct stream_zipf zipf;
    struct row_map rows; /* maps ranks to rows */
    /* permutes lookups to places in the histogram */
    struct permutation positions;
    /* Permutation of the cold ranks, which are counted from n_hot here. Each
     * batch has a new permutation. */
    struct permutation cold;
    uint32_t n_hot;
    struct stream_bin bins[REUSE_BINS]; /* sorted by heat, hottest bin first */
    /* `longer_bags` bags have bag_lookups + 1 lookups each; the others have
     * `bag_lookups` each. */
    uint32_t longer_bags, bag_lookups;
    struct permutation bags;
};

/* Returns the number of lookups in a bag, whose number must be < batch. */
HOST_DEVICE uint32_t stream_bag_size(const struct stream_batch *batch,
                                     uint32_t bag)
{
    if (!batch->longer_bags)
        return batch->bag_lookups;
    return batch->bag_lookups +
           (permute(&batch->bags, bag) < batch->longer_bags);
}

/* Returns the rank to which a place in the histogram belongs. Cold ranks are
 * not permuted yet. */
HOST_DEVICE uint32_t stream_rank_of_place(const struct stream_batch *batch,
                                          uint32_t place)
{
    const struct stream_bin *bin;
    uint32_t k = 0, split, is_more;

    for (int j = 1; j < REUSE_BINS; j++)
        k += place >= batch->bins[j].first_lookup;
    bin = &batch->bins[k];
    place -= bin->first_lookup;
    split = bin->n_more * (bin->count + 1);
    is_more = place < split;
    return bin->first_rank + (is_more ? 0 : bin->n_more) +
           (is_more ? place : place - split) / (bin->count + is_more);
}

HOST_DEVICE uint32_t stream_binned_rank(const struct stream_batch *batch,
                                        uint32_t i)
{
    uint32_t rank = stream_rank_of_place(batch, permute(&batch->positions, i));

    if (rank < batch->n_hot)
        return rank;
    return batch->n_hot + permute(&batch->cold, rank - batch->n_hot);
}

/* Returns the rank of lookup i for a stream in which all rows are equally
 * likely. */
HOST_DEVICE uint32_t stream_uniform_rank(const struct stream_batch *batch,
                                         uint32_t i)
{
    return (uint32_t)((stream_random(batch->seed, i) >> 32) * batch->n_rows >>
                      32);
}

/* Returns the row that lookup i < n_lookups of a batch reads. */
HOST_DEVICE uint32_t stream_row(const struct stream_batch *batch, uint32_t i)
{
    uint32_t rank;

    if (batch->use_bins)
        rank = stream_binned_rank(batch, i);
    else if (batch->zipf.alpha > 0)
        rank = stream_zipf_draw(&batch->zipf, batch->seed, i);
    else
        rank = stream_uniform_rank(batch, i);
    return (uint32_t)row_of_rank(&batch->rows, rank);
}

/* Returns the bin of the reuse histogram to which a row belongs that is looked
 * up count >= 1 times. */
HOST_DEVICE int stream_reuse_bin(uint64_t count)
{
    int bin = 0;

    while (bin < REUSE_BINS - 1 && count > 1ull << bin)
        bin++;
    return bin;
}

#endif
