/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_REFERENCE_RULE_H
#define NEUROSHARD_EXEC_REFERENCE_RULE_H

#include "core/table.h"

#include <stdint.h>

/* Optimizer of the dense part in double precision (exec/train_reference.h). */
struct reference_rule {
    enum optimizer optimizer; /* SGD, Adagrad or Adam */
    uint64_t n;               /* number of parameters */
    uint64_t n_steps;         /* steps so far */
    double *states[2]; /* [n] each, owned; NULL if the optimizer has fewer */
};

/* Sets all states to 0. */
void reference_rule_init(struct reference_rule *rule, enum optimizer optimizer,
                         uint64_t n);
void reference_rule_release(struct reference_rule *rule); /* accepts zeroed */
/* Makes a step: updates parameters[n] by gradients[n]. rate: learning rate. */
void reference_rule_step(struct reference_rule *rule, double *parameters,
                         const double *gradients, double rate);

#endif
