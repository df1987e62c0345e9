/* SPDX-License-Identifier: MIT */
#include "tests/tap.h"

#include "lookup_case.h"

/*
 * A GPU must give the same bits as a CPU, which t_lookup_forward and
 * t_lookup_backward compare with the reference. Cases are small, because the
 * test also runs with an emulated GPU.
 */

#define FP32 PRECISION_FP32
#define FP16 PRECISION_FP16

static const struct lookup_case GPU_CASES[] = {
    {"one narrow table", 40, {{100, 4, 5, FP32, 0}}},
    {"groups of all sizes",
     37,
     {{50, 4, 3, FP32, 0},
      {50, 8, 3, FP16, 0},
      {50, 12, 3, FP32, 0},
      {50, 12, 3, FP16, 0},
      {50, 16, 3, FP32, 0},
      {50, 36, 3, FP16, 0},
      {50, 36, 3, FP32, 0},
      {50, 64, 3, FP16, 0},
      {50, 100, 3, FP32, 0},
      {50, 128, 3, FP16, 0},
      {50, 128, 3, FP32, 0}}},
    {"rows wider than a group",
     9,
     {{20, 132, 6, FP32, 0},
      {20, 132, 6, FP16, 0},
      {20, 260, 6, FP32, 0},
      {20, 256, 6, FP16, 0},
      {20, 520, 6, FP16, 0},
      {20, 2048, 6, FP32, 0},
      {20, 2044, 6, FP16, 0},
      {20, 3072, 6, FP32, 0}}},
    {"pooling 0 beside one row",
     64,
     {{10, 16, 0, FP32, 0},
      {1, 16, 3, FP32, 0},
      {1, 32, 0, FP16, 0},
      {2, 4, 0.3, FP32, 0},
      {10, 8, 0, FP32, 0}}},
    {"runs of many pieces",
     330,
     {{1, 8, 9, FP32, 0},
      {4000, 4, 2, FP32, 2},
      {2, 36, 4, FP16, 0},
      {3, 132, 5, FP32, 0},
      {500, 16, 3, FP32, 0}}},
    {"tables of several spans",
     256,
     {{1, 128, 40, FP32, 0}, {9, 4, 45, FP32, 0}, {3, 20, 38, FP16, 0}}},
    {"keys of 64 bits",
     50,
     {{UINT32_MAX, 4, 3, FP32, 30},
      {UINT32_MAX, 8, 3, FP16, 30},
      {40, 16, 3, FP32, 0}}},
    {"one sample", 1, {{50, 24, 40, FP32, 0}}},
    {"no look-ups", 20, {{50, 24, 0, FP32, 0}, {5, 4, 0, FP16, 0}}},
    {"no samples", 0, {{50, 24, 40, FP32, 0}}},
};
#define N_GPU_CASES (sizeof GPU_CASES / sizeof GPU_CASES[0])

