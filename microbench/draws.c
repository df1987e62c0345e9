/* SPDX-License-Identifier: MIT */
#include "microbench/draws.h"

#include "core/rank_law.h"

#include <math.h>
#include <string.h>

#define MIN_ROWS 3
#define SMALL_ROWS 1000 /* largest number of rows of a small table */
#define MAX_ROWS 4294967295.0
#define MIN_DIM 4u
/* Largest number of tables and largest width of published cases in a mixed
 * list. */
#define PUBLISHED_TABLES 15
#define PUBLISHED_DIM 128
/* Largest number of halvings of the batch in a mixed list. */
#define HALVINGS 6
/* Smallest limit on the work of a mixed case, as a fraction of work_bytes. The
 * limit is drawn for each case. */
#define MIN_WORK_PART (1.0 / 16)
#define LONG_SHARE 0.1

/* Ranges from which the random values of a case are drawn. */
struct ranges {
    uint32_t usual_dim, max_dim; /* both are powers of two */
    /* fraction of tables with one lookup per bag */
    double single_frac;
    double max_pooling;
    /* Limits of a case: number of lookups of all tables per sample of the
     * batch, and number of columns of all outputs. Plain cases have no limit on
     * the columns. */
    uint32_t max_pooling_sum, max_out_dim;
};
static const struct ranges plain = {
    128, 256, 0.30, 100, 256, BENCH_MAX_TABLES * 256 /* no limit */};
static const struct ranges mixed = {512, 512, 0.20, 200, 512, 8192};

/*
 * Properties that the tables of a case have in common.
 *
 * A case is drawn in two steps: first its style, then its tables. Ranks of real
 * workloads may hold tables that all have the same width, or all have one
 * lookup per sample. If cases had no style, sums over many tables would all be
 * near their means, and these ranks would be far outside the drawn cases.
 */
struct style {
    /* width of all tables; 0: each table has its own width */
    uint32_t dim;
    bool one_hot; /* true if all tables have one lookup per sample */
    /* Zipf exponent of all tables; negative: each table has its own exponent */
    double zipf_alpha;
    double small_frac; /* fraction of tables that are small */
};

/*
 * Fraction of the lookups that go to the rows of each reuse bin, from
 * facebookresearch/dlrm_datasets (MIT):
 *
 *     2021, all data      fbgemm_t856_bs65536.pt
 *     2021, first batch   fbgemm_t856_bs65536_0.pt
 *     2022, first batch   fbgemm_t788_bs131072_0.pt
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

/* Approximations of 2^x and of its inverse, which are linear between powers of
 * two. They are used as a pair, or for values that need to grow only
 * smoothly. */
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

/* Draws the width of a table: a multiple of 4, usually a power of two within
 * the usual range. */
static uint32_t draw_dim(struct rng *rng, const struct ranges *ranges)
{
    uint32_t n_usual = 1;

    while (MIN_DIM << n_usual <= ranges->usual_dim)
        n_usual++;
    if (rng_uniform(rng) < 0.85)
        return MIN_DIM << rng_below(rng, n_usual);
    return 4 * (uint32_t)(1 + rng_below(rng, ranges->max_dim / 4));
}

static struct style draw_style(struct rng *rng, const struct ranges *ranges)
{
    static const double small_fracs[] = {0, 0.2, 0.5, 0.8};
    struct style style = {.zipf_alpha = -1};

    if (rng_uniform(rng) < 0.5)
        style.dim = draw_dim(rng, ranges);
    style.one_hot = rng_uniform(rng) < 0.4;
    if (rng_uniform(rng) < 0.3)
        style.zipf_alpha = 1.5 * rng_uniform(rng);
    style.small_frac = small_fracs[rng_below(rng, 4)];
    return style;
}

/* Draws the mean number of lookups per bag of a table. `bend` is from 0 to 1.
 * The larger it is, the shorter are the bags that have more than one lookup. */
static double draw_pooling(struct rng *rng, const struct ranges *ranges,
                           const struct style *style, double bend)
{
    double u = rng_uniform(rng), v = rng_uniform(rng), pooling;

    if (style->one_hot)
        return 1;
    if (u < 0.04)
        return 0;
    if (u < ranges->single_frac)
        return 1;
    if (u < ranges->single_frac + 0.08)
        return 0.05 + 0.95 * v;
    pooling =
        near_exp2(v * (1 - bend + bend * v) * near_log2(ranges->max_pooling));
    return rng_uniform(rng) < 0.5 ? floor(pooling) : pooling;
}

