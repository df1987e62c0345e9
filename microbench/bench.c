/* SPDX-License-Identifier: MIT */
#include "microbench/bench.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/rng.h"
#include "base/text.h"
#include "microbench/sampler.h"
#include "microbench/sampler_designed.h"
#include "microbench/setup.h"

#include <inttypes.h>
#include <math.h>

/* Rounds a size down by at most a sixteenth, to a value that is the same for
 * similar sizes. */
static uint64_t round_down(uint64_t n_bytes)
{
    uint64_t step = 1;

    while (n_bytes / step >= 32)
        step *= 2;
    return n_bytes / step * step;
}

int bench_fit_memory(struct bench_options *options, const struct device *device,
                     struct err *err)
{
    char free_text[TEXT_BYTES_MAX], reserve_text[TEXT_BYTES_MAX];
    uint64_t free_bytes, reserve_bytes;

    if (options->memory_bytes)
        return 0;
    free_bytes = device_free_bytes(device);
    reserve_bytes = setup_reserve_bytes(options, device);
    if (free_bytes < reserve_bytes + BENCH_MIN_MEMORY_BYTES)
        return err_set(
            err, ERR_DEVICE,
            "device '%s' has %s of free memory, but cases of batch %" PRIu32
            " may need %s besides their tables: use a smaller batch, or limit "
            "the tables with '--memory'",
            device->facts.name, text_from_bytes(free_text, (double)free_bytes),
            options->batch,
            text_from_bytes(reserve_text, (double)reserve_bytes));
    options->memory_bytes = round_down(free_bytes - reserve_bytes);
    return 0;
}

struct bench {
    struct device *device;
    const struct bench_options *options;
    struct sample_sink *sink;
    struct bench_result *result;
    double begin_ms; /* start of the run, on clock_ms() */
    /* Bench setup and interference probe. They are opened when the first case
     * has to be measured, because it is not in the sink yet. */
    struct bench_setup *setup;
    struct interference_probe *interference;
};

/* Constants of the warm-up. Everything is slower for some seconds after memory
 * was allocated (the system still arranges its pages), and an idle GPU takes
 * half a second to raise its clocks. So the reference case runs, without being
 * recorded, until SETTLE_RUNS runs in a row have not beaten the best time by
 * the fraction SETTLE_GAIN. The warm-up takes at most the share SETTLE_FRAC of
 * a time limit. */
#define SETTLE_RUNS 5
#define SETTLE_GAIN 0.02
#define SETTLE_CUDA_MS 500.0
#define SETTLE_MAX_MS 10000.0
#define SETTLE_FRAC 0.1

static int settle(struct bench *bench, struct err *err)
{
    struct sample_table tables[BENCH_MAX_TABLES];
    struct sample sample = {.tables = tables};
    struct bench_case sentinel;
    double begin_ms = clock_ms(), best_ms = INFINITY, ms = 0;
    const double limit_ms = 1e3 * bench->options->time_limit_s;
    const double most_ms = limit_ms > 0
                               ? fmin(SETTLE_FRAC * limit_ms, SETTLE_MAX_MS)
                               : SETTLE_MAX_MS;
    double least_ms = device_is_host(bench->device) ? 0 : SETTLE_CUDA_MS;
    unsigned n_since_best = 0;

    case_sentinel(&sentinel, bench->options);
    for (uint64_t i = 0; (n_since_best < SETTLE_RUNS || ms < least_ms) &&
                         ms < most_ms && !interrupt_requested();
         i++) {
        if (setup_measure(bench->setup, bench->interference, &sample, &sentinel,
                          i, err))
            return -1;
        n_since_best++;
        if (sample.total.median_ms < (1 - SETTLE_GAIN) * best_ms) {
            best_ms = sample.total.median_ms;
            n_since_best = 0;
        }
        ms = clock_ms() - begin_ms;
    }
    return 0;
}

static int open_setup(struct bench *bench, const struct sample_setting *setting,
                      struct err *err)
{
    if (setup_open(&bench->setup, bench->device, bench->options, err) ||
        interference_probe_open(&bench->interference, bench->device, err) ||
        interference_probe_learn(bench->interference, bench->sink, setting,
                                 err))
        return -1;
    interference_probe_limit(bench->interference,
                             bench_end_ms(bench->options, bench->begin_ms));
    return settle(bench, err);
}

/* Measures the case `what`. Does nothing if the sink already has its sample,
 * the time limit has passed, or the user wants to stop. */
