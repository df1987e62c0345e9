/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_REPLICA_H
#define NEUROSHARD_EXEC_REPLICA_H

#include "device/lookup.h"
#include "exec/batches.h"
#include "exec/placement.h"

/*
 * Data-parallel tables: a rank scatters the gradients of its own samples into
 * a dense gradient, the ranks add these up, and each applies the same update
 * to its copy. Both ends are lookup_backward: SGD at rate -1 on a zeroed table
 * *is* the dense gradient, and the update is a batch with one bag a row that
 * looks the row up where its gradient is not zero. So the optimizers live in
 * one place only.
 */
struct replica {
    const struct placement *placement;
    const struct group *group;
    struct lookup *scatter; /* NULL where the rank has no samples */
    struct lookup **apply;  /* [n_pieces] */
    uint64_t *offsets;      /* [largest n_rows + 1]: the update's batch */
    uint32_t *rows;         /* [largest n_rows] */
    uint8_t *touched;       /* [largest n_rows] */
};

/* max_lookups: of one scattered batch. */
int replica_open(struct replica *replica, const struct placement *placement,
                 const struct group *group, uint64_t max_lookups,
                 struct err *err) MUST_CHECK;
void replica_close(struct replica *replica); /* a zeroed one is fine */

/* Dense gradients += those of d_grad[n_bags][out_dim]. */
int replica_scatter(struct replica *replica, const struct lookup_batch *batch,
                    const float *d_grad, struct err *err) MUST_CHECK;
/* Optimizer step on every row with a gradient; zeroes the gradients. */
int replica_apply(struct replica *replica, float learning_rate,
                  struct err *err) MUST_CHECK;

/* Adds the dense gradients of all ranks up, in the order of ranks, and gives
 * each rank the sum: every gradient is read once and written once, about what
 * a ring all-reduce moves. */
void replica_allreduce(const struct placement *placement);

#endif