/* Draws the number of rows of a table, from 3 to max_rows. Small tables have up
 * to 1000 rows. */
static uint64_t draw_rows(struct rng *rng, const struct style *style,
                          double max_rows)
{
    bool is_small = rng_uniform(rng) < style->small_frac;

    max_rows = fmin(max_rows, MAX_ROWS);
    if (is_small || max_rows <= SMALL_ROWS)
        return (uint64_t)draw_log_uniform(rng, MIN_ROWS,
                                          fmin(max_rows, SMALL_ROWS));
    return (uint64_t)draw_log_uniform(rng, SMALL_ROWS, max_rows);
}

/* Draws one of the published reuse histograms and changes it: tilts it towards
 * more or less reuse, changes each bin a little, and drops bins whose rows need
 * more lookups than the batch has. Returns false if the table has too few rows
 * for the histogram. */
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

/* Draws the skew of a stream whose other members are already set. The skew is a
 * Zipf exponent of up to 1.5, or a changed histogram of production data. */
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

struct case_bounds case_list_bounds(const struct bench_options *options)
{
    const struct ranges *ranges = options->is_mixed ? &mixed : &plain;
    uint64_t batch = options->batch, max_tables = options->max_tables;
    uint64_t out_dim =
        min_u64(max_tables * ranges->max_dim, ranges->max_out_dim);

    return (struct case_bounds){
        .n_lookups = batch * (ranges->max_pooling_sum + max_tables),
        .n_bags = batch * max_tables,
        .n_outputs = batch * out_dim,
        .dim = ranges->max_dim};
}

/* Draws the widths and the lookups per bag of all tables of a case. */
static void draw_tables(struct bench_case *out, const struct ranges *ranges,
                        const struct style *style, double bend, struct rng *rng)
{
    for (uint32_t t = 0; t < out->n_tables; t++) {
        struct case_table *table = &out->tables[t];

        table->dim = style->dim ? style->dim : draw_dim(rng, ranges);
        table->stream.batch = out->batch;
        table->stream.pooling_factor = draw_pooling(rng, ranges, style, bend);
        table->stream.table_seed = rng_u64(rng);
    }
}

/* Draws the rows and the skew of all tables of a case. Their widths and lookups
 * per bag must have been drawn before. */
static void draw_sizes(struct bench_case *out,
                       const struct bench_options *options,
                       const struct style *style, struct rng *rng)
{
    uint64_t left = case_weight_bytes(options);
    uint64_t left_states = case_state_bytes(options);

    for (uint32_t t = 0; t < out->n_tables; t++) {
        struct case_table *table = &out->tables[t];
        uint64_t kept = (out->n_tables - t) * (uint64_t)TABLE_RESERVE_BYTES;
        double max_rows = (double)(left - kept) /
                          (double)case_row_bytes(table, out->precision);

        if (options->is_mixed && out->optimizer != OPTIMIZER_SGD) {
            kept = (out->n_tables - t) * (uint64_t)CASE_ALIGN * sizeof(float);
            max_rows = fmin(max_rows, (double)(left_states - kept) /
                                          (double)sizeof(float));
        }
        table->stream.n_rows = draw_rows(rng, style, max_rows);
        left -= case_table_bytes(table, out->precision);
        left_states -= table->stream.n_rows * sizeof(float);
        draw_skew(rng, style, &table->stream);
    }
}

/* Multiplies the lengths of bags with more than one lookup by part / whole. At
 * least one lookup is left in each bag. */
static void shorten_bags(struct bench_case *out, double part, double whole)
{
    for (uint32_t t = 0; t < out->n_tables; t++) {
        double *pooling = &out->tables[t].stream.pooling_factor;

        if (*pooling > 1)
            *pooling = fmax(1, *pooling * part / whole);
    }
}

/* Returns the number of lookups per sample, summed over all tables. If the case
 * has no lookups, first adds one. */
