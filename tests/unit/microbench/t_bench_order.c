/* SPDX-License-Identifier: MIT */
/* Tests which cases of a list a benchmark measures, in which order and as which
 * kind of sample, and when it ends. The bench setup, the interference probe and
 * the clock are replaced. */
#include "device/device_ops.h"
#include "microbench/bench.h"
#include "microbench/sampler_designed.h"
#include "tests/unit/microbench/fake_bench.h"

static double case_ms;
static uint64_t flagged; /* number of the case whose samples are flagged */

int setup_measure(struct bench_setup *setup,
                  struct interference_probe *interference,
                  struct sample *sample, const struct bench_case *what,
                  uint64_t stream_seed, struct err *err)
{
    (void)setup, (void)interference, (void)stream_seed, (void)err;
    sample->total.median_ms = 10;
    sample->started_at = "";
    sample->n_tables = what->n_tables;
    sample->flags =
        sample->version && sample->case_idx == flagged ? SAMPLE_THROTTLED : 0;
    now_ms += sample->version ? case_ms : 0; /* warm-up takes no time */
    return 0;
}

/* Samples that were stored, as text: a letter for the kind, and the case
 * number. F9 is fused case 9, R9 a repetition, and S0 a reference case. The
 * first and the last single table of a case are noted as "+" each; the other
 * single tables are not noted. "F9++" is thus case 9 with all its single
 * tables. */
struct kept {
    struct buf text;
    uint64_t known; /* fused cases below this number are already stored */
    uint64_t busy;  /* number of the case that another process measures */
    uint32_t n_tables;
};

static int put(void *ctx, const struct sample_setting *setting,
               const struct sample *sample, struct err *err)
{
    struct kept *kept = ctx;

    (void)setting, (void)err;
    if (sample->kind == SAMPLE_SINGLE) {
        if (sample->part == 1)
            buf_printf(&kept->text, "+");
        if (sample->part == kept->n_tables && sample->n_tables == 1)
            buf_printf(&kept->text, "+");
        return 0;
    }
    kept->n_tables = sample->n_tables;
    buf_printf(&kept->text, " %c%u", "F.XRS"[sample->kind],
               (unsigned)sample -> case_idx);
    return 0;
}

static int has(void *ctx, const struct sample_setting *setting, uint64_t seed,
               uint64_t case_idx, enum sample_kind kind, uint32_t part)
{
    const struct kept *kept = ctx;

    (void)setting, (void)seed, (void)part;
    return kind != SAMPLE_SENTINEL && case_idx < kept->known;
}

static int claim(void *ctx, const struct sample_setting *setting, uint64_t seed,
                 uint64_t case_idx, struct lock *lock, struct err *err)
{
    const struct kept *kept = ctx;

    (void)setting, (void)seed, (void)err;
    *lock = (struct lock){.path = case_idx == kept->busy ? NULL : strdup("x"),
                          .fd = -1};
    return 0;
}

static struct bench_result run(struct kept *kept,
                               const struct bench_options *options)
{
    static struct device device = {.kind = DEVICE_CPU};
    struct sample_sink sink = {
        .ctx = kept, .put = put, .has = has, .claim = claim};
    struct bench_result result;
    struct err err = {0};

    now_ms = n_setups = n_taught = 0;
    if (bench_lookup(&result, &device, options, &sink, &err))
        ok(0, "runs: %s", err.msg);
    buf_add(&kept->text, "", 1);
    return result;
}

/* Every tenth case is also measured table by table, unless it has only one
 * table, belongs to a designed list, or is a large case of a mixed list. Every
 * hundredth case begins with the reference case. Repetitions have neither. */
