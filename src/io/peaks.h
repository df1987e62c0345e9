/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_PEAKS_H
#define NEUROSHARD_IO_PEAKS_H

#include "base/mem.h"
#include "core/peak.h"

/*
 * Reader of the peak memory of a job's ranks. neuroshard-record(1) describes
 * the two kinds of files:
 * - counters of torch.cuda by rank, as CSV or as a JSON list of objects with
 *   the columns rank, allocated_bytes, reserved_bytes and used_bytes
 * - a log with PyTorch's messages of GPUs that ran out of memory
 */

/* Allocates peaks->ranks in the arena and reads a file into it. n_ranks and
 * is_one_host must be set. `text` need not end in a NUL. If a log has several
 * messages of one rank, the one that needed most memory counts. ERR_INPUT
 * messages name the line: a wrong value, a rank that occurs twice, a message
 * that does not name its rank, or a file without peaks. */
int peaks_read(struct peaks *peaks, const char *text, size_t len,
               const char *source, struct arena *arena,
               struct err *err) MUST_CHECK;

#endif
