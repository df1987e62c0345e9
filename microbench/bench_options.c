/* SPDX-License-Identifier: MIT */
#include "microbench/bench_options.h"

#include "base/clock.h"

#include <assert.h>
#include <inttypes.h>

void bench_options_init(struct bench_options *options)
{
    *options = (struct bench_options){
        .n_cases = 1000,
        .batch = 4096,
        .precision = PRECISION_FP32,
        .optimizer = OPTIMIZER_ROWWISE_ADAGRAD,
        .max_tables = 15,
        .work_bytes = BENCH_CPU_WORK_BYTES,
        .memory_bytes = (uint64_t)4 << 30,
    };
}

bool bench_is_late(const struct bench_options *options, double begin_ms)
{
    return options->time_limit_s > 0 &&
           clock_ms() - begin_ms > options->time_limit_s * 1e3;
}

int bench_check_options(const struct bench_options *options, struct err *err)
{
    assert(options->batch && options->max_tables &&
           options->max_tables <= BENCH_MAX_TABLES);
    assert(options->precision == PRECISION_FP32 ||
           options->precision == PRECISION_FP16);
    assert(options->optimizer == OPTIMIZER_SGD ||
           options->optimizer == OPTIMIZER_ROWWISE_ADAGRAD);
    assert(options->n_cases || options->time_limit_s > 0 ||
           options->is_designed);
    assert(!options->is_mixed || options->work_bytes > 0);
    if (options->memory_bytes < BENCH_MIN_MEMORY_BYTES)
        return err_usage(
            err, "the memory for tables must be at least %" PRIu64 " MiB",
            BENCH_MIN_MEMORY_BYTES >> 20);
    return 0;
}
