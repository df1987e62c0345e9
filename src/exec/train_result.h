/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_TRAIN_RESULT_H
#define NEUROSHARD_EXEC_TRAIN_RESULT_H

#include "base/progress.h"
#include "core/plan.h"
#include "exec/sync_result.h"
#include "exec/train_reference.h"

/* Options and results of a training (exec/exec_train.h). */

/* Parts of a step whose times are measured, in the order of a step. */
enum train_phase {
    TRAIN_INPUT, /* packs, exchanges and permutes ids */
    TRAIN_FORWARD,
    TRAIN_OUTPUT,
    TRAIN_DENSE, /* forward and backward pass, with the copies around them */
    TRAIN_GRADIENT,
    TRAIN_DENSE_REDUCE,
    TRAIN_BACKWARD,
    TRAIN_REPLICAS, /* all-reduce and update of replicas */
    TRAIN_DENSE_UPDATE,
    N_TRAIN_PHASES
};
extern const char *const train_phase_names[N_TRAIN_PHASES];
/* Returns true for the phases in which ranks wait for each other: output,
 * gradient, dense reduce and replicas. Ranks do not wait for each other in the
 * input, because nothing comes before it. */
bool train_is_exchange(enum train_phase phase);

struct train_state; /* exec/train_step.h */

/* Function that is called after each step, in the order of steps. It may read
 * the state of the training, for example to download weights. A failure ends
 * the training. */
typedef int train_observe_fn(void *ctx, const struct train_state *run,
                             unsigned step, struct err *err);

struct exec_train_options {
    unsigned n_steps;
    /* steps from one sync of the sharding groups to the next; 0: no syncs */
    uint64_t sync_every;
    enum pipeline pipeline; /* none or sdd */
    const struct dense *dense;
    enum optimizer dense_optimizer; /* SGD, Adagrad or Adam */
    double scale_rows;
    uint64_t seed;
    uint64_t memory_bytes;     /* bytes of device memory to use; 0: all free */
    bool check;                /* true to compare with the reference */
    struct progress *progress; /* counts steps; may be NULL */
    train_observe_fn *observe; /* may be NULL */
    void *observe_ctx;         /* first argument of `observe` */
};

/* Number of steps at the beginning that are not timed, if there are more. */
#define TRAIN_N_WARM_UP 2u

struct train_result {
    /* [n_steps], in the arena: mean loss of the outputs of the global batch */
    double *losses;
    /*
     * Medians and deciles over the timed steps.
     *
     *   phases  A phase in which ranks wait for each other (train_is_exchange)
     *           begins when the last rank is ready, and ends when it has ended
     *           on all ranks. The rank that is ready last often ends first:
     *           data of the other ranks have arrived, and its own data are
     *           still on their way. Other phases take as long as on the slowest
     *           rank.
     *   wait    time by which the input of the next step delayed the exchange
     *           of gradients; 0 without a pipeline
     *   step    from barrier to barrier. If one process has all ranks, the
     *           ranks took turns, and the step is the sum of the phases. With
     *           a pipeline it is the sum of the wait and of the phases after
     *           the input.
     */
    struct timing phases[N_TRAIN_PHASES], wait, step;
    unsigned n_timed;        /* number of timed steps */
    struct sync_result sync; /* zeroed if there were no syncs */
    const char *comm_kind;
    uint32_t n_processes, n_hosts;
    double scale_rows;
    struct train_findings found;
    /* XXH3 hashes of the dense parameters, and of the weights and states of all
     * pieces after the last step */
    uint64_t dense_hash, weight_hash;
    /* Sentence about the first difference from the reference or between the
     * ranks; NULL if all agree. */
    const char *failure;
};

#endif
