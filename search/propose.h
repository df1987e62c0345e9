/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_PROPOSE_H
#define NEUROSHARD_SEARCH_PROPOSE_H

#include "search/trial.h"

/*
 * What may be tried next: one random change of a layout. Half of all changes
 * begin on a device that sets the total.
 *
 *   move     a piece to another device
 *   swap     two pieces of two devices
 *   eject    a piece to another device, and one from there to a third
 *   split    columns of a piece become a piece of their own
 *   merge    two column pieces of one table become one
 *   resplit  columns go over from one piece of a table to another
 *   recut    a table anew: whole, in even columns, in rows, in a grid, or
 *            replicated
 *   rebuild  some tables taken off and put back, some of them cut anew
 *            (search/rebuild.h)
 */

/* Fills an empty trial, pieces that meet joined (search/trial.h); it stays
 * empty where the draw leads nowhere. Memory is not looked at: trial_sum does.
 */
void propose(struct trial *trial, const struct layout *layout, struct rng *rng);

#endif
