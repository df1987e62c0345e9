/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_COMM_PRIVATE_H
#define NEUROSHARD_DEVICE_COMM_PRIVATE_H

#include "device/comm.h"

/*
 * What a body of a world with more than one process implements; world_mpi.c
 * or, in a build without MPI, world_nompi.c. A world of one needs none.
 */
struct world_ops {
    void (*close)(struct world *world);
    void (*abort)(struct world *world, int status);
    int (*barrier)(struct world *world, struct err *err);
    int (*rest)(struct world *world, struct err *err);
    int (*broadcast)(struct world *world, void *data, size_t n_bytes,
                     struct err *err);
    int (*all_gather)(struct world *world, const void *own, size_t n_bytes,
                      void *all, struct err *err);
    /* Blocks in host memory; each process moves those of its rank. */
    int (*move)(struct world *world, const struct comm_block *blocks,
                size_t n_blocks, struct err *err);
};

/* First member of the body's own struct. */
struct world {
    const struct world_ops *ops; /* NULL: a world of one */
    uint32_t rank, size;
    uint32_t local_rank, local_size;
    uint32_t n_hosts;
    uint32_t *host_of; /* [size], hosts numbered by their first rank; owned by
                          the front; NULL for a world of one */
};

/* launched: processes that the launcher's variables speak of, > 1. */
int world_open_mpi(struct world **out, uint32_t launched,
                   struct err *err) MUST_CHECK;

/* What a body of the communicator implements. */
struct comm_ops {
    const char *kind;
    void (*close)(struct comm *comm); /* but for the struct; may be NULL */
    /* No block is empty. */
    int (*move)(struct comm *comm, const struct comm_block *blocks,
                size_t n_blocks, struct err *err);
};

/* First member of each body's own struct. */
struct comm {
    const struct comm_ops *ops;
    struct world *world;   /* not owned */
    struct device *device; /* not owned */
    uint32_t n_ranks;
};

/* The body for a world of processes with a GPU each: shape is copied, apart
 * from ops. */
int comm_open_nccl(struct comm **out, const struct comm *shape,
                   struct err *err) MUST_CHECK;

#endif
