/* SPDX-License-Identifier: MIT */
/* Tests which calls a bench setup makes on its device: the memory that it
 * takes, one repetition on a GPU and on a CPU, and the figures of the
 * sample. */
#include "tests/unit/device/recorded_device.h"

#include "base/clock.h"
#include "microbench/bench_case.h"
#include "microbench/bench_options.h"
#include "microbench/setup.h"
#include "tests/tap.h"

#include <math.h>

static const double times[] = {1};

/* Two tables: 100 rows by 8 and 50 rows by 16. */
static const struct bench_case usual = {
    .batch = 4,
    .tables =
        {{{.n_rows = 100, .batch = 4, .pooling_factor = 2.5}, 8},
         {{.n_rows = 50, .batch = 4, .pooling_factor = 1, .zipf_alpha = 1.5},
          16}},
    .n_tables = 2,
};

static struct bench_setup *open_setup(struct recorded *own,
                                      enum device_kind kind,
                                      const struct bench_options *options)
{
    struct bench_setup *setup = NULL;
    struct err err = {0};

    recorded_init(own, kind, times, 1);
    if (setup_open(&setup, &own->device, options, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    return setup;
}

/* Tests which weights and optimizer states are allocated, and how a mixed list
 * differs. */
static void test_memory(void)
{
    static const struct {
        bool is_mixed;
        enum optimizer optimizer;
        enum precision precision, filled;
        const char *calls;
        bool has_rate;
    } CASES[] = {
        {false, OPTIMIZER_SGD, PRECISION_FP32, PRECISION_FP32, "aF", true},
        {false, OPTIMIZER_SGD, PRECISION_FP16, PRECISION_FP16, "aF", true},
        {false, OPTIMIZER_ROWWISE_ADAGRAD, PRECISION_FP32, PRECISION_FP32,
         "aFat", true},
        {true, OPTIMIZER_SGD, PRECISION_FP32, PRECISION_FP16, "aFat", false},
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
        struct bench_options options;
        struct sample_table tables[2];
        struct sample sample = {.tables = tables};
        struct recorded own;
        struct bench_setup *setup;
        struct err err = {0};

        bench_options_init(&options);
        options.memory_bytes = BENCH_MIN_MEMORY_BYTES;
        options.is_mixed = CASES[i].is_mixed;
        options.optimizer = CASES[i].optimizer;
        options.precision = CASES[i].precision;
        setup = open_setup(&own, DEVICE_CUDA, &options);
        own.calls[own.n_calls = strcspn(own.calls, "c")] = '\0';
        ok(asked(&own, CASES[i].calls), "opened: case %zu", i);
        ok(own.fill.precision == CASES[i].filled &&
               own.fill.n_rows * precision_bytes(CASES[i].filled) ==
                   case_weight_bytes(&options),
           "all weights are filled");
        if (CASES[i].calls[2])
            ok(own.n_bytes == case_state_bytes(&options) +
                                  BENCH_MAX_TABLES * CASE_ALIGN &&
                   *(float *)(void *)own.block == 0.01F,
               "states begin above 0");
        ok(!setup_measure(setup, NULL, &sample, &usual, 7, &err) &&
               (CASES[i].has_rate ? own.rate > 0 && own.rate <= 1e-6F
                                  : own.rate == 0),
           "the rate of an update: %g", (double)own.rate);
        setup_close(setup);
        recorded_release(&own);
    }
}

/*
 * Memory of a list's largest case without its tables, for each sample of the
 * batch. A plain list has 256 look-ups and one more for each table, and 256
 * columns a table. A mixed list has 512 look-ups and one more for each table,
 * and 512 columns a table, but at most 8192.
 *
 * A look-up takes 4 bytes in each set of ids, 24 to be drawn, and 24 on a GPU
 * or 16 on a CPU to be sorted. A GPU has 4 sets, a CPU 16. Partial sums take 4
 * bytes a column of the widest table, once for 32 look-ups on a GPU and once
 * for 2048 on a CPU. A table takes 8 bytes in each set. A column takes 4 bytes
 * of output and 4 of gradient.
 */
static void test_reserve(void)
{
    static const struct {
        enum device_kind kind;
        bool is_mixed;
        uint32_t max_tables;
        double lookups, lookup_bytes, table_bytes, columns;
        uint64_t n_sets;
    } CASES[] = {
        {DEVICE_CUDA, false, 5, 261, 16 + 24 + 24 + 32, 32, 1280, 4},
        {DEVICE_CUDA, false, 10, 266, 16 + 24 + 24 + 32, 32, 2560, 4},
        {DEVICE_CUDA, true, 5, 517, 16 + 24 + 24 + 64, 32, 2560, 4},
        {DEVICE_CUDA, true, 64, 576, 16 + 24 + 24 + 64, 32, 8192, 4},
        {DEVICE_CPU, false, 5, 261, 64 + 24 + 16 + 0.5, 128, 1280, 16},
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
        const double sample_bytes = CASES[i].lookups * CASES[i].lookup_bytes +
                                    CASES[i].max_tables * CASES[i].table_bytes +
                                    8 * CASES[i].columns;
        struct bench_options options;
        struct recorded own;

        recorded_init(&own, CASES[i].kind, times, 1);
        bench_options_init(&options);
        options.is_mixed = CASES[i].is_mixed;
        options.max_tables = CASES[i].max_tables;
        options.batch = 1024;
        /* 60 MiB for the canary, 512 MiB to spare, the end of each set */
        is_i64((int64_t)setup_reserve_bytes(&options, &own.device),
               (int64_t)(1024 * sample_bytes) + (572 << 20) +
                   8 * (int64_t)CASES[i].n_sets,
               "memory of the largest case");
        recorded_release(&own);
    }
}

/* Bytes from the first of two places to the second, below 0 if it lies behind.
 */
static double apart(const void *first, const void *second)
{
    return (double)((intptr_t)second - (intptr_t)first);
}

/* Tables lie anywhere in the block of weights, their states anywhere in theirs.
 * Each order is drawn in half of 400 cases: 10 is the deviation of that number.
 * Two places are a third of their block apart on average, with a deviation of
 * 1.2 % of the block. A table takes 3200 bytes, so 7 times 512, and its states
 * 512. */
static void test_places(void)
{
    enum { N = 400 };
    double weights = 0, states = 0;
    unsigned n_first = 0, n_state_first = 0, n_wrong = 0;
    struct bench_options options;
    struct sample_table tables[2];
    struct sample sample = {.tables = tables};
    struct bench_case what = usual;
    struct recorded own;
    struct err err = {0};
    struct bench_setup *setup;

    what.optimizer = OPTIMIZER_ROWWISE_ADAGRAD;
    bench_options_init(&options);
    options.memory_bytes = BENCH_MIN_MEMORY_BYTES;
    setup = open_setup(&own, DEVICE_CUDA, &options);
    for (unsigned i = 0; i < N; i++) {
        const struct lookup_table *of = own.tables;
        double weight, state;

        own.n_forward = own.n_phases = 0;
        n_wrong += setup_measure(setup, NULL, &sample, &what, i, &err) != 0;
        weight = apart(of[0].d_weight, of[1].d_weight);
        state = apart(of[0].d_state, of[1].d_state);
        n_wrong += fabs(weight) < 7 * 512 || fmod(weight, 512) != 0;
        n_wrong += fabs(state) < 512 || fmod(state, 512) != 0;
        n_first += weight > 0;
        n_state_first += state > 0;
        weights += fabs(weight) / N / (double)case_weight_bytes(&options);
        states += fabs(state) / N / (double)case_state_bytes(&options);
    }
    ok(!n_wrong, "no tables overlap");
    ok(n_first > 150 && n_first < 250, "weights in any order: %u", n_first);
    ok(n_state_first > 150 && n_state_first < 250, "states, too: %u",
       n_state_first);
    is_near(weights, 1 / 3.0, 0.06, "a third of the block apart");
    is_near(states, 1 / 3.0, 0.06, "as states are");
    setup_close(setup);
    recorded_release(&own);
}

/* One repetition on a GPU. The cache is flushed before each of the two parts,
 * and the repetition is held after the warm-up. Five more repetitions time the
 * phases. The total is the sum of the parts. */
static void test_gpu_repetition(void)
{
    struct bench_options options;
    struct sample_table tables[2] = {{0}};
    struct sample sample = {.tables = tables};
    char before[CLOCK_TEXT_MAX], after[CLOCK_TEXT_MAX];
    struct recorded own;
    struct err err = {0};
    bool is_right = true;
    struct bench_setup *setup;

    bench_options_init(&options);
    options.memory_bytes = BENCH_MIN_MEMORY_BYTES;
    options.optimizer = OPTIMIZER_SGD;
    setup = open_setup(&own, DEVICE_CUDA, &options);
    ok(asked(&own, "aF"), "opened");
    own.marked_ms[0][1] = 2;
    own.marked_ms[2][3] = 5;
    own.marked_ms[4][5] = 11;
    own.marked_ms[0][3] = 100;
    clock_utc(before);
    ok(!setup_measure(setup, NULL, &sample, &usual, 7, &err), "measured %s",
       err.msg);
    clock_utc(after);
    ok(sample.started_at && strcmp(before, sample.started_at) <= 0 &&
           strcmp(sample.started_at, after) <= 0,
       "from %s on", sample.started_at ? sample.started_at : "no time");
    ok(asked(&own, "aaDDDDmlaaF"
                   "(~0f1~2b3ree)3(h~0f1~2b3ree)12"
                   "(h~0b1~2b3~4b5reee)5L"),
       "lap by lap");
    ok(own.n_phases == 15 + 15, "phases");
    for (unsigned i = 0; i < 30 && own.n_phases == 30; i++)
        is_right &= own.all_phases[i] ==
                    (i < 15 ? (unsigned)LOOKUP_BACKWARD : 1u << i % 3);
    ok(is_right, "whole backwards, and then its phases in turn");
    ok(sample.forward.median_ms == 2 && sample.backward.median_ms == 5 &&
           sample.total.median_ms == 7,
       "a step is its two parts");
    ok(sample.linearise.median_ms == 2 && sample.sort.median_ms == 5 &&
           sample.update.median_ms == 11,
       "phases are apart");
    ok(sample.n_tables == 2 && sample.n_iterations == 12 && !sample.flags,
       "a sample");
    ok(tables[0].n_rows == 100 && tables[0].dim == 8 &&
           tables[0].pooling_factor == 2.5 && tables[0].zipf_alpha == 0 &&
           tables[0].n_unique == 10,
       "its first table");
    ok(tables[1].n_rows == 50 && tables[1].dim == 16 &&
           tables[1].pooling_factor == 1 && tables[1].zipf_alpha == 1.5 &&
           tables[1].n_unique == 11,
       "and the second");
    ok(own.shape.n_tables == 2 && own.shape.batch == 4 &&
           own.shape.out_dim == 24 && own.shape.max_lookups == 14,
       "shape of the lookup");
    ok(own.batch_seeds[0] == 7 && own.batch_seeds[3] == 10,
       "each set has a seed");
    for (unsigned i = 0; i < 15; i++)
        is_right &= own.d_sets[i] == own.d_drawn[i % 4];
    ok(is_right, "and sets take turns");

    /* allocated memory is reused and not filled again */
    ok(!setup_measure(setup, NULL, &sample, &usual, 8, &err) &&
           asked(&own, "DDDDml"
                       "(~0f1~2b3ree)3(h~0f1~2b3ree)12"
                       "(h~0b1~2b3~4b5reee)5L"),
       "once more");
    setup_close(setup);
    ok(asked(&own, "xxxxx"), "all memory is given back");
    recorded_release(&own);
}

/* One repetition on a CPU: both parts are timed together, by the outer marks.
 * Phases are not timed. */
static void test_cpu_repetition(void)
{
    struct bench_options options;
    struct sample_table tables[2] = {{0}};
    struct sample sample = {.tables = tables};
    struct bench_case what = usual;
    struct recorded own;
    struct err err = {0};
    struct bench_setup *setup;

    bench_options_init(&options);
    options.memory_bytes = BENCH_MIN_MEMORY_BYTES;
    options.optimizer = OPTIMIZER_SGD;
    setup = open_setup(&own, DEVICE_CPU, &options);
    ok(asked(&own, "aF"), "opened");
    own.marked_ms[0][1] = 2;
    own.marked_ms[2][3] = 5;
    own.marked_ms[0][3] = 100;
    what.tables[0].stream.use_bins = true;
    what.tables[0].stream.zipf_alpha = 3;
    ok(!setup_measure(setup, NULL, &sample, &what, 7, &err) &&
           asked(&own, "aa(D)16mlaaF(~0f1~2b3reee)3(h~0f1~2b3reee)12L"),
       "lap by lap %s", err.msg);
    ok(sample.forward.median_ms == 2 && sample.backward.median_ms == 5 &&
           sample.total.median_ms == 100 && sample.sort.median_ms == 0,
       "a step is timed as a whole");
    ok(isnan(tables[0].zipf_alpha), "a table with bins has no Zipf exponent");
    setup_close(setup);
    recorded_release(&own);
}

/* If times vary, there are more repetitions, up to the maximum. */
static void test_unsteady(void)
{
    static const double unsteady[] = {1, 2, 3, 4, 5, 6, 7};
    struct bench_options options;
    struct sample_table tables[2];
    struct sample sample = {.tables = tables};
    struct recorded own;
    struct err err = {0};
    struct bench_setup *setup;

    bench_options_init(&options);
    options.memory_bytes = BENCH_MIN_MEMORY_BYTES;
    setup = open_setup(&own, DEVICE_CUDA, &options);
    own.ms = unsteady;
    own.n_ms = 7;
    own.marked_ms[2][3] = 1e-9;
    own.marked_ms[4][5] = 1;
    ok(!setup_measure(setup, NULL, &sample, &usual, 7, &err) &&
           sample.n_iterations == BENCH_MAX_ITERATIONS,
       "%u laps", sample.n_iterations);
    setup_close(setup);
    recorded_release(&own);
}

/* The sample has the worse health of before and after. A lowered clock flags
 * it. */
static void test_health(void)
{
    static const struct sample_health a = {1000, 3000, 40, 500, 1},
                                      b = {1990, 2000, 60, 400, 2};

    for (int turn = 0; turn < 2; turn++) {
        struct bench_options options;
        struct sample_table tables[2];
        struct sample sample = {.tables = tables};
        const struct sample_health *health = &sample.health;
        struct recorded own;
        struct err err = {0};
        struct bench_setup *setup;

        bench_options_init(&options);
        options.memory_bytes = BENCH_MIN_MEMORY_BYTES;
        setup = open_setup(&own, DEVICE_CUDA, &options);
        own.marked_ms[2][3] = own.marked_ms[4][5] = 1;
        own.health = turn ? b : a;
        own.later = turn ? a : b;
        own.device.top_sm_mhz = 2000;
        ok(!setup_measure(setup, NULL, &sample, &usual, 7, &err) &&
               health->sm_mhz == 1000 && health->memory_mhz == 2000 &&
               health->temperature_c == 60 && health->power_w == 500 &&
               health->throttle_reasons == 3,
           "the worse of both");
        ok(sample.flags == (turn ? SAMPLE_THROTTLED : 0),
           "flagged by the clock afterwards");
        setup_close(setup);
        recorded_release(&own);
    }
}

int main(void)
{
    test_memory();
    test_reserve();
    test_places();
    test_gpu_repetition();
    test_cpu_repetition();
    test_unsteady();
    test_health();
    return tap_done();
}
