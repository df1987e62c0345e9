/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_MODEL_REPORT_H
#define NEUROSHARD_COSTMODEL_MODEL_REPORT_H

#include "base/json.h"
#include "costmodel/evaluate.h"

/*
 * Reports on a model and its errors for people. Each function appends lines to
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
/* Prints the path of a model file and its hash, without the end of the line. */
void model_print_file(const struct model *model, const char *path,
                      struct buf *out);
/* Prints everything that a model file contains. */
void model_print(const struct model *model, const char *path,
                 struct arena *arena, struct buf *out);

void evaluation_print(const struct evaluation *evaluation, struct buf *out);
/* Returns a JSON list of the intervals in evaluation->covered, with their
 * coverage. The caller decrefs the list. */
json_t *covered_to_json(const struct evaluation *evaluation);

/* Prints a report on measured exchanges. Exchanges with the same kind and the
 * same numbers of ranks and hosts are a group. The report has a heading, and a
 * line for each group with the error of fitted curves on exchanges that the fit
 * has not seen. Prints nothing if there are no samples. */
void comm_report_print(const struct comm_sample *samples, size_t n,
                       struct buf *out);
json_t *comm_report_to_json(const struct comm_sample *samples, size_t n);

#endif
