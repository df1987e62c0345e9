/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_PLAN_MOVES_H
#define NEUROSHARD_CORE_PLAN_MOVES_H

#include "core/plan.h"

/*
 * What has to be carried from GPU to GPU so that one plan becomes another.
 * Tables are matched by name, GPUs by index; the two plans may differ in
 * either, in batch, in everything.
 *
 * A cell (row, column) of a table that a GPU holds under both plans stays. Any
 * other cell that the new plan wants on a GPU comes from one that held it.
 * Cells that come together, from one piece of the old plan into one of the new,
 * are a move: a rectangle. It takes its weights as the old plan stores them
 * and, where one optimizer updates both pieces (a replica the dense one), that
 * one's state: nothing for sgd, 4 B a row of the rectangle for row-wise
 * Adagrad, once or twice the weights for Adagrad and Adam. Cells that no GPU
 * held, by which a table grew, are added, not moved; those by which it shrank
 * go with nothing said.
 *
 * Of a replicated table each GPU has all: a GPU r that lacks it takes it from
 * GPU r modulo the number there was, so that not all ask the same one.
 */

enum table_fate {
    FATE_KEPT,    /* under both plans, each cell where it was */
    FATE_MOVED,   /* under both, and something moves or goes */
    FATE_CHANGED, /* rows, columns, precision or optimizer are others; what
                     both have in common stays or moves */
    FATE_ADDED,   /* not under the old plan */
    FATE_REMOVED  /* not under the new one */
};
#define N_FATES 5
extern const char *const table_fate_names[]; /* "kept" ... NULL */

struct move {
    uint32_t table; /* of the new plan */
    uint64_t row_begin, row_end;
    uint32_t col_begin, col_end;
    uint32_t from, to; /* GPUs, never the same */
    uint64_t bytes;
};

/* Weights and state of one table, or of all. */
struct moved_bytes {
    uint64_t moved;   /* over all its moves */
    uint64_t kept;    /* of cells that stay */
    uint64_t added;   /* of cells that were nowhere, as the new plan stores
                         them */
    uint64_t removed; /* of a table that is no more */
};

struct table_moves {
    const char *name;           /* not owned */
    uint32_t n_before, n_after; /* pieces */
    enum table_fate fate;
    struct moved_bytes bytes;
};

struct plan_moves {
    struct move *moves;       /* [n_moves], by (table, to, from, column, row) */
    size_t n_moves, capacity; /* as long as they are found */
    struct table_moves *tables; /* [n_tables]: those of the new plan in its
                                   order, then the removed ones in the old's */
    size_t n_tables;
    size_t n_fates[N_FATES];  /* tables by fate */
    uint32_t n_devices;       /* the larger of the two */
    uint64_t *sent_bytes;     /* [n_devices] */
    uint64_t *received_bytes; /* [n_devices] */
    struct moved_bytes bytes;
};

/* Both plans have passed plan_check and have their shards in order. Arrays live
 * in the arena; names are the plans'. Sums saturate. O(sum over the tables of
 * old pieces x new pieces). */
void plan_moves_find(struct plan_moves *moves, const struct plan *before,
                     const struct plan *after, struct arena *arena);

/* A table's pieces under a plan, in order. */
struct table_pieces {
    const struct table *table;
    const struct shard *pieces; /* [n] */
    size_t n;
    uint32_t n_devices;                   /* of the plan */
    enum dense_optimizer dense_optimizer; /* likewise */
    enum table_layout layout;             /* likewise */
};
/* out[n]: the pieces that the plan has of the tables of these names; table is
 * NULL where it has none. They are the plan's. */
void table_pieces_find(struct table_pieces *out, const struct table *tables,
                       size_t n, const struct plan *plan);
/* What plan_moves_find would say of this one table: bytes.removed is 0. */
struct moved_bytes table_moves_count(const struct table_pieces *before,
                                     const struct table_pieces *after);

#endif
