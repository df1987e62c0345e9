/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_LEARNING_TABLE_FACTORS_H
#define NEUROSHARD_COSTMODEL_LEARNING_TABLE_FACTORS_H

#include "core/plan.h"

/*
 * Factors on the predicted lookup times of tables (forward_factor and
 * backward_factor of struct table) that follow from the measured times of one
 * job. No training is needed: the next plan of the job is priced by them.
 *
 * A class is all tables with the same output, precision and optimizer and with
 * about as many columns. The measured time of a rank is the sum over its
 * classes of factor x predicted time, and the factors are the least-squares
 * solution over the ranks, relative to the predicted times. A ridge draws the
 * factors of all classes to a common one, so classes that no rank tells apart
 * get the same factor.
 */

struct table_class {
    const char *name; /* such as "pooled fp32 sgd, 33 to 64 columns" */
    uint32_t n_tables;
    double forward_factor, backward_factor;
};

struct table_factors {
    struct table_class *classes; /* [n] in the arena */
    size_t n;
    /* GPU work of the plan as it was priced, and priced by the factors */
    double before_ms, after_ms;
};

/* Measured lookups of a rank in ms; NAN: unknown. */
struct rank_lookups {
    double forward_ms, backward_ms;
};

/*
 * Finds the factors from measured[R] and stores them in the tables of the plan,
 * which must be priced with its phases. Factors that the tables already have
 * are replaced: the measured times determine the new ones. A phase that no rank
 * measured keeps its factors. Prices the plan anew.
 *
 * Fails as oracle_price_plan does, or with ERR_INPUT if the plan has no phases.
 * Prices the plan twice for each class.
 */
int table_factors_find(struct table_factors *found, struct plan *plan,
                       const struct rank_lookups *measured, struct arena *arena,
                       struct err *err) MUST_CHECK;

/* Returns a list of one object per class. The caller decrefs it. */
json_t *table_factors_to_json(const struct table_factors *found);
/* Appends a table with one line per class. */
void table_factors_print(const struct table_factors *found, struct buf *out);

#endif
