/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_WORLD_H
#define NEUROSHARD_DEVICE_WORLD_H

#include "device/device.h"

/*
 * The processes that run a plan together, one for each rank, as mpirun or srun
 * started them or this process did; or this process alone, which then is all
 * ranks. What they
 * agree on goes through here; embeddings travel through device/comm.h.
 *
 * All functions that take err are collective: every process calls them in the
 * same order. They fail with ERR_DEVICE and MPI's own words; without MPI they
 * do not.
 */
struct buf; /* base/mem.h */
struct world_ops;

/* First member of the body's own struct; for others to read. */
struct world {
    const struct world_ops *ops; /* NULL: a world of one */
    uint32_t rank, size;
    uint32_t local_rank, local_size; /* on this host */
    uint32_t n_hosts;
    uint32_t *host_of; /* [size], hosts numbered by their first rank; owned */
};

/* More than one process only where a launcher started this one (its variables
 * are in the environment). ERR_USAGE where it did and this build has no MPI
 * body, or another MPI than the launcher's. Once in a process; before threads
 * are started. */
int world_open(struct world **out, struct err *err) MUST_CHECK;
/* Forks n processes, each of which gets a world of them all on this host. The
 * caller itself gets NULL, once all have ended: well, or the first that fails
 * ends the others, of whose err it has the code; the sentence is empty where
 * that process exited by itself and has said why. Needs no MPI. ERR_USAGE where
 * a launcher started this process. Before threads or devices are opened and
 * anything is printed. */
#define WORLD_MAX_FORKS 256
int world_fork(struct world **out, uint32_t n, struct err *err) MUST_CHECK;
void world_close(struct world *world); /* NULL is fine; collective */
/* Ends all processes at once, with this status: a failure of one must not
 * leave the others waiting. A world of one returns. */
void world_abort(struct world *world, int status);

int world_barrier(struct world *world, struct err *err) MUST_CHECK;
/* A barrier where those who wait sleep, and leave the processors to those who
 * still work; takes some milliseconds. */
int world_rest(struct world *world, struct err *err) MUST_CHECK;
/* data[n_bytes] of rank 0, which are few, becomes everyone's. */
int world_broadcast(struct world *world, void *data, size_t n_bytes,
                    struct err *err) MUST_CHECK;
/* all[world_size][n_bytes], everywhere; n_bytes below 2 GiB. */
int world_all_gather(struct world *world, const void *own, size_t n_bytes,
                     void *all, struct err *err) MUST_CHECK;
/* numbers[n] become the largest that any process has. */
int world_largest(struct world *world, double *numbers, size_t n,
                  struct err *err) MUST_CHECK;
/* Texts of any length: rank 0 gets all of them one behind the other, in the
 * order of ranks; the others get nothing. */
int world_collect(struct world *world, const void *own, size_t n_bytes,
                  struct buf *all, struct err *err) MUST_CHECK;

#endif
