/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_ADAM_H
#define NEUROSHARD_COSTMODEL_ADAM_H

#include "base/mem.h"

/* Adam (Kingma and Ba, ICLR 2015) with its usual constants: beta 0.9 and
 * 0.999, epsilon 1e-8, bias corrected. */
struct adam {
    size_t n;
    float *m, *v; /* [n] moments, in the arena */
    unsigned step;
};
void adam_init(struct adam *adam, size_t n, struct arena *arena);
/* One step on params[n] against grad[n]. */
void adam_update(struct adam *adam, float *params, const float *grad,
                 double learning_rate);

#endif