static double sum_pooling(struct bench_case *out)
{
    double sum = 0;

    for (uint32_t t = 0; t < out->n_tables; t++)
        sum += out->tables[t].stream.pooling_factor;
    if (sum == 0)
        sum = out->tables[0].stream.pooling_factor = 1;
    return sum;
}

void draw_plain(struct bench_case *out, const struct bench_options *options,
                struct rng *rng)
{
    struct style style;
    double sum;

    out->n_tables = 1 + (uint32_t)rng_below(rng, options->max_tables);
    style = draw_style(rng, &plain);
    /* with a bend of 1, short bags are more frequent */
    draw_tables(out, &plain, &style, 1, rng);
    sum = sum_pooling(out);
    /* Each bag keeps one lookup, so the sum of the lookups may remain above the
     * limit, by at most one per table. */
    if (sum > plain.max_pooling_sum)
        shorten_bags(out, plain.max_pooling_sum, sum);
    draw_sizes(out, options, &style, rng);
}

/* Draws the batch of a case: the largest batch after some halvings, or one of
 * the three steps 5/8, 6/8 and 7/8 between two halvings. */
static uint32_t draw_batch(struct rng *rng, uint32_t largest)
{
    bool is_halved = rng_uniform(rng) < 0.5;
    uint64_t eighths = is_halved ? 8 : 5 + rng_below(rng, 3);
    uint64_t halvings = rng_below(rng, is_halved ? HALVINGS + 1 : HALVINGS);
    uint64_t batch = (largest * eighths / 8) >> halvings;

    return batch ? (uint32_t)batch : 1;
}

static void draw_setting(struct bench_case *out, struct rng *rng)
{
    out->batch = draw_batch(rng, out->batch);
    if (rng_uniform(rng) < 0.4)
        out->precision = PRECISION_FP16;
    if (rng_uniform(rng) < 0.5)
        out->optimizer = OPTIMIZER_ROWWISE_ADAGRAD;
}

/* Removes tables from the end of the case until its outputs are within the
 * limit. */
static void bound_outputs(struct bench_case *out)
{
    uint32_t out_dim = 0, n = 0;

    while (n < out->n_tables &&
           out_dim + out->tables[n].dim <= mixed.max_out_dim)
        out_dim += out->tables[n++].dim;
    out->n_tables = n;
}

/*
 * Shortens bags of more than one lookup, so that the work of the case is at
 * most the limit that was drawn for it. If single lookups alone exceed the
 * largest limit of any case, removes tables.
 */
static void bound_work(struct bench_case *out,
                       const struct bench_options *options, double part)
{
    double frac = part * options->work_bytes / case_work(out);

    frac = fmin(frac, mixed.max_pooling_sum / sum_pooling(out));
    if (frac < 1)
        shorten_bags(out, frac, 1);
    while (out->n_tables > 1 &&
           case_work(out) > LONG_CASE * options->work_bytes)
        out->n_tables--;
}

void draw_mixed(struct bench_case *out, const struct bench_options *options,
                struct rng *rng)
{
    bool is_published = rng_uniform(rng) < PUBLISHED_SHARE;
    struct ranges ranges = mixed;
    struct style style;
    double part;

    if (is_published) {
        ranges.usual_dim = ranges.max_dim = PUBLISHED_DIM;
        out->n_tables =
            1 + (uint32_t)rng_below(
                    rng, min_u64(options->max_tables, PUBLISHED_TABLES));
    } else {
        draw_setting(out, rng);
        out->n_tables =
            rng_uniform(rng) < 0.5
                ? 1 + (uint32_t)rng_below(rng, options->max_tables)
                : (uint32_t)draw_log_uniform(rng, 1, options->max_tables + 1.0);
    }
    style = draw_style(rng, &ranges);
    if (rng_uniform(rng) < 0.4)
        style.one_hot = false;
    /* Half of the bags have fewer than 14 lookups; with the strongest bend,
     * half of the bags have fewer than 4 lookups. */
    draw_tables(out, &ranges, &style, rng_uniform(rng), rng);
    part = draw_log_uniform(rng, MIN_WORK_PART, 1);
    if (rng_uniform(rng) < LONG_SHARE)
        part = LONG_CASE;
    bound_outputs(out);
    bound_work(out, options, part);
    draw_sizes(out, options, &style, rng);
}
