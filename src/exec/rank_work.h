/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_RANK_WORK_H
#define NEUROSHARD_EXEC_RANK_WORK_H

#include "exec/batches.h"
#include "exec/exchange.h"

/*
 * Work of one rank: lookups of all its groups, backward, update. The compared
 * step and the timing run the same code. The step uses one batch; the timing
 * uses several batches in turn, as lookup_n_cold_sets explains.
 *
 * Data-parallel tables: each rank adds up the gradients of its own samples in a
 * dense gradient. The ranks sum these gradients (exchange_allreduce), and each
 * rank applies the same update to its replica.
 */

struct group_work {
    struct group group;    /* a copy; covers the samples that are looked up */
    struct lookup *lookup; /* NULL if there are no bags */
    /* For replicas: its backward adds the gradients of a batch to the dense
     * gradient. */
    struct lookup *scatter;
    struct index_batch sets[LOOKUP_MAX_COLD_SETS];
};

struct rank_work {
    const struct placement *placement;
    uint32_t rank;
    /* The work uses the batches first_number .. first_number + n_sets - 1. */
    unsigned first_number, n_sets;
    /* Chunk of each owner's samples that is looked up, and number of chunks
     * (part and n_parts of struct group). With several chunks the work can only
     * run forward. */
    uint32_t chunk, n_chunks;
    struct group_work *groups; /* [n_groups], owned */
    size_t n_groups;
};

/* Kinds of work. */
enum work_part {
    WORK_ALL,    /* forward and backward of all groups */
    WORK_SHARDS, /* groups that are not replicated */
    /* Backward of replicated groups, into their dense gradients. Needs no
     * weights. */
    WORK_SCATTER,
    /* Backward of replicated groups over the whole batch. All lookups of a
     * piece form one bag, which gets the gradient of the first bag.
     *
     * This work serves the timing. A replica is updated after the all-reduce,
     * in every row that any rank looked up. A rank that is timed alone receives
     * no gradients from other ranks. This work replaces them, so that the
     * update changes the same rows as in a real step. */
    WORK_OTHERS
};

/* Returns the number of batches that take turns while the rank is timed. */
unsigned rank_work_n_cold_sets(const struct placement *placement,
                               uint32_t rank);
/* Returns a work with the batches for timing, ready for rank_work_open. None of
 * them is the batch of the compared step. */
struct rank_work rank_work_timed(const struct placement *placement,
                                 uint32_t rank, uint32_t chunk,
                                 uint32_t n_chunks);

/* Draws the batches of a work and prepares its lookups. The caller has set
 * placement, rank, the range of batches and the chunk. */
int rank_work_open(struct rank_work *work, enum work_part part,
                   struct err *err) MUST_CHECK;
void rank_work_close(struct rank_work *work); /* a zeroed struct is fine */

/* Looks up batch `set` in all groups; writes the outputs to each group's d_out.
 */
int rank_work_forward(struct rank_work *work, unsigned set,
                      struct err *err) MUST_CHECK;
/* Runs backward on the gradients in d_out. Updates the groups that are not
 * replicated; adds up dense gradients of the replicated ones. */
int rank_work_backward(struct rank_work *work, unsigned set,
                       float learning_rate, struct err *err) MUST_CHECK;
/* Applies an optimizer step to every row of a rank's replicas that has a
 * gradient, and zeroes the gradients. */
int rank_work_apply_replicas(const struct placement *placement, uint32_t rank,
                             float learning_rate, struct err *err) MUST_CHECK;

/*
 * One training step of the plan, on batch number STEP_BATCH: all ranks look up,
 * exchange outputs, exchange gradients and update. Weights are loaded in turns,
 * so step_update runs turn by turn. The caller checks the result of each turn
 * before it runs the next one.
 */
#define STEP_BATCH 0
#define STEP_RATE 0.01F /* learning rate */

/* Looks up and exchanges the outputs. Afterwards every receiver has the outputs
 * of its samples. With several chunks, each chunk is sent as soon as all ranks
 * of this process have looked it up. */
int step_forward(struct placement *placement, const struct exchange_set *set,
                 struct err *err) MUST_CHECK;
/* Receivers write loss gradients over the outputs and send them back.
 * Afterwards every rank has the gradients of its pieces' outputs, and every
 * replica has the sum of all ranks' dense gradients. */
int step_gradients(const struct exchange_set *set, struct err *err) MUST_CHECK;
/* Loads the weights of a turn and updates them. */
int step_update(struct placement *placement, uint32_t turn,
                struct err *err) MUST_CHECK;

#endif
