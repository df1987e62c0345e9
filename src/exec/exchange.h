/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_EXCHANGE_H
#define NEUROSHARD_EXEC_EXCHANGE_H

#include "device/alltoall.h"
#include "exec/placement.h"
#include "exec/sequence_exchange.h"

/*
 * Communication between the ranks of a placement: the all-to-all of outputs,
 * and the all-reduce of gradients of replicated tables.
 *
 * The all-to-all consists of one exchange for each combination of num_outputs
 * and precision that occurs among the tables. Usually there is one combination.
 * With several sharding groups,
 * each group has exchanges of its own, which all run together. An exchange
 * reads the output buffers of the ranks and writes their receive buffers.
 * Replicated tables take no part in the all-to-all. Sequences have exchanges of
 * their own (exec/sequence_exchange.h).
 */

struct exchange {
    /* one of the groups whose outputs the exchange carries */
    const struct group *like;
    /* All-to-all with its dims in elements per sample: n_outputs x out_dim. */
    struct alltoall alltoall;
    /* ranks that take part: those of one sharding group, n of them */
    struct rank_range ranks;
    /* [n]: output buffer of the group of each rank; NULL for a rank without
     * such a group in this process */
    void **d_send;
    /* [n]: receive buffer of each rank, part of d_block; NULL if the rank is in
     * another process */
    void **d_recv;
    void *d_block; /* memory of all receive buffers; owned */
};
struct exchange_set {
    const struct placement *placement;
    struct exchange *exchanges; /* [n] exchanges, in the arena */
    size_t n;
    struct sequence_set sequences;
    /* [R], owned: scratch memory of each rank for the all-reduce */
    float **d_scratch;
};

/* Approximate bytes of a rank's scratch memory for the all-reduce. If the
 * gradients of all replicas are larger, they are summed in several parts. */
#define ALLREDUCE_BYTES ((uint64_t)16 << 20)

/*
 * Opens the exchanges of a placement. The placement's buffers must be allocated
 * already (placement_open). Other processes may still be sending to the buffers
 * after a failure, so the caller has to call exchange_close then, too.
 * Collective, like all functions of this header that move data.
 */
int exchange_open(struct exchange_set *set, const struct placement *placement,
                  struct arena *arena, struct err *err) MUST_CHECK;
void exchange_close(struct exchange_set *set); /* accepts a zeroed struct */

/* Runs all exchanges once. A forward exchange sends outputs to the ranks that
 * own the samples. A backward exchange sends their gradients back, which
 * overwrite the outputs. The exchanges are queued on the device in order, like
 * the work of device_mark. */
int exchange_outputs(const struct exchange_set *set, bool is_backward,
                     struct err *err) MUST_CHECK;
/* Starts all exchanges; they are complete when comm_finish returns. A forward
 * exchange may carry only part `part` of n_parts of each rank's samples (see
 * struct group). Part 0 of 1 means all samples. */
int exchange_start(const struct exchange_set *set, bool is_backward,
                   uint32_t part, uint32_t n_parts, struct err *err) MUST_CHECK;
/* All-reduce of the dense gradients of all replicated tables together, as
 * frameworks do: adds up the gradients of all ranks and gives each rank the
 * sum. */
int exchange_allreduce(const struct exchange_set *set,
                       struct err *err) MUST_CHECK;

/* Outputs of one group as a receiver in this process has them. They are the
 * bags [bag_begin, bag_begin + n_bags) of the whole batch, which belong to the
 * receiver's own samples. For a sequence they are n_bags vectors, and bag_begin
 * is not used. If the group does not serve the receiver, the receiver has no
 * outputs of it: d_at is NULL and n_bags is 0. */
struct output_block {
    void *d_at; /* [n_bags][out_dim] outputs */
    uint64_t bag_begin, n_bags;
};
struct output_block exchange_block(const struct exchange_set *set,
                                   const struct group *group,
                                   uint32_t receiver);

#endif
