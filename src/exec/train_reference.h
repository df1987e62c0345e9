/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_TRAIN_REFERENCE_H
#define NEUROSHARD_EXEC_TRAIN_REFERENCE_H

#include "core/dense.h"
#include "exec/placement.h"
#include "exec/reference_check.h"

/*
 * Unsharded reference of a training: the whole model, tables and dense part, in
 * double precision. It shares no code with the lookups, the exchange, the
 * matrix products and the update. It holds only the rows of tables that the
 * batches touch. Each process computes the samples of its own ranks, and the
 * processes add up their gradients in the order of ranks.
 *
 * The optimizers decide how the reference and the execution are compared:
 *
 *   free      Used if all tables and the dense part have SGD. The reference
 *             trains from the initial weights and never reads executed weights.
 *             The loss of each step and all weights at the end are compared.
 *   stepwise  Used otherwise. An optimizer that divides by the size of a
 *             gradient turns small errors into large ones, so two trainings
 *             diverge. Each step starts at the executed weights. Its gradients
 *             are compared with the reference, and its updates with the rule of
 *             the optimizer applied to the executed gradients.
 *
 * Limits of the error (exec/verify.h). A row is a row of a table, the gradient
 * of all pooled vectors of a sample, a row [in] of a weight matrix, or a whole
 * bias. Rows of dense parameters have at least the scale of their initial
 * values. Errors of a dense gradient are relative to its terms (struct
 * reference_net).
 *
 *              free    stepwise
 *     loss     1e-5    1e-4       relative to the loss
 *     weights  1e-5
 *     gradients        1e-5
 *     updates          1e-6
 *     averages         3e-7      weights and states after a sync
 *
 * If a table has fp16 weights or outputs that are exchanged in fp16, all limits
 * are the fp16 limit of exec/verify.h.
 *
 * The gradient of a ReLU jumps at 0. If the input of a ReLU is so close to 0
 * that rounding decides its side, the stepwise reference takes the side of the
 * executed ReLU.
 *
 * Optimizers of the dense part, with the learning rate STEP_RATE
 * (exec/rank_work.h) and states that begin at 0:
 *
 *     SGD      w -= rate g
 *     Adagrad  s += g^2, w -= rate g / (sqrt(s) + 1e-10)
 *     Adam     PyTorch's, with beta 0.9 and 0.999 and epsilon 1e-8
 */

/* Numbers of one executed step, as this process has them. In free mode only
 * `number` and `loss` are read, and the pointers may be NULL. */
struct executed_step {
    unsigned number; /* number of the batch */
    double loss;     /* mean over the global batch */
    /* [n_parameters] gradient of the dense part, summed over all ranks */
    const float *gradients;
    /* [n_parameters] dense parameters after the update */
    const float *parameters;
    /* [own samples][pooled]: gradient of the mean loss of the global batch with
     * respect to the pooled vectors. Own samples are those of the ranks of this
     * process, in ascending order. */
    const float *pooled_gradients;
    /* [n_products]: outputs [own samples][out] of the ReLUs; NULL for products
     * without ReLU */
    const float *const *relu_outputs;
};

struct train_reference; /* opaque */

/* Opens the reference of a training on the batches `numbers`, which may repeat.
 * `optimizer` is that of the dense part. The placement and `dense` must stay
 * valid. Needs no device memory. Fails with ERR_INPUT if the list above does
 * not have the optimizer. */
int train_reference_open(struct train_reference **out,
                         const struct placement *placement,
                         const struct dense *dense, enum optimizer optimizer,
                         const unsigned *numbers, size_t n_numbers,
                         struct err *err) MUST_CHECK;
void train_reference_close(
    struct train_reference *reference); /* accepts NULL */

/* Returns true if the reference runs freely. */
bool train_reference_is_free(const struct train_reference *reference);

/* Runs the next step of the reference and compares the executed step with it.
 * Call it after each executed step, while the weights of all ranks of this
 * process are loaded. Collective over placement->comm->world. A difference is
 * no error; train_reference_finish reports it. */
int train_reference_step(struct train_reference *reference,
                         const struct executed_step *step,
                         struct err *err) MUST_CHECK;

/* Averages the copies of all tables after a step, like the sync that the
 * sharding groups have run. In stepwise mode compares the executed averages
 * with these. Collective. */
int train_reference_sync(struct train_reference *reference,
                         struct err *err) MUST_CHECK;

/* Compares the weights after the last step: in free mode the dense parameters
 * (parameters[n_parameters], of this process) and all touched rows of the
 * loaded pieces. Stores the findings of all steps. Collective. */
int train_reference_finish(struct train_reference *reference,
                           const float *parameters,
                           struct train_findings *found,
                           struct err *err) MUST_CHECK;

#endif
