/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_REFERENCE_ROWS_H
#define NEUROSHARD_EXEC_REFERENCE_ROWS_H

#include "exec/batches.h"

/*
 * Rows of the tables, in double precision, that at least one batch of a
 * training looks up. Every process holds all of them.
 */

/* A piece with its touched rows. */
struct reference_piece {
    const struct piece *piece;
    /* range of the table's touched rows that the piece holds */
    size_t first, n;
    double *states; /* [n] states of row-wise Adagrad; NULL with SGD */
};

/* A copy of a table. Each sharding group has a copy of its own, except if the
 * table is replicated: then one copy stands for all. */
struct reference_table {
    const struct table *table;
    size_t table_idx;
    uint32_t copy;
    /* ranks whose samples the copy learns from, and the samples */
    struct rank_range owners;
    uint64_t first_sample, n_samples;
    /* all pieces that hold the copy */
    struct piece_range held;
    /* Pieces that hold each element of the copy once: all pieces, or the first
     * replica only. */
    struct reference_piece *pieces;
    size_t n_pieces;
    /* [n_rows] rows of the scaled table that any rank touches, ascending */
    uint64_t *rows;
    size_t n_rows;
    uint64_t pooled_begin; /* first value of the table in a pooled vector */
    double *weights;       /* [n_rows][dim] */
    /* [n_rows][dim] sum of the gradients of the current batch */
    double *gradients;
    /* lookups of the current batch; `indices` are indices of touched rows */
    struct bags bags;
};

struct reference_rows {
    const struct placement *placement; /* not owned */
    /* [n_tables]: copies of tables with outputs, those of a table next to each
     * other */
    struct reference_table *tables;
    size_t n_tables;
    uint64_t pooled;    /* values of a pooled vector */
    struct arena arena; /* memory of the arrays above, except `bags` */
};

/* Finds the touched rows of the batches numbers[n_numbers], and sets them to
 * their initial weights and states. */
void reference_rows_open(struct reference_rows *rows,
                         const struct placement *placement,
                         const unsigned *numbers, size_t n_numbers);
void reference_rows_close(struct reference_rows *rows); /* accepts zeroed */

/* Draws the lookups of a batch, which must be one of `numbers` in
 * reference_rows_open. */
void reference_rows_draw(struct reference_rows *rows, unsigned number);
/* Looks up the samples [first, first + n) of the drawn batch. Stores their
 * pooled vectors in pooled[n][rows->pooled]: the outputs of each table in the
 * order of the tables. If the exchange carries outputs in fp16, the outputs of
 * each piece are rounded, as the exchange does. */
void reference_rows_pool(const struct reference_rows *rows, uint64_t first,
                         size_t n, double *pooled);
/* Sums up the gradients of all rows. pooled_gradients[batch][rows->pooled] are
 * the gradients of the pooled vectors of the whole drawn batch. */
void reference_rows_sum(struct reference_rows *rows,
                        const double *pooled_gradients);

/* Computes touched row i after its update: the weights want[dim], and in
 * states[n_pieces] the state of each piece that holds the row. */
void reference_rows_want(const struct reference_table *table, size_t i,
                         double *want, double *states);
/* Updates all rows by their gradients. */
void reference_rows_update(struct reference_rows *rows);
/* Replaces weights and states by their means over the copies of each table. */
void reference_rows_average(struct reference_rows *rows);

#endif
