/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_WORLD_PRIVATE_H
#define NEUROSHARD_DEVICE_WORLD_PRIVATE_H

#include "device/comm_block.h"
#include "device/world.h"

/*
 * Interface of the bodies of a world with more than one process. The bodies are
 * world_fork.c and world_mpi.c. In a build without MPI, world_nompi.c replaces
 * world_mpi.c. A world of one process has no body.
 */
struct world_ops {
    /* Kind of the exchanges in this world; see struct comm. */
    const char *kind;
    void (*close)(struct world *world);
    /* Opens the second world; see world_open_second. The caller sets
     * host_of. */
    int (*open_second)(struct world **out, struct world *world,
                       struct err *err);
    /* Changes the rank and the hosts; see world_renumber. */
    int (*renumber)(struct world *world, uint32_t rank, struct err *err);
    void (*abort)(struct world *world, int status);
    int (*barrier)(struct world *world, bool sleeps, struct err *err);
    int (*all_gather)(struct world *world, const void *own, size_t n_bytes,
                      void *all, struct err *err);
    /* `start` begins to move blocks in host memory. Each process moves the
     * blocks that its rank sends or receives. When `finish` returns, all blocks
     * have moved. */
    int (*start)(struct world *world, const struct comm_block *blocks,
                 size_t n_blocks, struct err *err);
    int (*finish)(struct world *world, struct err *err);
};

/* Returns the number of processes that a launcher (mpirun, srun) started
 * together with this one, itself included. Returns 1 if no launcher started
 * it. */
uint32_t world_launched_size(void);

#endif