static void test_order(void)
{
    static const struct {
        uint64_t first, n;
        uint32_t max_tables;
        bool is_mixed, is_designed, repeat;
        const char *want;
    } CASES[] = {
        {0, 3, 5, false, false, false, " S0 F0 F1 F2"},
        {28, 3, 5, false, false, false, " F28 F29++ F30"},
        {8, 3, 1, false, false, false, " F8 F9 F10"},
        {9, 1, 5, true, false, false, " F9++"},
        {8, 3, 5, true, true, false, " F8 F9 F10"},
        {8, 3, 5, false, false, true, " R8 R9 R10"},
        {99, 2, 5, false, false, true, " R99 R100"},
        {99, 2, 5, false, false, false, " F99++ S1 F100"},
        {199, 2, 1, false, false, false, " F199 S2 F200"},
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
        struct kept kept = {.busy = UINT64_MAX};
        struct bench_options options;
        struct bench_result result;

        bench_options_init(&options);
        options.first_case = CASES[i].first;
        options.n_cases = CASES[i].n;
        options.max_tables = CASES[i].max_tables;
        options.is_mixed = CASES[i].is_mixed;
        options.is_designed = CASES[i].is_designed;
        options.repeat = CASES[i].repeat;
        result = run(&kept, &options);
        is_str(kept.text.data, CASES[i].want, "measured, in this order");
        ok(result.n_cases == CASES[i].n && n_setups == 1 &&
               n_taught == result.n_measured && !result.n_resumed,
           "%u samples with one rig", n_taught);
        buf_release(&kept.text);
    }
}

/* Every tenth case of a mixed list. Up to 15 tables are also measured one by
 * one; larger cases are not. */
static void test_large(void)
{
    unsigned n_small = 0, n_large = 0, n_wrong = 0;

    for (uint64_t c = 9; c < 800; c += 10) {
        struct kept kept = {.busy = UINT64_MAX};
        struct bench_options options;
        bool has_singles;

        bench_options_init(&options);
        options.first_case = c;
        options.n_cases = 1;
        options.is_mixed = true;
        options.max_tables = BENCH_MAX_TABLES;
        (void)run(&kept, &options);
        has_singles = strchr(kept.text.data, '+') != NULL;
        n_small += kept.n_tables == BENCH_MAX_SINGLES;
        n_large += kept.n_tables == BENCH_MAX_SINGLES + 1;
        n_wrong += has_singles !=
                   (kept.n_tables > 1 && kept.n_tables <= BENCH_MAX_SINGLES);
        buf_release(&kept.text);
    }
    ok(n_small && n_large && !n_wrong,
       "15 tables are measured alone (%u cases), 16 are not (%u), wrong: %u",
       n_small, n_large, n_wrong);
}

/* Stored cases are skipped, and no bench setup is opened if nothing is missing.
 * Cases that another process measures are left to it. */
static void test_resumed(void)
{
    struct kept kept = {.known = 3, .busy = 4};
    struct bench_options options;
    struct bench_result result;

    bench_options_init(&options);
    options.first_case = 1;
    options.n_cases = 5;
    flagged = 5;
    result = run(&kept, &options);
    flagged = UINT64_MAX;
    is_str(kept.text.data, " F3 F5", "only missing cases are measured");
    ok(result.n_resumed == 2 && result.n_left == 1 && result.n_cases == 5 &&
           result.n_measured == 2 && result.n_flagged == 1 && n_setups == 1,
       "counted: there %u, left %u, flagged %u", (unsigned)result.n_resumed,
       (unsigned)result.n_left, (unsigned)result.n_flagged);
    buf_release(&kept.text);
    kept = (struct kept){.known = 100, .busy = UINT64_MAX};
    result = run(&kept, &options);
    ok(result.n_resumed == 5 && !n_setups, "all is there: no rig");
    buf_release(&kept.text);
}

/* The run ends with the sample that exceeds the time limit, unless this is the
 * last one anyway. */
static void test_time(void)
{
    static const struct {
        uint64_t n_cases;
        double limit_s, case_ms;
        uint64_t n_done;
        bool is_late;
    } CASES[] = {
        {5, 0, 1e9, 5, false},  {5, 1, 250, 5, false}, {5, 1, 251, 4, true},
        {5, 1, 501, 2, true},   {2, 1, 501, 2, false}, {0, 1, 100, 11, true},
        {5, 0.5, 499, 2, true},
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
        struct kept kept = {.busy = UINT64_MAX};
        struct bench_options options;
        struct bench_result result;

        bench_options_init(&options);
        options.first_case = 11;
        options.max_tables = 1;
        options.n_cases = CASES[i].n_cases;
        options.time_limit_s = CASES[i].limit_s;
        case_ms = CASES[i].case_ms;
        result = run(&kept, &options);
        ok(result.n_cases == CASES[i].n_done &&
               result.out_of_time == CASES[i].is_late,
           "case %zu: %u done%s", i, (unsigned)result.n_cases,
           result.out_of_time ? ", late" : "");
        buf_release(&kept.text);
    }
    case_ms = 0;
}

