/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_RESHARDABLE_H
#define NEUROSHARD_SEARCH_RESHARDABLE_H

#include "search/search_space.h"
#include "search/snapshot.h"

/*
 * Re-planning for a running job: the new plan differs from the current one only
 * by changes that TorchRec's reshard can make (core/reshard_rules.h). Pieces of
 * tables that reshard can move go to other devices as they are. All other
 * tables stay. Two pieces of a table are never on one device.
 */

/* Checks that reshard can change the plan `from` of a job to a plan of this
 * problem. Then sets current->keeps_cuts, and lists the pieces in
 * current->standing without merging those on one device. Call it after
 * current_init. Fails with ERR_INPUT. */
int reshardable_begin(struct current_plan *current, const struct plan *from,
                      const struct problem *problem, struct arena *arena,
                      struct err *err) MUST_CHECK;
/* Marks the units that stay, and sets the tuning of the search: no piece is cut
 * or merged. *tuning must live as long as the space. */
void reshardable_restrict(struct search_space *space, struct tuning *tuning);
/* Checks that all pieces of the assignment nearest to the current plan are
 * those of the current plan, and that pieces of units that stay have their
 * devices. Fails with ERR_INPUT if the options forbid a piece; the message
 * names the table. */
int reshardable_check_nearest(const struct snapshot *nearest,
                              const struct search_space *space,
                              struct err *err) MUST_CHECK;

#endif
