/* SPDX-License-Identifier: MIT */
#include "tests/tap.h"

#include "lookup_case.h"

#define RATE 0.1f

/* Returns a dense gradient. Some of its rows are zero, of either sign. */
static float *dense_gradient(const struct lookup_table *table, uint64_t seed)
{
    float *dense = mem_alloc(table->n_rows * table->dim, sizeof *dense);
    struct rng rng;

    rng_init(&rng, seed, 0);
    for (uint64_t row = 0; row < table->n_rows; row++)
        for (uint32_t c = 0; c < table->dim; c++)
            switch (row % 4) {
            case 0:
                dense[row * table->dim + c] = -0.0f;
                break;
            case 1:
                break;
            default:
                dense[row * table->dim + c] = case_value(&rng);
            }
    if (table->n_rows > 5) /* a single nonzero element makes a row count */
        dense[5 * table->dim + table->dim - 1] = 1;
    return dense;
}

/* Applies the same gradient by a backward: one bag for each nonzero row. */
static int step_by_backward(struct device *device, struct lookup_table *table,
                            const float *dense, enum optimizer optimizer,
                            struct err *err)
{
    uint32_t n_rows = (uint32_t)table->n_rows, n = 0;
    uint32_t *rows = mem_alloc(n_rows, sizeof *rows);
    uint64_t *offsets = mem_alloc((size_t)n_rows + 1, sizeof *offsets);
    struct lookup_spec spec = {.tables = table,
                               .n_tables = 1,
                               .batch = n_rows,
                               .max_lookups = n_rows,
                               .optimizer = optimizer};
    struct lookup_batch batch = {rows, offsets, 0, false};
    struct lookup *lookup = NULL;
    int rc;

    for (uint32_t row = 0; row < n_rows; row++) {
        if (row % 4 > 1 || row == 5)
            rows[n++] = row;
        offsets[row + 1] = n;
    }
    batch.n_lookups = n;
    rc = lookup_open(&lookup, device, &spec, err) ||
         lookup_backward(lookup, LOOKUP_BACKWARD, &batch, dense, RATE, err);
    lookup_close(lookup);
    mem_free(rows);
    mem_free(offsets);
    return rc;
}

static void test_dense(uint64_t n_rows, uint32_t dim, enum precision precision,
                       const struct case_mode *mode)
{
    struct lookup_case one = {"dense", 1, {{n_rows, dim, 0, precision, 0}}};
    struct case_data want = case_open(&one, mode, n_rows + dim);
    float *gradient = dense_gradient(&want.tables[0], 7);
    size_t n_bytes = n_rows * dim * sizeof *gradient;
    struct device *device = open_isa("portable", 1);
    struct err err = {0};

    ok(!step_by_backward(device, &want.tables[0], gradient, mode->optimizer,
                         &err),
       "%" PRIu64 " rows x %u, %s, %s", n_rows, dim, precision_names[precision],
       mode->name);
    device_close(device);
    for (size_t i = 0; i < 3; i++) {
        struct case_data got = case_open(&one, mode, n_rows + dim);
        float *dense = mem_alloc(n_bytes, 1), *left = mem_alloc(n_bytes, 1);

        memcpy(dense, gradient, n_bytes);
        for (uint64_t row = 0; row < n_rows; row += 4)
            for (uint32_t c = 0; c < dim; c++)
                left[row * dim + c] = -0.0f;
        device = open_isa(ISAS[i], THREADS[i]);
        ok(!lookup_apply_dense(device, &got.tables[0], dense, RATE,
                               mode->optimizer, &err),
           "%s x %u", ISAS[i], THREADS[i]);
        ok(!memcmp(got.tables[0].d_weight, want.tables[0].d_weight,
                   weight_bytes(&want.tables[0])) &&
               !memcmp(got.tables[0].d_state, want.tables[0].d_state,
                       n_rows * sizeof(float)),
           "the bits of a backward");
        ok(!memcmp(dense, left, n_bytes), "used gradients are zero");
        device_close(device);
        mem_free(dense);
        mem_free(left);
        case_close(&got);
    }
    mem_free(gradient);
    case_close(&want);
}

int main(void)
{
    test_dense(1, 4, PRECISION_FP32, &MODES[0]);
    test_dense(9000, 4, PRECISION_FP32, &MODES[1]);
    test_dense(100, 20, PRECISION_FP16, &MODES[1]);
    test_dense(30, 132, PRECISION_FP16, &MODES[0]);
    test_dense(30, 260, PRECISION_FP32, &MODES[1]);
    return tap_done();
}
