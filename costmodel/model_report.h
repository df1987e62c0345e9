/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_MODEL_REPORT_H
#define NEUROSHARD_COSTMODEL_MODEL_REPORT_H

#include "base/json.h"
#include "costmodel/evaluate.h"

/*
 * What people read of a model and of how good it is. Each of these adds lines;
 * texts that come of it live in the arena.
 */

/* Its setting, and which hosts, drivers and CUDA it was measured with. */
void model_print_setting(const struct model *model, struct arena *arena,
                         struct buf *out);
/* How many samples it learned from. */
void model_print_samples(const struct model_training *training,
                         struct buf *out);
/* Of which kind it is, why, and what the others' errors were. */
void model_print_kind(const struct model *model, struct arena *arena,
                      struct buf *out);
/* Its communication, or `unknown`, half a sentence. */
void model_print_comm(const struct model *model, const char *unknown,
                      struct arena *arena, struct buf *out);
/* Its file and hash, without the end of the line. */
void model_print_file(const struct model *model, const char *path,
                      struct buf *out);
/* All that is in it. */
void model_print(const struct model *model, const char *path,
                 struct arena *arena, struct buf *out);

void evaluation_print(const struct evaluation *evaluation, struct buf *out);
/* A list of what that says of intervals; the caller decrefs it. */
json_t *covered_to_json(const struct evaluation *evaluation);

/* What measured exchanges teach: for each kind and number of ranks and hosts
 * how well curves of the bytes predict exchanges that they have not seen. A
 * heading and a line for each; nothing where there are no samples. */
void comm_report_print(const struct comm_sample *samples, size_t n,
                       struct buf *out);
json_t *comm_report_to_json(const struct comm_sample *samples, size_t n);

#endif
