/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_BOUND_H
#define NEUROSHARD_SEARCH_BOUND_H

#include "core/oracle.h"
#include "search/search_space.h"

/*
 * Lower bound of the total of all plans of a problem. It holds for plans in
 * which each table has a sharding that search/search_space.h lists, or is cut
 * into columns of any widths that are multiples of its width step.
 *
 * A bound exists only for additive oracles. Under an additive oracle the terms
 * of a device are the sums of the terms of its pieces, so for R devices
 *
 *     total  = sum over terms k of (max over devices r)
 *           >= sum over terms k of (mean over devices r)
 *            = sum of the standalone costs of all pieces / R
 *
 * Each table costs at least as much as its cheapest sharding whose pieces stay
 * below a limit. The limit of a piece is the total less the load that every
 * device has in any case. That load comes from tables that can stay below their
 * own limits only as replicas or as row blocks over all devices.
 *
 * If the cheapest shardings together exceed the memory, each byte of memory
 * gets a price (Lagrangian relaxation). The price that gives the highest bound
 * is used.
 */
struct proven {
    double ms; /* lower bound of the total in ms; NAN: there is no bound for
                  this cost model */
    const char *term;  /* the reason for the bound: "mean load", "largest piece"
                          or "memory"; NULL if there is no bound */
    const char *table; /* only if term is "largest piece": the table whose least
                          cost the limit on its pieces raises most */
};
void search_bound(struct proven *proven, const struct problem *problem,
                  const struct oracle *oracle, struct arena *arena);
/* Computes the lower bound from a search space (search/search_space.h). */
void bound_find(struct proven *proven, const struct search_space *space);

#endif
