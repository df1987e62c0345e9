/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_TRAINING_H
#define NEUROSHARD_CLI_TRAINING_H

#include "base/json.h"
#include "cli/command.h"
#include "costmodel/evaluate.h"
#include "io/store.h"

/*
 * What train, retrain and eval share: the measurements of one device out of
 * the cost database, a training with its progress, an evaluation in print.
 */

/* Groups of options: how to train, and settings to keep to. */
extern const struct option_spec training_options[], setting_options[];

/* What is known of one device; each sample has its setting. */
struct measurements {
    struct sample *samples;
    size_t n;
    struct comm_sample *comm_samples;
    size_t n_comm;
};

/* Of `device`, device, n_threads and isa count; the setting_options choose
 * among its settings and samples. ERR_USAGE for a --since that is no date,
 * ERR_INPUT where nothing is left; the sentence lists what the database holds.
 * Also makes ready what trains and judges a model by them (costmodel/gemm.h).
 */
int measurements_load(struct measurements *measurements, struct store *store,
                      const struct sample_setting *device, struct cli *cli,
                      struct err *err) MUST_CHECK;

/* Whether a setting is what the setting_options ask for. */
bool training_wants(const struct sample_setting *setting,
                    const struct cli *cli);
bool is_same_device(const struct sample_setting *x,
                    const struct sample_setting *y);

/* Lines of what people read of a model: its setting and which hosts, drivers
 * and CUDA it was measured with; its communication, or `unknown`, half a
 * sentence; and its file and hash, without the end of the line. */
void training_print_setting(const struct model *model, struct cli *cli,
                            struct buf *out);
void training_print_comm(const struct model *model, const char *unknown,
                         struct cli *cli, struct buf *out);
void training_print_model(const struct model *model, const char *path,
                          struct buf *out);

/* Opens a database that must exist. */
int training_open_store(struct store **out, const char *path,
                        enum store_mode mode, struct err *err) MUST_CHECK;

/* "A; B; C": the settings, in words, in the command's arena. */
const char *training_list_settings(const struct sample_setting *settings,
                                   size_t n, struct cli *cli);

/* Trains by the training_options, evaluates and fits the communication; errors
 * and communication are in the model, too. Stops with the best so far at an
 * interrupt. Without --force, ERR_INPUT where there are too few held-out
 * samples to judge it by. */
int training_run(struct model *model, struct evaluation *evaluation,
                 const struct measurements *measurements, struct cli *cli,
                 struct err *err) MUST_CHECK;

/* How long a command waits for another that is replacing its model. */
#define MODEL_WAIT_S 10
/* Writes a model as its one writer. */
int training_save(struct model *model, const char *path,
                  struct err *err) MUST_CHECK;

/* Ends in a newline. */
void evaluation_print(const struct evaluation *evaluation, struct buf *out);

#endif
