/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_WORLD_H
#define NEUROSHARD_DEVICE_WORLD_H

#include "device/device.h"

/*
 * A world is the set of processes that run a plan together, one process per
 * rank. They were started by mpirun or srun, or forked by this process. A world
 * can also consist of this process alone, which then has all ranks. Ranks
 * exchange control data through this header. They exchange embeddings through
 * device/comm.h.
 *
 * All functions with a parameter `err` are collective: every process must call
 * those of one world in the same order. At most one thread of a process may use
 * a world at a time. With MPI the functions fail with ERR_DEVICE and MPI's own
 * message. Without MPI they do not fail, with one exception: world_rest fails
 * with ERR_INTERRUPTED after an interrupt.
 *
 * A second world has the same processes and a channel of its own. It lets a
 * second thread of each process exchange data while the first thread computes
 * or uses the first world. Calls in one world are not ordered with calls in the
 * other.
 */
struct buf; /* base/mem.h */
struct world_ops;

/* First member of the struct with which each body (MPI, forked processes)
 * represents a world. Other modules only read it. */
struct world {
    const struct world_ops *ops; /* NULL if the world is this process alone */
    uint32_t rank, size;
    uint32_t local_rank, local_size; /* rank and size on this host */
    uint32_t n_hosts;
    /* Number of the host of each rank, [size]. Hosts are numbered in the order
     * of their lowest ranks. Owned. */
    uint32_t *host_of;
};

/* Opens the world. The world has more than one process only if a launcher
 * (mpirun, srun) started this process and left its variables in the
 * environment. Fails with ERR_USAGE if a launcher did, but this build has no
 * MPI, or has another MPI than the launcher's. Call it once per process, before
 * threads are started. */
int world_open(struct world **out, struct err *err) MUST_CHECK;
/* Opens a second world of the processes of `world`, which must not be a second
 * world itself. At most one second world may be open at a time; close it before
 * the first. A thread that waits in it sleeps, so that its processor is free
 * for other threads. With MPI, `world` must have been opened by the thread that
 * calls this, and the call fails with ERR_DEVICE if MPI does not allow several
 * threads (MPI_THREAD_MULTIPLE). Collective over `world`. */
int world_open_second(struct world **out, struct world *world,
                      struct err *err) MUST_CHECK;
void world_close(struct world *world); /* NULL is fine; collective */
/* Gives this process the rank `rank`. All processes together must choose a
 * permutation of their ranks, and rank 0 must keep its rank. The hosts are
 * numbered anew. It must be the first collective call in this world. */
int world_renumber(struct world *world, uint32_t rank,
                   struct err *err) MUST_CHECK;
/* Ends all processes of the world at once, each with this exit status. Use it
 * after a failure of one process, because the others would wait for it forever.
 * Any thread may call it, for either world. Returns only if the world is this
 * process alone. */
void world_abort(struct world *world, int status);

int world_barrier(struct world *world, struct err *err) MUST_CHECK;
/* Barrier that takes some milliseconds. Processes that wait in it sleep, to
 * leave the processors to the processes that still work. */
int world_rest(struct world *world, struct err *err) MUST_CHECK;
/* Copies data[n_bytes] of rank 0 to data of all other processes. n_bytes must
 * be small. */
int world_broadcast(struct world *world, void *data, size_t n_bytes,
                    struct err *err) MUST_CHECK;
/* Collects own[n_bytes] of all processes in all[world size][n_bytes], ordered
 * by rank. Every process gets all of them. n_bytes must be below 2 GiB. */
int world_all_gather(struct world *world, const void *own, size_t n_bytes,
                     void *all, struct err *err) MUST_CHECK;
/* Replaces each element of numbers[n] by its maximum over all processes. */
int world_largest(struct world *world, double *numbers, size_t n,
                  struct err *err) MUST_CHECK;
/* Collects one text own[n_bytes] of any length from each process. Rank 0 gets
 * all texts in `all`, concatenated in the order of ranks. The other ranks get
 * nothing. */
int world_collect(struct world *world, const void *own, size_t n_bytes,
                  struct buf *all, struct err *err) MUST_CHECK;

#endif
