/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_RENAME_GPUS_H
#define NEUROSHARD_SEARCH_RENAME_GPUS_H

#include "search/search_space.h"
#include "search/snapshot.h"

/*
 * Renames the GPUs of an assignment such that few bytes move: a GPU gets the
 * name of a GPU that already holds many of its bytes in the current plan. This
 * is the assignment problem of combinatorial optimization. It is solved by
 * swaps of two names, first for the GPUs of each pair of hosts, then for the
 * hosts. GPUs of one host stay on one host. So the cost does not change if the
 * cost model treats all GPUs and all hosts the same. The caller prices the
 * result.
 *
 * Pieces on every GPU, row blocks in the order of the ranks and pinned pieces
 * stay where they are. Nothing is renamed if there are more than
 * RENAME_MAX_GPUS GPUs per host, more than RENAME_MAX_GPUS hosts, or more than
 * RENAME_MOST_GPUS GPUs in all. For RENAME_MOST_GPUS GPUs the matrix of pairs
 * takes 512 MiB.
 */
#define RENAME_MAX_GPUS 1024u
#define RENAME_MOST_GPUS 8192u
void rename_gpus(struct snapshot *snapshot, const struct search_space *space);

/* Assigns a different column to each of n rows and writes it to column_of[n].
 * Starts with column i for row i, and swaps the columns of two rows as long as
 * this raises the sum of value[row * stride + column]. No value may be
 * negative. Returns the sum. If each row has a value above 0 in one column
 * only, and this column differs from row to row, every row gets its column: the
 * swap with the row that holds the column raises the sum. */
double assign_by_swaps(uint32_t *column_of, const double *value, size_t stride,
                       uint32_t n);

#endif
