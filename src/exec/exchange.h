/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_EXCHANGE_H
#define NEUROSHARD_EXEC_EXCHANGE_H

#include "device/alltoall.h"
#include "exec/placement.h"

/*
 * The all-to-all of a placement: one exchange for each num_outputs that some
 * table has, so normally one. Sends from and receives into real buffers of the
 * ranks; replicas take no part.
 */

struct exchange {
    uint32_t n_outputs;
    struct alltoall alltoall;
    uint32_t *dims; /* [R], floats a sample: n_outputs x out_dim */
    float **d_send; /* [R], outputs of the groups; NULL where none */
    float **d_recv; /* [R], views into d_block */
    void *d_block;  /* owned */
};
struct exchange_set {
    const struct placement *placement;
    struct exchange *exchanges; /* [n], in the arena */
    size_t n;
};

int exchange_open(struct exchange_set *set, const struct placement *placement,
                  struct arena *arena, struct err *err) MUST_CHECK;
void exchange_close(struct exchange_set *set); /* a zeroed one is fine */

/* All exchanges, once: outputs to the owners of the samples, and gradients
 * back over the outputs. */
int exchange_forward(const struct exchange_set *set,
                     struct err *err) MUST_CHECK;
int exchange_backward(const struct exchange_set *set,
                      struct err *err) MUST_CHECK;

/* Where a rank has the outputs of a piece for its own samples: bag i (from 0
 * at the rank's first sample) starts at d_at + i * stride. d_at is NULL where
 * the piece is another rank's replica, or outputs nothing. */
struct output_view {
    float *d_at;
    size_t stride;
};
struct output_view exchange_view(const struct exchange_set *set,
                                 const struct piece *piece, uint32_t receiver);

/* Every receiver writes the loss gradient of its samples over the outputs. */
void exchange_fill_gradients(const struct exchange_set *set);

#endif
