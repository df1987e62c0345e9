/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_SPACE_INIT_H
#define NEUROSHARD_SEARCH_SPACE_INIT_H

#include "search/search.h"
#include "search/search_space.h"

/* Builds the search space of a problem. */

/* Fills the whole search space. Arrays live in the arena.
 *
 * current: the current plan in re-planning, else NULL. It must live longer than
 * the search space. In re-planning the search space also allows every table to
 * stay as it is. So the width steps are as fine as the widths of the current
 * pieces and, unless the oracle wants equal blocks, the current row blocks are
 * in the search space. The last row block grows with its table.
 *
 * options: threads and time limit; may be NULL. Once the time limit has passed,
 * tables that can stand whole or be cut by columns get no other sharding, and
 * small tables of a long list are not cut.
 *
 * If the oracle embeds nothing (ops->embed is NULL), piece types have bytes and
 * no costs.
 *
 * Fails with
 *
 * - the errors of space_collect;
 * - ERR_USAGE if a table cannot be placed in any way that the oracle can price;
 * - ERR_INPUT if the oracle gives a cost that is not finite;
 * - ERR_INTERRUPTED after an interrupt, if the list of tables is long (a short
 *   list takes no time). */
int space_init(struct search_space *space, const struct problem *problem,
               const struct oracle *oracle, const struct current_plan *current,
               const struct search_options *options, struct arena *arena,
               struct err *err) MUST_CHECK;

#endif
