/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_BATCHES_H
#define NEUROSHARD_EXEC_BATCHES_H

#include "device/lookup.h"
#include "device/stream.h"
#include "exec/placement.h"

/*
 * Index batches: the lookups of a step, as the ranks get them.
 *
 * A table has a single random stream of lookups for the whole batch. Every rank
 * that holds a piece of the table draws the whole stream and keeps the lookups
 * that the piece serves. So ranks need not store or send streams. Lookups are
 * drawn on the host and then stay on the device.
 */

/* Number of the batch of the step that is compared with the reference. */
#define STEP_BATCH 0

/* Lookups of one piece, in host memory. */
struct bags {
    uint64_t *offsets; /* [n_bags + 1], begins with 0; owned */
    uint32_t *indices; /* [offsets[n_bags]] row numbers; owned */
    /* number of lookups of the whole table before the first bag */
    uint64_t n_before;
};
/* Draws batch `number` of a piece's table. Keeps the lookups of the piece's
 * rows in the samples that the group covers. If the job de-duplicates the
 * table's ids, keeps only the first lookup of a row by each rank. Row numbers
 * in `indices` count from the piece's first row. There are group_input_bags
 * bags. The caller releases *bags. */
void batches_draw(struct bags *bags, const struct placement *placement,
                  const struct group *group, const struct piece *piece,
                  unsigned number);
/* Draws batch `number` of a whole table and keeps the samples that belong to
 * the ranks `owners`. If `is_sent` is true, keeps only the ids that these ranks
 * send, which differ from all ids if the job de-duplicates them. The caller
 * releases *bags. */
void batches_draw_table(struct bags *bags, const struct placement *placement,
                        size_t table_idx, struct rank_range owners,
                        unsigned number, bool is_sent);
void bags_release(struct bags *bags); /* accepts a zeroed struct */

/* Lookups of all pieces of a group, in device memory. */
struct index_batch {
    struct device *device; /* device that holds the lookups; not owned */
    /* device memory of the arrays of `lookups`; owned */
    void *d_block;
    uint64_t max_lookups; /* number of lookups that d_block has room for */
    struct lookup_batch lookups; /* one table for each piece of the group */
};
/* Allocates memory for a batch of the group with at most max_lookups lookups.
 * ERR_DEVICE if the device has too little free memory. */
int index_batch_open(struct index_batch *batch, struct device *device,
                     const struct group *group, uint64_t max_lookups,
                     struct err *err) MUST_CHECK;
/* Uploads the lookups of a group, which replace those of the batch. parts[i]
 * are the bags of piece i of the group. `through` is the device that copies
 * them. It is the device of the batch, or any CPU if the batch is in host
 * memory. */
int index_batch_place(struct index_batch *batch, struct device *through,
                      const struct group *group, const struct bags *parts,
                      struct err *err) MUST_CHECK;
/*
 * Draws batch `number` for every piece of the group and uploads the lookups. A
 * row-wise piece keeps the lookups of its own rows, and its row numbers count
 * from its first row. A replica keeps the lookups of its rank's own samples. If
 * the group's n_bags is 1, all lookups of a piece form one bag. For a sequence
 * each lookup is a bag. There are n_bags of them, as many as in the compared
 * step: if another batch has more lookups, the last ones are dropped; if it has
 * fewer, the last bags are empty. ERR_DEVICE if the device has too little free
 * memory.
 */
int index_batch_init(struct index_batch *batch,
                     const struct placement *placement,
                     const struct group *group, unsigned number,
                     struct err *err) MUST_CHECK;
/* Releases the device memory of the batch; accepts a zeroed struct. */
void index_batch_release(struct index_batch *batch);

#endif
