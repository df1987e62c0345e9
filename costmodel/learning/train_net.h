/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_LEARNING_TRAIN_NET_H
#define NEUROSHARD_COSTMODEL_LEARNING_TRAIN_NET_H

#include "costmodel/learning/dataset.h"
#include "costmodel/learning/train.h"

/* The training loop of a net, which train_fit uses. */

/* Training data of a net. */
struct net_sides {
    /* Sides of the split. The validation side is empty for a net on a
     * roofline. */
    struct dataset train, validation;
    /* Number of measured training samples. Later samples are pseudo-labels
     * without times (costmodel/learning/pseudo_labels.h). */
    size_t n_known;
    /* Unit of the net's output. With an estimate it is 1, times the estimate of
     * a sample. Without an estimate it is the mean training time in ms. */
    double scale;
};

/* Trains the net of a model whose features and estimate are set. Sets
 * model->mlp, which lives in the arena, and the epochs of model->training.
 * begin_ms is the time from which the time limit counts, on clock_ms(). Returns
 * ERR_INPUT if the training does not converge. */
int train_net(struct model *model, struct net_sides *sides,
              const struct train_options *options, double begin_ms,
              struct arena *arena, struct err *err) MUST_CHECK;

#endif
