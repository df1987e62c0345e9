/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_COMM_H
#define NEUROSHARD_DEVICE_COMM_H

#include "core/table.h"
#include "device/comm_block.h"
#include "device/world.h"

/*
 * Exchange of buffers between ranks. It has four implementations ("bodies"):
 *
 *   copy   All ranks are in this process, on one device. Blocks are copied in
 *          its memory: data are really moved, but not over a network.
 *   mpi    One rank per process, on CPUs.
 *   shm    One rank per process, on CPUs; world_fork has forked the processes.
 *   nccl   One rank per process, each with a GPU of its own. NCCL is loaded
 *          when an exchange is opened.
 *
 * The results have the same bits with every body.
 */

/* First member of the struct with which each body represents an exchange. Other
 * modules only read it. */
struct comm {
    const char *kind;      /* "copy", "mpi", "shm", "nccl" */
    struct world *world;   /* not owned */
    struct device *device; /* not owned */
    uint32_t n_ranks;
    /* [n_ranks]: bytes that each rank of this process has sent to other ranks.
     * Owned. */
    uint64_t *sent_bytes;
    /* Functions of the body. `start` begins to move blocks; no block in the
     * list is empty. `close` releases everything except the struct itself. It
     * may be NULL. */
    int (*start)(struct comm *comm, const struct comm_block *blocks,
                 size_t n_blocks, struct err *err);
    void (*close)(struct comm *comm);
};

/* Opens an exchange. A thread that uses the exchange must be the only one that
 * uses its world and its device meanwhile. A second thread therefore needs the
 * second world (world_open_second) and a device of its own. On CPUs a device
 * can reach the memory that was allocated with another one.
 *
 * The world and the device determine the body. n_ranks:
 * number of ranks of the plan. A world with more than one process must have
 * exactly n_ranks processes. Otherwise the call fails with ERR_USAGE, and the
 * message gives the number of processes to start. Fails with ERR_DEVICE if NCCL
 * is missing or two ranks would share one GPU. Collective. */
int comm_open(struct comm **out, struct world *world, struct device *device,
              uint32_t n_ranks, struct err *err) MUST_CHECK;
void comm_close(struct comm *comm); /* NULL is fine */

/* Returns true if this process has the rank `rank`. A world of one process has
 * every rank. */
bool comm_is_here(const struct comm *comm, uint32_t rank);

/*
 * Two functions that together move blocks. Blocks must not overlap. Each
 * process passes the blocks that its ranks send or receive, at most one for
 * each pair (from, to), in any order. It may pass blocks of other ranks, too.
 *
 * When comm_finish returns, all blocks that comm_start began to move have
 * either arrived or are queued behind the device's earlier work. In the second
 * case device_wait or device_elapsed waits for them, as for marks. Over MPI,
 * blocks move while other work goes on. Other bodies queue the blocks at once.
 * Collective.
 */
int comm_start(struct comm *comm, const struct comm_block *blocks,
               size_t n_blocks, struct err *err) MUST_CHECK;
int comm_finish(struct comm *comm, struct err *err) MUST_CHECK;
/* All-reduce: replaces d_data[r][n] of every rank r by the sum over all ranks.
 * The vectors are added in the order of ranks, so that all bodies give the same
 * bits. d_data and d_scratch have n_ranks pointers each; the pointers of ranks
 * in other processes are ignored. Each d_scratch[r] has comm_sum_scratch(n)
 * floats, which is n plus fewer than n_ranks. The traffic is about that of a
 * ring all-reduce. The work is queued as by comm_start, in n_ranks more pieces
 * of work. Collective. */
uint64_t comm_sum_scratch(const struct comm *comm, uint64_t n);
int comm_sum(struct comm *comm, float *const *d_data, float *const *d_scratch,
             uint64_t n, struct err *err) MUST_CHECK;

/* A communicator of some ranks of an exchange: first, first + step, first + 2
 * step ... Blocks travel between pairs of ranks, so these ranks need no
 * connections of their own, and other ranks take no part. */
struct comm_part {
    uint32_t first, step, n_ranks;
};
/* A vector of one length on each rank of a part. */
struct comm_vector {
    /* [n_ranks of the part]; the pointers of ranks in other processes are
     * ignored */
    void **d_data;
    uint64_t n;
    enum precision precision; /* fp32 or fp16 */
};
/*
 * Replaces the vectors of all ranks of a part by their mean over these ranks,
 * like an all-reduce that averages. Sums are in fp32 and in the order of ranks,
 * so that all bodies give the same bits. The vectors travel together.
 *
 * d_scratch[n_ranks of the part] are pointers to comm_mean_scratch bytes on the
 * ranks of this process. Each rank sends 2 (n_ranks - 1) / n_ranks of the bytes
 * of its vectors, on the mean over the ranks. Each process with ranks of the
 * part must call this; a process without them need not.
 */
size_t comm_mean_scratch(const struct comm_part *part,
                         const struct comm_vector *vectors, size_t n_vectors);
int comm_mean(struct comm *comm, const struct comm_part *part,
              const struct comm_vector *vectors, size_t n_vectors,
              void *const *d_scratch, struct err *err) MUST_CHECK;

#endif
