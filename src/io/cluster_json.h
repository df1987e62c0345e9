/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_CLUSTER_JSON_H
#define NEUROSHARD_IO_CLUSTER_JSON_H

#include "core/problem.h"

/*
 * Reader of cluster files. They describe clusters whose GPUs differ in their
 * memory, or in the memory that is already used:
 *
 *     {"gpu": "h100", "inter_gbps": 48, "reserve": "10%", "pod_size": 2,
 *      "hosts": [{"count": 3, "gpus": 8, "memory": "80GiB", "used": "2GiB"},
 *                {"gpus": 8, "memory": ["80GiB", "40GiB", ...]}]}
 *
 * neuroshard-cluster(5) specifies the format.
 */

#define CLUSTER_MAX_GPUS 65536

/* Fills a zeroed cluster from a whole text:
 *   memory_bytes[r]   0 if the file leaves the memory to the kind of GPU, else
 *                     at least reserve_bytes[r]
 *   reserve_bytes[r]  the file's "used"; its "reserve" is not included, since a
 *                     percentage needs the memory
 *   gpu, reserve      NULL if the file does not give them
 *   bandwidths        0 if the file does not give them
 * Everything lives in the arena. An unknown member is an error. ERR_INPUT
 * messages have the form "source:line: what is wrong"; the line is that of the
 * host. */
int cluster_from_json(struct cluster *cluster, const char *text, size_t len,
                      const char *source, struct arena *arena,
                      struct err *err) MUST_CHECK;
/* Reads a file with cluster_from_json; "-" is standard input. */
int cluster_load(struct cluster *cluster, const char *path, struct arena *arena,
                 struct err *err) MUST_CHECK;

#endif
