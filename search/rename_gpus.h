/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_RENAME_GPUS_H
#define NEUROSHARD_SEARCH_RENAME_GPUS_H

#include "search/movement.h"
#include "search/state.h"

/*
 * GPUs that are alike may change names. A layout's are renamed such that most
 * of what they hold is there already: the assignment problem, first of the GPUs
 * of each two hosts, then of the hosts (Kuhn 1955; by shortest augmenting
 * paths, O(n^3)). Hosts stay together, so that nothing else changes for a cost
 * model that treats GPUs and hosts alike; the caller prices it.
 */

/* Pieces that stand on every GPU, row blocks in the order of the ranks and
 * pinned ones stay where they are. Not done beyond RENAME_MAX_GPUS a host,
 * or so many hosts. */
#define RENAME_MAX_GPUS 1024u
void rename_gpus(struct snapshot *snapshot, const struct parts *parts,
                 const struct homes *homes);

/* The assignment of n rows to n columns, column_of[n], of the largest sum of
 * value[n][n]; the first of equals. */
void assign_best(uint32_t *column_of, const double *value, uint32_t n);

#endif
