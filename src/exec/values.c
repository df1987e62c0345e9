/* SPDX-License-Identifier: MIT */
#include "exec/values.h"

#include "device/fp16.h"
#include "device/stream_math.h"

#include <math.h>

/* Largest magnitude of a gradient. It is large enough that the update by one
 * lookup is well above rounding errors, and that the sum over the many lookups
 * of a hot row does not hide this update. */
#define GRADIENT_MAX 0.01

/* Salts that are combined with a seed. With a table's seed they draw values
 * other than weights: optimizer states and gradients. With the seed of the
 * placement they draw the parameters and data of the dense part. */
enum {
    SALT_STATE = 0x57a7e,
    SALT_GRADIENT = 0x6a4d,
    SALT_PARAMETERS = 0xde45e,
    SALT_FEATURES = 0xfea7,
    SALT_LABELS = 0x1abe1
};

/* Range of stream_fill_value: values are between -FILL_MAX and FILL_MAX. */
#define FILL_MAX 0.05

/* Rounds numbers to the nearest values that the precision can store. */
static void round_to(float *x, uint32_t n, enum precision precision)
{
    if (precision == PRECISION_FP16)
        for (uint32_t i = 0; i < n; i++)
            x[i] = fp16_to_float(fp16_from_float(x[i]));
}

void values_weights(float *out, uint64_t table_seed, uint64_t idx, uint32_t n,
                    enum precision precision)
{
    for (uint32_t i = 0; i < n; i++)
        out[i] = stream_fill_value(table_seed, idx + i);
    round_to(out, n, precision);
}

void values_store(void *to, const float *from, size_t n,
                  enum precision precision)
{
    uint16_t *halves = to;

    if (precision == PRECISION_FP16)
        for (size_t i = 0; i < n; i++)
            halves[i] = fp16_from_float(from[i]);
    else
        memcpy(to, from, n * sizeof(float));
}

void values_load(float *to, const void *from, size_t n,
                 enum precision precision)
{
    const uint16_t *halves = from;

    if (precision == PRECISION_FP16)
        for (size_t i = 0; i < n; i++)
            to[i] = fp16_to_float(halves[i]);
    else
        memcpy(to, from, n * sizeof(float));
}

float values_state(uint64_t table_seed, uint64_t row, uint32_t col_begin)
{
    uint64_t seed = table_seed + SALT_STATE + col_begin;
    double unit = (double)(stream_random(seed, row) >> 11) * 0x1p-53;

    /* Mean square of a gradient element, varied by up to half its value. */
    return (float)((0.5 + unit) * GRADIENT_MAX * GRADIENT_MAX / 3);
}

/* Hashes the number of the bag, then applies one cheap 32-bit mix per column
 * (Wellons' lowbias32). Compilers vectorize the mix. This matters because
 * gradients are most of the reference's work. */
void values_gradient(float *out, uint64_t table_seed, uint64_t bag,
                     uint32_t col, uint32_t n, enum precision precision)
{
    uint32_t seed = (uint32_t)stream_random(table_seed + SALT_GRADIENT, bag);

    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = seed + (col + i) * 0x9e3779b9U;

        x = (x ^ (x >> 16)) * 0x7feb352dU;
        x = (x ^ (x >> 15)) * 0x846ca68bU;
        x ^= x >> 16;
        out[i] = (float)(int32_t)x * (float)(GRADIENT_MAX * 0x1p-31);
    }
    round_to(out, n, precision);
}

/* Returns the seed of one kind of values of the dense part. The seed is hashed
 * twice, because a table's seed is a hash of it, too (exec/placement.c). */
static uint64_t dense_seed(uint64_t seed, uint64_t salt)
{
    return stream_random(stream_mix64(seed) ^ salt, salt);
}

void values_parameters(float *out, uint64_t seed, const struct dense *dense)
{
    const uint64_t own_seed = dense_seed(seed, SALT_PARAMETERS);
    uint64_t idx = 0;

    for (uint32_t p = 0; p < dense->n_products; p++) {
        const struct dense_product *product = &dense->products[p];
        const double scale = 1 / (FILL_MAX * sqrt((double)product->in));
        const uint64_t end = idx + product->in * product->out +
                             (product->has_bias ? product->out : 0);

        for (; idx < end; idx++)
            out[idx] = (float)(scale * stream_fill_value(own_seed, idx));
    }
}

void values_features(float *out, uint64_t seed, uint64_t sample, uint32_t n)
{
    const uint64_t own_seed = dense_seed(seed, SALT_FEATURES);

    for (uint32_t i = 0; i < n; i++) {
        uint64_t bits = stream_random(own_seed, sample * n + i);

        out[i] = (float)(int32_t)(bits >> 40) * 0x1p-23F - 1;
    }
}

float values_label(uint64_t seed, uint64_t idx)
{
    return (float)(stream_random(dense_seed(seed, SALT_LABELS), idx) >> 63);
}
