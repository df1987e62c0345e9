/* SPDX-License-Identifier: MIT */
#include "microbench/sampler.h"
#include "tests/tap.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/mem.h"
#include "device/comm.h"
#include "microbench/alltoall_case.h"
#include "microbench/bench.h"
#include "microbench/setup.h"

#include <signal.h>
#include <time.h>

#define MAX_SAMPLES 200

/* Time that pauses would have taken. While other tests run, the interference
 * probe waits in vain for a quiet machine. The clock advances by this time
 * instead of waiting. */
static double paused_ms;

double clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6 + paused_ms;
}

const char *clock_utc(char buf[CLOCK_TEXT_MAX])
{
    snprintf(buf, CLOCK_TEXT_MAX, "2026-11-22T09:00:00Z");
    return buf;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    paused_ms += (double)time->tv_sec * 1e3 + (double)time->tv_nsec * 1e-6;
    return 0;
}

/* A sample sink in memory. */
struct fake {
    struct sample samples[MAX_SAMPLES]; /* strings are not copied */
    struct sample_table tables[MAX_SAMPLES][BENCH_MAX_TABLES];
    struct comm_sample comm[MAX_SAMPLES];
    size_t n, n_comm;
    size_t fail_at; /* number of the sample that fails to be stored; 0: none */
    /* number of the sample at which SIGINT is raised; 0: none */
    size_t interrupt_at;
    double interference_probe_ms;
};

static int fake_put(void *ctx, const struct sample_setting *setting,
                    const struct sample *sample, struct err *err)
{
    struct fake *fake = ctx;

    if (fake->n + 1 == fake->fail_at)
        return err_set(err, ERR_IO, "the sink is full");
    if (fake->n == MAX_SAMPLES || setting->batch != 64)
        return err_set(err, ERR_IO, "unexpected");
    memcpy(fake->tables[fake->n], sample->tables,
           sample->n_tables * sizeof(*sample->tables));
    fake->samples[fake->n] = *sample;
    fake->samples[fake->n].tables = fake->tables[fake->n];
    fake->n++;
    if (fake->n == fake->interrupt_at)
        raise(SIGINT);
    return 0;
}

static int fake_put_comm(void *ctx, const struct sample_setting *setting,
                         const struct comm_sample *sample, struct err *err)
{
    struct fake *fake = ctx;

    (void)setting;
    if (fake->n_comm == MAX_SAMPLES)
        return err_set(err, ERR_IO, "unexpected");
    fake->comm[fake->n_comm++] = *sample;
    return 0;
}

static const struct sample *find(const struct fake *fake, uint64_t case_idx,
                                 enum sample_kind kind, uint32_t part)
{
    for (size_t i = 0; i < fake->n; i++) {
        const struct sample *sample = &fake->samples[i];

        if (sample->case_idx == case_idx && sample->kind == kind &&
            sample->part == part)
            return sample;
    }
    return NULL;
}

static int fake_has(void *ctx, const struct sample_setting *setting,
                    uint64_t seed, uint64_t case_idx, enum sample_kind kind,
                    uint32_t part)
{
    const struct sample *sample = find(ctx, case_idx, kind, part);

    (void)setting;
    return sample && sample->seed == seed;
}

static int fake_find_probe(void *ctx, const struct sample_setting *setting,
                           double *best_ms, struct err *err)
{
    const struct fake *fake = ctx;

    (void)setting, (void)err;
    *best_ms = fake->interference_probe_ms;
    return 0;
}

static int fake_put_probe(void *ctx, const struct sample_setting *setting,
                          double best_ms, struct err *err)
{
    struct fake *fake = ctx;

    if (setting->batch != 64 || (fake->interference_probe_ms > 0 &&
                                 best_ms >= fake->interference_probe_ms))
        return err_set(err, ERR_IO, "unexpected");
    fake->interference_probe_ms = best_ms;
    return 0;
}

