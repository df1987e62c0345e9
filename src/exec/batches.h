/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_BATCHES_H
#define NEUROSHARD_EXEC_BATCHES_H

#include "device/lookup.h"
#include "device/stream.h"
#include "exec/placement.h"

/*
 * Look-ups of a step as the ranks get them: every holder of a table draws the
 * table's one stream for the whole batch and keeps what it serves, so nobody
 * has to hold the streams of others. They are drawn on the host and stay on
 * the device.
 */

/* Look-ups of a piece on the host. */
struct bags {
    uint64_t *offsets; /* [n_bags + 1], from 0; owned */
    uint32_t *indices; /* owned */
};
/* Draws those of the piece's rows, shifted, in the samples of a group. */
void batches_draw(struct bags *bags, const struct placement *placement,
                  const struct group *group, const struct piece *piece,
                  unsigned number);
/* Those of a whole table in the samples of some ranks. */
void batches_draw_table(struct bags *bags, const struct placement *placement,
                        size_t table_idx, struct rank_range owners,
                        unsigned number);
void bags_release(struct bags *bags); /* a zeroed one is fine */

/* The look-ups of a group. */
struct index_batch {
    struct device *device;       /* not owned */
    void *d_block;               /* owned; in it: */
    struct lookup_batch lookups; /* of n_pieces tables */
};
/* A row piece keeps the look-ups of its rows, shifted; a replica those of its
 * samples. All of a piece are one bag where the group has no more (n_bags).
 * ERR_DEVICE where memory is short. */
int index_batch_init(struct index_batch *batch,
                     const struct placement *placement,
                     const struct group *group, unsigned number,
                     struct err *err) MUST_CHECK;
void index_batch_release(struct index_batch *batch); /* a zeroed one is fine */

#endif
