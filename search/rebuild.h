/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_REBUILD_H
#define NEUROSHARD_SEARCH_REBUILD_H

#include "base/rng.h"
#include "search/forms.h"

/*
 * Some tables are taken off a layout and put back, each in a form of its own,
 * one after the other where there is least to do (ruin and recreate, Schrimpf
 * et al. 2000). To cut a table otherwise pays only once others have made room
 * for it or filled the gap: here all that is one change.
 */

#define REBUILD_MAX_UNITS 4

struct rebuild_unit {
    uint32_t unit;
    struct form form;
};

/* Adds the changes to the trial. The units differ, and none is pinned. Loads
 * are estimated by what pieces take alone; a device with room goes before one
 * without. O(devices x pieces). */
void rebuild(struct trial *trial, const struct layout *layout,
             const struct rebuild_unit *units, uint32_t n_units,
             struct rng *rng);

#endif
