/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_DLRM_DENSE_H
#define NEUROSHARD_IO_DLRM_DENSE_H

#include "io/dlrm_jobs.h"

/* Adds a note about the dense part that a dlrm command line defines: its text
 * for --dense, or the reason why it is unknown. Adds nothing if no option of
 * the command line concerns the dense part. */
void dlrm_note_dense(const struct dlrm_reader *reader, struct buf *notes);

#endif
