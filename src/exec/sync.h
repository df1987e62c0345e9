/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_SYNC_H
#define NEUROSHARD_EXEC_SYNC_H

#include "exec/placement.h"
#include "exec/sync_result.h"

/*
 * Sync of the sharding groups of a job (core/sharding_groups.h): averages the
 * weights and the optimizer states of all copies of the tables. GPU r of each
 * group holds the same shards, so these GPUs average their shards among
 * themselves. Replicated tables are not averaged, because all ranks update them
 * alike in each step.
 */

struct sync {
    const struct placement *placement; /* not owned */
    void **d_scratch;                  /* [n_ranks], owned */
};

/* Approximate bytes of a rank's scratch memory. Shards that are larger together
 * are averaged in several rounds. */
#define SYNC_BYTES ((uint64_t)16 << 20)

/* Returns the bytes of weights and states that a rank averages in a sync. */
uint64_t sync_bytes(const struct placement *placement, uint32_t rank);

/* Returns the bytes of scratch memory of a rank, about SYNC_BYTES at most. All
 * ranks that hold the same shards have the same number. */
size_t sync_scratch_bytes(const struct placement *placement, uint32_t rank);
/* Allocates the scratch memory, in the arena and on the device. The caller has
 * to call sync_close even after a failure. */
int sync_open(struct sync *sync, const struct placement *placement,
              struct arena *arena, struct err *err) MUST_CHECK;
void sync_close(struct sync *sync); /* accepts a zeroed struct */

/* Averages the copies. The weights of all ranks of this process must be loaded.
 * Collective. */
int sync_run(const struct sync *sync, struct err *err) MUST_CHECK;
/* Runs a sync and stores its time in *ms, from barrier to barrier. */
int sync_time(const struct sync *sync, double *ms, struct err *err) MUST_CHECK;

/* Counts the bytes that each rank has sent until now, in sent[n_ranks].
 * Collective. */
int sync_count(const struct placement *placement, uint64_t *sent,
               struct err *err) MUST_CHECK;
/* Returns the largest number of bytes that a GPU has sent between two counts,
 * as the mean over the GPUs with the same shards. */
double sync_most_sent(const struct placement *placement, const uint64_t *before,
                      const uint64_t *after);

#endif
