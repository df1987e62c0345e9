/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_LEARNING_COMM_REPORT_H
#define NEUROSHARD_COSTMODEL_LEARNING_COMM_REPORT_H

#include "base/json.h"
#include "base/text.h"
#include "core/sample.h"

/* Prints a report on measured exchanges. Exchanges with the same kind and the
 * same numbers of ranks and hosts are a group. The report has a heading, and a
 * line for each group with the error of fitted curves on exchanges that the fit
 * has not seen. Prints nothing if there are no samples. */
void comm_report_print(const struct comm_sample *samples, size_t n,
                       struct buf *out);
json_t *comm_report_to_json(const struct comm_sample *samples, size_t n);

#endif
