/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_HOT_ROWS_H
#define NEUROSHARD_CORE_HOT_ROWS_H

#include "base/mem.h"
#include "core/row_order.h"

/*
 * Distribution of the lookups over the rows of a table.
 *
 * The rows of the hottest ranks are known one by one, and all other rows share
 * the rest of the lookups equally. If a table is sorted by frequency, the
 * distribution is exact for all rows. The share of the lookups that a row block
 * gets is computed from the distribution, and the shares of all row blocks add
 * up to 1.
 */

/* Reuse of the rows of a table or of a row block over one batch. */
struct table_use {
    double n_unique; /* number of unique rows */
    double bins[REUSE_BINS];
};

struct hot_rows {
    const struct table *table; /* not owned */
    /* lookups of the batch, including the ids that de-duplication removes */
    double n_lookups;
    /* share of the lookups that de-duplication of ids keeps; 1: no
     * de-duplication */
    double kept;
    /* place for the result of the first query, which any thread may store */
    struct hot_slot *slot;
    struct hot_store *store; /* not owned */
};

/* Creates the memory for the hot rows of all tables of a problem: 6 KiB for
 * each table that is queried. The memory lives as long as the arena. */
struct hot_store *hot_store_new(struct arena *arena);
/* The store also keeps the reuse of whole tables, one list for each key.
 * hot_store_uses returns the list that was kept under the key, or NULL.
 * hot_store_keep keeps a copy of use[n] and returns it; n_computed is the
 * number of entries that were computed for the list. Any thread may call both.
 */
const struct table_use *hot_store_uses(struct hot_store *store, uint64_t key);
const struct table_use *hot_store_keep(struct hot_store *store, uint64_t key,
                                       const struct table_use *use, size_t n,
                                       size_t n_computed);
/* Returns the number of entries computed for all lists so far. */
size_t hot_store_n_computed(struct hot_store *store);
/* Initialises *hot for a batch of n_lookups lookups; a job that de-duplicates
 * ids keeps the share `kept` of them. The data of *hot live in the arena. The
 * first query of a row block takes about 100 microseconds longer than later
 * queries. */
void hot_rows_init(struct hot_rows *hot, const struct table *table,
                   double n_lookups, double kept, struct hot_store *store,
                   struct arena *arena);
/* Returns the share of the table's lookups that fall to rows begin to end. */
double hot_rows_share(const struct hot_rows *hot, uint64_t begin, uint64_t end);
/* Replaces use->bins by the histogram of the uses that remain after
 * de-duplication of ids. De-duplication keeps the share `kept` of n_lookups
 * lookups. */
void table_use_keep(struct table_use *use, const struct table *table,
                    double n_lookups, double kept);
/* Returns the reuse of rows begin to end of the table. *whole must be the reuse
 * of the whole table. n_lookups are the lookups of the batch before ids are
 * de-duplicated. */
struct table_use hot_rows_use(const struct hot_rows *hot, double n_lookups,
                              uint64_t begin, uint64_t end,
                              const struct table_use *whole);

#endif
