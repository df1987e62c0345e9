/* SPDX-License-Identifier: MIT */
#include "tests/tap.h"

#include "lookup_case.h"

/* Largest |got - want| over its limit 1e-5 (|want| + largest |weight| summed
 * in that place, 0.5 here). */
static double worst_error(const float *got, const double *want, size_t n)
{
    double worst = 0;

    for (size_t i = 0; i < n; i++) {
        double limit = 1e-5 * (fabs(want[i]) + 0.5);

        worst = fmax(worst, fabs((double)got[i] - want[i]) / limit);
    }
    return worst;
}

static void forward(const struct case_data *data, const char *isa,
                    unsigned n_threads, float *out)
{
    struct device *device = open_isa(isa, n_threads);
    struct lookup *lookup = NULL;
    struct err err = {0};

    if (!ok(!lookup_open(&lookup, device, data->tables, data->n_tables,
                         data->batch, 0, OPTIMIZER_SGD, &err) &&
                lookup_out_dim(lookup) == data->out_dim &&
                !lookup_forward(lookup, &data->lookups, out, &err),
            "%s, %u threads", isa, n_threads))
        printf("# %s\n", err.msg);
    lookup_close(lookup);
    device_close(device);
}

static void test_case(const struct lookup_case *lookup_case, uint64_t seed)
{
    struct case_data data = case_open(lookup_case, seed);
    size_t n = (size_t)data.batch * data.out_dim;
    float *first = mem_alloc(n, sizeof *first);
    float *out = mem_alloc(n, sizeof *out);
    double *want = mem_alloc(n, sizeof *want), worst;

    printf("# %s, seed %" PRIu64 "\n", lookup_case->name, seed);
    lookup_forward_ref(data.tables, data.n_tables, data.batch, &data.lookups,
                       want);
    memset(first, 0xff, n * sizeof *first);
    forward(&data, "avx512", 1, first);
    worst = worst_error(first, want, n);
    ok(worst <= 1, "%s: as the reference, %.3f of the limit", lookup_case->name,
       worst);
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 3; k++) {
            memset(out, 0xff, n * sizeof *out);
            forward(&data, ISAS[i], THREADS[k], out);
            ok(!memcmp(out, first, n * sizeof *out), "%s: %s x %u: same bits",
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
    struct case_data data = case_open(&CASES[0], 3), part = data;
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
    is_i64(lookup_open(&lookup, device, &table, 1, 4, 0, optimizer, &err), -1,
           "refused");
    is_i64(err.code, ERR_INPUT, "input error");
    is_str(err.msg, want, "the sentence");
}

static void test_rejected(void)
{
    struct device *device = open_isa("avx512", 1);
    struct lookup_table table = {.n_rows = 1, .dim = 8};
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
    rejects(device, table, OPTIMIZER_ADAM, "optimizer 'adam' is not executed");
    rejects(device, table, OPTIMIZER_ADAGRAD,
            "optimizer 'adagrad' is not executed");
    is_i64(lookup_open(&lookup, device, &table, 1, 4, 0,
                       OPTIMIZER_ROWWISE_ADAGRAD, &err),
           -1, "Adagrad without state");
    is_str(err.msg, "table 0: optimizer 'rowwise_adagrad' needs state",
           "the sentence");
    device_close(device);
}

static void test_cold_sets(void)
{
    uint64_t mib = (uint64_t)1 << 20;

    is_i64(lookup_n_cold_sets(0), 16, "16 batches that touch nothing");
    is_i64(lookup_n_cold_sets(6 * mib), 15, "all sets touch 96 MiB at most,");
    is_i64(lookup_n_cold_sets(12 * mib - 1), 8, "... here exactly,");
    is_i64(lookup_n_cold_sets(UINT64_MAX - 1), 4, "... but there are four");
    is_i64((int64_t)lookup_touched_bytes(10, 1000, 16, PRECISION_FP32), 1280,
           "ten rows of 64 bytes, and their state");
    is_i64((int64_t)lookup_touched_bytes(1000, 10, 16, PRECISION_FP16), 960,
           "no row is touched twice");
}

int main(void)
{
    for (size_t i = 0; i < N_CASES; i++)
        test_case(&CASES[i], 100 + i);
    test_part();
    test_rejected();
    test_cold_sets();
    return tap_done();
}
