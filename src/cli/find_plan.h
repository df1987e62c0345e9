/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_FIND_PLAN_H
#define NEUROSHARD_CLI_FIND_PLAN_H

#include "cli/command.h"
#include "search/search.h"

/*
 * The search that the options of `plan` choose, for one problem and, over a
 * range of numbers of GPUs, for one after another.
 */

struct plan_request {
    struct cli *cli;
    struct problem problem;         /* over a range that of the first number */
    struct plan from;               /* of --from: what stands now */
    struct replan_report replanned; /* of the search from there */
    struct search_trace trace;      /* of --trace; its points are mem_free'd */
    struct rivals rivals;           /* what others find, to be reported */
};

/* Fills a plan whose problem is set: searched, from `from` where --from is
 * given; priced and judged. */
int find_plan(struct plan *plan, struct plan_request *request,
              const struct oracle *oracle, struct err *err) MUST_CHECK;

/*
 * Plans for each number of GPUs that --gpus asks about, and prints a line each
 * on stdout when it is known (--json: all at the end), then which is the
 * smallest that fits and which the fastest. --output gets the plan of the
 * smallest. SIGINT ends it after the number in hand. ERR_NO_PLAN, with what
 * would make the largest fit, where none does.
 */
int find_plans_by_count(struct plan_request *request,
                        struct err *err) MUST_CHECK;

/* plan --from OLD: the plan that stands now, and what the new one changes. */
extern const struct option_spec replanning_options[];

/* Loads --from. ERR_USAGE where --move-limit stands without it, or --from
 * beside another search than the full one. */
int replanning_load(struct plan_request *request, struct err *err) MUST_CHECK;

/* What standing still would cost and what the plan does, what moves, which GPUs
 * hold more than the reserve that was asked for leaves, and, where movement has
 * no limit, what some limits would bring. */
void replanning_report(const struct plan_request *request,
                       const struct plan *plan);
/* The text of the plan's document with the same and every move as its member
 * "movement", in the arena. */
const char *replanning_to_json(const struct plan_request *request,
                               const struct plan *plan);

#endif
