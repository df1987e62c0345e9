/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_MODELFILE_MODEL_REPORT_H
#define NEUROSHARD_COSTMODEL_MODELFILE_MODEL_REPORT_H

#include "base/figures.h"
#include "costmodel/modelfile/model.h"

/*
 * Reports on a model for people. Each function appends lines to
 * `out`. Texts that the functions create live in the arena.
 */

/* Prints the setting of the model, and the hosts, drivers and CUDA versions of
 * its samples. */
void model_print_setting(const struct model *model, struct arena *arena,
                         struct buf *out);
/* Prints the number of samples that the model learned from. */
void model_print_samples(const struct model_training *training,
                         struct buf *out);
/* Prints the kind of the model, the reason for the choice, and the errors of
 * the other kinds. */
void model_print_kind(const struct model *model, struct arena *arena,
                      struct buf *out);
/* Prints the communication curves of the model. Without curves, prints "not
 * measured", followed by `unknown`, the rest of the sentence. */
void model_print_comm(const struct model *model, const char *unknown,
                      struct arena *arena, struct buf *out);
/* Prints the number of measured matrix products and their errors, if the model
 * has any. */
void model_print_products(const struct model *model, struct buf *out);
/* Prints the path of a model file and its hash, without the end of the line. */
void model_print_file(const struct model *model, const char *path,
                      struct buf *out);
/* Prints everything that a model file contains. */
void model_print(const struct model *model, const char *path,
                 struct arena *arena, struct buf *out);
/* Columns of a table of struct errors. */
extern const struct figure error_figures[];

#endif
