/* SPDX-License-Identifier: MIT */
#include "microbench/sampler.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

/*
 * What is fused is drawn in two steps, first the style of a case, then its
 * tables. Without the first the sums over many tables would all lie near their
 * means, and the ranks of real lists, where all tables have one width or one
 * look-up a sample, far outside.
 */

#define MIN_ROWS 3
#define SMALL_ROWS 1000 /* up to here a table is small */
#define MAX_ROWS 4294967295.0
#define MAX_POOLING 100.0
/* Look-ups a sample of all tables: bounds the time of a case. */
#define MAX_POOLING_SUM 256.0
/* Kept free for each table that is still to be drawn. */
#define TABLE_RESERVE_BYTES (64 << 10)

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

static const uint32_t usual_dims[] = {4, 8, 16, 32, 64, 128};
#define N_USUAL_DIMS (sizeof(usual_dims) / sizeof(*usual_dims))

/* What the tables of a case have in common. */
struct style {
    uint32_t dim;      /* 0: each its own */
    bool one_hot;      /* one look-up a sample in all tables */
    double zipf_alpha; /* of all tables; negative: each its own skew */
    double small_frac; /* share of small tables */
};

/* 2^x and its inverse, linear between powers of two. They are used in pairs
 * and where any smooth growth will do, and need no libm. */
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

uint64_t case_list_id(const struct case_list *list)
{
    uint64_t id = mix64(list->weight_bytes);

    id = mix64(id ^ list->max_tables);
    id = mix64(id ^ list->seed);
    return id >> 1;
}

static uint64_t row_bytes(const struct case_table *table,
                          enum precision precision)
{
    return (uint64_t)table->dim * precision_bytes(precision);
}

uint64_t case_table_bytes(const struct case_table *table,
                          enum precision precision)
{
    uint64_t n_bytes = table->stream.n_rows * row_bytes(table, precision);

    return (n_bytes + CASE_ALIGN - 1) / CASE_ALIGN * CASE_ALIGN;
}

static uint32_t draw_dim(struct rng *rng)
{
    if (rng_uniform(rng) < 0.85)
        return usual_dims[rng_below(rng, N_USUAL_DIMS)];
    return 4 * (uint32_t)(1 + rng_below(rng, 64));
}

static struct style draw_style(struct rng *rng)
{
    static const double small_fracs[] = {0, 0.2, 0.5, 0.8};
    struct style style = {.zipf_alpha = -1};

    if (rng_uniform(rng) < 0.5)
        style.dim = draw_dim(rng);
    style.one_hot = rng_uniform(rng) < 0.4;
    if (rng_uniform(rng) < 0.3)
        style.zipf_alpha = 1.5 * rng_uniform(rng);
    style.small_frac = small_fracs[rng_below(rng, 4)];
    return style;
}

static double draw_pooling(struct rng *rng, const struct style *style)
{
    double u = rng_uniform(rng), v = rng_uniform(rng), pooling;

    if (style->one_hot)
        return 1;
    if (u < 0.04)
        return 0;
    if (u < 0.30)
        return 1;
    if (u < 0.38)
        return 0.05 + 0.95 * v;
    /* the square favours short bags */
    pooling = near_exp2(v * v * near_log2(MAX_POOLING));
    return rng_uniform(rng) < 0.5 ? floor(pooling) : pooling;
}

static uint64_t draw_rows(struct rng *rng, const struct style *style,
                          double max_rows)
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

static void draw_skew(struct rng *rng, const struct style *style,
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

/* Long bags are shortened so that the case stays within MAX_POOLING_SUM (and
 * one look-up a table); a case without any look-up gets one a sample. */
static void bound_pooling(struct bench_case *out)
{
    double sum = 0;

    for (uint32_t t = 0; t < out->n_tables; t++)
        sum += out->tables[t].stream.pooling_factor;
    if (sum == 0)
        out->tables[0].stream.pooling_factor = 1;
    for (uint32_t t = 0; t < out->n_tables && sum > MAX_POOLING_SUM; t++) {
        double *pooling = &out->tables[t].stream.pooling_factor;

        if (*pooling > 1)
            *pooling = fmax(1, *pooling * MAX_POOLING_SUM / sum);
    }
}

void case_draw(struct bench_case *out, const struct case_list *list,
               uint64_t case_idx)
{
    struct style style;
    struct rng rng;
    uint64_t left = list->weight_bytes;

    memset(out, 0, sizeof(*out));
    rng_init(&rng, case_list_id(list), case_idx);
    out->n_tables = 1 + (uint32_t)rng_below(&rng, list->max_tables);
    style = draw_style(&rng);
    for (uint32_t t = 0; t < out->n_tables; t++) {
        struct case_table *table = &out->tables[t];

        table->dim = style.dim ? style.dim : draw_dim(&rng);
        table->stream.batch = list->batch;
        table->stream.pooling_factor = draw_pooling(&rng, &style);
        table->stream.table_seed = rng_u64(&rng);
    }
    bound_pooling(out);
    for (uint32_t t = 0; t < out->n_tables; t++) {
        struct case_table *table = &out->tables[t];
        uint64_t kept = (out->n_tables - t) * (uint64_t)TABLE_RESERVE_BYTES;

        table->stream.n_rows = draw_rows(
            &rng, &style,
            (double)(left - kept) / (double)row_bytes(table, list->precision));
        left -= case_table_bytes(table, list->precision);
        draw_skew(&rng, &style, &table->stream);
    }
}

void case_sentinel(struct bench_case *out, const struct case_list *list)
{
    memset(out, 0, sizeof(*out));
    out->n_tables = 8;
    for (uint32_t t = 0; t < out->n_tables; t++) {
        struct case_table *table = &out->tables[t];

        table->dim = 32;
        table->stream.batch = list->batch;
        table->stream.pooling_factor = 2;
        table->stream.zipf_alpha = DEFAULT_ZIPF_ALPHA;
        table->stream.table_seed = t;
        table->stream.n_rows =
            list->weight_bytes / 16 / row_bytes(table, list->precision);
        if (table->stream.n_rows > 1000000)
            table->stream.n_rows = 1000000;
    }
}

void case_single(struct bench_case *out, const struct bench_case *from,
                 uint32_t t)
{
    memset(out, 0, sizeof(*out));
    out->tables[0] = from->tables[t];
    out->n_tables = 1;
}
