/* SPDX-License-Identifier: MIT */
#include "microbench/sampler.h"
#include "tests/tap.h"

#include "base/mem.h"
#include "microbench/bench.h"
#include "microbench/setup.h"

#include <inttypes.h>

/* Measures a mixed list end to end, on the CPU and on a GPU if there is one. */

#define MAX_SAMPLES 200
/* The range of cases includes a held-out case, and one that is preceded by the
 * reference case. */
#define FIRST_CASE 98
#define N_CASES 4

struct kept {
    struct sample_setting setting;
    struct sample sample;
    struct sample_table tables[BENCH_MAX_TABLES];
};

struct memory_sink {
    struct kept kept[MAX_SAMPLES]; /* strings are not copied */
    size_t n;
};

static int same_setting(const struct sample_setting *a,
                        const struct sample_setting *b)
{
    return !strcmp(a->device, b->device) && !strcmp(a->isa, b->isa) &&
           a->n_threads == b->n_threads && a->precision == b->precision &&
           a->optimizer == b->optimizer && a->batch == b->batch;
}

static int keep(void *ctx, const struct sample_setting *setting,
                const struct sample *sample, struct err *err)
{
    struct memory_sink *memory = ctx;
    struct kept *kept = &memory->kept[memory->n];

    if (memory->n == MAX_SAMPLES)
        return err_set(err, ERR_IO, "too many samples");
    kept->setting = *setting;
    kept->sample = *sample;
    memcpy(kept->tables, sample->tables,
           sample->n_tables * sizeof(*sample->tables));
    kept->sample.tables = kept->tables;
    memory->n++;
    return 0;
}

static int is_kept(void *ctx, const struct sample_setting *setting,
                   uint64_t seed, uint64_t case_idx, enum sample_kind kind,
                   uint32_t part)
{
    struct memory_sink *memory = ctx;

    for (size_t i = 0; i < memory->n; i++) {
        const struct sample *sample = &memory->kept[i].sample;

        if (same_setting(&memory->kept[i].setting, setting) &&
            sample->seed == seed && sample->case_idx == case_idx &&
            sample->kind == kind && sample->part == part)
            return 1;
    }
    return 0;
}

static struct bench_options tiny_options(void)
{
    struct bench_options options;

    bench_options_init(&options);
    options.n_cases = N_CASES;
    options.first_case = FIRST_CASE;
    options.seed = 13;
    options.is_mixed = true;
    options.batch = 128;
    options.max_tables = 5;
    options.memory_bytes = BENCH_MIN_MEMORY_BYTES;
    options.work_bytes = 2e6;
    return options;
}

static void run_ok(struct bench_result *result, struct device *device,
                   const struct bench_options *options,
                   struct memory_sink *memory)
{
    struct sample_sink sink = {.ctx = memory, .put = keep, .has = is_kept};
    struct err err = {0};

    if (bench_lookup(result, device, options, &sink, &err)) {
        ok(0, "bench: %s", err.msg);
        exit(1);
    }
}

static int is_ordered(const struct timing *timing)
{
    return timing->median_ms > 0 && timing->p10_ms <= timing->median_ms &&
           timing->median_ms <= timing->p90_ms;
}

/* Returns true if the sample is plausible. The phases of the backward are timed
 * on GPUs only. */
static int is_sound(const struct sample *sample, enum device_kind kind)
{
    int has_phases = is_ordered(&sample->sort) && is_ordered(&sample->update) &&
                     is_ordered(&sample->linearise);
    int no_phases = sample->sort.median_ms == 0 &&
                    sample->linearise.median_ms == 0 &&
                    sample->update.p90_ms == 0;

    return is_ordered(&sample->forward) && is_ordered(&sample->backward) &&
           is_ordered(&sample->total) &&
           sample->n_iterations >= BENCH_MIN_ITERATIONS &&
           (kind == DEVICE_CUDA ? has_phases : no_phases);
}

static int is_case(const struct kept *kept, const struct bench_case *drawn)
{
    int same = kept->setting.batch == drawn->batch &&
               kept->setting.precision == drawn->precision &&
               kept->setting.optimizer == drawn->optimizer &&
               kept->sample.n_tables == drawn->n_tables;

    for (uint32_t t = 0; same && t < drawn->n_tables; t++)
        same = kept->tables[t].n_rows == drawn->tables[t].stream.n_rows &&
               kept->tables[t].dim == drawn->tables[t].dim &&
               kept->tables[t].n_unique <=
                   (double)stream_n_lookups(&drawn->tables[t].stream);
    return same;
}

