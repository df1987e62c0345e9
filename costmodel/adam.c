/* SPDX-License-Identifier: MIT */
#include "costmodel/adam.h"

#include <math.h>

#define BETA_1 0.9
#define BETA_2 0.999
#define EPSILON 1e-8f

void adam_init(struct adam *adam, size_t n, struct arena *arena)
{
    adam->n = n;
    adam->m = ARENA_NEW(arena, float, n);
    adam->v = ARENA_NEW(arena, float, n);
    adam->step = 0;
}

void adam_update(struct adam *adam, float *params, const float *grad,
                 double learning_rate, double weight_decay)
{
    const float keep = (float)(1 - learning_rate * weight_decay);
    const float b1 = (float)BETA_1, b2 = (float)BETA_2;
    const float c1 = (float)(1 - BETA_1), c2 = (float)(1 - BETA_2);
    float *m = adam->m, *v = adam->v;
    float rate, root;

    adam->step++;
    rate = (float)(learning_rate / (1 - pow(BETA_1, adam->step)));
    root = (float)(1 / sqrt(1 - pow(BETA_2, adam->step)));
    for (size_t i = 0; i < adam->n; i++) {
        m[i] = b1 * m[i] + c1 * grad[i];
        v[i] = b2 * v[i] + c2 * grad[i] * grad[i];
        params[i] =
            keep * params[i] - rate * m[i] / (sqrtf(v[i]) * root + EPSILON);
    }
}
