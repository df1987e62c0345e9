/* SPDX-License-Identifier: MIT */
#include "device/cpu_kernels.h"

#include "device/fp16.h"

#define KERNELS CPU_KERNELS_PORTABLE
#define LANES 4
#define MAX_VECS 8

/* Vector of four floats. The compiler maps it to the registers that the CPU
 * has. */
typedef float vec __attribute__((vector_size(16)));

static inline vec vec_load(const char *pos, int half)
{
    uint16_t bits[LANES];
    vec value;

    if (half) {
        memcpy(bits, pos, sizeof bits);
        for (int i = 0; i < LANES; i++)
            value[i] = fp16_to_float(bits[i]);
    } else {
        memcpy(&value, pos, sizeof value);
    }
    return value;
}

static inline void vec_store(void *pos, vec value, int half)
{
    uint16_t bits[LANES];

    if (half) {
        for (int i = 0; i < LANES; i++)
            bits[i] = fp16_from_float(value[i]);
        memcpy(pos, bits, sizeof bits);
    } else {
        memcpy(pos, &value, sizeof value);
    }
}

/* Loads the last lanes of a row (a tail). Widths are multiples of 4, so a tail
 * is a whole vec. */
static inline vec vec_load_tail(const char *pos, int half, unsigned n_lanes)
{
    (void)n_lanes;
    return vec_load(pos, half);
}

static inline void vec_store_tail(void *pos, vec value, int half,
                                  unsigned n_lanes)
{
    (void)n_lanes;
    vec_store(pos, value, half);
}

#include "device/lookup_body.h"
