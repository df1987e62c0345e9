/* SPDX-License-Identifier: MIT */
#include "tests/tap.h"

#include "lookup_case.h"
#include "lookup_ref.h"

/* Largest |got - want| over its limit 1e-5 (|want| + largest |weight| summed
 * in that place, 0.5 here), and half a step of fp16. */
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
                lookup_out_dim(lookup) == data->out_dim &&
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

/* Offsets need not start at 0: a rank may look its part of a batch up. */
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

static void rejects(struct device *device, struct lookup_table table,
                    enum optimizer optimizer, const char *want)
{
    struct lookup *lookup = NULL;
    struct err err = {0};
    float weight[64], state[1];

    table.d_weight = weight;
    table.d_state = optimizer == OPTIMIZER_SGD ? NULL : state;
    is_i64(lookup_open(&lookup, device,
                       &(struct lookup_spec){.tables = &table,
                                             .n_tables = 1,
                                             .batch = 4,
                                             .optimizer = optimizer},
                       &err),
           -1, "refused");
    is_i64(err.code, ERR_INPUT, "input error");
    is_str(err.msg, want, "the sentence");
}

static void test_rejected(void)
{
    struct device *device = open_isa("avx512", 1);
    struct lookup_table table = {.n_rows = 1, .dim = 8};
    struct lookup_spec spec = {.tables = &table, .n_tables = 1, .batch = 4};
    struct lookup_table bad;
    struct lookup *lookup = NULL;
    struct err err = {0};

    bad = table;
    bad.dim = 6;
    rejects(device, bad, OPTIMIZER_SGD,
            "table 0: dim 6 is not a multiple of 4");
    bad = table;
    bad.n_rows = 1ull << 32;
    rejects(device, bad, OPTIMIZER_SGD,
            "table 0: 4294967296 rows cannot be executed, 1 to 4294967295 "
            "can");
    bad = table;
    bad.precision = PRECISION_INT8;
    rejects(device, bad, OPTIMIZER_SGD,
            "table 0: weights of precision 'int8' are not executed");
    bad = table;
    bad.out_begin = 4;
    rejects(device, bad, OPTIMIZER_SGD,
            "table 0: columns 4 to 12 lie outside the 8 of the output");
    bad.out_begin = 2;
    rejects(device, bad, OPTIMIZER_SGD,
            "table 0: its output starts at column 2, no multiple of 4");
    rejects(device, table, OPTIMIZER_ADAM, "optimizer 'adam' is not executed");
    rejects(device, table, OPTIMIZER_ADAGRAD,
            "optimizer 'adagrad' is not executed");
    spec.optimizer = OPTIMIZER_ROWWISE_ADAGRAD;
    is_i64(lookup_open(&lookup, device, &spec, &err), -1,
           "Adagrad without state");
    is_str(err.msg, "table 0: optimizer 'rowwise_adagrad' needs state",
           "the sentence");
    spec.optimizer = OPTIMIZER_SGD;
    spec.output = PRECISION_BF16;
    is_i64(lookup_open(&lookup, device, &spec, &err), -1, "bf16 outputs");
    is_str(err.msg, "outputs of precision 'bf16' are not executed",
           "the sentence");
    is_i64(lookup_apply_dense(device, &table, NULL, 1, OPTIMIZER_ADAM, &err),
           -1, "a dense step of Adam");
    is_str(err.msg, "optimizer 'adam' is not executed", "the sentence");
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
