/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_UNIT_SEARCH_EXHAUSTIVE_H
#define NEUROSHARD_TESTS_UNIT_SEARCH_EXHAUSTIVE_H

#include "core/oracle.h"
#include "core/plan.h"

/* Prices every plan of a tiny problem, as a reference for the other searches. A
 * table may be
 *
 *   - whole on any device;
 *   - cut into columns, all widths that are multiples of 4 (or only repeated
 *     halves), each piece on any device, also several on one device;
 *   - cut into rows, blocks of ceil(rows / k) over any k >= 2 devices in their
 *     order (all devices or those of one host, if the oracle requires it);
 *   - replicated;
 *
 * as far as problem, table and oracle allow. There are no grids, and groups are
 * refused. All pieces of a pinned table are on its device. Sequences are cut as
 * the search cuts them. Devices are never treated as interchangeable, because
 * communication may distinguish them. There is no pruning, so the result is
 * right for any oracle. Time and memory grow with the product of the tables'
 * possibilities (a dim of 16 on 3 devices: 51 for table and column). */

struct exhaustive_options {
    uint64_t max_plans; /* limit on the number of plans; 10^7 take seconds */
    bool halves_only;   /* column pieces are dim / 2^h wide */
};
/* Sets max_plans to 10^7 and allows all widths. */
void exhaustive_options_init(struct exhaustive_options *options);

/* Returns the number of plans, including plans that exceed the memory;
 * saturates. */
uint64_t exhaustive_count(const struct problem *problem,
                          const struct oracle *oracle,
                          const struct exhaustive_options *options);

/* Fills a plan whose problem is set with the best plan, as search_reference
 * does (search/search.h); plan_price prices it. The first of several plans with
 * equal totals wins. Returns ERR_NO_PLAN if no plan fits, ERR_USAGE if there
 * are more than max_plans or a group, ERR_INPUT if a cost is not finite. */
int search_exhaustive(struct plan *plan, const struct oracle *oracle,
                      const struct exhaustive_options *options,
                      struct arena *arena, struct err *err) MUST_CHECK;

#endif
