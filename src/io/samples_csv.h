/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_SAMPLES_CSV_H
#define NEUROSHARD_IO_SAMPLES_CSV_H

#include "base/mem.h"
#include "core/sample.h"

/*
 * Samples as text, a line each, small enough to be kept where a database is
 * too large: tables as their sums, times with six digits. The columns are in
 * neuroshard-costs(5); nothing learns from it.
 */
void samples_csv_header(struct buf *out);
/* The sample has its setting. */
void samples_csv_add(struct buf *out, const struct sample *sample);

#endif
