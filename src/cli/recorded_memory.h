/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_RECORDED_MEMORY_H
#define NEUROSHARD_CLI_RECORDED_MEMORY_H

#include "base/cli.h"
#include "exec/job_memory.h"

/* Reads the file of --memory and compares it with the plan. Counts the memory
 * of a plan that has none. The result lives in the arena of `cli`. ERR_INPUT if
 * the file is wrong. */
int recorded_memory_read(struct job_memory *job, struct plan *plan,
                         const struct cli *cli, struct err *err) MUST_CHECK;

/* Returns {ranks, reserve_bytes, verdict}. */
json_t *recorded_memory_to_json(const struct job_memory *job,
                                struct arena *arena);

/* Appends a table by rank and a sentence: which GPU needs most, and which
 * reserve is enough. */
void recorded_memory_print(const struct job_memory *job, struct arena *arena,
                           struct buf *out);

#endif
