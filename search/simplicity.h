/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_SIMPLICITY_H
#define NEUROSHARD_SEARCH_SIMPLICITY_H

#include "core/plan.h"

/* How complicated a plan is. Fewer tables whose training changes are simpler;
 * with as many, fewer pieces are. */
struct simplicity {
    size_t n_changed; /* tables whose training changes
                         (shard_changes_training) */
    size_t n_pieces;
};

/* Returns the simplicity of a plan. Its shards must be sorted and have their
 * kinds. */
struct simplicity plan_simplicity(const struct plan *plan);
/* Returns whether the plan `one` is better than `other` among plans whose
 * totals are low enough: it is simpler, or as simple and cheaper. */
bool is_simpler(struct simplicity one, double one_ms, struct simplicity other,
                double other_ms);
/* Returns is_simpler for two priced plans. */
bool plan_is_simpler(const struct plan *one, const struct plan *other);

#endif
