/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_TIER_POLISH_H
#define NEUROSHARD_SEARCH_TIER_POLISH_H

#include "core/plan.h"

/*
 * Improves the tiers of a plan by its price.
 *
 * A search prices caches as if each device chose its slots freely, but a table
 * has one load factor for all devices (core/load_factors.h). So a plan may cost
 * more than its search believed. This function chooses the load factors of the
 * plan, and moves single tables to other tiers while the price of the plan
 * falls. Pieces stay where they are.
 *
 * The tables with most bytes are tried first, and the number of prices is
 * limited. A table with less than a thousandth of all bytes is tried in the
 * memory of GPUs only. Shards and load factors that change are in the arena.
 * Returns the number of prices.
 */
uint64_t tier_polish(struct plan *plan, const struct oracle *oracle,
                     struct arena *arena);

#endif
