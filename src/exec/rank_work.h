/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_RANK_WORK_H
#define NEUROSHARD_EXEC_RANK_WORK_H

#include "device/lookup.h"
#include "exec/batches.h"
#include "exec/placement.h"

/*
 * What one rank computes: look-ups of all its groups, backward, update. The
 * step and the timing run the same code; the step with one batch, the timing
 * with several, as lookup_n_cold_sets explains.
 */

struct group_work {
    const struct group *group;
    struct lookup *lookup;  /* NULL where there are no bags */
    struct lookup *scatter; /* of replicas: into their dense gradients */
    struct index_batch sets[LOOKUP_MAX_COLD_SETS];
};

struct rank_work {
    const struct placement *placement;
    uint32_t rank;
    unsigned first_number, n_sets; /* batches */
    struct group_work *groups;     /* [n_groups], owned */
    size_t n_groups;
};

/* What the work is for. All but WORK_SCATTER needs the weights of the rank. */
enum work_part {
    WORK_ALL,    /* forward and backward of all groups */
    WORK_SHARDS, /* of what is not replicated */
    WORK_SCATTER /* backward of what is, into its dense gradients */
};

/* Batches that take turns while the rank is timed. */
unsigned rank_work_n_cold_sets(const struct placement *placement,
                               uint32_t rank);

/* Draws the batches first_number .. first_number + n_sets and prepares the
 * look-ups. */
int rank_work_open(struct rank_work *work, const struct placement *placement,
                   uint32_t rank, enum work_part part, unsigned first_number,
                   unsigned n_sets, struct err *err) MUST_CHECK;
void rank_work_close(struct rank_work *work); /* a zeroed one is fine */

/* Every group's d_out = its look-ups of batch `set`. */
int rank_work_forward(struct rank_work *work, unsigned set,
                      struct err *err) MUST_CHECK;
/* Backward and update of what is not replicated, dense gradients of what is.
 * d_grads[n_groups], each as the group's d_out. */
int rank_work_backward(struct rank_work *work, unsigned set,
                       const void *const *d_grads, float learning_rate,
                       struct err *err) MUST_CHECK;
/* The same where the gradients stand in the groups' d_out. */
int rank_work_backward_inplace(struct rank_work *work, unsigned set,
                               float learning_rate, struct err *err) MUST_CHECK;

#endif
