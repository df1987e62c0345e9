/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_RANK_WORK_H
#define NEUROSHARD_EXEC_RANK_WORK_H

#include "exec/batches.h"
#include "exec/exchange.h"

/*
 * Work of one rank in a step: lookups of all its groups, backward, update. The
 * step that is compared with the reference and the timed steps run the same
 * code. The compared step uses one batch. Timed steps cycle through several
 * batches, for the reason that lookup_n_cold_sets gives.
 *
 * Data-parallel tables: each rank adds up the gradients of its own samples in a
 * dense gradient. The ranks sum these gradients (exchange_allreduce), and each
 * rank applies the same update to its replica.
 */

struct group_work {
    /* copy that covers only the samples that are looked up */
    struct group group;
    struct lookup *lookup; /* NULL if the group has no bags */
    /* Lookup for a replicated group; NULL for other groups. Its backward adds
     * the gradients of a batch to the dense gradient. */
    struct lookup *scatter;
    /* largest number of lookups of a batch for which there is memory */
    uint64_t max_lookups;
    struct index_batch sets[LOOKUP_MAX_COLD_SETS];
};

struct rank_work {
    const struct placement *placement;
    uint32_t rank;
    /* Numbers of the batches that are used: first_number .. first_number +
     * n_sets - 1. */
    unsigned first_number, n_sets;
    /* Chunk of each owner's samples that is looked up, and the number of chunks
     * (`part` and `n_parts` of struct group). If there are several chunks, the
     * work can run only forward. */
    uint32_t chunk, n_chunks;
    struct group_work *groups; /* [n_groups] work on each group, owned */
    size_t n_groups;
    /* The rank has caches, so each timed step uses a new batch: a cache would
     * soon hold all rows of a few batches. Number of the next batch; 0: the
     * rank has no caches, and the batches repeat. */
    unsigned next_number;
};

/* Kinds of work of a rank. */
enum work_part {
    WORK_ALL,    /* forward and backward of all groups */
    WORK_SHARDS, /* backward of the groups that are not replicated */
    /* Backward of the replicated groups into their dense gradients. This kind
     * needs no weights. */
    WORK_SCATTER,
    /*
     * Backward of the replicated groups over the whole batch, for the timing.
     * All lookups of a piece form one bag, which gets the gradient of the first
     * bag.
     *
     * In a real step, a replica is updated after the all-reduce, in every row
     * that any rank looked up. A rank that is timed alone receives no gradients
     * from other ranks. This work replaces the missing gradients, so that the
     * update changes the same rows as in a real step.
     */
    WORK_OTHERS
};

/* Returns the number of batches through which the timing of a rank cycles. */
unsigned rank_work_n_cold_sets(const struct placement *placement,
                               uint32_t rank);
/* Returns the description of a work with the batches for timing, to be passed
 * to rank_work_open. The batch of the compared step is not among them. */
struct rank_work rank_work_timed(const struct placement *placement,
                                 uint32_t rank, uint32_t chunk,
                                 uint32_t n_chunks);

/* If the timed steps of the work use new batches, draws the next one in place
 * of batch `set`. The work was opened as WORK_ALL. */
int rank_work_renew(struct rank_work *work, unsigned set,
                    struct err *err) MUST_CHECK;
/* Moves the rows of batch `set` into the caches of the rank, if it has any. */
void rank_work_fill(struct rank_work *work, unsigned set);
/* Fills the caches of the rank with rows of new batches until they are steady:
 * until 99 % of the slots hold rows, which takes about slots / misses per batch
 * batches, or until a batch misses no row. There are at most
 * RANK_WORK_MOST_FILLS batches, and after RANK_WORK_LEAST_FILLS at most
 * RANK_WORK_FILL_LOOKUPS lookups. Then sets the counts of the caches to 0. Does
 * nothing if the rank has no caches. Returns the number of batches in
 * *n_batches. */
#define RANK_WORK_MOST_FILLS 1000
#define RANK_WORK_LEAST_FILLS 16
#define RANK_WORK_FILL_LOOKUPS ((uint64_t)1 << 27)
int rank_work_warm(struct rank_work *work, unsigned *n_batches,
                   struct err *err) MUST_CHECK;

/* Draws the batches of a work and prepares its lookups. The caller has to set
 * the members `placement` and `rank`, the range of batches and the chunk before
 * the call. */
int rank_work_open(struct rank_work *work, enum work_part part,
                   struct err *err) MUST_CHECK;
/* Prepares the lookups of all groups of a work whose batches are placed later
 * (index_batch_place into group_work.sets). max_lookups[g] is the largest
 * number of lookups in a batch of the rank's group g. The caller has to set the
 * same members as for rank_work_open. */
int rank_work_open_empty(struct rank_work *work, const uint64_t *max_lookups,
                         struct err *err) MUST_CHECK;
void rank_work_close(struct rank_work *work); /* accepts a zeroed struct */

/* Looks up batch number `set` in all groups of the work, and writes the outputs
 * of each group to its d_out. The rows of the batch should be in the caches
 * (rank_work_fill); the results are the same if they are not. */
int rank_work_forward(struct rank_work *work, unsigned set,
                      struct err *err) MUST_CHECK;
/* Runs backward on the gradients in d_out of each group. Updates the weights of
 * groups that are not replicated. For replicated groups adds the gradients to
 * the dense gradients. */
int rank_work_backward(struct rank_work *work, unsigned set,
                       float learning_rate, struct err *err) MUST_CHECK;
/* Applies an optimizer step to the replicas of a rank, in every row with a
 * gradient. Then fills the gradients with zeros. */
int rank_work_apply_replicas(const struct placement *placement, uint32_t rank,
                             float learning_rate, struct err *err) MUST_CHECK;

/*
 * One training step of the plan, on batch number STEP_BATCH: all ranks look up,
 * exchange outputs, exchange gradients and update. Weights are loaded in turns,
 * so the caller runs step_update once per turn. The caller has to check the
 * result of a turn before it runs the next turn.
 */
#define STEP_RATE 0.01F /* learning rate of the step */

/* First half of a step: looks up and exchanges the outputs. Afterwards every
 * receiver has the outputs of its samples. If there are several chunks, each
 * chunk is sent as soon as all ranks of this process have looked it up. */
int step_forward(struct placement *placement, const struct exchange_set *set,
                 struct err *err) MUST_CHECK;
/* Exchange of gradients: receivers overwrite the outputs with loss gradients
 * and send them back. Afterwards every rank has the gradients of the outputs of
 * its pieces. Every replica has the dense gradient summed over all ranks. */
int step_gradients(const struct exchange_set *set, struct err *err) MUST_CHECK;
/* Loads the weights of the ranks of a turn and updates them. Afterwards all
 * rows are up to date in host memory. Before the lookups and after the update,
 * two other batches go through the caches, so that rows of the step take the
 * slots of other rows, and others take theirs. */
int step_update(struct placement *placement, uint32_t turn,
                struct err *err) MUST_CHECK;

#endif
