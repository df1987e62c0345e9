/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_MOVES_H
#define NEUROSHARD_SEARCH_MOVES_H

#include "search/trial.h"

/*
 * What may be tried next: one random change of a layout, of a kind that
 * search/tuning.h lists, or a rebuild: some tables taken off and put back, some
 * of them cut anew: whole, in even columns, in rows, in a grid, or replicated.
 * Half of all changes begin on a device that sets the total.
 */

/* Fills an empty trial, pieces that meet joined (search/trial.h); it stays
 * empty where the draw leads nowhere. Memory is not looked at: trial_sum does.
 */
void propose(struct trial *trial, const struct layout *layout, struct rng *rng);

/*
 * Some tables are taken off a layout and put back, each in a form of its own,
 * one after the other (ruin and recreate, Schrimpf et al. 2000). To cut a table
 * otherwise pays only once others have made room for it or filled the gap: here
 * all that is one change.
 *
 * A table that is whole or cut by columns is poured, as McNaughton (1959) wraps
 * jobs around machines: it fills a device up to a target, is cut there, and
 * goes on with the next; so there are few pieces, and no gaps. The target lies
 * anywhere between the mean load and the highest one. Other forms go piece by
 * piece where there is least to do. Loads are sums of parts->load_ms; a device
 * with room goes before one without.
 */

/* Fills an empty trial with the changes that give each unit of these forms its
 * form; of columns, whatever the number of pieces. The units differ; one that
 * has a device of its own goes there. O(devices x pieces). */
void rebuild(struct trial *trial, const struct layout *layout,
             const struct form *const *forms, uint32_t n_forms,
             struct rng *rng);

#endif
