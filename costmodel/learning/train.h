/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_LEARNING_TRAIN_H
#define NEUROSHARD_COSTMODEL_LEARNING_TRAIN_H

#include "costmodel/modelfile/model.h"

/*
 * Trains the published net shape (table MLP, sum, head) on samples of one
 * device, which may have one or many settings. The optimizer is Adam on
 * shuffled batches, and the result has the weights of the epoch with the least
 * validation loss. A net on a roofline needs no validation, since it is pulled
 * to the roofline. It learns from all samples that are not held out, and has
 * the weights of the last epoch. Equal samples, options and machines give equal
 * bytes, for any number of threads.
 *
 * All differences from the published training were chosen by held-out error:
 *
 *   change                                mean error           samples
 *   logarithms and bytes as features      half of before       a
 *   relative loss                         1.0 %, before 1.3 %  a
 *   learning rate 4e-3 that decays,       -                    a
 *     instead of a constant 1e-3
 *   smaller batches for fewer samples     -                    a
 *   weight decay and running average      lower by a tenth     a, few samples
 *     of the weights, against noise       to a fifth
 *   linear estimate, totals in the head,  1.8 %, before 2.7 %  b
 *     weighted embeddings (1)
 *   cache lines as totals, next to bytes  6.9 %, before 7.2 %  c
 *     (rows cross the borders of lines)
 *   large errors count linearly           7.4 %, before 7.8 %  d
 *   parts of the roofline as features,    6.0 %, before 6.9 %  e
 *     instead of reuse bins (2)           6.5 %, before 7.0 %  f
 *
 *   a  1,000 to 60,000 samples of a simulated GPU, as they are (1 % noise)
 *      and with 2 to 20 % noise added
 *   b  4,000 samples of a simulated GPU, 28 settings, 2 % noise
 *   c  3,400 measurements of a CPU, mean of four seeds; no change on GPUs
 *   d  measurements of a CPU whose repeats differ by 4.3 %
 *   e  200 measurements of FBGEMM on an H100
 *   f  1,000 measurements of this program's lookups
 *
 *   (1) The head corrects a linear estimate (costmodel/formulas/estimate.h). An
 *       embedding's weight is its table's share of the estimate.
 *   (2) For a net on a roofline: the shares of the roofline's parts in a
 *       table's time (struct feature_input).
 */

enum train_loss {
    /* Mean of e^2 with e = (got - want) / want. Beyond |e| = 0.05 the loss
     * grows like |e| (pseudo-Huber). */
    LOSS_RELATIVE,
    LOSS_SQUARED /* mean of (got - want)^2, in units of the mean time */
};

/* Progress of a training. The losses are in the units of training. Without
 * validation both losses are equal. */
struct train_epoch {
    unsigned n_nets;        /* nets that are trained in all, at most */
    unsigned epoch, epochs; /* epochs of this net: done, and planned */
    double train_loss, validation_loss;
};

struct train_options {
    enum model_kind kind; /* default MODEL_NET */
    /* GPU of the roofline. If it is NULL, train_gpu() finds the GPU. */
    const struct gpu_spec *gpu;
    struct feature_set features;
    /* Totals that the head of the net takes as inputs. If the set is empty, the
     * head sees only the sum of embeddings, as in the published net, and
     * predicts ms. */
    struct feature_set totals;
    /* Number of epochs. 0: as many epochs as 20,000 steps need, within 200 ..
     * 1,000. */
    unsigned epochs;
    /* Samples of a batch; 0: 32 .. 256, by the number of samples. */
    unsigned batch_size;
    double learning_rate; /* default 4e-3 */
    bool decay;           /* true: the rate falls to 0 by half a cosine */
    /* Share of the old value in the running average of the weights; default
     * 0.998. 0: no average. */
    double average;
    enum train_loss loss;
    uint64_t seed;
    /* Time limit of train_fit, or of train_choose with all its trainings. A
     * net stops with the best result so far, after one epoch at least. 0: no
     * limit. */
    double time_limit_s;
    /* Threads, >= 1, default 1. The model does not depend on their number,
     * unless a time limit ends the training. */
    unsigned n_threads;
    /* Number of nets that on_epoch gets, default 1; train_choose sets it. */
    unsigned n_nets;
    /* Called after each epoch, by one thread at a time; may be NULL. If the
     * function returns non-zero, the training of this net stops with the best
     * or last weights so far. */
    int (*on_epoch)(void *ctx, const struct train_epoch *epoch);
    void *ctx;
};
/* Sets the defaults of this program. */
void train_options_init(struct train_options *options);

/* Finds the GPU whose roofline suits samples of one device. If the figures of
 * the device's own GPU are known, it is this GPU. Otherwise it is the GPU whose
 * roofline fits the measured times best. At least some of the samples must not
 * be held out. *out lives in the arena. */
int train_gpu(const struct gpu_spec **out, const struct sample *samples,
              size_t n, const struct train_options *options,
              struct arena *arena, struct err *err) MUST_CHECK;

/* Least number of samples to which a roofline can be fitted. */
#define TRAIN_MIN_FIT 8
/* Least numbers of samples with which a net can be trained, on the training
 * side and on the validation side of the split. */
#define TRAIN_MIN_SAMPLES 32
#define TRAIN_MIN_VALIDATION 4

/* Trains a model of options->kind on the samples that sample_trains() accepts,
 * split by case (see dataset.h). Kinds with a roofline learn from all samples
 * that are not held out. Each sample must have its setting; device, threads and
 * isa are taken from the first sample. All members of the model are filled
 * except errors and comm. The model lives in the arena. Returns ERR_INPUT if
 * there are too few samples (the message has the number of samples), or if
 * training does not converge to finite numbers. */
int train_fit(struct model *model, const struct sample *samples, size_t n,
              const struct train_options *options, struct arena *arena,
              struct err *err) MUST_CHECK;

#endif
