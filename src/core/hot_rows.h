/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_HOT_ROWS_H
#define NEUROSHARD_CORE_HOT_ROWS_H

#include "base/mem.h"
#include "core/rank_law.h"
#include "core/row_order.h"

/*
 * Where in a table its look-ups fall: the rows of the hottest ranks one by one,
 * all others in proportion to their number, or, of a table that is sorted by
 * frequency, exactly. What blocks of rows have of them follows, and adds up to
 * all.
 */

/* Reuse of rows over a batch. */
struct table_use {
    double n_unique; /* rows */
    double bins[REUSE_BINS];
};

struct hot_rows {
    const struct table *table; /* not owned */
    double n_lookups;          /* of the batch */
    double kept;               /* of these, where ids are left out; else 1 */
    struct hot_slot *slot;     /* gets what the first question finds, from any
                                  thread */
    struct hot_store *store;   /* not owned */
};

/* Memory for where hot rows are, of all tables of a problem: 6 KiB for each
 * that is asked about. Lives as long as the arena. */
struct hot_store *hot_store_new(struct arena *arena);
/* Of a batch of so many look-ups, of which a job that leaves out ids keeps a
 * share; what it points to lives in the arena. The first question about
 * a block of rows takes some 100 microseconds more. */
void hot_rows_init(struct hot_rows *hot, const struct table *table,
                   double n_lookups, double kept, struct hot_store *store,
                   struct arena *arena);
/* The share of the table's look-ups that is of the rows from begin to end. */
double hot_rows_share(const struct hot_rows *hot, uint64_t begin, uint64_t end);
/* Leaves out ids such that a share of the look-ups is kept, of a batch of so
 * many with those that are left out. */
void table_use_keep(struct table_use *use, const struct table *table,
                    double n_lookups, double kept);
/* Reuse of the rows from begin to end alone, where the whole is used so; of a
 * batch of so many look-ups with those that are left out. */
struct table_use hot_rows_use(const struct hot_rows *hot, double n_lookups,
                              uint64_t begin, uint64_t end,
                              const struct table_use *whole);

#endif