static struct sample_sink sink_of(struct fake *fake)
{
    return (struct sample_sink){.ctx = fake,
                                .put = fake_put,
                                .put_comm = fake_put_comm,
                                .has = fake_has};
}

static struct bench_options small_options(void)
{
    struct bench_options options;

    bench_options_init(&options);
    options.n_cases = 20;
    options.batch = 64;
    options.max_tables = 4;
    options.memory_bytes = (uint64_t)24 << 20;
    options.seed = 3;
    return options;
}

static int is_timing(const struct timing *timing)
{
    return timing->p10_ms >= 0 && timing->p10_ms <= timing->median_ms &&
           timing->median_ms <= timing->p90_ms && timing->p90_ms < 1e4;
}

/* Returns true if the sample is plausible, whatever was measured. */
static int is_sound(const struct sample *sample)
{
    for (uint32_t t = 0; t < sample->n_tables; t++) {
        const struct sample_table *table = &sample->tables[t];
        double n_lookups = table->pooling_factor * 64, shares = 0;

        for (int k = 0; k < REUSE_BINS; k++)
            shares += table->bins[k];
        if (table->n_unique > n_lookups ||
            table->n_unique > (double)table->n_rows ||
            fabs(shares - (n_lookups > 0)) > 1e-9 ||
            n_lookups != floor(n_lookups))
            return 0;
    }
    return sample->n_iterations >= BENCH_MIN_ITERATIONS &&
           sample->n_iterations <= BENCH_MAX_ITERATIONS &&
           is_timing(&sample->forward) && is_timing(&sample->backward) &&
           is_timing(&sample->total) && sample->total.median_ms > 0 &&
           sample->total.p90_ms >= sample->forward.p10_ms;
}

static int has_tables_of(const struct sample *sample,
                         const struct bench_case *drawn)
{
    if (sample->n_tables != drawn->n_tables)
        return 0;
    for (uint32_t t = 0; t < drawn->n_tables; t++) {
        const struct sample_table *table = &sample->tables[t];
        const struct case_table *want = &drawn->tables[t];

        if (table->n_rows != want->stream.n_rows || table->dim != want->dim ||
            fabs(table->pooling_factor - want->stream.pooling_factor) >
                0.5 / 64 + 1e-12 ||
            (want->stream.use_bins
                 ? !isnan(table->zipf_alpha)
                 : table->zipf_alpha != want->stream.zipf_alpha))
            return 0;
    }
    return 1;
}

static int same_bins(const struct sample_table *a, const struct sample_table *b)
{
    int same = a->n_unique == b->n_unique;

    for (int k = 0; k < REUSE_BINS; k++)
        same &= a->bins[k] == b->bins[k];
    return same;
}

static void run_ok(struct bench_result *result, struct device *device,
                   const struct bench_options *options, struct fake *fake)
{
    struct sample_sink sink = sink_of(fake);
    struct err err = {0};

    if (bench_lookup(result, device, options, &sink, &err)) {
        ok(0, "bench: %s", err.msg);
        exit(1);
    }
}

static void test_run(struct device *device, struct fake *fake)
{
    struct bench_options options = small_options();
    struct bench_result result;
    struct bench_case drawn;
    size_t n_expected = 1; /* the reference case */
    int n_unsound = 0, n_singles = 0;

    run_ok(&result, device, &options, fake);
    ok(find(fake, 0, SAMPLE_SENTINEL, 0) != NULL, "a sentinel");
    for (uint64_t i = 0; i < options.n_cases; i++) {
        const struct sample *fused = find(fake, i, SAMPLE_FUSED, 0);

        case_draw(&drawn, &options, i);
        n_expected++;
        ok(fused && has_tables_of(fused, &drawn), "case %d", (int)i);
        for (uint32_t t = 0; t < drawn.n_tables; t++) {
            const struct sample *single = find(fake, i, SAMPLE_SINGLE, 1 + t);

            if (i % 10 != 9 || drawn.n_tables == 1) {
                if (single)
                    ok(0, "case %d is not held out", (int)i);
                continue;
            }
            n_expected++;
            n_singles++;
            ok(single && single->n_tables == 1 &&
                   same_bins(&single->tables[0], &fused->tables[t]),
               "table %d of it alone, with the same look-ups", (int)t);
        }
    }
    ok(n_singles > 1, "the list has held-out cases of several tables");
    is_i64((int64_t)fake->n, (int64_t)n_expected, "nothing else");
    is_i64((int64_t)result.n_measured, (int64_t)n_expected, "measured");
    ok(result.n_cases == 20 && !result.n_resumed && !result.interrupted &&
           !result.out_of_time && result.seed == case_list_id(&options),
       "result");
    for (size_t i = 0; i < fake->n; i++)
        n_unsound += !is_sound(&fake->samples[i]);
    is_i64(n_unsound, 0, "all samples are sound");
}

