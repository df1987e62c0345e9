/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_BATCHES_H
#define NEUROSHARD_EXEC_BATCHES_H

#include "device/lookup.h"
#include "device/stream.h"
#include "exec/placement.h"

/*
 * Index batches: the lookups of a step, as the ranks get them. Every rank that
 * holds a piece of a table draws the table's single random stream for the whole
 * batch and keeps the lookups that it serves. So no rank has to store the
 * streams of other ranks. Lookups are drawn on the host and then stay on the
 * device.
 */

/* Lookups of a piece, on the host. */
struct bags {
    uint64_t *offsets; /* [n_bags + 1], starting at 0; owned */
    uint32_t *indices; /* owned */
};
/* Draws batch `number` of the piece's table and keeps the lookups of the
 * piece's rows in the samples of the group. Row numbers in `indices` count from
 * the piece's first row. The caller releases *bags. */
void batches_draw(struct bags *bags, const struct placement *placement,
                  const struct group *group, const struct piece *piece,
                  unsigned number);
/* Draws batch `number` of a whole table and keeps the samples of the ranks
 * `owners`. The caller releases *bags. */
void batches_draw_table(struct bags *bags, const struct placement *placement,
                        size_t table_idx, struct rank_range owners,
                        unsigned number);
void bags_release(struct bags *bags); /* a zeroed struct is fine */

/* Lookups of a group, on the device. */
struct index_batch {
    struct device *device;       /* not owned */
    void *d_block;               /* owned; holds the arrays of `lookups` */
    struct lookup_batch lookups; /* one table for each piece of the group */
};
/* Draws batch `number` for every piece of the group and uploads it. A piece of
 * rows keeps the lookups of its own rows, numbered from the piece's first row.
 * A replica keeps the lookups of its rank's own samples. If the group's n_bags
 * is 1, all lookups of a piece form one bag. ERR_DEVICE if device memory is too
 * small. */
int index_batch_init(struct index_batch *batch,
                     const struct placement *placement,
                     const struct group *group, unsigned number,
                     struct err *err) MUST_CHECK;
/* a zeroed struct is fine */
void index_batch_release(struct index_batch *batch);

#endif
