/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_GAIN_H
#define NEUROSHARD_SEARCH_GAIN_H

#include "core/host.h"

/* Conditions under which a more complicated plan is recommended
 * (search/advice.h). */
struct gain_rule {
    double error_frac;     /* error of the ratio of the two totals */
    bool knows_dense;      /* the dense part is known, so the step counts */
    bool changes_training; /* the more complicated plan changes training */
};
/*
 * Returns the gain of the plan `other` over a simpler one, beyond the gain that
 * the rules of advice ask for, as a share. If it is at most 0, the simpler plan
 * is recommended. The errors of the steps do not count.
 */
double gain_beyond(const struct step_parts *simple,
                   const struct step_parts *other,
                   const struct gain_rule *rule);

#endif
