/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_REPLANNING_H
#define NEUROSHARD_CLI_REPLANNING_H

#include "cli/find_plan.h"

/*
 * plan --from OLD: the plan that stands now, and what the new one changes.
 */

extern const struct option_spec replanning_options[];

/* Loads --from. ERR_USAGE where --move-limit stands without it, or --from
 * beside another search than the full one. */
int replanning_load(struct plan_request *request, struct err *err) MUST_CHECK;

/* What standing still would cost and what the plan does, what moves, which GPUs
 * hold more than the reserve that was asked for leaves, and, where movement has
 * no limit, what some limits would bring. */
void replanning_report(const struct plan_request *request,
                       const struct plan *plan, struct buf *out);

#endif
