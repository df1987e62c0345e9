/* SPDX-License-Identifier: MIT */
#include "tests/rng_normal.h"
#include "tests/tap.h"

#include "lookup_case.h"
#include "lookup_ref.h"

/* Runs two steps, so that the second reads the weights that the first wrote.
 * Its phases run one by one. */
static void backward(struct case_data *data, const char *isa,
                     unsigned n_threads)
{
    static const unsigned PHASES[] = {LOOKUP_BACKWARD, LOOKUP_LINEARISE,
                                      LOOKUP_SORT, LOOKUP_UPDATE};
    struct device *device = open_isa(isa, n_threads);
    struct lookup *lookup = NULL;
    struct err err = {0};
    int rc;

    data->spec.tables = data->tables;
    rc = lookup_open(&lookup, device, &data->spec, &err);
    for (int i = 0; i < 4 && !rc; i++)
        rc = lookup_backward(lookup, PHASES[i], &data->lookups, case_grad(data),
                             i ? 0.05f : 0.1f, &err);
    if (!ok(!rc, "%s, %u threads", isa, n_threads))
        printf("# %s\n", err.msg);
    lookup_close(lookup);
    device_close(device);
}

static double weight_at(const struct lookup_table *table, uint64_t i)
{
    if (table->precision == PRECISION_FP16)
        return (double)fp16_to_float(((const uint16_t *)table->d_weight)[i]);
    return (double)((const float *)table->d_weight)[i];
}

/* Returns the sum of |gradient| of each row, the scale for an error of its
 * sum. */
static double *gradient_masses(const struct case_data *data, uint32_t t)
{
    const struct lookup_table *table = &data->tables[t];
    const uint64_t *offsets = data->offsets + (size_t)t * data->batch;
    double *mass = mem_alloc(table->n_rows, sizeof *mass);

    for (uint32_t b = 0; b < data->batch; b++) {
        double largest = 0;

        for (uint32_t c = 0; c < table->dim; c++)
            largest = fmax(largest,
                           fabs((double)data->grad[(size_t)b * data->out_dim +
                                                   table->out_begin + c]));
        for (uint64_t i = offsets[b]; i < offsets[b + 1]; i++)
            mass[data->indices[i]] += largest;
    }
    return mass;
}

/* Returns the largest error of a weight, divided by its limit. The limit is
 * 1e-5 (|want| + largest |w|), plus the float rounding of the gradient's sum,
 * plus one fp16 step. */
static double worst_error(const struct case_data *got,
                          const struct case_data *want, double *state_error)
{
    double worst = 0;

    *state_error = 0;
    for (uint32_t t = 0; t < got->n_tables; t++) {
        const struct lookup_table *a = &got->tables[t], *b = &want->tables[t];
        double *mass = gradient_masses(got, t);

        for (uint64_t i = 0; i < case_rows(a) * a->dim; i++) {
            double w = weight_at(b, i), error = fabs(weight_at(a, i) - w);
            double limit =
                1e-5 * (fabs(w) + 0.5) + 0.15 * 1e-6 * mass[i / a->dim];

            if (a->precision == PRECISION_FP16)
                limit += 0x1p-10 * fabs(w) + 0x1p-24;
            worst = tap_worst(worst, error / limit);
        }
        for (uint64_t i = 0; i < a->n_rows; i++)
            *state_error = tap_worst(
                *state_error, fabs((double)(a->d_state[i] - b->d_state[i])) /
                                  (double)(1e-5f * (b->d_state[i] + 1)));
        mem_free(mass);
    }
    return worst;
}

static int same_bits(const struct case_data *a, const struct case_data *b)
{
    for (uint32_t t = 0; t < a->n_tables; t++) {
        const struct lookup_table *x = &a->tables[t], *y = &b->tables[t];

        if (!x->d_weight || !y->d_weight ||
            memcmp(x->d_weight, y->d_weight, weight_bytes(x)) != 0 ||
            memcmp(x->d_state, y->d_state, x->n_rows * sizeof(float)) != 0)
            return 0;
    }
    return 1;
}

static void test_case(const struct lookup_case *lookup_case,
                      const struct case_mode *mode, uint64_t seed)
{
    struct case_data first = case_open(lookup_case, mode, seed);
    struct case_data want = case_open(lookup_case, mode, seed);
    enum optimizer optimizer = mode->optimizer;
    const char *name = mode->name;
    double worst, state_error;

    printf("# %s, %s, seed %" PRIu64 ", %" PRIu64 " look-ups\n",
           lookup_case->name, name, seed, first.lookups.n_lookups);
    backward(&first, "avx512", 1);
    lookup_backward_ref(want.tables, want.n_tables, want.batch, &want.lookups,
                        want.grad, 0.1f, optimizer);
    lookup_backward_ref(want.tables, want.n_tables, want.batch, &want.lookups,
                        want.grad, 0.05f, optimizer);
    worst = worst_error(&first, &want, &state_error);
    ok(worst <= 1, "%s, %s: as the reference, %.3f of the limit",
       lookup_case->name, name, worst);
    ok(state_error <= 1, "%s, %s: state, %.3f of the limit", lookup_case->name,
       name, state_error);
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 3; k++) {
            struct case_data data = case_open(lookup_case, mode, seed);

            backward(&data, ISAS[i], THREADS[k]);
            ok(same_bits(&data, &first), "%s, %s: %s x %u: same bits",
               lookup_case->name, name, ISAS[i], THREADS[k]);
            case_close(&data);
        }
    case_close(&first);
    case_close(&want);
}

