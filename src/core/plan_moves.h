/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_PLAN_MOVES_H
#define NEUROSHARD_CORE_PLAN_MOVES_H

#include "core/plan.h"

/*
 * The migration from one plan to another: the data that must be copied between
 * GPUs. Tables are matched by name and GPUs by index. The two plans may differ
 * in their tables, their number of GPUs, their batch and everything else.
 *
 * A cell (row, column) of a table stays if the same GPU holds it under both
 * plans. If the new plan puts a cell on a GPU that does not hold it under the
 * old plan, the cell is copied from a GPU that holds it under the old plan. A
 * move is the rectangle of cells that are copied from one piece of the old plan
 * to one piece of the new plan. A move copies the weights as the old plan
 * stores them. It also copies the optimizer state if the same optimizer updates
 * both pieces. (The dense optimizer updates replicas.) Size of the optimizer
 * state:
 *
 *     sgd               nothing
 *     row-wise Adagrad  4 B per row of the rectangle
 *     Adagrad           the size of the weights
 *     Adam              twice the size of the weights
 *
 * If a table has grown, its new cells are on no GPU under the old plan. They
 * count as added, not as moved. If a table has shrunk, the dropped cells are
 * not counted.
 *
 * If a table is replicated under the old plan, every GPU of the old plan has a
 * copy of it. A GPU r that needs the table copies it from GPU (r modulo the
 * number of GPUs of the old plan), so that the GPUs do not all copy from the
 * same GPU.
 */

enum table_fate {
    FATE_KEPT, /* table is in both plans, and all its cells stay */
    /* table is in both plans, and some of its cells are moved or dropped */
    FATE_MOVED,
    /* table is in both plans, but its rows, columns, precision or optimizer
     * differ. Cells that exist in both plans stay or are moved. */
    FATE_CHANGED,
    FATE_ADDED,  /* table is only in the new plan */
    FATE_REMOVED /* table is only in the old plan */
};
#define N_FATES 5
extern const char *const table_fate_names[]; /* "kept" ...; NULL-terminated */

struct move {
    uint32_t table; /* index in the tables of the new plan */
    uint64_t row_begin, row_end;
    uint32_t col_begin, col_end;
    uint32_t from, to; /* indices of the two GPUs, always different */
    uint64_t bytes;
};

/* Bytes of weights and optimizer state, of one table or of all tables. */
struct moved_bytes {
    uint64_t moved; /* bytes of all moves */
    uint64_t kept;  /* bytes of cells that stay on their GPU */
    /* bytes of cells that are on no GPU under the old plan, in the sizes of the
     * new plan */
    uint64_t added;
    uint64_t removed; /* bytes of tables that the new plan does not have */
};

struct table_moves {
    const char *name; /* name of the table, not owned */
    /* number of pieces of the table in the old plan and in the new plan */
    uint32_t n_before, n_after;
    enum table_fate fate;
    struct moved_bytes bytes;
};

struct plan_moves {
    /* [n_moves], sorted by (table, to, from, column, row) */
    struct move *moves;
    /* Length and capacity of the array `moves`. capacity is only used while
     * moves are collected. */
    size_t n_moves, capacity;
    /* [n_tables]: the tables of the new plan in the order of the new plan,
     * followed by the removed tables in the order of the old plan */
    struct table_moves *tables;
    size_t n_tables;
    size_t n_fates[N_FATES]; /* number of tables with each fate */
    /* number of devices of the plan that has more devices */
    uint32_t n_devices;
    uint64_t *sent_bytes;     /* [n_devices] */
    uint64_t *received_bytes; /* [n_devices] */
    struct moved_bytes bytes;
};

/* Finds all moves from plan `before` to plan `after`. Both plans must have
 * passed plan_check and have sorted shards. The arrays of *moves live in the
 * arena; names belong to the plans. Sums of bytes saturate. Takes O(sum over
 * the tables of (old pieces x new pieces)). */
void plan_moves_find(struct plan_moves *moves, const struct plan *before,
                     const struct plan *after, struct arena *arena);

/* The pieces of one table in one plan, sorted by shard_compare. */
struct table_pieces {
    const struct table *table;
    const struct shard *pieces; /* [n] */
    size_t n;
    uint32_t n_devices;                   /* number of devices of the plan */
    enum dense_optimizer dense_optimizer; /* dense optimizer of the plan */
    enum table_layout layout;             /* layout of the plan */
};
/* Fills out[i] with the pieces that the plan has of the table with the name of
 * tables[i], for each i < n. If the plan has no table with this name,
 * out[i].table is NULL. The tables and pieces in out[] belong to the plan. */
void table_pieces_find(struct table_pieces *out, const struct table *tables,
                       size_t n, const struct plan *plan);
/* Returns the bytes of weights and optimizer state of piece i. */
uint64_t piece_stored_bytes(const struct table_pieces *pieces, size_t i);
/* Returns the bytes that plan_moves_find counts for one table, given its pieces
 * in the old plan (`before`) and in the new plan (`after`). `removed` of the
 * result is 0. */
struct moved_bytes table_moves_count(const struct table_pieces *before,
                                     const struct table_pieces *after);

#endif
