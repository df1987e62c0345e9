/* SPDX-License-Identifier: MIT */
#include "device/elementwise.h"

#include "base/rng.h"
#include "device/fp16.h"
#include "tests/rng_normal.h"
#include "tests/unit/device/devices.h"

#include <math.h>
#include <string.h>

/* Each operation on random matrices, on all devices, compared with its
 * definition in double precision. */

#define N_ROWS 37u
#define SIZE 5u  /* vectors of PAIRS, columns of a mean */
#define N_IN 23u /* columns of the matrix of MEANS */
#define N_PAIRS (SIZE * (SIZE - 1) / 2)
#define STRIDE 40u /* more than the columns of any kind */
#define N (N_ROWS * STRIDE)

static const char *const names[] = {
#define NAME(name) #name,
    ELEMENTWISE_KINDS(NAME)};

/* Operands in host memory. */
struct operands {
    float out[N], a[N], b[N], c[N], states[2][N];
    uint16_t half[N];
};

static void draw(struct operands *operands, struct rng *rng)
{
    for (size_t i = 0; i < N; i++) {
        operands->out[i] = (float)rng_normal(rng);
        operands->a[i] = (float)rng_normal(rng);
        operands->b[i] = (float)rng_normal(rng);
        operands->c[i] = (float)rng_normal(rng);
        operands->half[i] = fp16_from_float((float)rng_normal(rng));
        operands->states[0][i] = (float)fabs(rng_normal(rng));
        operands->states[1][i] = (float)fabs(rng_normal(rng));
    }
}

static uint64_t n_cols(enum elementwise_kind kind)
{
    switch ((int)kind) {
    case ELEMENTWISE_PAIRS:
    case ELEMENTWISE_PAIRS_GRADIENT:
        return SIZE * SIZE;
    case ELEMENTWISE_MEANS:
        return (N_IN + SIZE - 1) / SIZE;
    case ELEMENTWISE_MEANS_GRADIENT:
        return N_IN;
    default:
        return 29;
    }
}

/* Returns whether the kind computes the mean of the first SIZE rows of a. */
static bool is_average(enum elementwise_kind kind)
{
    return kind == ELEMENTWISE_AVERAGE || kind == ELEMENTWISE_AVERAGE_HALF;
}

static uint64_t n_rows(enum elementwise_kind kind)
{
    return is_average(kind) ? 1 : N_ROWS;
}

/* Returns the mean of column c in the first SIZE rows, as it is stored. */
static float average_of(const struct operands *before, bool is_half, uint64_t c)
{
    float sum = 0;

    for (unsigned k = 0; k < SIZE; k++)
        sum += is_half ? fp16_to_float(before->half[k * STRIDE + c])
                       : before->a[k * STRIDE + c];
    sum /= SIZE;
    return is_half ? fp16_to_float(fp16_from_float(sum)) : sum;
}

static double mean_of(const float *row, uint64_t mean)
{
    const uint64_t end = min_u64((mean + 1) * SIZE, N_IN);
    double sum = 0;

    for (uint64_t i = mean * SIZE; i < end; i++)
        sum += row[i];
    return sum / (double)(end - mean * SIZE);
}

