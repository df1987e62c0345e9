/* SPDX-License-Identifier: MIT */
#include <math.h>

#define LANES 4
#define FUSED(a, b, c) fused(a, b, c)
#define EVAL fast_mlp_eval_portable

typedef float lanes __attribute__((vector_size(4 * LANES)));

/* Fused multiply-add. It is one instruction if the machine has such an
 * instruction. Otherwise it is an exact but slow function. */
static inline lanes fused(lanes a, lanes b, lanes c)
{
    for (int l = 0; l < LANES; l++)
        c[l] = fmaf(a[l], b[l], c[l]);
    return c;
}

#include "costmodel/formulas/fast_mlp_body.h"
