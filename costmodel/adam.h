/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_ADAM_H
#define NEUROSHARD_COSTMODEL_ADAM_H

#include "base/mem.h"

/* Adam (Kingma and Ba, ICLR 2015) with its usual constants: beta 0.9 and
 * 0.999, epsilon 1e-8, bias corrected; weight decay apart from the gradient
 * (Loshchilov and Hutter, ICLR 2019). */
struct adam {
    size_t n;
    float *m, *v; /* [n] moments, in the arena */
    unsigned step;
};
void adam_init(struct adam *adam, size_t n, struct arena *arena);
/* One step on params[n] against grad[n], which first shrink by learning_rate *
 * weight_decay of themselves. */
void adam_update(struct adam *adam, float *params, const float *grad,
                 double learning_rate, double weight_decay);

#endif
