/* SPDX-License-Identifier: MIT */
#include "microbench/draws.h"

#include <math.h>
#include <string.h>

#define MIN_ROWS 3
#define SMALL_ROWS 1000 /* up to here a table is small */
#define MAX_ROWS 4294967295.0
#define MIN_DIM 4u

/*
 * Shares of the look-ups that go to rows of each reuse bin, from
 * facebookresearch/dlrm_datasets (MIT): the whole of 2021
 * (fbgemm_t856_bs65536.pt), its first batch (..._0.pt) and the first batch of
 * 2022 (fbgemm_t788_bs131072_0.pt).
 */
static const double access_shares[][REUSE_BINS] = {
    {0.069, 0.044, 0.068, 0.101, 0.121, 0.104, 0.073, 0.058, 0.052, 0.050,
     0.049, 0.048, 0.048, 0.043, 0.031, 0.023, 0.019},
    {0.056, 0.043, 0.075, 0.099, 0.112, 0.091, 0.064, 0.052, 0.049, 0.050,
     0.054, 0.058, 0.061, 0.052, 0.038, 0.026, 0.020},
    {0.027, 0.023, 0.040, 0.068, 0.105, 0.120, 0.099, 0.070, 0.059, 0.054,
     0.040, 0.072, 0.064, 0.047, 0.021, 0.017, 0.076},
};
#define N_HISTOGRAMS (sizeof(access_shares) / sizeof(*access_shares))

/* 2^x and its inverse, linear between powers of two. They are used in pairs
 * and where any smooth growth will do. */
static double near_exp2(double x)
{
    double whole = floor(x);

    return ldexp(1 + x - whole, (int)whole);
}

static double near_log2(double x)
{
    int exponent;
    double mantissa = frexp(x, &exponent);

    return exponent - 2 + 2 * mantissa;
}

double draw_log_uniform(struct rng *rng, double lo, double hi)
{
    return lo * near_exp2(rng_uniform(rng) * near_log2(hi / lo));
}

uint32_t draw_dim(struct rng *rng, uint32_t usual_dim, uint32_t max_dim)
{
    uint32_t n_usual = 1;

    while (MIN_DIM << n_usual <= usual_dim)
        n_usual++;
    if (rng_uniform(rng) < 0.85)
        return MIN_DIM << rng_below(rng, n_usual);
    return 4 * (uint32_t)(1 + rng_below(rng, max_dim / 4));
}

struct style draw_style(struct rng *rng, uint32_t usual_dim, uint32_t max_dim)
{
    static const double small_fracs[] = {0, 0.2, 0.5, 0.8};
    struct style style = {.zipf_alpha = -1};

    if (rng_uniform(rng) < 0.5)
        style.dim = draw_dim(rng, usual_dim, max_dim);
    style.one_hot = rng_uniform(rng) < 0.4;
    if (rng_uniform(rng) < 0.3)
        style.zipf_alpha = 1.5 * rng_uniform(rng);
    style.small_frac = small_fracs[rng_below(rng, 4)];
    return style;
}

double draw_pooling(struct rng *rng, const struct style *style,
                    double single_frac, double most, double bend)
{
    double u = rng_uniform(rng), v = rng_uniform(rng), pooling;

    if (style->one_hot)
        return 1;
    if (u < 0.04)
        return 0;
    if (u < single_frac)
        return 1;
    if (u < single_frac + 0.08)
        return 0.05 + 0.95 * v;
    pooling = near_exp2(v * (1 - bend + bend * v) * near_log2(most));
    return rng_uniform(rng) < 0.5 ? floor(pooling) : pooling;
}

uint64_t draw_rows(struct rng *rng, const struct style *style, double max_rows)
{
    bool is_small = rng_uniform(rng) < style->small_frac;

    if (max_rows > MAX_ROWS)
        max_rows = MAX_ROWS;
    if (is_small || max_rows <= SMALL_ROWS)
        return (uint64_t)draw_log_uniform(
            rng, MIN_ROWS, max_rows < SMALL_ROWS ? max_rows : SMALL_ROWS);
    return (uint64_t)draw_log_uniform(rng, SMALL_ROWS, max_rows);
}

/* A published histogram, bent: turned towards more or less reuse, each bin
 * moved a little, and without rows that the batch is too short for. False
 * where the table has too few rows for it. */
static bool draw_bins(struct rng *rng, struct stream *stream)
{
    const double *shares = access_shares[rng_below(rng, N_HISTOGRAMS)];
    double tilt = rng_uniform(rng) - 0.5, n_unique = 0, n_lookups = 0;
    double available = (double)stream_n_lookups(stream);

    for (unsigned k = 0; k < REUSE_BINS; k++) {
        double count = reuse_bin_count(k);
        double noise = rng_uniform(rng) - 0.5;
        double share = shares[k] * near_exp2(tilt * k + noise);

        stream->bins[k] = count * 4 <= available ? share / count : 0;
        n_unique += stream->bins[k];
        n_lookups += stream->bins[k] * count;
    }
    if (n_unique <= 0 ||
        2 * n_unique / n_lookups * available > (double)stream->n_rows)
        return false;
    for (unsigned k = 0; k < REUSE_BINS; k++)
        stream->bins[k] /= n_unique;
    return true;
}

void draw_skew(struct rng *rng, const struct style *style,
               struct stream *stream)
{
    if (style->zipf_alpha >= 0) {
        stream->zipf_alpha = style->zipf_alpha;
        return;
    }
    stream->zipf_alpha = 1.5 * rng_uniform(rng);
    stream->use_bins = rng_uniform(rng) < 0.5 && draw_bins(rng, stream);
    if (!stream->use_bins)
        memset(stream->bins, 0, sizeof(stream->bins));
}