/* If the time limit passes inside a case, the case is not complete. The first
 * sample is measured in any case. */
static void test_time_inside(void)
{
    static const struct {
        double case_ms;
        uint64_t n_measured, n_cases;
        const char *want;
    } CASES[] = {
        {300, 4, 1, " F28 F29+"},
        {2000, 1, 1, " F28"},
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
        struct kept kept = {.busy = UINT64_MAX};
        struct bench_options options;
        struct bench_result result;

        bench_options_init(&options);
        options.first_case = 28;
        options.max_tables = 5;
        options.n_cases = 3;
        options.time_limit_s = 1;
        case_ms = CASES[i].case_ms;
        result = run(&kept, &options);
        is_str(kept.text.data, CASES[i].want, "samples in time");
        ok(result.n_measured == CASES[i].n_measured &&
               result.n_cases == CASES[i].n_cases && result.out_of_time,
           "%u samples, %u whole cases", (unsigned)result.n_measured,
           (unsigned)result.n_cases);
        buf_release(&kept.text);
    }
    case_ms = 0;
}

/* A designed list has an end. */
static void test_end(void)
{
    const uint64_t n = designed_n_cases();
    struct bench_options options;
    struct bench_result result;
    struct kept kept = {.busy = UINT64_MAX};

    bench_options_init(&options);
    options.is_mixed = options.is_designed = true;
    options.first_case = n - 3;
    options.n_cases = 0;
    result = run(&kept, &options);
    is_i64((int64_t)result.n_cases, 3, "the rest of a designed list");
    buf_release(&kept.text);
    kept.text = (struct buf){0};
    options.first_case = n + 1;
    result = run(&kept, &options);
    is_i64((int64_t)result.n_cases, 0, "behind it there is nothing");
    buf_release(&kept.text);
    kept.text = (struct buf){0};
    options.first_case = n - 3;
    options.n_cases = 2;
    result = run(&kept, &options);
    is_i64((int64_t)result.n_cases, 2, "or fewer, if fewer are asked for");
    buf_release(&kept.text);
}

static uint64_t free_bytes;

static uint64_t say_free(const struct device *device)
{
    (void)device;
    return free_bytes;
}

/* Memory for tables: the free memory less the need of the cases, rounded down
 * to steps of at most one sixteenth. */
static void test_memory(void)
{
    static const struct device_ops ops = {.free_bytes = say_free};
    static const struct {
        uint64_t free, want; /* 0: the free memory is too small */
    } CASES[] = {
        {(16 << 20) + 1000, 16 << 20}, {(16 << 20) + 999, 0},
        {(17 << 20) + 999, 16 << 20},  {(17 << 20) + 1000, 17 << 20},
        {(31 << 20) + 1000, 31 << 20}, {(32 << 20) + 1000, 32 << 20},
        {(33 << 20) + 1000, 32 << 20}, {(34 << 20) + 1000, 34 << 20},
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
        struct device device = {.ops = &ops, .facts.name = "cpu:x"};
        struct bench_options options;
        struct err err = {0};

        bench_options_init(&options);
        ok(!bench_fit_memory(&options, &device, &err) &&
               options.memory_bytes == (uint64_t)4 << 30,
           "the requested size stays");
        options.memory_bytes = 0;
        free_bytes = CASES[i].free;
        if (CASES[i].want)
            ok(!bench_fit_memory(&options, &device, &err) &&
                   options.memory_bytes == CASES[i].want,
               "%llu of %llu bytes", (unsigned long long)options.memory_bytes,
               (unsigned long long)free_bytes);
        else
            ok(bench_fit_memory(&options, &device, &err) == -1 &&
                   err.code == ERR_DEVICE,
               "%s", err.msg);
    }
}

/* There is a lower limit on the memory for tables. */
static void test_options(void)
{
    struct bench_options options;
    struct err err = {0};

    bench_options_init(&options);
    options.memory_bytes = 16 << 20;
    ok(!bench_check_options(&options, &err), "16 MiB are enough");
    options.memory_bytes--;
    ok(bench_check_options(&options, &err) == -1 && err.code == ERR_USAGE &&
           strstr(err.msg, "16 MiB"),
       "%s", err.msg);
}

int main(void)
{
    flagged = UINT64_MAX;
    test_order();
    test_large();
    test_resumed();
    test_time();
    test_time_inside();
    test_end();
    test_memory();
    test_options();
    return tap_done();
}
