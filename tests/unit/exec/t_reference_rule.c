/* SPDX-License-Identifier: MIT */
#include "exec/reference_rule.h"

#include "tests/tap.h"

/* Makes two steps of one parameter, with the gradients 2 and -1 and the rate
 * 0.1, and compares them with values computed by hand. */
static void test_rule(enum optimizer optimizer, const double want[2])
{
    static const double gradients[] = {2, -1};
    struct reference_rule rule;
    double parameter = 1;

    reference_rule_init(&rule, optimizer, 1);
    for (unsigned i = 0; i < 2; i++) {
        reference_rule_step(&rule, &parameter, &gradients[i], 0.1);
        ok(fabs(parameter - want[i]) < 1e-15, "%s: step %u gives %.17g",
           optimizer_names[optimizer], i + 1, parameter);
    }
    reference_rule_release(&rule);
}

int main(void)
{
    test_rule(OPTIMIZER_SGD, (const double[]){0.8, 0.9});
    /* s = 4, then 5 */
    test_rule(OPTIMIZER_ADAGRAD, (const double[]){1 - 0.2 / (2 + 1e-10),
                                                  1 - 0.2 / (2 + 1e-10) +
                                                      0.1 / (sqrt(5) + 1e-10)});
    /* m = 0.2, then 0.08; v = 0.004, then 0.004996 */
    test_rule(OPTIMIZER_ADAM,
              (const double[]){1 - 0.1 * 2 / (2 + 1e-8),
                               1 - 0.1 * 2 / (2 + 1e-8) -
                                   0.1 * (0.08 / 0.19) /
                                       (sqrt(0.004996 / 0.001999) + 1e-8)});
    return tap_done();
}
