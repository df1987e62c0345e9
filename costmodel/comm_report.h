/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_COMM_REPORT_H
#define NEUROSHARD_COSTMODEL_COMM_REPORT_H

#include "base/json.h"
#include "base/mem.h"
#include "core/sample.h"

/*
 * What measured exchanges teach: for each kind and number of ranks and hosts
 * how well curves of the bytes predict exchanges that they have not seen.
 */

/* A heading and a line for each group; nothing where there are no samples. */
void comm_report_print(const struct comm_sample *samples, size_t n,
                       struct buf *out);
json_t *comm_report_to_json(const struct comm_sample *samples, size_t n);

#endif