static int measure(struct bench *bench, const struct bench_case *what,
                   enum sample_kind kind, uint64_t case_idx, uint32_t part,
                   struct err *err)
{
    struct sample_table tables[BENCH_MAX_TABLES];
    struct sample sample = {.kind = kind,
                            .seed = bench->result->seed,
                            .case_idx = case_idx,
                            .part = part,
                            .tables = tables,
                            .version = NEUROSHARD_VERSION};
    struct sample_setting setting = case_setting(bench->device, what);
    struct sample_sink *sink = bench->sink;
    uint64_t stream_seed = mix64(sample.seed + case_idx);

    bench->result->interrupted |= interrupt_requested();
    if (bench->result->interrupted || bench->result->out_of_time)
        return 0;
    if (sink->has(sink->ctx, &setting, sample.seed, case_idx, kind, part)) {
        bench->result->n_resumed++;
        return 0;
    }
    bench->result->out_of_time = bench->result->n_measured &&
                                 bench_is_late(bench->options, bench->begin_ms);
    if (bench->result->out_of_time)
        return 0;
    if (!bench->setup && open_setup(bench, &setting, err))
        return -1;
    if (setup_measure(bench->setup, bench->interference, &sample, what,
                      stream_seed, err))
        return err_prefix(err, "case %" PRIu64, case_idx);
    if (interference_probe_teach(bench->interference, sink, &setting, err) ||
        sample_sink_put(sink, &setting, &sample, err))
        return -1;
    bench->result->n_measured++;
    bench->result->n_flagged += (sample.flags & SAMPLE_THROTTLED) != 0;
    return 0;
}

static int measure_case(struct bench *bench, const struct bench_case *fused,
                        uint64_t case_idx, struct err *err)
{
    struct bench_case other;

    if (bench->options->repeat)
        return measure(bench, fused, SAMPLE_REPEAT, case_idx, 0, err);
    if (case_idx % BENCH_SENTINEL == 0) {
        case_sentinel(&other, bench->options);
        if (measure(bench, &other, SAMPLE_SENTINEL, case_idx / BENCH_SENTINEL,
                    0, err))
            return -1;
    }
    if (measure(bench, fused, SAMPLE_FUSED, case_idx, 0, err))
        return -1;
    if (case_idx % BENCH_HELD_OUT != BENCH_HELD_OUT - 1 ||
        fused->n_tables == 1 || bench->options->is_designed ||
        (bench->options->is_mixed && fused->n_tables > BENCH_MAX_SINGLES))
        return 0;
    other = *fused;
    other.n_tables = 1;
    for (uint32_t t = 0; t < fused->n_tables; t++) {
        other.tables[0] = fused->tables[t];
        if (measure(bench, &other, SAMPLE_SINGLE, case_idx, 1 + t, err))
            return -1;
    }
    return 0;
}

/* Measures a case, unless another process is measuring it. The process first
 * claims the case and then looks for it in the sink. So it finds a sample that
 * another process stored, and no case is measured twice. */
static int run_case(struct bench *bench, uint64_t case_idx, struct err *err)
{
    const struct sample_sink *sink = bench->sink;
    struct sample_setting setting;
    struct bench_case fused;
    struct lock lock = {0};
    int rc;

    case_draw(&fused, bench->options, case_idx);
    setting = case_setting(bench->device, &fused);
    if (sink->claim && sink->claim(sink->ctx, &setting, bench->result->seed,
                                   case_idx, &lock, err))
        return -1;
    if (sink->claim && !lock.path) {
        bench->result->n_left++;
        return 0;
    }
    rc = measure_case(bench, &fused, case_idx, err);
    lock_release(&lock);
    return rc;
}

static int run_cases(struct bench *bench, struct err *err)
{
    const struct bench_options *options = bench->options;
    struct bench_result *result = bench->result;
    uint64_t n_wanted = options->is_designed ? designed_n_cases() : UINT64_MAX;

    n_wanted -= min_u64(options->first_case, n_wanted);
    if (options->n_cases)
        n_wanted = min_u64(options->n_cases, n_wanted);
    while (result->n_cases < n_wanted && !result->out_of_time) {
        if (run_case(bench, options->first_case + result->n_cases, err))
            return -1;
        if (result->interrupted || result->out_of_time)
            return 0;
        progress_update(options->progress, ++result->n_cases);
        result->out_of_time = bench_is_late(options, bench->begin_ms) &&
                              result->n_cases < n_wanted;
    }
    return 0;
}

int bench_lookup(struct bench_result *result, struct device *device,
                 const struct bench_options *options, struct sample_sink *sink,
                 struct err *err)
{
    struct bench bench = {.device = device,
                          .options = options,
                          .sink = sink,
                          .result = result,
                          .begin_ms = clock_ms()};
    int rc;

    *result = (struct bench_result){0};
    result->seed = case_list_id(options);
    rc = run_cases(&bench, err);
    setup_close(bench.setup);
    interference_probe_close(bench.interference);
    return rc;
}
