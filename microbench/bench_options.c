/* SPDX-License-Identifier: MIT */
#include "microbench/bench_options.h"

#include "base/clock.h"
#include "base/host_device.h"
#include "base/text.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#define MAX_EXCHANGE_BYTES ((uint64_t)1 << 30)

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

double bench_end_ms(const struct bench_options *options, double begin_ms)
{
    return options->time_limit_s > 0 ? begin_ms + options->time_limit_s * 1e3
                                     : INFINITY;
}

bool bench_is_late(const struct bench_options *options, double begin_ms)
{
    return clock_ms() > bench_end_ms(options, begin_ms);
}

uint64_t bench_max_exchange(const struct bench_options *options)
{
    const uint64_t room =
        min_u64(options->memory_bytes / 2, MAX_EXCHANGE_BYTES);

    return options->max_bytes ? min_u64(room, options->max_bytes) : room;
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
    if (options->min_bytes > bench_max_exchange(options))
        return err_usage(err,
                         "no exchange has at least %s: half of the memory and "
                         "the largest size allow %s",
                         TEXT_BYTES(options->min_bytes),
                         TEXT_BYTES(bench_max_exchange(options)));
    return 0;
}
