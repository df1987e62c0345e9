/* SPDX-License-Identifier: MIT */
#include "microbench/sampler.h"

#include "base/rng.h"
#include "microbench/draws.h"
#include "microbench/sampler_designed.h"

#include <string.h>

uint64_t case_list_id(const struct bench_options *options)
{
    uint64_t id = mix64(case_weight_bytes(options));

    id = mix64(id ^ options->max_tables);
    id = mix64(id ^ options->seed);
    if (options->is_mixed) {
        id = mix64(id ^ options->batch);
        id = mix64(id ^ (uint64_t)options->work_bytes);
    }
    if (options->is_designed)
        id = mix64(id);
    return id >> 1;
}

/* Initializes a case with the setting of the list and without tables. */
static void start_case(struct bench_case *out,
                       const struct bench_options *options)
{
    memset(out, 0, sizeof(*out));
    out->batch = options->batch;
    out->precision = options->is_mixed ? PRECISION_FP32 : options->precision;
    out->optimizer = options->is_mixed ? OPTIMIZER_SGD : options->optimizer;
}

void case_draw(struct bench_case *out, const struct bench_options *options,
               uint64_t case_idx)
{
    struct rng rng;

    start_case(out, options);
    rng_init(&rng, case_list_id(options), case_idx);
    if (options->is_designed)
        designed_draw(out, options, case_idx);
    else if (options->is_mixed)
        draw_mixed(out, options, &rng);
    else
        draw_plain(out, options, &rng);
}

void case_sentinel(struct bench_case *out, const struct bench_options *options)
{
    start_case(out, options);
    out->n_tables = 8;
    for (uint32_t t = 0; t < out->n_tables; t++) {
        struct case_table *table = &out->tables[t];

        table->dim = 32;
        table->stream.batch = options->batch;
        table->stream.pooling_factor = 2;
        table->stream.zipf_alpha = DEFAULT_ZIPF_ALPHA;
        table->stream.table_seed = t;
        table->stream.n_rows =
            min_u64(case_weight_bytes(options) / 16 /
                        case_row_bytes(table, out->precision),
                    1000000);
    }
}

struct sample_setting case_setting(const struct device *device,
                                   const struct bench_case *what)
{
    return device_setting(&device->facts, what->precision, what->optimizer,
                          what->batch);
}

struct sample_setting bench_setting(const struct device *device,
                                    const struct bench_options *options)
{
    struct bench_case sentinel;

    case_sentinel(&sentinel, options);
    return case_setting(device, &sentinel);
}
