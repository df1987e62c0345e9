/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_COMM_H
#define NEUROSHARD_DEVICE_COMM_H

#include "device/world.h"

/*
 * How the buffers of ranks reach each other. Bodies:
 *
 *     copy   all ranks are in this process, on one device: copies in its
 *            memory. Real data movement, no wire.
 *     mpi    one rank a process, on CPUs.
 *     shm    likewise, of processes that were forked (world_fork).
 *     nccl   one rank a process, each with a GPU of its own; NCCL is loaded
 *            when it is asked for.
 *
 * All give the same bits.
 */
struct comm_block;

/* First member of each body's own struct; for others to read. */
struct comm {
    const char *kind;      /* "copy", "mpi", "shm", "nccl" */
    struct world *world;   /* not owned */
    struct device *device; /* not owned */
    uint32_t n_ranks;
    /* The body: starts blocks, none of which is empty; closes all but the
     * struct, or NULL. */
    int (*start)(struct comm *comm, const struct comm_block *blocks,
                 size_t n_blocks, struct err *err);
    void (*close)(struct comm *comm);
};

/* The body follows from the world and the device. n_ranks: of the plan; where
 * the world has more than one process, as many as that (else ERR_USAGE says
 * how many to start). ERR_DEVICE where NCCL is not there, or two ranks would
 * share one GPU. Collective. */
int comm_open(struct comm **out, struct world *world, struct device *device,
              uint32_t n_ranks, struct err *err) MUST_CHECK;
void comm_close(struct comm *comm); /* NULL is fine */

/* Whether this process is that rank: of a world of one it is every rank. */
bool comm_is_here(const struct comm *comm, uint32_t rank);

/* One block that goes from a rank to a rank, which may be the same. Pointers
 * are NULL where the rank is elsewhere. */
struct comm_block {
    uint32_t from, to;
    const void *d_src;
    void *d_dst;
    size_t n_bytes;
};
/* Moves blocks that do not overlap. Each process names the blocks that its
 * ranks send or receive, at most one for each (from, to), in any order; it may
 * name those of others, too. All that comm_start began is done when comm_finish
 * returns, or queued behind the device's work, as marks are: device_wait or
 * device_elapsed wait for it. Over MPI it goes on beside other work; other
 * bodies queue it at once. Collective. */
int comm_start(struct comm *comm, const struct comm_block *blocks,
               size_t n_blocks, struct err *err) MUST_CHECK;
int comm_finish(struct comm *comm, struct err *err) MUST_CHECK;
/* All-reduce: d_data[r][n] of every rank r becomes the sum over all ranks,
 * added in the order of ranks, so that all bodies agree. d_data[n_ranks] is
 * not looked at for ranks elsewhere; d_scratch[r] likewise, each with
 * comm_sum_scratch(n) floats: n, and fewer than n_ranks more. About the
 * traffic of a ring; queued as moves are, in n_ranks pieces of work more.
 * Collective. */
uint64_t comm_sum_scratch(const struct comm *comm, uint64_t n);
int comm_sum(struct comm *comm, float *const *d_data, float *const *d_scratch,
             uint64_t n, struct err *err) MUST_CHECK;

#endif