static void test_resume(struct device *device, struct fake *fake)
{
    struct bench_options options = small_options();
    struct sample taken = fake->samples[7];
    struct bench_result result;
    size_t n = fake->n;

    run_ok(&result, device, &options, fake);
    is_i64((int64_t)result.n_measured, 0, "a second run measures nothing");
    is_i64((int64_t)result.n_resumed, (int64_t)n, "all is there");
    fake->samples[7].case_idx = 1000000;
    run_ok(&result, device, &options, fake);
    is_i64((int64_t)result.n_measured, 1, "missing samples are measured");
    ok(fake->samples[n].case_idx == taken.case_idx &&
           fake->samples[n].kind == taken.kind &&
           fake->samples[n].part == taken.part,
       "and that only");

    options.repeat = true;
    options.n_cases = 5;
    n = fake->n;
    run_ok(&result, device, &options, fake);
    is_i64((int64_t)result.n_measured, 5, "repeated");
    for (size_t i = n; i < fake->n; i++) {
        const struct sample *again = &fake->samples[i];
        const struct sample *fused =
            find(fake, again->case_idx, SAMPLE_FUSED, 0);

        ok(again->kind == SAMPLE_REPEAT && fused &&
               again->n_tables == fused->n_tables &&
               again->tables[0].n_unique == fused->tables[0].n_unique,
           "the same case again");
    }
}

static void test_formats(struct device *device, struct fake *fake)
{
    struct bench_options options = small_options();
    struct bench_result result;

    options.n_cases = 3;
    options.first_case = 40;
    options.precision = PRECISION_FP16;
    options.optimizer = OPTIMIZER_SGD;
    run_ok(&result, device, &options, fake);
    ok(result.n_measured == 3 && is_sound(&fake->samples[fake->n - 1]),
       "fp16 and sgd");
    is_i64((int64_t)fake->samples[fake->n - 1].case_idx, 42, "first_case");

    options.first_case = 50;
    options.n_cases = 1000;
    options.time_limit_s = 1e-6;
    run_ok(&result, device, &options, fake);
    ok(result.n_cases == 1 && result.out_of_time, "the time limit ends it");
}

/* The sink keeps the interference probe's best time. Then a stored time that
 * can never be reached makes the machine look busy. */
static void test_canary(struct device *device, struct fake *fake)
{
    struct bench_options options = small_options();
    struct sample_sink sink = sink_of(fake);
    struct bench_result result;
    struct err err = {0};

    sink.find_interference_probe = fake_find_probe;
    sink.put_interference_probe = fake_put_probe;
    options.first_case = 60;
    options.n_cases = 1;
    ok(!bench_lookup(&result, device, &options, &sink, &err) &&
           fake->interference_probe_ms > 0,
       "the sink learns of the canary: %g ms %s", fake->interference_probe_ms,
       err.msg);
    fake->interference_probe_ms = 1e-9;
    options.first_case = 61;
    ok(!bench_lookup(&result, device, &options, &sink, &err) &&
           result.n_measured == 1 && result.n_flagged == 1 &&
           (fake->samples[fake->n - 1].flags & SAMPLE_THROTTLED),
       "a machine that is busy from the start: the first sample is flagged %s",
       err.msg);
    ok(fake->interference_probe_ms == 1e-9, "the best time of the probe stays");
}

