/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_MODEL_REPORT_H
#define NEUROSHARD_COSTMODEL_MODEL_REPORT_H

#include "base/json.h"
#include "costmodel/evaluate.h"

/*
 * Reports on a model and its errors for people. Each function appends lines to
 * `out`. Texts that they create live in the arena.
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
/* Prints the file and its hash, without the end of the line. */
void model_print_file(const struct model *model, const char *path,
                      struct buf *out);
/* Prints everything that a model contains. */
void model_print(const struct model *model, const char *path,
                 struct arena *arena, struct buf *out);

void evaluation_print(const struct evaluation *evaluation, struct buf *out);
/* Returns the list of evaluation->covered, the intervals with their coverage.
 * The caller decrefs it. */
json_t *covered_to_json(const struct evaluation *evaluation);

/* Report on measured exchanges: for each kind and number of ranks and hosts,
 * the error of curves on exchanges that they have not seen. Prints a heading
 * and a line for each group; nothing if there are no samples. */
void comm_report_print(const struct comm_sample *samples, size_t n,
                       struct buf *out);
json_t *comm_report_to_json(const struct comm_sample *samples, size_t n);

#endif
