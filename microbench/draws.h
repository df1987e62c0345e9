/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_DRAWS_H
#define NEUROSHARD_MICROBENCH_DRAWS_H

#include "base/rng.h"
#include "device/stream.h"

/*
 * The random values that cases are made of. What is fused is drawn in two
 * steps, first the style of a case, then its tables. Without the first the
 * sums over many tables would all lie near their means, and the ranks of real
 * lists, where all tables have one width or one look-up a sample, far outside.
 *
 * No libm: the same bits on every machine.
 */

/* What the tables of a case have in common. */
struct style {
    uint32_t dim;      /* 0: each its own */
    bool one_hot;      /* one look-up a sample in all tables */
    double zipf_alpha; /* of all tables; negative: each its own skew */
    double small_frac; /* share of small tables */
};

/* At least lo, below hi; the logarithm is close to uniform. lo < hi. */
double draw_log_uniform(struct rng *rng, double lo, double hi);

/* A multiple of 4 up to max_dim, mostly a power of two up to usual_dim, both
 * powers of two. */
uint32_t draw_dim(struct rng *rng, uint32_t usual_dim, uint32_t max_dim);
struct style draw_style(struct rng *rng, uint32_t usual_dim, uint32_t max_dim);
/* Mean look-ups a bag up to `most`: single ones for a share of the tables, and
 * of the others the shorter the more often, as `bend` goes from 0 to 1. */
double draw_pooling(struct rng *rng, const struct style *style,
                    double single_frac, double most, double bend);
/* Rows from 3 to max_rows, small tables up to 1000. */
uint64_t draw_rows(struct rng *rng, const struct style *style, double max_rows);
/* Zipf exponents up to 1.5 and bent production histograms, for a stream that
 * has everything but its skew. */
void draw_skew(struct rng *rng, const struct style *style,
               struct stream *stream);

#endif
