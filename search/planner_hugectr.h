/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_PLANNER_HUGECTR_H
#define NEUROSHARD_SEARCH_PLANNER_HUGECTR_H

#include "search/contender.h"

/* Rule of the planner of HugeCTR's DLRM sample. Fails with ERR_NO_PLAN if it
 * finds no plan. */
int rival_hugectr(struct placing *placing, struct err *err) MUST_CHECK;

#endif
