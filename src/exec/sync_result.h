/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_SYNC_RESULT_H
#define NEUROSHARD_EXEC_SYNC_RESULT_H

#include "core/sample.h"

#include <stdint.h>

/* Syncs of the sharding groups in an execution (exec/sync.h). */
struct sync_result {
    uint32_t n;         /* number of timed syncs; 0: the other members are 0 */
    struct timing time; /* from barrier to barrier */
    /* Bytes that a GPU sends in one sync, as the communicator has counted them:
     * the mean over the GPUs with the same shards in all groups. It is the
     * largest of these means. */
    double sent_bytes;
};

#endif
