/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_TRAINING_H
#define NEUROSHARD_CLI_TRAINING_H

#include "cli/command.h"
#include "costmodel/choose.h"
#include "costmodel/evaluate.h"
#include "io/store.h"

/*
 * What train, retrain and eval share: the measurements of one device out of
 * the cost database, a training with its progress, an evaluation in print.
 */

/* Groups of options: how to train, and settings and a device to keep to. */
extern const struct option_spec training_options[], setting_options[],
    device_options[];

struct training {
    struct cli *cli;
    struct store *store;          /* owned */
    struct sample_setting device; /* of which device, n_threads and isa count */
    struct sample *samples;       /* [n] of it, each with its setting */
    size_t n;
    struct comm_sample *comm_samples; /* [n_comm] */
    size_t n_comm;
    struct model model; /* that is trained or judged by them */
    struct evaluation evaluation;
};

/* Opens the database of --db, which must exist, and reads what is known of the
 * device, or where none is set of the one to train by that is chosen as below;
 * the setting_options choose among its settings and samples. ERR_USAGE for a
 * --since that is no date, ERR_INPUT where nothing is left; the sentence lists
 * what the database holds. Also makes ready what trains and judges a model by
 * them (costmodel/gemm.h). */
int training_load(struct training *training, enum store_mode mode,
                  struct err *err) MUST_CHECK;

bool is_same_device(const struct sample_setting *x,
                    const struct sample_setting *y);

/* The one device of the database that the device_options leave, with `name` (of
 * NULL any) in the place of --device, and, where it is to train by, that has a
 * setting that the setting_options want. ERR_INPUT or ERR_USAGE list what there
 * is. */
int training_choose_device(struct training *training, const char *name,
                           bool is_to_train, struct err *err) MUST_CHECK;

/* Trains the model, of a kind or for -1 of the one found best, with a progress
 * under that label. Stops with the best so far at an interrupt. */
int training_fit(struct training *training, int kind,
                 struct train_options *options, const char *label,
                 struct err *err) MUST_CHECK;
/* The same by the training_options; evaluates and fits the
 * communication; errors and communication are in the model, too. */
int training_run(struct training *training, struct err *err) MUST_CHECK;

/* How long a command waits for another that is replacing its model. */
#define MODEL_WAIT_S 10
/* Writes a model as its one writer. */
int training_save(struct model *model, const char *path,
                  struct err *err) MUST_CHECK;

#endif
