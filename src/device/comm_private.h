/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_COMM_PRIVATE_H
#define NEUROSHARD_DEVICE_COMM_PRIVATE_H

#include "device/comm.h"

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
