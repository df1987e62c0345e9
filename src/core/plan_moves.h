/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_PLAN_MOVES_H
#define NEUROSHARD_CORE_PLAN_MOVES_H

#include "core/plan.h"

/*
 * The migration from one plan to another: the data that must be copied between
 * GPUs. Tables are matched by name and GPUs by index. The two plans may differ
 * in their tables, their number of GPUs, their batch and everything else.
 *
 * A cell (row, column) of a table stays if a GPU holds it under both plans. Any
 * other cell that the new plan puts on a GPU is copied from a GPU that held it.
 * A move is the rectangle of cells that are copied from one piece of the old
 * plan to one piece of the new plan. It contains the weights as the old plan
 * stores them. It also contains the optimizer state if the same optimizer
 * updates both pieces (for a replica, the dense optimizer):
 *
 *     sgd               nothing
 *     row-wise Adagrad  4 B per row of the rectangle
 *     Adagrad           once the weights
 *     Adam              twice the weights
 *
 * If a table has grown, no GPU held the new cells: they are added, not moved.
 * If a table has shrunk, the dropped cells are not counted.
 *
 * Each GPU has all of a replicated table. A GPU r that lacks the table copies
 * it from GPU r modulo the number of GPUs of the old plan, so that not all copy
 * from the same GPU.
 */

enum table_fate {
    FATE_KEPT,  /* in both plans, and each cell stays */
    FATE_MOVED, /* in both plans, and cells are moved or dropped */
    /* in both plans, with other rows, columns, precision or optimizer; the
     * cells that both have stay or are moved */
    FATE_CHANGED,
    FATE_ADDED,  /* only in the new plan */
    FATE_REMOVED /* only in the old plan */
};
#define N_FATES 5
extern const char *const table_fate_names[]; /* "kept" ...; NULL-terminated */

struct move {
    uint32_t table; /* index in the tables of the new plan */
    uint64_t row_begin, row_end;
    uint32_t col_begin, col_end;
    uint32_t from, to; /* GPUs, always different */
    uint64_t bytes;
};

/* Bytes of weights and state, of one table or of all. */
struct moved_bytes {
    uint64_t moved; /* bytes of all moves */
    uint64_t kept;  /* bytes of cells that stay on their GPU */
    /* bytes of cells that no GPU held, as the new plan stores them */
    uint64_t added;
    uint64_t removed; /* bytes of a table that the new plan does not have */
};

struct table_moves {
    const char *name; /* not owned */
    /* number of pieces in the old and the new plan */
    uint32_t n_before, n_after;
    enum table_fate fate;
    struct moved_bytes bytes;
};

struct plan_moves {
    /* [n_moves], sorted by (table, to, from, column, row) */
    struct move *moves;
    /* Length and capacity of moves; capacity is unused after collection. */
    size_t n_moves, capacity;
    /* [n_tables]: the tables of the new plan in its order, then the removed
     * tables in the order of the old plan */
    struct table_moves *tables;
    size_t n_tables;
    size_t n_fates[N_FATES]; /* number of tables by fate */
    /* the larger number of devices of the two plans */
    uint32_t n_devices;
    uint64_t *sent_bytes;     /* [n_devices] */
    uint64_t *received_bytes; /* [n_devices] */
    struct moved_bytes bytes;
};

/* Finds all moves from plan `before` to plan `after`. Both plans must have
 * passed plan_check and have sorted shards. Arrays live in the arena; names
 * belong to the plans. Sums saturate. O(sum over the tables of old pieces x new
 * pieces). */
void plan_moves_find(struct plan_moves *moves, const struct plan *before,
                     const struct plan *after, struct arena *arena);

/* The pieces of a table in a plan, sorted. */
struct table_pieces {
    const struct table *table;
    const struct shard *pieces; /* [n] */
    size_t n;
    uint32_t n_devices;                   /* number of devices of the plan */
    enum dense_optimizer dense_optimizer; /* dense optimizer of the plan */
    enum table_layout layout;             /* layout of the plan */
};
/* Fills out[n] with the pieces that the plan has of the tables with the names
 * of tables[n]. If the plan lacks a table, out[i].table is NULL. Tables and
 * pieces belong to the plan. */
void table_pieces_find(struct table_pieces *out, const struct table *tables,
                       size_t n, const struct plan *plan);
/* Returns the bytes that plan_moves_find would count for this one table, with
 * bytes.removed = 0. */
struct moved_bytes table_moves_count(const struct table_pieces *before,
                                     const struct table_pieces *after);

#endif
