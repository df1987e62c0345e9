/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXPLAIN_SCENARIOS_H
#define NEUROSHARD_EXPLAIN_SCENARIOS_H

#include "base/json.h"
#include "core/plan.h"

/*
 * A scenario is a plan under other conditions. It either keeps the placement
 * and prices it under other settings, or has a fresh plan that a new search
 * found.
 */

struct scenario {
    const char *name; /* such as "as it is", "batch=131072" or "on 16 GPUs" */
    bool is_fresh;    /* the plan is of a new search */
    /* priced plan in the arena; NULL: no plan was found */
    const struct plan *plan;
    /* reason why there is no plan, or why the plan does not fit: a sentence
     * without a full stop; NULL: the plan fits */
    const char *why_not;
    /* command line that would make a plan that fits, or NULL */
    const char *command;
};

/* Prints a table of scenarios. The first is the plan as it is. Below the table
 * are the reasons why plans do not fit, with the next command, and the searches
 * that ended early. */
void scenarios_print(const struct scenario *scenarios, size_t n,
                     struct buf *out);
json_t *scenarios_to_json(const struct scenario *scenarios, size_t n);

/* Prints "next: " and a command line. A line of it has at most about 76 columns
 * and ends in a backslash if it goes on, so a shell takes the lines as they
 * are. `indent` is the number of blanks before each line. */
void scenario_print_command(const char *command, int indent, struct buf *out);

/* Gain of a fresh plan over another plan. */
struct plan_gain {
    double ratio; /* GPU work of the other plan by that of the fresh plan; NAN
                     if there is no fresh plan */
    /* error of the ratio; if it is not known, the smallest change of a step
     * that counts, a thousandth */
    double error_frac;
    bool is_error;       /* the error is known */
    bool is_significant; /* the ratio exceeds 1 by more than error_frac */
};
/* Returns the gain of the fresh plan over `now`. Both are priced by one cost
 * model. */
struct plan_gain gain_of(const struct plan *fresh, const struct plan *now);

/* Prints scenarios with fresh plans, each with its gain over `now`. The first
 * scenario has the same conditions as `now`, and a sentence judges it. If its
 * plan is significantly faster, the gains of the others are over this plan,
 * because else they would include the gain of more search. */
void fresh_plans_print(const struct scenario *scenarios, size_t n,
                       const struct plan *now, struct buf *out);
json_t *fresh_plans_to_json(const struct scenario *scenarios, size_t n,
                            const struct plan *now);

/* Returns the reason why a search ended early, as "was cut short by the time
 * limit"; NULL if it did not end early. */
const char *scenario_cut_short(const struct plan *plan);

#endif
