/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_TRAIN_H
#define NEUROSHARD_COSTMODEL_TRAIN_H

#include "costmodel/model_file.h"

/*
 * Training the published net shape (table MLP, sum, head) on samples of one
 * device, of one setting or of many: Adam on shuffled batches, the weights of
 * the best validation epoch; of a net on a roofline, which is pulled to it, of
 * the last epoch on all samples that are not held out. One thread; the same
 * samples, options and machine give the same bytes.
 *
 * What differs from the published training was chosen by held-out error, on
 * 1,000 to 60,000 samples of a simulated GPU, as they are (1 % noise) and with
 * 2 to 20 % noise added: the features (logarithms and bytes: half the error), a
 * relative loss (1.0 % instead of 1.3 % mean error), a rate of 4e-3 that decays
 * instead of a constant 1e-3, smaller batches for fewer samples; and against
 * noise a little weight decay and a running average of the weights (a tenth to
 * a fifth of the error, where there are few samples). The head corrects a
 * linear estimate and sees the device's totals (costmodel/estimate.h), and
 * embeddings are weighted by their table's share of the estimate: on 4,000
 * samples of a simulated GPU over 28 settings with 2 % noise a mean error of
 * 1.8 % instead of 2.7 %. Totals count cache lines beside bytes, as rows lie
 * across them: 6.9 % instead of 7.2 % on 3,400 measurements of a CPU, the mean
 * of four seeds, and as good on GPUs. Large errors count linearly: 7.4 %
 * instead of 7.8 % on measurements of a CPU whose repeats are 4.3 % apart. A
 * net on a roofline sees which of its parts take a table's time (struct
 * feature_input) instead of how often rows are used: on 200 measurements of
 * FBGEMM on an H100 6.0 % instead of 6.9 %, on 1,000 of this program's look-ups
 * 6.5 % instead of 7.0 %.
 */

enum train_loss {
    LOSS_RELATIVE, /* mean of e^2, where e is (got - want) / want; beyond
                      0.05 it grows like |e| (pseudo-Huber) */
    LOSS_SQUARED   /* mean of (got - want)^2, in units of the mean time */
};

struct train_options {
    enum model_kind kind;       /* MODEL_NET */
    const struct gpu_spec *gpu; /* whose roofline; NULL: as train_gpu says */
    struct feature_set features;
    struct feature_set totals; /* none: the head sees the sum only, as
                                  published, and says ms */
    unsigned epochs;           /* 0: for 20,000 steps, within 200 .. 1,000 */
    unsigned batch_size;       /* 0: by the number of samples, 32 .. 256 */
    double learning_rate;      /* 4e-3 */
    bool decay;                /* half a cosine down to 0 over the epochs */
    double average;            /* share of the old in the running average of the
                                  weights, 0.998; 0: no average */
    enum train_loss loss;
    uint64_t seed;
    double time_limit_s; /* 0: none; else stops with what there is */
    /* Called after each of `epochs`; may be NULL. Losses as trained on, twice
     * the same where none validates. Return non-zero to stop with the best, or
     * last, so far. */
    int (*on_epoch)(void *ctx, unsigned epoch, unsigned epochs,
                    double train_loss, double validation_loss);
    void *ctx;
};
/* What this program trains with. */
void train_options_init(struct train_options *options);

/* The GPU whose roofline suits samples of one device, some of them known to
 * training: that of the device, or, where its figures are not known, the one
 * by which the times are explained best; in the arena. */
int train_gpu(const struct gpu_spec **out, const struct sample *samples,
              size_t n, const struct train_options *options,
              struct arena *arena, struct err *err) MUST_CHECK;

/* A roofline is fitted to no fewer samples than this. */
#define TRAIN_MIN_FIT 8
/* A net is trained on no fewer samples than this of a side of the split. */
#define TRAIN_MIN_SAMPLES 32
#define TRAIN_MIN_VALIDATION 4

/* Trains a model of options->kind on the samples that sample_trains() accepts,
 * split by case (see dataset.h); what is made of a roofline learns from all
 * that are not held out. Each sample has its setting; device, threads and isa
 * are those of the first. Fills everything of the model but errors and comm; it
 * lives in the arena. ERR_INPUT for too few samples (the sentence says how many
 * there are) or a training that does not converge to numbers. */
int train_fit(struct model *model, const struct sample *samples, size_t n,
              const struct train_options *options, struct arena *arena,
              struct err *err) MUST_CHECK;

#endif
