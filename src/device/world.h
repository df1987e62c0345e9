/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_WORLD_H
#define NEUROSHARD_DEVICE_WORLD_H

#include "device/device.h"

/*
 * The processes that run a plan together, one per rank. mpirun or srun started
 * them, or this process forked them. A world can also be this process alone,
 * which then has all ranks. Ranks exchange control data through this header;
 * embeddings travel through device/comm.h.
 *
 * All functions that take err are collective: every process calls them in the
 * same order. With MPI they fail with ERR_DEVICE and MPI's own message. Without
 * MPI they do not fail, except that an interrupt ends world_rest
 * (ERR_INTERRUPTED).
 */
struct buf; /* base/mem.h */
struct world_ops;

/* First member of the body's own struct; read-only for other modules. */
struct world {
    const struct world_ops *ops; /* NULL: a world of one */
    uint32_t rank, size;
    uint32_t local_rank, local_size; /* on this host */
    uint32_t n_hosts;
    /* Host of each rank, [size]. Hosts are numbered in the order of their first
     * ranks. Owned. */
    uint32_t *host_of;
};

/* Opens the world. It has more than one process only if a launcher started this
 * one and left its variables in the environment. Fails with ERR_USAGE if a
 * launcher did and this build has no MPI body, or an MPI that is not the
 * launcher's. Call it once per process, before threads are started. */
int world_open(struct world **out, struct err *err) MUST_CHECK;
/* Forks n processes. Each of them gets a world of all n on this host. The
 * caller gets NULL after all have ended. If one fails, the others are killed
 * and the call fails with the error code of the first that failed. The message
 * is empty if that process exited by itself, because it has already printed the
 * reason. Needs no MPI. Fails with ERR_USAGE if a launcher started this
 * process. Call it before threads or devices are opened and before anything is
 * printed. */
#define WORLD_MAX_FORKS 256
int world_fork(struct world **out, uint32_t n, struct err *err) MUST_CHECK;
void world_close(struct world *world); /* NULL is fine; collective */
/* Ends all processes at once with this exit status, because a failure of one
 * must not leave the others waiting. Returns only in a world of one. */
void world_abort(struct world *world, int status);

int world_barrier(struct world *world, struct err *err) MUST_CHECK;
/* Barrier that takes some milliseconds. Waiting processes sleep, to leave the
 * processors to those that still work. */
int world_rest(struct world *world, struct err *err) MUST_CHECK;
/* Copies data[n_bytes] of rank 0 to all processes. n_bytes must be small. */
int world_broadcast(struct world *world, void *data, size_t n_bytes,
                    struct err *err) MUST_CHECK;
/* Collects n_bytes of every process in all[world_size][n_bytes], on every
 * process. n_bytes is below 2 GiB. */
int world_all_gather(struct world *world, const void *own, size_t n_bytes,
                     void *all, struct err *err) MUST_CHECK;
/* Replaces each of numbers[n] by its maximum over all processes. */
int world_largest(struct world *world, double *numbers, size_t n,
                  struct err *err) MUST_CHECK;
/* Collects texts of any length. Rank 0 gets all of them, concatenated in the
 * order of ranks. The other ranks get nothing. */
int world_collect(struct world *world, const void *own, size_t n_bytes,
                  struct buf *all, struct err *err) MUST_CHECK;

#endif
