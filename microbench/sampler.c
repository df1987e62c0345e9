/* SPDX-License-Identifier: MIT */
#include "microbench/sampler.h"

#include "microbench/sampler_private.h"

#include <math.h>
#include <string.h>

#define USUAL_DIM 128
#define MAX_DIM 256
#define MAX_POOLING 100.0
#define SINGLE_FRAC 0.30
/* Look-ups a sample of all tables: bounds the time of a case. */
#define MAX_POOLING_SUM 256
/* Of a mixed list, this part of the memory is for optimizer states. */
#define STATE_PARTS 16

void case_list_init(struct case_list *list, const struct bench_options *options)
{
    uint64_t memory_bytes = options->memory_bytes;
    /* The narrowest row has 4 elements, so that its 4 bytes of state are at
     * most one part in 1 + element size. */
    uint64_t parts = precision_bytes(options->precision);

    *list = (struct case_list){.seed = options->seed,
                               .max_tables = options->max_tables,
                               .batch = options->batch,
                               .precision = options->precision,
                               .optimizer = options->optimizer,
                               .is_mixed = options->is_mixed,
                               .is_designed = options->is_designed,
                               .work_bytes = options->work_bytes};
    list->weight_bytes = memory_bytes / (parts + 1) * parts;
    if (list->is_mixed) {
        list->precision = PRECISION_FP32;
        list->optimizer = OPTIMIZER_SGD;
        list->weight_bytes = memory_bytes / STATE_PARTS * (STATE_PARTS - 1);
    }
    list->state_bytes = memory_bytes - list->weight_bytes;
}

uint64_t case_list_id(const struct case_list *list)
{
    uint64_t id = mix64(list->weight_bytes);

    id = mix64(id ^ list->max_tables);
    id = mix64(id ^ list->seed);
    if (list->is_mixed) {
        id = mix64(id ^ list->batch);
        id = mix64(id ^ (uint64_t)list->work_bytes);
    }
    if (list->is_designed)
        id = mix64(id);
    return id >> 1;
}

uint64_t case_list_n_cases(const struct case_list *list)
{
    return list->is_designed ? designed_n_cases() : UINT64_MAX;
}

struct case_bounds case_list_bounds(const struct case_list *list)
{
    uint64_t batch = list->batch, max_tables = list->max_tables;

    if (list->is_mixed)
        return mixed_bounds(list);
    return (struct case_bounds){.n_lookups =
                                    batch * (MAX_POOLING_SUM + max_tables),
                                .n_bags = batch * max_tables,
                                .n_outputs = batch * max_tables * MAX_DIM,
                                .dim = MAX_DIM};
}

uint64_t row_bytes(const struct case_table *table, enum precision precision)
{
    return (uint64_t)table->dim * precision_bytes(precision);
}

uint64_t case_table_bytes(const struct case_table *table,
                          enum precision precision)
{
    uint64_t n_bytes = table->stream.n_rows * row_bytes(table, precision);

    return (n_bytes + CASE_ALIGN - 1) / CASE_ALIGN * CASE_ALIGN;
}

void shorten_bags(struct bench_case *out, double part, double whole)
{
    for (uint32_t t = 0; t < out->n_tables; t++) {
        double *pooling = &out->tables[t].stream.pooling_factor;

        if (*pooling > 1)
            *pooling = fmax(1, *pooling * part / whole);
    }
}

void draw_sizes(struct bench_case *out, const struct case_list *list,
                const struct style *style, struct rng *rng)
{
    uint64_t left = list->weight_bytes;
    uint64_t left_states = list->state_bytes;

    for (uint32_t t = 0; t < out->n_tables; t++) {
        struct case_table *table = &out->tables[t];
        uint64_t kept = (out->n_tables - t) * (uint64_t)TABLE_RESERVE_BYTES;
        double max_rows =
            (double)(left - kept) / (double)row_bytes(table, out->precision);

        if (list->is_mixed && out->optimizer != OPTIMIZER_SGD) {
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

/* Long bags are shortened so that the case stays within MAX_POOLING_SUM (and
 * one look-up a table); a case without any look-up gets one a sample. */
static void bound_pooling(struct bench_case *out)
{
    double sum = 0;

    for (uint32_t t = 0; t < out->n_tables; t++)
        sum += out->tables[t].stream.pooling_factor;
    if (sum == 0)
        out->tables[0].stream.pooling_factor = 1;
    if (sum > MAX_POOLING_SUM)
        shorten_bags(out, MAX_POOLING_SUM, sum);
}

/* A case without tables, at the list's setting. */
static void start_case(struct bench_case *out, const struct case_list *list)
{
    memset(out, 0, sizeof(*out));
    out->batch = list->batch;
    out->precision = list->precision;
    out->optimizer = list->optimizer;
}

static void plain_draw(struct bench_case *out, const struct case_list *list,
                       struct rng *rng)
{
    struct style style;

    out->n_tables = 1 + (uint32_t)rng_below(rng, list->max_tables);
    style = draw_style(rng, USUAL_DIM, MAX_DIM);
    for (uint32_t t = 0; t < out->n_tables; t++) {
        struct case_table *table = &out->tables[t];

        table->dim = style.dim ? style.dim : draw_dim(rng, USUAL_DIM, MAX_DIM);
        table->stream.batch = list->batch;
        /* the bend favours short bags */
        table->stream.pooling_factor =
            draw_pooling(rng, &style, SINGLE_FRAC, MAX_POOLING, 1);
        table->stream.table_seed = rng_u64(rng);
    }
    bound_pooling(out);
    draw_sizes(out, list, &style, rng);
}

void case_draw(struct bench_case *out, const struct case_list *list,
               uint64_t case_idx)
{
    struct rng rng;

    start_case(out, list);
    rng_init(&rng, case_list_id(list), case_idx);
    if (list->is_designed)
        designed_draw(out, list, case_idx);
    else if (list->is_mixed)
        mixed_draw(out, list, &rng);
    else
        plain_draw(out, list, &rng);
}

void case_sentinel(struct bench_case *out, const struct case_list *list)
{
    start_case(out, list);
    out->n_tables = 8;
    for (uint32_t t = 0; t < out->n_tables; t++) {
        struct case_table *table = &out->tables[t];

        table->dim = 32;
        table->stream.batch = list->batch;
        table->stream.pooling_factor = 2;
        table->stream.zipf_alpha = DEFAULT_ZIPF_ALPHA;
        table->stream.table_seed = t;
        table->stream.n_rows =
            list->weight_bytes / 16 / row_bytes(table, out->precision);
        if (table->stream.n_rows > 1000000)
            table->stream.n_rows = 1000000;
    }
}

void case_single(struct bench_case *out, const struct bench_case *from,
                 uint32_t t)
{
    *out = *from;
    out->tables[0] = from->tables[t];
    out->n_tables = 1;
}
