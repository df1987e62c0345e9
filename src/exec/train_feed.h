/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_TRAIN_FEED_H
#define NEUROSHARD_EXEC_TRAIN_FEED_H

#include "exec/dense_net.h"
#include "exec/input.h"
#include "exec/rank_work.h"

/*
 * Input of a training: batches of ids, dense features and labels. Ids are drawn
 * before the training, as if by a data loader that is never late. In each step
 * the ids of a batch are packed, exchanged and permuted, and the lookups use
 * the ids that arrived. Features and labels are computed when they are
 * uploaded.
 *
 * The input of a step may run in a thread of its own, during the step before
 * it. It then exchanges messages in a world of its own.
 */

struct feed {
    const struct placement *placement;
    const struct dense *dense;
    struct input_link link;
    struct rank_work *works; /* [R] work of each rank of this process; owned */
    unsigned n_batches;
    struct input *inputs; /* [n_batches] */
    /* [n_batches][n_pieces]: lookups of replicas on ranks of this process. Ids
     * of replicas are not exchanged. */
    struct bags *replicas;
    struct arena arena; /* memory of the arrays */
};

/* Number of batches whose lookups a rank holds at the same time: the batch of
 * the running step and the batch of the next step. */
#define FEED_N_SETS 2

/*
 * Draws the ids of n_batches batches, and opens the work of each rank of this
 * process for them. `world` is the world in which ids are exchanged. The
 * weights of all ranks must be loaded. Fails with ERR_DEVICE, or as the
 * functions of `world` do. The caller has to call feed_close even after a
 * failure. Collective.
 */
int feed_open(struct feed *feed, const struct placement *placement,
              const struct dense *dense, unsigned n_batches,
              struct world *world, struct err *err) MUST_CHECK;
void feed_close(struct feed *feed); /* accepts a zeroed struct */

/* Packs, exchanges and permutes the ids of a batch for all ranks of this
 * process, and stores them in the set `set`, below FEED_N_SETS, of each rank's
 * work. Collective. */
int feed_ids(struct feed *feed, unsigned batch, unsigned set,
             struct err *err) MUST_CHECK;
/* Computes the dense features and labels of a rank's samples in a batch, and
 * uploads them to the rank's net. */
int feed_features(const struct feed *feed, unsigned batch, uint32_t rank,
                  struct dense_net *net, struct err *err) MUST_CHECK;

/* A thread that runs feed_ids. */
struct feed_thread; /* opaque */
/* Starts feed_ids in a thread. Never fails: if no thread can be started, the
 * caller's thread runs it. */
struct feed_thread *feed_start(struct feed *feed, unsigned batch, unsigned set);
/* Waits until the thread is done, and releases it. Stores the time that
 * feed_ids took in *ms. Returns the result of feed_ids. If `thread` is NULL,
 * returns 0 and leaves *ms as it is. */
int feed_finish(struct feed_thread *thread, double *ms,
                struct err *err) MUST_CHECK;

#endif
