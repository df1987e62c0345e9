/* SPDX-License-Identifier: MIT */
/* All-to-alls and ceilings that a benchmark measures: which patterns, how many
 * repetitions, which time counts, and when it ends. The device reports times
 * that the test prepared. */
#include "tests/unit/device/recorded_device.h"

#include "base/clock.h"
#include "base/hash.h"
#include "microbench/alltoall_case.h"
#include "microbench/bench_options.h"
#include "microbench/ceilings.h"
#include "microbench/setup.h"
#include "tests/tap.h"

static const double steady[] = {1};
static double now_ms, look_ms;

double clock_ms(void)
{
    return now_ms += look_ms;
}

const char *clock_utc(char buf[CLOCK_TEXT_MAX])
{
    snprintf(buf, CLOCK_TEXT_MAX, "2026-11-22T09:00:00Z");
    return buf;
}

#define MAX_KEPT 400
static struct comm_sample kept[MAX_KEPT];
/* the first n_known patterns are already stored */
static unsigned n_kept, n_known;

static int put(void *ctx, const struct sample_setting *setting,
               const struct comm_sample *sample, struct err *err)
{
    (void)ctx, (void)setting, (void)err;
    if (n_kept < MAX_KEPT)
        kept[n_kept++] = *sample;
    return 0;
}

static int has(void *ctx, const struct sample_setting *setting,
               const struct comm_sample *sample)
{
    (void)ctx, (void)setting, (void)sample;
    if (!n_known)
        return 0;
    n_known--;
    return 1;
}

static struct bench_result exchange(struct recorded *own, uint32_t n_ranks,
                                    const struct bench_options *options)
{
    struct sample_sink sink = {.put_comm = put, .has_comm = has};
    struct bench_result result;
    struct err err = {0};
    struct world *world;
    struct comm *comm;

    n_kept = 0;
    if (world_open(&world, &err) ||
        comm_open(&comm, world, &own->device, n_ranks, &err) ||
        bench_alltoall(&result, comm, options, &sink, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    comm_close(comm);
    world_close(world);
    return result;
}

static void set_options(struct bench_options *options, uint64_t n_cases)
{
    bench_options_init(options);
    options->memory_bytes = 32 << 20;
    options->n_cases = n_cases;
}

/* The patterns of a list are the same on every machine and never change. */
static void test_patterns(void)
{
    static const struct {
        uint64_t total, max;
    } want[] = {
        {188416, 122880},  {180224, 65536},   {1359872, 466944}, {8, 8},
        {1474560, 295200}, {3256320, 661440}, {81920, 45056},    {336, 240},
    };
    struct bench_options options;
    struct recorded own;
    uint64_t hash = 0;

    recorded_init(&own, DEVICE_CPU, steady, 1);
    set_options(&options, 300);
    (void)exchange(&own, 5, &options);
    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++)
        ok(kept[i].total_bytes == want[i].total &&
               kept[i].max_bytes == want[i].max,
           "pattern %zu: {%llu, %llu},", i,
           (unsigned long long)kept[i].total_bytes,
           (unsigned long long)kept[i].max_bytes);
    for (unsigned i = 0; i < n_kept; i++) {
        const uint64_t bytes[] = {kept[i].total_bytes, kept[i].max_bytes};

        hash = hash_bytes(bytes, sizeof(bytes), hash);
    }
    ok(n_kept == 300 && hash == 0xd762e16e6ecaa307, "and 300 in all: 0x%llx",
       (unsigned long long)hash);
    recorded_release(&own);
}

/* Every pattern keeps within the sizes that the options give, less the columns
 * that do not fill a sample of each rank. */
static void test_sizes(void)
{
    static const struct {
        uint64_t min, max;
    } CASES[] = {{0, 4096}, {256, 4096}, {1 << 20, 0}, {1 << 22, 1 << 23}};

    for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
        const uint64_t most = CASES[i].max ? CASES[i].max : 16 << 20;
        uint64_t low = UINT64_MAX, high = 0;
        struct bench_options options;
        struct recorded own;

        recorded_init(&own, DEVICE_CPU, steady, 1);
        set_options(&options, 200);
        options.min_bytes = CASES[i].min;
        options.max_bytes = CASES[i].max;
        (void)exchange(&own, 4, &options);
        for (unsigned k = 0; k < n_kept; k++) {
            low = min_u64(low, kept[k].total_bytes);
            high = max_u64(high, kept[k].total_bytes);
        }
        ok(n_kept == 200 && low * 5 / 4 >= CASES[i].min && high <= most &&
               high > most / 2,
           "%llu to %llu bytes: %llu to %llu", (unsigned long long)CASES[i].min,
           (unsigned long long)CASES[i].max, (unsigned long long)low,
           (unsigned long long)high);
        recorded_release(&own);
    }
}

