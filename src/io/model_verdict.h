/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_MODEL_VERDICT_H
#define NEUROSHARD_IO_MODEL_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

/* Result of retraining a cost model: the comparison of the model in use with
 * its rival, the newly trained model. */
struct model_verdict {
    const char *model_path;
    /* hashes of the model in use and of its rival */
    const char *old_hash, *new_hash;
    bool replaced;
    /* reason why the rival was rejected regardless of its gain; or NULL */
    const char *reason;
    /* errors of the two models on the held-out samples, as fractions */
    double old_mape, new_mape;
    double gain_se; /* standard error of the difference of the two errors */
    /* gain that the rival needed to replace the model in use */
    double min_gain;
    uint64_t n_samples; /* number of samples that the rival was trained on */
    /* number of held-out samples on which both models were evaluated */
    uint64_t n_held_out;
    const char *setting; /* setting that the rival was trained on */
};

#endif
