/* SPDX-License-Identifier: MIT */
#include "tests/tap.h"

#include "lookup_case.h"
#include "lookup_ref.h"

/* Returns the largest |got - want| divided by its limit. The limit is 1e-5
 * (|want| + sum of the largest |weight| per lookup, 0.5 here), plus half a step
 * of fp16. */
static double worst_error(const void *got, enum precision precision,
                          const double *want, size_t n)
{
    double worst = 0;

    for (size_t i = 0; i < n; i++) {
        double limit = 1e-5 * (fabs(want[i]) + 0.5), value;

        if (precision == PRECISION_FP16) {
            value = (double)fp16_to_float(((const uint16_t *)got)[i]);
            limit += 0x1p-11 * fabs(want[i]) + 0x1p-25;
        } else {
            value = (double)((const float *)got)[i];
        }
        worst = tap_worst(worst, fabs(value - want[i]) / limit);
    }
    return worst;
}

static void forward(const struct case_data *data, const char *isa,
                    unsigned n_threads, void *out)
{
    struct device *device = open_isa(isa, n_threads);
    struct lookup_spec spec = data->spec;
    struct lookup *lookup = NULL;
    struct err err = {0};

    spec.tables = data->tables;
    spec.batch = data->batch;
    spec.max_lookups = 0;
    if (!ok(!lookup_open(&lookup, device, &spec, &err) &&
                !lookup_forward(lookup, &data->lookups, out, &err),
            "%s, %u threads", isa, n_threads))
        printf("# %s\n", err.msg);
    lookup_close(lookup);
    device_close(device);
}

static void test_case(const struct lookup_case *lookup_case,
                      const struct case_mode *mode, uint64_t seed)
{
    struct case_data data = case_open(lookup_case, mode, seed);
    size_t n = (size_t)data.batch * data.out_dim;
    size_t n_bytes = case_out_bytes(&data);
    void *first = mem_alloc(n_bytes, 1);
    void *out = mem_alloc(n_bytes, 1);
    double *want = mem_alloc(n, sizeof *want), worst;

    printf("# %s, %s, seed %" PRIu64 "\n", lookup_case->name, mode->name, seed);
    lookup_forward_ref(data.tables, data.n_tables, data.batch, &data.lookups,
                       want);
    memset(first, 0xff, n_bytes);
    forward(&data, "avx512", 1, first);
    worst = worst_error(first, mode->output, want, n);
    ok(worst <= 1, "%s: as the reference, %.3f of the limit", lookup_case->name,
       worst);
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 3; k++) {
            memset(out, 0xff, n_bytes);
            forward(&data, ISAS[i], THREADS[k], out);
            ok(!memcmp(out, first, n_bytes), "%s: %s x %u: same bits",
               lookup_case->name, ISAS[i], THREADS[k]);
        }
    mem_free(first);
    mem_free(out);
    mem_free(want);
    case_close(&data);
}

/* Offsets need not start at 0: a rank may look up its part of a batch. */
static void test_part(void)
{
    struct case_data data = case_open(&CASES[0], &MODES[0], 3), part = data;
    size_t n = (size_t)data.batch * data.out_dim, n_half;
    float *whole = mem_alloc(n, sizeof *whole);
    float *half = mem_alloc(n, sizeof *half);

    part.batch = data.batch / 2;
    n_half = (size_t)part.batch * part.out_dim;
    part.lookups.d_offsets = data.offsets + part.batch;
    forward(&data, "avx512", 2, whole);
    forward(&part, "avx512", 2, half);
    ok(!memcmp(half, whole + n_half, n_half * sizeof *half),
       "the second half of a batch");
    mem_free(whole);
    mem_free(half);
    case_close(&data);
}

static void test_rejected(void)
{
    struct device *device = open_isa("avx512", 1);
    const struct lookup_table tables[] = {
        {.n_rows = 1, .dim = UINT32_MAX - 3},
        {.n_rows = 1, .dim = 8, .out_begin = UINT32_MAX - 3},
    };
    struct lookup_spec spec = {.tables = tables, .n_tables = 2, .batch = 4};
    struct lookup *lookup = NULL;
    struct err err = {0};

    is_i64(lookup_open(&lookup, device, &spec, &err), -1, "too many columns");
    is_i64(err.code, ERR_INPUT, "input error");
    is_str(err.msg, "4294967300 output columns are too many", "the sentence");
    spec.max_lookups = 1ull << 32;
    is_i64(lookup_open(&lookup, device, &spec, &err), -1, "too many look-ups");
    is_str(err.msg,
           "4294967296 lookups a batch are too many, at most 4294967295 can be "
           "run",
           "the sentence");
    device_close(device);
}

static void test_cold_sets(void)
{
    struct device *device = open_isa("portable", 1);
    uint64_t mib = (uint64_t)1 << 20;

    is_i64(lookup_n_cold_sets(device, 0), 16, "16 batches that touch nothing");
    is_i64(lookup_n_cold_sets(device, 6 * mib), 15,
           "all sets touch 96 MiB at most,");
    is_i64(lookup_n_cold_sets(device, 12 * mib - 1), 8, "... here exactly,");
    is_i64(lookup_n_cold_sets(device, UINT64_MAX - 1), 4,
           "... but there are four");
    is_i64((int64_t)lookup_touched_bytes(10, 1000, 16, PRECISION_FP32), 1280,
           "ten rows of 64 bytes, and their state");
    is_i64((int64_t)lookup_touched_bytes(1000, 10, 16, PRECISION_FP16), 960,
           "no row is touched twice");
    device_close(device);
}

int main(void)
{
    for (size_t i = 0; i < N_CASES; i++) {
        test_case(&CASES[i], &MODES[0], 100 + i);
        test_case(&CASES[i], &MODES[2], 120 + i);
    }
    test_part();
    test_rejected();
    test_cold_sets();
    return tap_done();
}
