/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_COMM_PRIVATE_H
#define NEUROSHARD_DEVICE_COMM_PRIVATE_H

#include "device/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a body of the communicator implements. */
struct comm_ops {
    const char *kind;
    void (*close)(struct comm *comm);
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

/* What NCCL's body has to know of a GPU: the one part of it that speaks CUDA.
 */
struct comm_gpu {
    char identity[16]; /* no other GPU's */
    void *stream;      /* the device's; not owned */
};
int comm_gpu_of(struct comm_gpu *gpu, struct device *device,
                struct err *err) MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
