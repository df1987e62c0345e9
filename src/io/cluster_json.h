/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_CLUSTER_JSON_H
#define NEUROSHARD_IO_CLUSTER_JSON_H

#include "base/json.h"
#include "core/cluster.h"
#include "core/problem.h"

/*
 * Reader of cluster files. A cluster file describes a cluster whose GPUs differ
 * in their memory size, or in the memory that is already used:
 *
 *     {"gpu": "h100", "inter_gbps": 48, "reserve": "10%", "pod_size": 2,
 *      "hosts": [{"count": 3, "gpus": 8, "memory": "80GiB", "used": "2GiB"},
 *                {"gpus": 8, "memory": ["80GiB", "40GiB", ...],
 *                 "busy_ms": {"forward": 0.5}, "slowdown": [1, 1.4, ...]}]}
 *
 * neuroshard-cluster(5) specifies the format.
 */

/* Fills *cluster, which the caller has zeroed, from the whole text of a cluster
 * file:
 *   memory_bytes[r]   memory of rank r, at least reserve_bytes[r]. It is 0 if
 * the file gives no value; the memory then follows from the kind of GPU.
 *   reserve_bytes[r]  "used" for rank r. The file's "reserve" is not included,
 *                     since a percentage needs the memory.
 *   busy_ms[r]        NULL if no host of the file has it
 *   slowdown[r]       NULL if no host of the file has it
 *   gpu, reserve      NULL if they are missing from the file
 *   bandwidths        0 if they are missing from the file
 * The cluster's arrays and strings live in the arena. An unknown member of the
 * file is an error. ERR_INPUT messages have the form "source:line: message".
 * The line is the first line of the faulty host. */
int cluster_from_json(struct cluster *cluster, const char *text, size_t len,
                      const char *source, struct arena *arena,
                      struct err *err) MUST_CHECK;
/* Returns the cluster as a cluster file: its GPU, hosts, memory, bandwidths and
 * slowdowns. Memory that is in use and times for other tables are left out. The
 * caller decrefs it. */
json_t *cluster_to_json(const struct cluster *cluster);
/* Reads the cluster file `path` with cluster_from_json. The path "-" is
 * standard input. */
int cluster_load(struct cluster *cluster, const char *path, struct arena *arena,
                 struct err *err) MUST_CHECK;

#endif
