/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_ROWS_H
#define NEUROSHARD_EXEC_ROWS_H

#include "exec/placement.h"

/* Rows of a table that batches touch. */

/* Finds the rows that the piece holds among rows[n], which are rows of its
 * table in ascending order. Stores the index of the first one in *first.
 * Returns their number. */
size_t rows_of_piece(const struct piece *piece, const uint64_t *rows, size_t n,
                     size_t *first);

/*
 * Downloads the weights and the optimizer states of n rows of a loaded piece.
 * rows[n] are rows of its table in ascending order, all of which the piece
 * holds. Rows that are near each other are downloaded together.
 *
 * weights  [n][width], in the precision of the table
 * states   [n]; not written if the piece has no optimizer states
 */
int rows_download(const struct placement *placement, const struct piece *piece,
                  const uint64_t *rows, size_t n, void *weights, float *states,
                  struct err *err) MUST_CHECK;

#endif