/* Returns device memory that holds a copy of the host data. */
static void *copied(struct device *device, const void *data, size_t n_bytes)
{
    void *d_ptr = NULL;
    struct err err = {0};

    if (device_alloc(device, &d_ptr, n_bytes, &err) ||
        device_upload(device, d_ptr, data, n_bytes, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    return d_ptr;
}

static void fetch(struct device *device, void *data, void *d_ptr,
                  size_t n_bytes)
{
    struct err err = {0};

    if (device_download(device, data, d_ptr, n_bytes, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    device_free(device, d_ptr);
}

/* Runs forward, backward, forward into the two halves of `out`, and then a
 * second backward phase by phase. All data are in device memory; the caller
 * copies the result to its own tables. */
static int step_twice(struct device *device, struct lookup *lookup,
                      const struct lookup_batch *batch, void *d_out,
                      size_t out_bytes, const void *d_grad, struct err *err)
{
    (void)device;
    if (lookup_forward(lookup, batch, d_out, err) ||
        lookup_backward(lookup, LOOKUP_BACKWARD, batch, d_grad, 0.1f, err) ||
        lookup_forward(lookup, batch, (char *)d_out + out_bytes, err))
        return -1;
    for (unsigned phase = 1; phase < LOOKUP_BACKWARD; phase *= 2)
        if (lookup_backward(lookup, phase, batch, d_grad, 0.05f, err))
            return -1;
    return 0;
}

static void run_on(struct device *device, struct case_data *data, void *out)
{
    struct lookup_table tables[CASE_MAX_TABLES];
    struct lookup_batch batch = data->lookups;
    struct lookup_spec spec = data->spec;
    size_t n = data->offsets[data->n_tables * data->batch];
    size_t out_bytes = case_out_bytes(data);
    size_t padded = (out_bytes + 15) / 16 * 16;
    void *d_out = copied(device, out, 2 * padded), *d_indices, *d_offsets;
    void *d_grad = copied(device, case_grad(data), out_bytes);
    struct lookup *lookup = NULL;
    struct err err = {0};

    memcpy(tables, data->tables, sizeof tables);
    for (uint32_t t = 0; t < data->n_tables; t++) {
        tables[t].d_weight =
            copied(device, tables[t].d_weight, weight_bytes(&tables[t]));
        tables[t].d_state = copied(device, tables[t].d_state,
                                   case_rows(&tables[t]) * sizeof(float));
    }
    d_indices = copied(device, batch.d_indices, n * (batch.wide ? 8 : 4));
    d_offsets =
        copied(device, data->offsets,
               ((size_t)data->n_tables * data->batch + 1) * sizeof(uint64_t));
    batch.d_indices = d_indices;
    batch.d_offsets = d_offsets;
    spec.tables = tables;
    if (!ok(!lookup_open(&lookup, device, &spec, &err) &&
                !step_twice(device, lookup, &batch, d_out, padded, d_grad,
                            &err) &&
                !device_wait(device, &err),
            "%s runs it", device->facts.name))
        printf("# %s\n", err.msg);
    lookup_close(lookup);
    fetch(device, out, d_out, 2 * padded);
    for (uint32_t t = 0; t < data->n_tables; t++) {
        fetch(device, data->tables[t].d_weight, tables[t].d_weight,
              weight_bytes(&tables[t]));
        fetch(device, data->tables[t].d_state, tables[t].d_state,
              case_rows(&tables[t]) * sizeof(float));
    }
    device_free(device, d_indices);
    device_free(device, d_offsets);
    device_free(device, d_grad);
}

/* Returns the index of the first table that differs, or n_tables. */
static uint32_t first_difference(const struct case_data *a,
                                 const struct case_data *b)
{
    for (uint32_t t = 0; t < a->n_tables; t++) {
        const struct lookup_table *x = &a->tables[t], *y = &b->tables[t];

        if (memcmp(x->d_weight, y->d_weight, weight_bytes(x)) != 0 ||
            memcmp(x->d_state, y->d_state, case_rows(x) * sizeof(float)) != 0)
            return t;
    }
    return a->n_tables;
}

static void compare(struct device *cpu, struct device *gpu,
                    struct case_data *want, struct case_data *got,
                    const char *name, const struct case_mode *mode)
{
    size_t n_bytes = 2 * (case_out_bytes(want) + 16);
    char *want_out = mem_alloc(n_bytes, 1), *got_out = mem_alloc(n_bytes, 1);

    printf("# %s, %s, %" PRIu64 " look-ups\n", name, mode->name,
           want->lookups.n_lookups);
    run_on(cpu, want, want_out);
    run_on(gpu, got, got_out);
    ok(!memcmp(want_out, got_out, n_bytes), "%s, %s: outputs' bits", name,
       mode->name);
    is_i64(first_difference(want, got), want->n_tables, "weights' bits");
    mem_free(want_out);
    mem_free(got_out);
    case_close(want);
    case_close(got);
}

static void test_case(struct device *cpu, struct device *gpu,
                      const struct lookup_case *lookup_case,
                      const struct case_mode *mode, uint64_t seed)
{
    struct case_data want = case_open(lookup_case, mode, seed);
    struct case_data got = case_open(lookup_case, mode, seed);

    printf("# seed %" PRIu64 "\n", seed);
    compare(cpu, gpu, &want, &got, lookup_case->name, mode);
}

/* Tests lane groups of all sizes; groups of one lane have the longest runs. */
static void test_runs(struct device *cpu, struct device *gpu)
{
    static const uint32_t DIMS[] = {4, 8, 16, 32, 64, 100, 260};

    for (size_t i = 0; i < sizeof DIMS / sizeof DIMS[0]; i++) {
        const struct case_mode *mode = &MODES[i % N_MODES];
        uint32_t longest = i ? 5000 : UINT32_MAX;
        struct case_data want = case_open_runs(DIMS[i], longest, mode, i);
        struct case_data got = case_open_runs(DIMS[i], longest, mode, i);
        char name[40];

        snprintf(name, sizeof name, "runs of 1 to %d, dim %u",
                 i ? 5000 : 1000000, DIMS[i]);
        compare(cpu, gpu, &want, &got, name, mode);
    }
}

/* Tests a random case, of any shape that fits a small memory. */
static void test_random(struct device *cpu, struct device *gpu, uint64_t seed)
{
    static const uint64_t ROWS[] = {1, 2, 30, 500};
    struct lookup_case lookup_case = {.name = "random"};
    uint32_t n_tables;
    struct rng rng;

    rng_init(&rng, seed, 3);
    lookup_case.batch = 1 + (uint32_t)rng_below(&rng, 90);
    n_tables = 1 + (uint32_t)rng_below(&rng, 9);
    if (seed % 5 == 4) {
        n_tables = CASE_MAX_TABLES - 1;
        lookup_case.batch = 1 + lookup_case.batch / 8;
    }
    for (uint32_t t = 0; t < n_tables; t++)
        lookup_case.tables[t] = (struct case_table){
            .n_rows = ROWS[rng_below(&rng, 4)],
            .dim =
                4 + 4 * (uint32_t)rng_below(&rng, rng_below(&rng, 4) ? 20 : 90),
            .precision = rng_below(&rng, 2) ? FP16 : FP32,
        };
    test_case(cpu, gpu, &lookup_case, &MODES[rng_below(&rng, N_MODES)], seed);
}

/* Applies a dense gradient; half of its rows are zeros, of either sign. */
static void apply_on(struct device *device, struct case_data *data,
                     float *dense)
{
    struct lookup_table table = data->tables[0];
    size_t dense_bytes = table.n_rows * table.dim * sizeof *dense;
    size_t state_bytes = table.n_rows * sizeof(float);
    float *d_dense = copied(device, dense, dense_bytes);
    struct err err = {0};

    table.d_weight = copied(device, table.d_weight, weight_bytes(&table));
    table.d_state = copied(device, table.d_state, state_bytes);
    if (!ok(!lookup_apply_dense(device, &table, d_dense, 0.1f,
                                data->spec.optimizer, &err),
            "%s applies it", device->facts.name))
        printf("# %s\n", err.msg);
    fetch(device, dense, d_dense, dense_bytes);
    fetch(device, data->tables[0].d_weight, table.d_weight,
          weight_bytes(&table));
    fetch(device, data->tables[0].d_state, table.d_state, state_bytes);
}

static void test_dense(struct device *cpu, struct device *gpu, uint32_t dim,
                       enum precision precision, const struct case_mode *mode)
{
    struct lookup_case one = {"dense", 1, {{27, dim, 0, precision, 0}}};
    struct case_data want = case_open(&one, mode, dim);
    struct case_data got = case_open(&one, mode, dim);
    size_t n = (size_t)27 * dim;
    float *want_dense = mem_alloc(n, sizeof *want_dense);
    float *got_dense = mem_alloc(n, sizeof *got_dense);
    struct rng rng;

    rng_init(&rng, dim, 4);
    for (size_t i = 0; i < n; i++)
        if (i / dim % 4 > 1)
            want_dense[i] = case_value(&rng);
        else
            want_dense[i] = i % 2 ? -0.0f : 0.0f;
    memcpy(got_dense, want_dense, n * sizeof *got_dense);
    apply_on(cpu, &want, want_dense);
    apply_on(gpu, &got, got_dense);
    ok(!memcmp(want_dense, got_dense, n * sizeof *got_dense) &&
           first_difference(&want, &got) == 1,
       "dense step, dim %u, %s, %s: same bits", dim, precision_names[precision],
       mode->name);
    mem_free(want_dense);
    mem_free(got_dense);
    case_close(&want);
    case_close(&got);
}

static void test_refused(struct device *gpu)
{
    struct lookup_table table = {.n_rows = 1, .dim = 3076};
    struct lookup_spec spec = {.tables = &table, .n_tables = 1, .batch = 1};
    struct lookup *lookup = NULL;
    struct err err = {0};

    is_i64(lookup_open(&lookup, gpu, &spec, &err), -1, "too wide");
    is_str(err.msg,
           "table 0: dim 3076 is too large for a GPU, at most 3072 can be run",
           "the sentence");
    table.dim = 4;
    spec.max_lookups = UINT32_MAX;
    is_i64(lookup_open(&lookup, gpu, &spec, &err), -1, "too many look-ups");
    is_str(err.msg,
           "4294967295 lookups a batch are too many for a GPU, at most "
           "4294901759 can be run",
           "the sentence");
}

int main(void)
{
    static const uint32_t DENSE_DIMS[] = {4, 8, 20, 128, 132, 516};
    struct device *cpu = open_isa("avx512", 2), *gpu;
    struct err err = {0};

    if (!device_count(DEVICE_CUDA))
        tap_skip_all("no CUDA device");
    if (device_open(&gpu, DEVICE_CUDA, 0, 0, &err)) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }
    for (size_t i = 0; i < N_GPU_CASES; i++)
        for (size_t m = 0; m < N_MODES; m++)
            test_case(cpu, gpu, &GPU_CASES[i], &MODES[m], 100 * i + m);
    test_runs(cpu, gpu);
    for (uint64_t seed = 1000; seed < 1040; seed++)
        test_random(cpu, gpu, seed);
    for (size_t i = 0; i < sizeof DENSE_DIMS / sizeof DENSE_DIMS[0]; i++)
        for (int k = 0; k < 4; k++)
            test_dense(cpu, gpu, DENSE_DIMS[i], k % 2 ? FP16 : FP32,
                       &MODES[k / 2]);
    test_refused(gpu);
    device_close(gpu);
    device_close(cpu);
    return tap_done();
}
