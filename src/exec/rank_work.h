/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_RANK_WORK_H
#define NEUROSHARD_EXEC_RANK_WORK_H

#include "exec/batches.h"
#include "exec/exchange.h"

/*
 * What one rank computes: look-ups of all its groups, backward, update. The
 * step and the timing run the same code; the step with one batch, the timing
 * with several, as lookup_n_cold_sets explains.
 *
 * Data-parallel tables: a rank scatters the gradients of its own samples into
 * a dense gradient, the ranks add these up (exchange_allreduce), and each
 * applies the same update to its copy.
 */

struct group_work {
    struct group group;     /* a copy: of what the work looks up */
    struct lookup *lookup;  /* NULL where there are no bags */
    struct lookup *scatter; /* of replicas: whose backward adds the
                               gradients of a batch to the dense ones */
    struct index_batch sets[LOOKUP_MAX_COLD_SETS];
};

struct rank_work {
    const struct placement *placement;
    uint32_t rank;
    unsigned first_number, n_sets; /* batches: from this one, so many */
    /* Of the samples only this part (struct group) of n_chunks, for a forward
     * alone where there are several. */
    uint32_t chunk, n_chunks;
    struct group_work *groups; /* [n_groups], owned */
    size_t n_groups;
};

/* What the work is for. */
enum work_part {
    WORK_ALL,    /* forward and backward of all groups */
    WORK_SHARDS, /* of what is not replicated */
    /* Backward of what is, into its dense gradients; needs no weights. */
    WORK_SCATTER,
    /* The same of the whole batch as one bag a piece, of the first bag's
     * gradients. A replica is updated after the all-reduce, in every row that
     * any rank looked up, and a rank that is timed alone has no others: in
     * their stead this gives the update the rows of a real step. */
    WORK_OTHERS
};

/* Batches that take turns while the rank is timed. */
unsigned rank_work_n_cold_sets(const struct placement *placement,
                               uint32_t rank);
/* A work of these, to be opened; none of them is that of the step. */
struct rank_work rank_work_timed(const struct placement *placement,
                                 uint32_t rank, uint32_t chunk,
                                 uint32_t n_chunks);

/* Draws the batches and prepares the look-ups of a work that says placement,
 * rank, batches and chunk. */
int rank_work_open(struct rank_work *work, enum work_part part,
                   struct err *err) MUST_CHECK;
void rank_work_close(struct rank_work *work); /* a zeroed one is fine */

/* Every group's d_out = its look-ups of batch `set`. */
int rank_work_forward(struct rank_work *work, unsigned set,
                      struct err *err) MUST_CHECK;
/* Backward and update of what is not replicated, dense gradients of what is; of
 * gradients that stand in d_out. */
int rank_work_backward(struct rank_work *work, unsigned set,
                       float learning_rate, struct err *err) MUST_CHECK;
/* Optimizer step on every row of a rank's replicas that has a gradient;
 * zeroes the gradients. */
int rank_work_apply_replicas(const struct placement *placement, uint32_t rank,
                             float learning_rate, struct err *err) MUST_CHECK;

/*
 * One training step of the plan, batch number STEP_BATCH: all ranks look up,
 * exchange outputs, then gradients, and update. Weights come in turns, so the
 * update is done turn by turn, and what each leaves is looked at in between.
 */
#define STEP_BATCH 0
#define STEP_RATE 0.01F /* of learning */

/* Afterwards every receiver has the outputs of its samples. In chunks, each is
 * sent as soon as all ranks that are here have looked it up. */
int step_forward(struct placement *placement, const struct exchange_set *set,
                 struct err *err) MUST_CHECK;
/* Receivers write loss gradients over the outputs; afterwards every holder
 * has those of its pieces, and every replica the sum of all ranks'. */
int step_gradients(const struct exchange_set *set, struct err *err) MUST_CHECK;
/* Loads the weights of a turn and updates them. */
int step_update(struct placement *placement, uint32_t turn,
                struct err *err) MUST_CHECK;

#endif
