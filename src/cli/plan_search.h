/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_PLAN_SEARCH_H
#define NEUROSHARD_CLI_PLAN_SEARCH_H

#include "cli/plan_report.h"

/* The search of the command `plan`, and the end of its time. */

/* Fills a plan whose problem is set: searches the plan (from the plan of
 * --from, if given), prices it and checks it. limit_ms is the time limit of the
 * search in ms; 0: none. */
int plan_search(struct plan *plan, struct plan_request *request,
                const struct oracle *oracle, double limit_ms,
                struct err *err) MUST_CHECK;
/* Searches the cheapest plan with at most `effort` changes. The plan is not
 * simplified, and it lacks the version and the hash of its inputs. limit_ms is
 * as in plan_search. */
int plan_probe(struct plan *plan, struct plan_request *request,
               const struct oracle *oracle, uint64_t effort, double limit_ms,
               struct err *err) MUST_CHECK;
/* Returns whether plan_price_target searches a second plan: the user chose a
 * target, and a full search finds one plan. */
bool plan_has_target_price(const struct cli *cli);
/* Fills request->price: searches the cheapest plan without the rules of the
 * target, from the same seed and with the same effort. Rows keep the order that
 * the target gives them. `plan` is the plan that obeys the rules. Leaves the
 * price unknown if no plan is found, or after an interrupt. limit_ms is the
 * time limit of the search in ms; 0: none. */
int plan_price_target(struct plan_request *request, const struct plan *plan,
                      const struct oracle *oracle, double limit_ms,
                      struct err *err) MUST_CHECK;
/* Returns the clock time in ms at which a search has to end for --time-limit,
 * or INFINITY without a limit. The limit counts from the start of the command,
 * so it covers reading the list and opening the cost model. */
double plan_search_end(const struct plan_request *request);
/* Returns the time limit in ms of a search that must end at the clock time
 * end_ms; 0: no limit. */
double plan_search_time_left(double end_ms);

#endif
