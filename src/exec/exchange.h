/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_EXCHANGE_H
#define NEUROSHARD_EXEC_EXCHANGE_H

#include "device/alltoall.h"
#include "exec/placement.h"

/*
 * Communication between the ranks of a placement: the all-to-all of outputs,
 * and the all-reduce of gradients of replicated tables.
 *
 * The all-to-all has one exchange for each combination of num_outputs and
 * precision that occurs among the tables, so normally one exchange. It reads
 * the output buffers of the ranks and writes their receive buffers. Replicated
 * tables take no part in the all-to-all.
 */

struct exchange {
    const struct group *like; /* any one of the groups that it carries */
    /* dims in elements per sample: n_outputs x out_dim */
    struct alltoall alltoall;
    /* [R]: output buffer of a rank's group; NULL if this process has none */
    void **d_send;
    /* [R]: receive buffers, views into d_block; NULL if the rank is elsewhere
     */
    void **d_recv;
    void *d_block; /* owned */
};
struct exchange_set {
    const struct placement *placement;
    struct exchange *exchanges; /* [n], in the arena */
    size_t n;
    float **d_scratch; /* [R], owned: buffers of the all-reduce */
};

/* Approximate bytes of a rank's scratch memory for the all-reduce. Larger
 * gradients are summed in parts. */
#define ALLREDUCE_BYTES ((uint64_t)16 << 20)

/* Opens the exchanges of a placement. The placement's buffers must be allocated
 * already (placement_open). After a failure the caller still has to call
 * exchange_close, as other processes may still be sending to the buffers.
 * Collective, like all functions here that move data. */
int exchange_open(struct exchange_set *set, const struct placement *placement,
                  struct arena *arena, struct err *err) MUST_CHECK;
void exchange_close(struct exchange_set *set); /* a zeroed struct is fine */

/* Runs all exchanges once. Forward sends outputs to the owners of the samples.
 * Backward sends gradients back, which overwrite the outputs. The work is
 * queued on the device in order, like device_mark. */
int exchange_outputs(const struct exchange_set *set, bool is_backward,
                     struct err *err) MUST_CHECK;
/* Starts all exchanges; they are done when comm_finish has returned. A forward
 * exchange may carry only part `part` of n_parts of each rank's samples (see
 * struct group); part 0 of 1 is all samples. */
int exchange_start(const struct exchange_set *set, bool is_backward,
                   uint32_t part, uint32_t n_parts, struct err *err) MUST_CHECK;
/* All-reduce: adds up the dense gradients of all ranks and gives each rank the
 * sum. */
int exchange_allreduce(const struct exchange_set *set,
                       struct err *err) MUST_CHECK;

/* Outputs of a group at a receiver in this process: the bags [bag_begin,
 * bag_begin + n_bags) of the whole batch, which belong to the receiver's own
 * samples. If the group is another rank's replica, d_at is NULL and n_bags is
 * 0. */
struct output_block {
    void *d_at; /* [n_bags][out_dim] */
    uint64_t bag_begin, n_bags;
};
struct output_block exchange_block(const struct exchange_set *set,
                                   const struct group *group,
                                   uint32_t receiver);

#endif
