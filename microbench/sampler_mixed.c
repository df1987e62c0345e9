/* SPDX-License-Identifier: MIT */
#include "microbench/sampler_private.h"

#include <math.h>

#define PUBLISHED_TABLES 15
#define PUBLISHED_DIM 128
#define MAX_DIM 512
#define MAX_POOLING 200.0
#define SINGLE_FRAC 0.20
#define HALVINGS 6 /* of the batch */
/* Bounds of a case, for a sample of the batch: look-ups and outputs of all
 * tables. */
#define MAX_POOLING_SUM 512
#define MAX_OUT_DIM 8192
/* Cases vary in how much work they may be, down to this part. */
#define MIN_WORK_PART (1.0 / 16)
#define LONG_SHARE 0.1
/* A look-up's way through linearise, sort and runs, beside its rows. */
#define LOOKUP_WORK_BYTES 100

struct case_bounds mixed_bounds(const struct case_list *list)
{
    uint64_t batch = list->batch, max_tables = list->max_tables;
    uint64_t out_dim = max_tables * MAX_DIM;

    return (struct case_bounds){
        .n_lookups = batch * (MAX_POOLING_SUM + max_tables),
        .n_bags = batch * max_tables,
        .n_outputs = batch * (out_dim < MAX_OUT_DIM ? out_dim : MAX_OUT_DIM),
        .dim = MAX_DIM};
}

/* The forward reads a row, the update reads and writes it and reads a
 * gradient; outputs are written and gradients read once. */
double case_work(const struct bench_case *drawn)
{
    double work = 0;

    for (uint32_t t = 0; t < drawn->n_tables; t++) {
        const struct case_table *table = &drawn->tables[t];
        double row = (double)row_bytes(table, drawn->precision);
        double gradient = (double)table->dim * sizeof(float);
        double lookup = 3 * row + gradient + LOOKUP_WORK_BYTES;

        work += table->stream.batch *
                (table->stream.pooling_factor * lookup + 2 * gradient);
    }
    return work;
}

/* Halves of the largest batch, and three steps between each two. */
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

static uint32_t draw_n_tables(struct rng *rng, uint32_t max_tables)
{
    if (rng_uniform(rng) < 0.5)
        return 1 + (uint32_t)rng_below(rng, max_tables);
    return (uint32_t)draw_log_uniform(rng, 1, max_tables + 1.0);
}

/* Leaves tables out from the end until the case's outputs fit. */
static void bound_outputs(struct bench_case *out)
{
    uint32_t out_dim = 0, n = 0;

    while (n < out->n_tables && out_dim + out->tables[n].dim <= MAX_OUT_DIM)
        out_dim += out->tables[n++].dim;
    out->n_tables = n;
}

/*
 * Bags of more than one look-up are shortened so that the case stays within
 * the work that was drawn for it. Where single look-ups are already more than
 * the longest case may be, tables are left out.
 */
static void bound_work(struct bench_case *out, const struct case_list *list,
                       double part)
{
    double pooling_sum = 0, frac = part * list->work_bytes / case_work(out);

    for (uint32_t t = 0; t < out->n_tables; t++)
        pooling_sum += out->tables[t].stream.pooling_factor;
    if (pooling_sum == 0)
        out->tables[0].stream.pooling_factor = 1;
    else
        frac = fmin(frac, MAX_POOLING_SUM / pooling_sum);
    if (frac < 1)
        shorten_bags(out, frac, 1);
    while (out->n_tables > 1 && case_work(out) > LONG_CASE * list->work_bytes)
        out->n_tables--;
}

void mixed_draw(struct bench_case *out, const struct case_list *list,
                struct rng *rng)
{
    bool is_published = rng_uniform(rng) < PUBLISHED_SHARE;
    uint32_t max_dim = is_published ? PUBLISHED_DIM : MAX_DIM;
    struct style style;
    double part, bend;

    if (is_published) {
        out->n_tables =
            1 + (uint32_t)rng_below(rng, list->max_tables < PUBLISHED_TABLES
                                             ? list->max_tables
                                             : PUBLISHED_TABLES);
    } else {
        draw_setting(out, rng);
        out->n_tables = draw_n_tables(rng, list->max_tables);
    }
    style = draw_style(rng, max_dim, max_dim);
    if (rng_uniform(rng) < 0.4)
        style.one_hot = false;
    bend = rng_uniform(rng);
    for (uint32_t t = 0; t < out->n_tables; t++) {
        struct case_table *table = &out->tables[t];

        table->dim = style.dim ? style.dim : draw_dim(rng, max_dim, max_dim);
        table->stream.batch = out->batch;
        /* half of the bags are shorter than 14 look-ups, or where they are
         * bent most, than 4 */
        table->stream.pooling_factor =
            draw_pooling(rng, &style, SINGLE_FRAC, MAX_POOLING, bend);
        table->stream.table_seed = rng_u64(rng);
    }
    part = draw_log_uniform(rng, MIN_WORK_PART, 1);
    if (rng_uniform(rng) < LONG_SHARE)
        part = LONG_CASE;
    bound_outputs(out);
    bound_work(out, list, part);
    draw_sizes(out, list, &style, rng);
}
