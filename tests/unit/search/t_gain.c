/* SPDX-License-Identifier: MIT */
/* Rules of advice: the gain beyond which a more complicated plan is
 * recommended. */
#include "search/gain.h"

#include "tests/tap.h"

/* GPU work and host of a simpler plan and of another one. */
struct gain_case {
    const char *name;
    double simple_ms, simple_host_ms, other_ms, other_host_ms;
    struct gain_rule rule;
    double want; /* gain beyond the rule */
};

static const struct gain_case cases[] = {
    {"GPU work counts", 12, 0, 10, 0, {.error_frac = 0}, 0.2},
    {"beyond the error", 12, 0, 10, 0, {.error_frac = 0.05}, 0.15},
    {"an equal plan gains nothing", 10, 3, 10, 3, {.error_frac = 0}, 0},
    /* steps are 5 and 5.2 ms: the root of 4/3 x 5/5.2 is 1.1323 */
    {"a further kind also counts by the step",
     4,
     3,
     3,
     4.247352116,
     {.error_frac = 0},
     0.132277034},
    {"a change of training may not hide behind the host",
     2,
     3,
     1,
     3,
     {.changes_training = true},
     0},
    {"the same gain without a change of training",
     2,
     3,
     1,
     3,
     {.error_frac = 0},
     0.510083061},
    {"a known dense part: the step counts, with its share of the error",
     4,
     3,
     3,
     3,
     {.error_frac = 0.1, .knows_dense = true},
     5 / 4.242640687 - 1 - 0.05},
};

int main(void)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct gain_case *one = &cases[i];
        const struct step_parts simple = {.priced.total_ms = one->simple_ms,
                                          .host_ms = one->simple_host_ms};
        const struct step_parts other = {.priced.total_ms = one->other_ms,
                                         .host_ms = one->other_host_ms};

        is_near(gain_beyond(&simple, &other, &one->rule), one->want, 1e-7,
                one->name);
    }
    return tap_done();
}
