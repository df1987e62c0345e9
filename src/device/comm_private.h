/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_COMM_PRIVATE_H
#define NEUROSHARD_DEVICE_COMM_PRIVATE_H

#include "device/comm.h"

/*
 * What a body of a world with more than one process implements: world_fork.c,
 * and world_mpi.c or, in a build without MPI, world_nompi.c. A world of one
 * needs none.
 */
struct world_ops {
    const char *kind; /* of its exchanges, as struct comm has it */
    void (*close)(struct world *world);
    void (*abort)(struct world *world, int status);
    int (*barrier)(struct world *world, bool sleeps, struct err *err);
    int (*all_gather)(struct world *world, const void *own, size_t n_bytes,
                      void *all, struct err *err);
    /* Blocks in host memory; each process moves those of its rank. All that
     * was started is done when finish returns. */
    int (*start)(struct world *world, const struct comm_block *blocks,
                 size_t n_blocks, struct err *err);
    int (*finish)(struct world *world, struct err *err);
};

/* Processes that a launcher started together; 1: none did. */
uint32_t world_launched_size(void);
/* launched: processes that the launcher's variables speak of, > 1. */
int world_open_mpi(struct world **out, uint32_t launched,
                   struct err *err) MUST_CHECK;

/* The body for a world of processes with a GPU each: shape is copied, apart
 * from kind and body. */
int comm_open_nccl(struct comm **out, const struct comm *shape,
                   struct err *err) MUST_CHECK;

#endif