/* Copies are held and timed, forward and backward alternately. Small exchanges
 * get more repetitions. */
static void test_repetitions(void)
{
    struct bench_options options;
    unsigned n_small = 0, n_large = 0, n_wrong = 0;
    struct recorded own;

    recorded_init(&own, DEVICE_CPU, steady, 1);
    set_options(&options, 100);
    (void)exchange(&own, 4, &options);
    for (unsigned i = 0; i < n_kept; i++) {
        const bool is_small = kept[i].total_bytes < 4 << 20;

        n_small += is_small;
        n_large += !is_small;
        n_wrong += kept[i].n_iterations != (is_small ? 64 : 12);
    }
    ok(n_small && n_large && !n_wrong, "%u small ones, %u large ones", n_small,
       n_large);
    options.n_cases = 1;
    own.calls[own.n_calls = 0] = '\0';
    (void)exchange(&own, 4, &options);
    ok(asked(&own, kept[0].n_iterations == 64 ? "aFaF(h0c1re)66xx"
                                              : "aFaF(h0c1re)14xx"),
       "two that warm up");
    own.calls[own.n_calls = 0] = '\0';
    (void)exchange(&own, 16, &options);
    ok(asked(&own,
             kept[0].n_iterations == 64 ? "aFaF(0c1e)66xx" : "aFaF(0c1e)14xx"),
       "too many copies to be held");
    own.calls[own.n_calls = 0] = '\0';
    (void)exchange(&own, 15, &options);
    ok(strchr(own.calls, 'h') != NULL, "225 can be");
    recorded_release(&own);
}

/* The first quiet round counts. If no round is quiet, the fastest of six
 * does. */
static void test_rounds(void)
{
    /* times per round: two warm-up times, then two different values */
    static double ms[6 * 66];
    static const struct {
        double low[6], high[6];
        double want;
        unsigned n_rounds;
    } CASES[] = {
        {{4}, {4}, 4, 1},
        {{4, 3}, {4.99, 3}, 4, 1},
        {{4, 3}, {5.01, 3}, 3, 2},
        {{4, 9}, {6, 9}, 9, 2},
        {{4, 3, 2, 5, 6, 7}, {8, 8, 8, 8, 8, 14}, 2, 6},
        {{4, 3, 2, 5, 6, 1}, {8, 8, 8, 8, 8, 1}, 1, 6},
    };
    struct bench_options options;
    struct recorded own;

    for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
        unsigned n;

        recorded_init(&own, DEVICE_CPU, steady, 1);
        set_options(&options, 1);
        options.first_case = 3; /* a small exchange */
        (void)exchange(&own, 4, &options);
        n = kept[0].n_iterations + 2;
        for (unsigned k = 0; k < 6 * n && n == 66; k++)
            ms[k] = k % n < 2        ? 77
                    : k % n < 2 + 13 ? CASES[i].high[k / n]
                                     : CASES[i].low[k / n];
        own.ms = ms;
        own.n_ms = 6 * n;
        own.n_elapsed = 0;
        (void)exchange(&own, 4, &options);
        ok(kept[0].time.median_ms == CASES[i].want &&
               own.n_elapsed == CASES[i].n_rounds * n,
           "case %zu: %g ms after %u rounds", i, kept[0].time.median_ms,
           own.n_elapsed / n);
        recorded_release(&own);
    }
}

/* Stored patterns are not measured again, and the time limit ends the run. */
static void test_ends(void)
{
    struct bench_options options;
    struct bench_result result;
    struct recorded own;

    recorded_init(&own, DEVICE_CPU, steady, 1);
    set_options(&options, 5);
    n_known = 2;
    result = exchange(&own, 4, &options);
    ok(result.n_resumed == 2 && result.n_measured == 3 && n_kept == 3 &&
           result.n_cases == 5 && !result.out_of_time,
       "two are there");
    options.time_limit_s = 1;
    /* time of each clock reading; there is one at the start, and one per
     * pattern and round */
    look_ms = 300;
    options.n_cases = 0;
    result = exchange(&own, 4, &options);
    look_ms = 0;
    ok(result.out_of_time && result.n_cases == n_kept && n_kept > 0 &&
           n_kept < 4,
       "late after %u", n_kept);
    recorded_release(&own);
}

