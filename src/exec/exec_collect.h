/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_EXEC_COLLECT_H
#define NEUROSHARD_EXEC_EXEC_COLLECT_H

#include "exec/exec.h"
#include "exec/verify.h"

/*
 * Every process has the figures of its ranks; these bring them together, so
 * that all have the same result. Collective.
 */

/* Timings and hashes of all ranks, and the most turns of a process. */
int exec_collect_ranks(struct exec_result *result,
                       const struct placement *placement,
                       struct err *err) MUST_CHECK;
/* What the comparison has found, and the hashes over all ranks, which
 * exec_collect_ranks has brought. */
int exec_collect_check(struct exec_result *result, const struct verify *verify,
                       const struct placement *placement, struct arena *arena,
                       struct err *err) MUST_CHECK;
/* This process's share of free_bytes: what the processes of a host need comes
 * from one memory, unless each has a GPU. */
int exec_collect_share(uint64_t *share_bytes, const struct placement *placement,
                       uint64_t free_bytes, struct err *err) MUST_CHECK;

#endif
