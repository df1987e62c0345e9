/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_CLUSTER_JSON_H
#define NEUROSHARD_IO_CLUSTER_JSON_H

#include "core/problem.h"

/*
 * A cluster whose GPUs are not all alike, in memory or in what of it is taken
 * already:
 *
 *     {"gpu": "h100", "inter_gbps": 48, "reserve": "10%", "pod_size": 2,
 *      "hosts": [{"count": 3, "gpus": 8, "memory": "80GiB", "used": "2GiB"},
 *                {"gpus": 8, "memory": ["80GiB", "40GiB", ...]}]}
 *
 * Specified in neuroshard-cluster(5).
 */

#define CLUSTER_MAX_GPUS 65536

/* Fills a zeroed cluster from the whole text. memory_bytes[r] is 0 where the
 * file leaves it to the kind of GPU, else at least reserve_bytes[r], which is
 * what the file calls used; what it calls reserve is not in there, as a share
 * needs the memory. gpu and reserve are NULL and a bandwidth 0 where it says
 * none.
 * Everything lives in the arena. A member that is not known is an error, too.
 * ERR_INPUT is "source:line: what is wrong", the line that of the host. */
int cluster_from_json(struct cluster *cluster, const char *text, size_t len,
                      const char *source, struct arena *arena,
                      struct err *err) MUST_CHECK;
/* The same of a file; "-" is standard input. */
int cluster_load(struct cluster *cluster, const char *path, struct arena *arena,
                 struct err *err) MUST_CHECK;

#endif
