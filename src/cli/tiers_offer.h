/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_TIERS_OFFER_H
#define NEUROSHARD_CLI_TIERS_OFFER_H

#include "base/cli.h"
#include "core/problem.h"

/* Appends to the error of a problem for which no plan fits whether tables in
 * host memory would help: "; option '--tiers auto' keeps 57.3 GiB of a, b .. in
 * host memory: a step of 13 ms". Runs a short search of at most limit_ms
 * milliseconds (0: its own limit). Appends nothing if the command line rules
 * tiers out, if the memory of a host is not known, if the cost model has no
 * price for them, or if the search finds no plan. */
void tiers_offer(struct err *err, const struct problem *problem,
                 double limit_ms, struct cli *cli);

#endif