/* --- ceilings --- */

static uint64_t ceilings_hash;
static unsigned n_put;

static int put_ceiling(void *ctx, const struct sample_setting *setting,
                       const struct ceiling *ceiling, struct err *err)
{
    const struct probe *probe = &ceiling->probe;
    const uint64_t all[] = {probe->kind, probe->n_bytes, probe->n,
                            probe->row_bytes, probe->key_bits};

    (void)ctx, (void)setting, (void)err;
    ceilings_hash = hash_bytes(all, sizeof(all), ceilings_hash);
    n_put++;
    return 0;
}

static bool has_ceiling(void *ctx, const struct sample_setting *setting,
                        const struct probe *probe)
{
    (void)ctx, (void)setting;
    return probe->kind == PROBE_LAUNCH;
}

/* The list of probes depends on the memory: the free memory less a sixteenth,
 * or the size that the options give. */
static void test_ceilings(void)
{
    static const struct {
        enum device_kind kind;
        uint64_t free_bytes, memory_bytes;
        bool repeat;
        unsigned n_put, n_resumed;
        uint64_t hash;
    } CASES[] = {
        {DEVICE_CPU, 64 << 20, 0, false, 42, 1, 0x48f1dc3232f48d81},
        {DEVICE_CPU, 64 << 20, 0, true, 43, 0, 0x1cb1daaa2e115305},
        {DEVICE_CPU, 64 << 20, 8 << 20, true, 20, 0, 0xfd2110ca0aafda4c},
        {DEVICE_CPU, 64 << 20, (60 << 20) + 1, true, 43, 0, 0x1cb1daaa2e115305},
        {DEVICE_CPU, 35791394, 0, true, 34, 0, 0x795edc98978921cb},
        {DEVICE_CPU, 35791393, 0, true, 33, 0, 0x63fe46e561854b84},
        {DEVICE_CUDA, 64 << 20, 0, true, 43, 0, 0x86a544437bffc263},
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
        struct ceiling_sink sink = {.put = put_ceiling, .has = has_ceiling};
        struct bench_options options;
        struct bench_result result;
        struct recorded own;
        struct err err = {0};
        int rc;

        recorded_init(&own, CASES[i].kind, steady, 1);
        own.free_bytes = CASES[i].free_bytes;
        bench_options_init(&options);
        options.memory_bytes = CASES[i].memory_bytes;
        options.repeat = CASES[i].repeat;
        ceilings_hash = n_put = 0;
        rc = bench_ceilings(&result, &own.device, &options, &sink, &err);
        ok(!rc && n_put == CASES[i].n_put &&
               result.n_resumed == CASES[i].n_resumed &&
               result.n_measured == n_put &&
               result.n_cases == n_put + result.n_resumed &&
               ceilings_hash == CASES[i].hash,
           "case %zu: %u, %u, 0x%llx %s", i, n_put, (unsigned)result.n_resumed,
           (unsigned long long)ceilings_hash, err.msg);
        recorded_release(&own);
    }
}

/* The time limit ends the run before the next probe. Samples with a lowered
 * clock are flagged and counted. */
static void test_late(void)
{
    struct ceiling_sink sink = {.put = put_ceiling, .has = has_ceiling};
    struct bench_options options;
    struct bench_result result;
    struct recorded own;
    struct err err = {0};

    recorded_init(&own, DEVICE_CPU, steady, 1);
    own.free_bytes = 64 << 20;
    own.health.sm_mhz = 1000;
    own.device.top_sm_mhz = 2000;
    bench_options_init(&options);
    options.memory_bytes = 0;
    options.time_limit_s = 1;
    look_ms = 150;
    n_put = 0;
    ok(!bench_ceilings(&result, &own.device, &options, &sink, &err) &&
           result.out_of_time && n_put > 0 && n_put < 5 &&
           result.n_flagged == n_put,
       "late after %u, all flagged: %u", n_put, (unsigned)result.n_flagged);
    look_ms = 0;
    recorded_release(&own);
}

int main(void)
{
    test_patterns();
    test_sizes();
    test_repetitions();
    test_rounds();
    test_ends();
    test_ceilings();
    test_late();
    return tap_done();
}
