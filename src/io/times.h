/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_TIMES_H
#define NEUROSHARD_IO_TIMES_H

#include "base/mem.h"
#include "core/step.h"

/*
 * Measured times of the steps of a real job. neuroshard-record(1) describes the
 * format of the files: CSV with the columns step, rank, phase and ms, a JSON
 * list of objects with members of the same names, or a trace of PyTorch's
 * profiler (io/times_trace.h).
 */
struct times {
    /* number of ranks of the job; all rank numbers must be lower */
    uint32_t n_ranks;
    struct part_time *times; /* owned; times_add appends the times of a file */
    size_t n, cap;
    /* true: exchanges of some file are only their start, as in a trace without
     * a GPU */
    bool has_starts;
    bool is_cut; /* true: the last line of some file has no line end */
};
void times_release(struct times *times);

/* Adds the times of a file. `text` need not end in a NUL. ERR_INPUT messages
 * name the line with a missing or wrong value, or the file if it has no
 * times. */
int times_add(struct times *times, const char *text, size_t len,
              const char *source, struct arena *arena,
              struct err *err) MUST_CHECK;

#endif
