/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_UNIT_SEARCH_EXHAUSTIVE_H
#define NEUROSHARD_TESTS_UNIT_SEARCH_EXHAUSTIVE_H

#include "core/oracle.h"
#include "core/plan.h"

/*
 * Every plan of a tiny problem, priced: what other searches are judged by. A
 * table may stand
 *
 *   - whole on any device;
 *   - cut into columns, all widths that are multiples of 4 (or halves of
 *     halves only), each piece on any device, several on one too;
 *   - cut into rows, blocks of ceil(rows / k) over any k >= 2 devices in their
 *     order (all devices or one host's where the oracle asks for that);
 *   - replicated;
 *
 * as far as problem, table and oracle allow; no grids, groups are refused, a
 * pinned table's pieces all stand on its device, sequences are cut as the
 * search cuts them. Devices are not taken for alike, as communication may tell
 * them apart. Nothing is bounded either: so it is right for any oracle, and
 * takes time and memory of the product of the tables' possibilities (a dim of
 * 16 on 3 devices: 51 for table and column).
 */

struct exhaustive_options {
    uint64_t max_plans; /* more are refused; 10^7 takes seconds */
    bool halves_only;   /* a column piece is dim / 2^h wide */
};
/* 10^7, all widths. */
void exhaustive_options_init(struct exhaustive_options *options);

/* Plans that there are, those that exceed the memory included; saturates. */
uint64_t exhaustive_count(const struct problem *problem,
                          const struct oracle *oracle,
                          const struct exhaustive_options *options);

/* Fills a plan whose problem is set with the best one, as search_reference
 * does (search/search.h); plan_price prices it. Of equal totals the one that
 * was first met wins. ERR_NO_PLAN where none fits, ERR_USAGE where there are
 * more than max_plans or a group, ERR_INPUT for a cost that is not finite. */
int search_exhaustive(struct plan *plan, const struct oracle *oracle,
                      const struct exhaustive_options *options,
                      struct arena *arena, struct err *err) MUST_CHECK;

#endif