/* Returns the wanted element, from the operands before the operation. */
static double want(const struct operands *before, enum elementwise_kind kind,
                   uint64_t r, uint64_t c)
{
    const uint64_t i = r * STRIDE + c;
    const double out = before->out[i], a = before->a[i], b = before->b[i];
    const double half = fp16_to_float(before->half[i]);
    double first, second;

    switch ((int)kind) {
    case ELEMENTWISE_COPY:
        return a;
    case ELEMENTWISE_ADD:
        return out + a;
    case ELEMENTWISE_COPY_FROM_HALF:
        return half;
    case ELEMENTWISE_ADD_FROM_HALF:
        return out + half;
    case ELEMENTWISE_BIAS_RELU:
        return fmax(out + before->a[c], 0);
    case ELEMENTWISE_RELU_GRADIENT:
        return a > 0 ? out : 0;
    case ELEMENTWISE_MULTIPLY:
        return a * b;
    case ELEMENTWISE_MULTIPLY_ADD:
        return a * b + before->c[i];
    case ELEMENTWISE_ADD_PRODUCT:
        return out + a * b;
    case ELEMENTWISE_SCALE:
        return 0.25 * a;
    case ELEMENTWISE_AVERAGE:
        return average_of(before, false, c);
    case ELEMENTWISE_MEANS:
        return mean_of(before->a + r * STRIDE, c);
    case ELEMENTWISE_MEANS_GRADIENT:
        return before->a[r * STRIDE + c / SIZE] /
               (double)(c / SIZE < N_IN / SIZE ? SIZE : N_IN % SIZE);
    case ELEMENTWISE_LOSS:
        return log1p(exp(a)) - a * b;
    case ELEMENTWISE_LOSS_GRADIENT:
        return 0.25 * (1 / (1 + exp(-a)) - b);
    case ELEMENTWISE_SGD:
        return out - 0.25 * a;
    case ELEMENTWISE_ADAGRAD:
        return out - 0.25 * a / sqrt(before->states[0][i] + a * a);
    case ELEMENTWISE_ADAM:
        first = 0.9 * before->states[0][i] + 0.1 * a;
        second = 0.999 * before->states[1][i] + 0.001 * a * a;
        return out - 0.25 * first / (sqrt(second) / 0.5 + 1e-8);
    default:
        return NAN;
    }
}

/* Returns the wanted element of the two kinds that move pairs, or the old
 * element if the kind does not write it. `list[p]` is the pair of column p. */
static double want_pair(const struct operands *before,
                        enum elementwise_kind kind, uint64_t r, uint64_t c)
{
    static const unsigned list[N_PAIRS][2] = {{1, 0}, {2, 0}, {2, 1}, {3, 0},
                                              {3, 1}, {3, 2}, {4, 0}, {4, 1},
                                              {4, 2}, {4, 3}};
    const float *row = before->a + r * STRIDE;

    if (kind == ELEMENTWISE_PAIRS)
        return c < N_PAIRS ? row[list[c][0] * SIZE + list[c][1]]
                           : before->out[r * STRIDE + c];
    for (unsigned p = 0; p < N_PAIRS; p++)
        if ((list[p][0] == c / SIZE && list[p][1] == c % SIZE) ||
            (list[p][1] == c / SIZE && list[p][0] == c % SIZE))
            return row[p];
    return 0;
}

static void run(struct device *device, struct operands *operands,
                enum elementwise_kind kind)
{
    struct operands *d_all = test_device_alloc(device, sizeof(*d_all));
    const bool from_half = kind == ELEMENTWISE_COPY_FROM_HALF ||
                           kind == ELEMENTWISE_ADD_FROM_HALF ||
                           kind == ELEMENTWISE_AVERAGE_HALF;
    const bool to_half =
        kind == ELEMENTWISE_COPY_TO_HALF || kind == ELEMENTWISE_AVERAGE_HALF;
    const struct elementwise job = {
        .kind = kind,
        .n_rows = n_rows(kind),
        .n_cols = n_cols(kind),
        .out = {to_half ? (void *)d_all->half : d_all->out, STRIDE},
        .a = {from_half ? (void *)d_all->half : d_all->a,
              kind == ELEMENTWISE_BIAS_RELU ? 0 : STRIDE},
        .b = {d_all->b, STRIDE},
        .c = {d_all->c, STRIDE},
        .d_state = {d_all->states[0], d_all->states[1]},
        .size = SIZE,
        .n_in = N_IN,
        .scale = 0.25F,
        .root = 0.5F,
    };
    struct err err = {0};

