/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_EXCHANGE_H
#define NEUROSHARD_EXEC_EXCHANGE_H

#include "device/alltoall.h"
#include "exec/placement.h"

/*
 * What the ranks of a placement send each other. The all-to-all: one exchange
 * for each num_outputs and precision that some table has, so normally one; it
 * sends from and receives into real buffers of the ranks. And the all-reduce
 * of replicated tables, which take no part in the all-to-all.
 */

struct exchange {
    const struct group *like; /* one of those that it carries */
    struct alltoall alltoall; /* elements a sample: n_outputs x out_dim */
    void **d_send; /* [R], outputs of the groups; NULL where none is here */
    void **d_recv; /* [R], views into d_block; NULL where not here */
    void *d_block; /* owned */
};
struct exchange_set {
    const struct placement *placement;
    struct exchange *exchanges; /* [n], in the arena */
    size_t n;
    float **d_scratch; /* [R], owned: of the all-reduce */
};

/* Bytes of a rank's scratch, about: larger gradients are summed in parts. */
#define ALLREDUCE_BYTES ((uint64_t)16 << 20)

/* The placement's buffers must be there (placement_open). What a failure leaves
 * is exchange_close's, as other processes may still send to it. Collective, as
 * all that moves data is. */
int exchange_open(struct exchange_set *set, const struct placement *placement,
                  struct arena *arena, struct err *err) MUST_CHECK;
void exchange_close(struct exchange_set *set); /* a zeroed one is fine */

/* All exchanges, once: outputs to the owners of the samples, and gradients
 * back over the outputs. Queued, like the marks of a device. */
int exchange_outputs(const struct exchange_set *set, bool is_backward,
                     struct err *err) MUST_CHECK;
/* The same, done when comm_finish has returned; forward of one part of the
 * samples (struct group), n_parts in all. */
int exchange_start(const struct exchange_set *set, bool is_backward,
                   uint32_t part, uint32_t n_parts, struct err *err) MUST_CHECK;
/* Adds the dense gradients of all ranks up and gives each rank the sum. */
int exchange_allreduce(const struct exchange_set *set,
                       struct err *err) MUST_CHECK;

/* What a rank that is here has of a group's outputs: those of its own
 * samples, bags [bag_begin, bag_begin + n_bags) of the whole batch. NULL and
 * no bags where the group is another rank's replica. */
struct output_block {
    void *d_at; /* [n_bags][out_dim] */
    uint64_t bag_begin, n_bags;
};
struct output_block exchange_block(const struct exchange_set *set,
                                   const struct group *group,
                                   uint32_t receiver);

#endif
