/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_COMM_H
#define NEUROSHARD_DEVICE_COMM_H

#include "device/world.h"

/*
 * Exchange of buffers between ranks. Bodies:
 *
 *   copy   All ranks are in this process, on one device. Blocks are copied in
 *          its memory: real data movement, but no wire.
 *   mpi    One rank per process, on CPUs.
 *   shm    One rank per process, on CPUs; world_fork has forked the processes.
 *   nccl   One rank per process, each with a GPU of its own. NCCL is loaded
 *          when it is needed.
 *
 * All bodies give the same bits.
 */
struct comm_block;

/* First member of each body's own struct; read-only for other modules. */
struct comm {
    const char *kind;      /* "copy", "mpi", "shm", "nccl" */
    struct world *world;   /* not owned */
    struct device *device; /* not owned */
    uint32_t n_ranks;
    /* Functions of the body. `start` begins to move blocks, none of which is
     * empty. `close` releases everything except the struct itself; it may be
     * NULL. */
    int (*start)(struct comm *comm, const struct comm_block *blocks,
                 size_t n_blocks, struct err *err);
    void (*close)(struct comm *comm);
};

/* Opens an exchange; its body follows from the world and the device. n_ranks:
 * ranks of the plan. If the world has more than one process, there must be
 * n_ranks processes (else ERR_USAGE, and the message gives the number to
 * start). Fails with ERR_DEVICE if NCCL is missing or two ranks would share one
 * GPU. Collective. */
int comm_open(struct comm **out, struct world *world, struct device *device,
              uint32_t n_ranks, struct err *err) MUST_CHECK;
void comm_close(struct comm *comm); /* NULL is fine */

/* Returns true if this process has that rank. In a world of one it has every
 * rank. */
bool comm_is_here(const struct comm *comm, uint32_t rank);

/* One block that moves from one rank to another or to itself. A pointer is NULL
 * if its rank is in another process. */
struct comm_block {
    uint32_t from, to;
    const void *d_src;
    void *d_dst;
    size_t n_bytes;
};
/* Moves blocks that do not overlap. Each process passes the blocks that its
 * ranks send or receive, at most one for each (from, to), in any order. It may
 * pass blocks of other ranks, too. When comm_finish returns, all blocks that
 * comm_start began to move have arrived, or are queued behind the device's work
 * in the same way as marks: device_wait or device_elapsed wait for them. Over
 * MPI, blocks move while other work goes on; other bodies queue them at once.
 * Collective. */
int comm_start(struct comm *comm, const struct comm_block *blocks,
               size_t n_blocks, struct err *err) MUST_CHECK;
int comm_finish(struct comm *comm, struct err *err) MUST_CHECK;
/* All-reduce: d_data[r][n] of every rank r becomes the sum over all ranks,
 * added in the order of ranks, so that all bodies agree. d_data[n_ranks] and
 * d_scratch[n_ranks] are ignored for ranks in other processes. Each
 * d_scratch[r] has comm_sum_scratch(n) floats: n plus fewer than n_ranks. The
 * traffic is about that of a ring. The work is queued as in comm_start, with
 * n_ranks more pieces of work. Collective. */
uint64_t comm_sum_scratch(const struct comm *comm, uint64_t n);
int comm_sum(struct comm *comm, float *const *d_data, float *const *d_scratch,
             uint64_t n, struct err *err) MUST_CHECK;

#endif
