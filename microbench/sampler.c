/* SPDX-License-Identifier: MIT */
#include "microbench/sampler.h"

#include "microbench/draws.h"

#include <string.h>

/* A look-up's way through linearise, sort and runs, beside its rows. */
#define LOOKUP_WORK_BYTES 100
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

uint64_t case_row_bytes(const struct case_table *table,
                        enum precision precision)
{
    return (uint64_t)table->dim * precision_bytes(precision);
}

uint64_t case_table_bytes(const struct case_table *table,
                          enum precision precision)
{
    uint64_t n_bytes = table->stream.n_rows * case_row_bytes(table, precision);

    return (n_bytes + CASE_ALIGN - 1) / CASE_ALIGN * CASE_ALIGN;
}

/* The forward reads a row, the update reads and writes it and reads a
 * gradient; outputs are written and gradients read once. */
double case_work(const struct bench_case *drawn)
{
    double work = 0;

    for (uint32_t t = 0; t < drawn->n_tables; t++) {
        const struct case_table *table = &drawn->tables[t];
        double row = (double)case_row_bytes(table, drawn->precision);
        double gradient = (double)table->dim * sizeof(float);
        double lookup = 3 * row + gradient + LOOKUP_WORK_BYTES;

        work += table->stream.batch *
                (table->stream.pooling_factor * lookup + 2 * gradient);
    }
    return work;
}

/* A case without tables, at the list's setting. */
static void start_case(struct bench_case *out, const struct case_list *list)
{
    memset(out, 0, sizeof(*out));
    out->batch = list->batch;
    out->precision = list->precision;
    out->optimizer = list->optimizer;
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
        draw_mixed(out, list, &rng);
    else
        draw_plain(out, list, &rng);
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
        table->stream.n_rows = min_u64(
            list->weight_bytes / 16 / case_row_bytes(table, out->precision),
            1000000);
    }
}

void case_single(struct bench_case *out, const struct bench_case *from,
                 uint32_t t)
{
    *out = *from;
    out->tables[0] = from->tables[t];
    out->n_tables = 1;
}
