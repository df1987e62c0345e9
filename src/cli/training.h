/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_TRAINING_H
#define NEUROSHARD_CLI_TRAINING_H

#include "cli/command.h"
#include "costmodel/learning/choose.h"
#include "costmodel/learning/evaluate.h"
#include "io/store.h"

/*
 * Code that train, retrain and eval share: reading the measurements of one
 * device from the cost database, a training with its progress, and a printed
 * evaluation.
 */

/* Groups of options: how to train, and which settings and which device to
 * use. */
extern const struct option_spec training_options[], setting_options[],
    device_options[];

struct training {
    struct cli *cli;
    struct store *store; /* owned */
    /* only the members device, n_threads and isa are used */
    struct sample_setting device;
    /* [n] samples of the device, each with its setting */
    struct sample *samples;
    size_t n;
    /* [n_comm] samples of exchanges of the device */
    struct comm_sample *comm_samples;
    size_t n_comm;
    /* [n_products] measured matrix products of the device, and how many of them
     * were left out because the device was disturbed */
    struct product_sample *products;
    size_t n_products, n_products_left_out;
    struct model model; /* the model that is trained or evaluated */
    struct evaluation evaluation;
};

/* Opens the database of --db, which must exist, and reads the measurements of
 * training->device. If no device is set, chooses one to train by with
 * training_choose_device. The options in setting_options select settings and
 * samples. Fails with ERR_USAGE if --since is no date. Fails with ERR_INPUT if
 * no samples are selected; the message lists the samples in the database. Also
 * prepares the training and evaluation of models
 * (device/gemm.h). */
int training_load(struct training *training, enum store_mode mode,
                  struct err *err) MUST_CHECK;

bool is_same_device(const struct sample_setting *x,
                    const struct sample_setting *y);

/* Sets training->device to the one device of the database that matches the
 * device_options. `name` is used in place of the value of --device; NULL
 * matches any device. If is_to_train is set, the device must have a setting
 * that the setting_options select. Fails with ERR_INPUT if no device matches,
 * and with ERR_USAGE if several devices match; the message lists the devices in
 * the database. */
int training_choose_device(struct training *training, const char *name,
                           bool is_to_train, struct err *err) MUST_CHECK;

/* Trains a model with a progress line under this label. `kind` is the kind of
 * model; -1: the best kind. An interrupt stops the training, which then keeps
 * the best model so far. */
int training_fit(struct training *training, int kind,
                 struct train_options *options, const char *label,
                 struct err *err) MUST_CHECK;
/* Trains a model (training_fit) with the settings of the training_options. Also
 * evaluates the model and fits the communication, and stores both in the
 * model. */
int training_run(struct training *training, struct err *err) MUST_CHECK;

/* Time in s that a command waits while another command replaces the same
 * model. */
#define MODEL_WAIT_S 10
/* Writes a model under its lock, so that only one process writes the model at a
 * time. */
int training_save(struct model *model, const char *path,
                  struct err *err) MUST_CHECK;

#endif
