/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_PLANNER_TORCHREC_H
#define NEUROSHARD_SEARCH_PLANNER_TORCHREC_H

#include "search/contender.h"

/* Rule of TorchRec's planner. Fails with ERR_NO_PLAN if it finds no plan. */
int rival_torchrec(struct placing *placing, struct err *err) MUST_CHECK;

#endif
