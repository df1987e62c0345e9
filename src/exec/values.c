/* SPDX-License-Identifier: MIT */
#include "exec/values.h"

#include "device/fp16.h"
#include "device/stream_math.h"

/* Largest magnitude of a gradient. It is large enough that the update by one
 * lookup is well above rounding errors, and that the sum over the many lookups
 * of a hot row does not hide this update. */
#define GRADIENT_MAX 0.01

/* Salts that are combined with a table's seed to draw values other than
 * weights: optimizer states and gradients. */
enum { SALT_STATE = 0x57a7e, SALT_GRADIENT = 0x6a4d };

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
