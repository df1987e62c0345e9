/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_DIFF_TIERS_H
#define NEUROSHARD_EMIT_DIFF_TIERS_H

#include "core/plan.h"

#include <jansson.h>

/* Smallest relative difference of two load factors that counts. */
#define DIFF_FACTOR_FRAC 0.01

/* Tables that both plans have and whose tier (enum tier) or load factor
 * differs: the plan before, the plan after. */
struct diff_tiers {
    struct tier_change {
        const char *table; /* not owned */
        enum tier tiers[2];
        double factors[2]; /* load factors; NAN if the table is not cached */
    } * changes;           /* [n], in the order of the plan after */
    size_t n, n_tiers;     /* n_tiers: number of changes of a tier */
};

/* Compares the plans. The result lives in the arena. */
void diff_tiers_find(struct diff_tiers *out, const struct plan plans[2],
                     struct arena *arena);
/* Prints the number of changes and the first ones, as in "tiers   2 tables: a
 * hbm -> cached, b cached -> host" and on a line of its own "caches  1 load
 * factor: c 0.1 -> 0.2". Prints nothing if nothing changes. */
void diff_tiers_print(const struct diff_tiers *tiers, struct buf *out);
/* Returns a list, which the caller decrefs. */
json_t *diff_tiers_to_json(const struct diff_tiers *tiers);

#endif
