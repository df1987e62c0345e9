/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_COMM_PRIVATE_H
#define NEUROSHARD_DEVICE_COMM_PRIVATE_H

#include "device/comm.h"

/*
 * Interface of the bodies of a world with more than one process: world_fork.c,
 * and world_mpi.c or, in a build without MPI, world_nompi.c. A world of one
 * process has no body.
 */
struct world_ops {
    const char *kind; /* Kind of its exchanges, see struct comm. */
    void (*close)(struct world *world);
    void (*abort)(struct world *world, int status);
    int (*barrier)(struct world *world, bool sleeps, struct err *err);
    int (*all_gather)(struct world *world, const void *own, size_t n_bytes,
                      void *all, struct err *err);
    /* `start` begins to move blocks in host memory. Each process moves the
     * blocks that its rank sends or receives. All of them have moved when
     * `finish` returns. */
    int (*start)(struct world *world, const struct comm_block *blocks,
                 size_t n_blocks, struct err *err);
    int (*finish)(struct world *world, struct err *err);
};

/* Returns the number of processes that a launcher started together; 1 if no
 * launcher did. */
uint32_t world_launched_size(void);
/* launched: number of processes in the launcher's variables, > 1. */
int world_open_mpi(struct world **out, uint32_t launched,
                   struct err *err) MUST_CHECK;

/* Opens the body for a world of processes with one GPU each. `shape` is copied,
 * except kind, start and close. */
int comm_open_nccl(struct comm **out, const struct comm *shape,
                   struct err *err) MUST_CHECK;

#endif