static void test_run(struct device *device, struct memory_sink *memory)
{
    struct bench_options options = tiny_options();
    size_t n_expected = 1; /* the reference case */
    unsigned precisions = 0, optimizers = 0;
    struct bench_result result;
    struct bench_case drawn;
    int n_bad = 0;

    run_ok(&result, device, &options, memory);
    is_i64((int64_t)result.n_cases, N_CASES, "all cases");
    ok(result.seed == case_list_id(&options), "the list's name");
    for (uint64_t i = FIRST_CASE; i < FIRST_CASE + N_CASES; i++) {
        case_draw(&drawn, &options, i);
        precisions |= 1u << drawn.precision;
        optimizers |= 1u << drawn.optimizer;
        n_expected +=
            1 + (i % 10 == 9 && drawn.n_tables > 1 ? drawn.n_tables : 0);
        for (size_t j = 0; j < memory->n; j++)
            if (memory->kept[j].sample.case_idx == i &&
                memory->kept[j].sample.kind == SAMPLE_FUSED &&
                !is_case(&memory->kept[j], &drawn))
                ok(0, "case %d is not as it was drawn", (int)i);
    }
    ok(precisions == 3 && optimizers == 3, "both precisions and optimizers");
    ok(n_expected > N_CASES + 2, "a held-out case has singles");
    is_i64((int64_t)memory->n, (int64_t)n_expected, "samples");
    is_i64((int64_t)result.n_measured, (int64_t)n_expected, "counted");
    for (size_t i = 0; i < memory->n; i++)
        n_bad += !is_sound(&memory->kept[i].sample, device->kind);
    is_i64(n_bad, 0, "all are sound");
}

static void test_resume(struct device *device, struct memory_sink *memory)
{
    struct bench_options options = tiny_options();
    struct bench_result result;
    size_t n = memory->n;

    run_ok(&result, device, &options, memory);
    ok(result.n_measured == 0 && result.n_resumed == n,
       "a second run measures nothing");
    options.n_cases = 0;
    options.time_limit_s = 0.2;
    run_ok(&result, device, &options, memory);
    ok(result.n_resumed == n && result.n_measured > 0 && result.out_of_time &&
           result.n_cases > N_CASES,
       "without a number it goes on until the time is over");
    is_i64((int64_t)memory->kept[n].sample.case_idx, FIRST_CASE + N_CASES,
           "from where the list was left");
}

static void test_memory(struct device *device)
{
    struct bench_options options = tiny_options();
    struct err err = {0};
    uint64_t reserve_bytes;

    ok(!bench_fit_memory(&options, device, &err) &&
           options.memory_bytes == BENCH_MIN_MEMORY_BYTES,
       "what is given stays");
    options.memory_bytes = 0;
    reserve_bytes = setup_reserve_bytes(&options, device);
    ok(!bench_fit_memory(&options, device, &err), "fits");
    ok(options.memory_bytes + reserve_bytes <= device_free_bytes(device) &&
           (double)options.memory_bytes >
               0.9 * (double)(device_free_bytes(device) - reserve_bytes),
       "nearly all that is free");
    ok(!(options.memory_bytes & ((1 << 20) - 1)), "in whole steps");

    options.memory_bytes = 0;
    options.batch = 16777216;
    options.max_tables = 64;
    ok(bench_fit_memory(&options, device, &err) == -1, "too little memory");
    is_i64(err.code, ERR_DEVICE, "code");
    ok(strstr(err.msg, "cases of batch 16777216 may need") != NULL,
       "message: %s", err.msg);
}

static void test_device(enum device_kind kind)
{
    struct memory_sink *memory = mem_alloc(1, sizeof(*memory));
    struct device *device;
    struct err err = {0};

    if (device_open(&device, kind, 0, 2, &err)) {
        ok(0, "device: %s", err.msg);
    } else {
        test_run(device, memory);
        test_resume(device, memory);
        test_memory(device);
        device_close(device);
    }
    mem_free(memory);
}

int main(void)
{
    test_device(DEVICE_CPU);
    if (device_count(DEVICE_CUDA))
        test_device(DEVICE_CUDA);
    else
        tap_skip("the same on a GPU", "no CUDA device");
    return tap_done();
}