static void test_refused(void)
{
    struct bench_options options = small_options();
    struct err err = {0};

    ok(!bench_check_options(&options, &err), "these are fine");
    options.memory_bytes = 1 << 20;
    ok(bench_check_options(&options, &err) && err.code == ERR_USAGE,
       "too little memory is refused");
    is_str(err.msg, "the memory for tables must be at least 16 MiB", "message");
}

static void test_sink_fails(struct device *device, struct fake *fake)
{
    struct bench_options options = small_options();
    struct sample_sink sink = sink_of(fake);
    struct bench_result result;
    struct err err = {0};

    fake->fail_at = 4;
    ok(bench_lookup(&result, device, &options, &sink, &err) == -1,
       "a sink that fails ends the run");
    is_str(err.msg, "the sink is full", "message");
    is_i64((int64_t)fake->n, 3, "samples stored before stay");
}

static void test_exchange(struct device *device, struct fake *fake)
{
    struct bench_options options = small_options();
    struct sample_sink sink = sink_of(fake);
    struct bench_result result;
    struct err err = {0};
    uint64_t smallest = UINT64_MAX, largest = 0;
    struct world *world;
    struct comm *comm;
    int n_bad = 0;

    options.n_cases = 40;
    if (world_open(&world, &err) || comm_open(&comm, world, device, 4, &err)) {
        ok(0, "comm: %s", err.msg);
        exit(1);
    }
    ok(!bench_alltoall(&result, comm, &options, &sink, &err), "runs");
    comm_close(comm);
    is_i64((int64_t)fake->n_comm, 40, "a sample a pattern");
    for (size_t i = 0; i < fake->n_comm; i++) {
        const struct comm_sample *sample = &fake->comm[i];

        n_bad += strcmp(sample->kind, "copy") != 0 || sample->n_ranks != 4 ||
                 sample->n_iterations < BENCH_MIN_ITERATIONS ||
                 !is_timing(&sample->time) || sample->time.median_ms <= 0 ||
                 sample->n_hosts != 1 ||
                 sample->max_bytes * 4 < sample->total_bytes ||
                 sample->max_bytes > sample->total_bytes;
        if (sample->total_bytes < smallest)
            smallest = sample->total_bytes;
        if (sample->total_bytes > largest)
            largest = sample->total_bytes;
    }
    is_i64(n_bad, 0, "all are sound");
    ok(largest > 50 * smallest, "from small to large");
    world_close(world);
}

/* Runs last, as an interrupt cannot be undone. */
static void test_interrupt(struct device *device, struct fake *fake)
{
    struct bench_options options = small_options();
    struct bench_result result;

    interrupt_install();
    fake->interrupt_at = 5;
    run_ok(&result, device, &options, fake);
    ok(result.interrupted, "an interrupt ends the run");
    is_i64((int64_t)result.n_measured, 5, "samples measured before are kept");
    is_i64((int64_t)fake->n, 5, "and nothing more is");
}

int main(void)
{
    struct fake *fake = mem_alloc(1, sizeof(*fake));
    struct device *device;
    struct err err = {0};

    if (device_open(&device, DEVICE_CPU, 0, 2, &err)) {
        ok(0, "device: %s", err.msg);
        return tap_done();
    }
    test_run(device, fake);
    test_resume(device, fake);
    test_formats(device, fake);
    test_canary(device, fake);
    test_refused();
    memset(fake, 0, sizeof(*fake));
    test_sink_fails(device, fake);
    test_exchange(device, fake);
    memset(fake, 0, sizeof(*fake));
    test_interrupt(device, fake);
    device_close(device);
    mem_free(fake);
    return tap_done();
}
