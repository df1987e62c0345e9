/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_TIMES_H
#define NEUROSHARD_IO_TIMES_H

#include "base/mem.h"
#include "core/step.h"

/*
 * What the steps of a real job took, as neuroshard-record(1) says it: CSV with
 * the columns step, rank, phase and ms, or a JSON list of objects with these
 * members.
 */
struct times {
    uint32_t n_ranks;        /* of the job; rank is below it */
    struct part_time *times; /* owned, grown by each file */
    size_t n, cap;
    bool is_cut; /* a file's last line has no end */
};
void times_release(struct times *times);

/* Adds a file's times. text need not end in a NUL. ERR_INPUT names the line
 * that lacks or has something wrong, and a file without times. */
int times_add(struct times *times, const char *text, size_t len,
              const char *source, struct arena *arena,
              struct err *err) MUST_CHECK;

#endif
