/* SPDX-License-Identifier: MIT */
#include "exec/reference_rule.h"

#include "base/mem.h"

#include <assert.h>
#include <math.h>

#define ADAGRAD_EPS 1e-10
#define ADAM_BETA1 0.9
#define ADAM_BETA2 0.999
#define ADAM_EPS 1e-8

void reference_rule_init(struct reference_rule *rule, enum optimizer optimizer,
                         uint64_t n)
{
    const unsigned n_states = optimizer == OPTIMIZER_ADAM      ? 2
                              : optimizer == OPTIMIZER_ADAGRAD ? 1
                                                               : 0;

    assert(n_states || optimizer == OPTIMIZER_SGD);
    *rule = (struct reference_rule){.optimizer = optimizer, .n = n};
    for (unsigned i = 0; i < n_states; i++)
        rule->states[i] = mem_alloc((size_t)n, sizeof(double));
}

void reference_rule_release(struct reference_rule *rule)
{
    mem_free(rule->states[0]);
    mem_free(rule->states[1]);
    *rule = (struct reference_rule){0};
}

static void step_adam(const struct reference_rule *rule, double *parameters,
                      const double *gradients, double rate)
{
    const double n_steps = (double)rule->n_steps;
    const double first_bias = 1 - pow(ADAM_BETA1, n_steps);
    const double second_bias = 1 - pow(ADAM_BETA2, n_steps);
    double *first = rule->states[0], *second = rule->states[1];

    for (uint64_t i = 0; i < rule->n; i++) {
        const double g = gradients[i];

        first[i] = ADAM_BETA1 * first[i] + (1 - ADAM_BETA1) * g;
        second[i] = ADAM_BETA2 * second[i] + (1 - ADAM_BETA2) * g * g;
        parameters[i] -= rate * (first[i] / first_bias) /
                         (sqrt(second[i] / second_bias) + ADAM_EPS);
    }
}

void reference_rule_step(struct reference_rule *rule, double *parameters,
                         const double *gradients, double rate)
{
    double *state = rule->states[0];

    rule->n_steps++;
    if (rule->optimizer == OPTIMIZER_ADAM) {
        step_adam(rule, parameters, gradients, rate);
        return;
    }
    for (uint64_t i = 0; i < rule->n; i++) {
        const double g = gradients[i];

        if (state) {
            state[i] += g * g;
            parameters[i] -= rate * g / (sqrt(state[i]) + ADAGRAD_EPS);
        } else {
            parameters[i] -= rate * g;
        }
    }
}