    ok(!device_upload(device, d_all, operands, sizeof(*operands), &err) &&
           !device_elementwise(device, &job, &err) &&
           !device_download(device, operands, d_all, sizeof(*operands), &err),
       "%s runs %s", names[kind], err.msg);
    device_free(device, d_all);
}

/* Returns the largest error, relative to 1 + |want|. Elements outside of the
 * matrix must keep their values, or the error is infinite. */
static double error_of(const struct operands *before,
                       const struct operands *after, enum elementwise_kind kind)
{
    const bool has_pairs =
        kind == ELEMENTWISE_PAIRS || kind == ELEMENTWISE_PAIRS_GRADIENT;
    double error = 0;

    for (uint64_t r = 0; r < N_ROWS; r++)
        for (uint64_t c = 0; c < STRIDE; c++) {
            const uint64_t i = r * STRIDE + c;
            double value;

            if (c >= n_cols(kind) || r >= n_rows(kind)) {
                if (after->out[i] < before->out[i] ||
                    after->out[i] > before->out[i])
                    return INFINITY;
                continue;
            }
            if (kind == ELEMENTWISE_COPY_TO_HALF) {
                if (after->half[i] != fp16_from_float(before->a[i]))
                    return INFINITY;
                continue;
            }
            if (kind == ELEMENTWISE_AVERAGE_HALF) {
                if (after->half[i] !=
                    fp16_from_float(average_of(before, true, c)))
                    return INFINITY;
                continue;
            }
            value = has_pairs ? want_pair(before, kind, r, c)
                              : want(before, kind, r, c);
            error =
                fmax(error, fabs(after->out[i] - value) / (1 + fabs(value)));
        }
    return error;
}

/* Compares the states after an update with Adam's and Adagrad's rule. */
static double state_error(const struct operands *before,
                          const struct operands *after,
                          enum elementwise_kind kind)
{
    double error = 0;

    for (uint64_t r = 0; r < N_ROWS; r++)
        for (uint64_t c = 0; c < n_cols(kind); c++) {
            const uint64_t i = r * STRIDE + c;
            const double a = before->a[i];
            double first = before->states[0][i], second = before->states[1][i];

            if (kind == ELEMENTWISE_ADAGRAD)
                first += a * a;
            if (kind == ELEMENTWISE_ADAM) {
                first = 0.9 * first + 0.1 * a;
                second = 0.999 * second + 0.001 * a * a;
            }
            error = fmax(error, fabs(after->states[0][i] - first));
            error = fmax(error, fabs(after->states[1][i] - second));
        }
    return error;
}

int main(void)
{
    struct operands *before = mem_alloc(1, sizeof(*before));
    struct operands *after = mem_alloc(1, sizeof(*after));
    struct operands *first = mem_alloc(N_ELEMENTWISE, sizeof(*first));
    bool has_first = false;

    for (size_t d = 0; d < N_TEST_DEVICES; d++) {
        struct device *device = test_device_open(&TEST_DEVICES[d]);
        struct rng rng;

        if (!device)
            continue;
        rng_init(&rng, 5, 0);
        for (unsigned k = 0; k < N_ELEMENTWISE; k++) {
            const enum elementwise_kind kind = (enum elementwise_kind)k;
            double error;

            draw(before, &rng);
            *after = *before;
            run(device, after, kind);
            error = fmax(error_of(before, after, kind),
                         state_error(before, after, kind));
            ok(error < 1e-6, "%s: error %.2g", names[k], error);
            if (!has_first)
                first[k] = *after;
            else if (kind != ELEMENTWISE_LOSS &&
                     kind != ELEMENTWISE_LOSS_GRADIENT)
                ok(!memcmp(&first[k], after, sizeof(*after)),
                   "%s: same bits on all devices", names[k]);
        }
        has_first = true;
        device_close(device);
    }
    mem_free(before);
    mem_free(after);
    mem_free(first);
    return tap_done();
}