/* Returns the sum of n gradients, which are one part of a run. */
static float part_sum(const float *grad, int n, int stride)
{
    float sum = 0;

    for (int k = 0; k < n; k += LOOKUP_RUN_PIECE) {
        float piece = 0;

        for (int i = k; i < n && i < k + LOOKUP_RUN_PIECE; i++)
            piece += grad[i * stride];
        sum += piece;
    }
    return sum;
}

/* One row is looked up by bags of one lookup each. The test adds the gradients
 * by hand in the order that lookup.h promises. */
static void test_order(void)
{
    enum { N = 2 * LOOKUP_RUN_PART + 3 * LOOKUP_RUN_PIECE + 17, DIM = 4 };
    float weight[2 * DIM] = {0}, sum[DIM] = {0};
    struct lookup_table table = {.d_weight = weight, .n_rows = 2, .dim = DIM};
    struct device *device = open_isa("avx512", 2);
    uint32_t *indices = mem_alloc(N, sizeof *indices);
    uint64_t *offsets = mem_alloc(N + 1, sizeof *offsets);
    float *grad = mem_alloc(N * DIM, sizeof *grad);
    struct lookup_batch batch = {indices, offsets, N, false};
    struct lookup_spec spec = {
        .tables = &table, .n_tables = 1, .batch = N, .max_lookups = N};
    struct lookup *lookup = NULL;
    struct err err = {0};
    struct rng rng;
    int same = 1;

    rng_init(&rng, 5, 0);
    for (int i = 0; i < N; i++) {
        indices[i] = 1;
        offsets[i + 1] = (uint64_t)i + 1;
        for (int c = 0; c < DIM; c++)
            grad[i * DIM + c] = (float)rng_normal(&rng);
    }
    for (int k = 0; k < N; k += LOOKUP_RUN_PART)
        for (int c = 0; c < DIM; c++)
            sum[c] += part_sum(
                grad + k * DIM + c,
                N - k < LOOKUP_RUN_PART ? N - k : LOOKUP_RUN_PART, DIM);
    ok(!lookup_open(&lookup, device, &spec, &err) &&
           !lookup_backward(lookup, LOOKUP_BACKWARD, &batch, grad, 1, &err),
       "one long run");
    for (int c = 0; c < DIM; c++)
        same &= -weight[DIM + c] == sum[c] && weight[c] == 0;
    ok(same, "gradients are added in the promised order");
    lookup_close(lookup);
    device_close(device);
    mem_free(indices);
    mem_free(offsets);
    mem_free(grad);
}

/* Sums of runs of any length are correct to a few float roundings of the summed
 * values. */
static void test_runs(void)
{
    struct case_data want = case_open_runs(8, UINT32_MAX, &MODES[0], 11);
    struct case_data first = case_open_runs(8, UINT32_MAX, &MODES[0], 11);
    double *mass, worst = 0;

    lookup_backward_ref(want.tables, 1, want.batch, &want.lookups, want.grad,
                        0.1f, OPTIMIZER_SGD);
    lookup_backward_ref(want.tables, 1, want.batch, &want.lookups, want.grad,
                        0.05f, OPTIMIZER_SGD);
    backward(&first, "avx512", 2);
    mass = gradient_masses(&want, 0);
    for (size_t i = 0; i < N_RUNS * 8; i++)
        worst = tap_worst(worst, fabs(weight_at(&first.tables[0], i) -
                                      weight_at(&want.tables[0], i)) /
                                     (0.15 * mass[i / 8] + 1e-30));
    ok(worst <= 3e-7, "runs of 1 to 10^6: error %.2g of the summed values",
       worst);
    for (size_t i = 1; i < 3; i++) {
        struct case_data data = case_open_runs(8, UINT32_MAX, &MODES[0], 11);

        backward(&data, ISAS[i], THREADS[i]);
        ok(same_bits(&data, &first), "%s: same bits", ISAS[i]);
        case_close(&data);
    }
    mem_free(mass);
    case_close(&first);
    case_close(&want);
}

int main(void)
{
    for (size_t i = 0; i < N_CASES; i++)
        for (size_t m = 0; m < N_MODES; m++)
            if (m < 2 || (i + m) % 3 == 0)
                test_case(&CASES[i], &MODES[m], 200 + 100 * m + i);
    test_order();
    test_runs();
    return tap_done();
}
