/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_BATCHES_H
#define NEUROSHARD_EXEC_BATCHES_H

#include "device/lookup.h"
#include "device/stream.h"
#include "exec/placement.h"

/*
 * Look-ups of a step as the ranks get them: every holder of a table draws the
 * table's one stream for the whole batch and keeps what it serves, so nobody
 * has to hold the streams of others.
 */

/* The table's look-ups of a whole batch: bag = sample x num_outputs + output,
 * each with pooling_factor / num_outputs look-ups. */
void batches_stream(struct stream *stream, const struct placement *placement,
                    size_t table_idx);
/* Seed of batch `number` of an execution. */
uint64_t batches_seed(const struct placement *placement, unsigned number);

/* The look-ups of a group, in the layout of struct lookup_batch. */
struct index_batch {
    uint64_t *offsets; /* [n_pieces * n_bags + 1], owned */
    uint32_t *indices; /* [n_lookups], owned */
    uint64_t n_lookups;
};
/* A row piece keeps the look-ups of its rows, shifted; a replica those of its
 * samples. */
void index_batch_init(struct index_batch *batch,
                      const struct placement *placement,
                      const struct group *group, unsigned number);
void index_batch_release(struct index_batch *batch);
struct lookup_batch index_batch_lookups(const struct index_batch *batch);

#endif
