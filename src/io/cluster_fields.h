/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_CLUSTER_FIELDS_H
#define NEUROSHARD_IO_CLUSTER_FIELDS_H

#include "base/json.h"
#include "core/cluster.h"
#include "core/problem.h"

/*
 * Table of those members of a cluster that are numbers or texts. Plan files and
 * cluster files have some of them in common. base/json.h describes such tables.
 */

#define CLUSTER_MAX_GPUS 65536

/* Index of "gpu" in the table below. "gpu" is the first of four members that
 * cluster files have, too. */
enum { OF_GPU = 2 };
#define CLUSTER(member) MEMBER_OF(struct cluster, member)
static const struct place_field cluster_fields[] = {
    {"gpus", CLUSTER(n_devices), true, 1, CLUSTER_MAX_GPUS, NULL},
    {"gpus_per_host", CLUSTER(devices_per_host), false, 1, CLUSTER_MAX_GPUS,
     NULL},
    {"gpu", CLUSTER(gpu), false, 0, 0, NULL},
    {"intra_gbps", CLUSTER(intra_gbps), false, CLUSTER_MIN_GBPS,
     CLUSTER_MAX_GBPS, NULL},
    {"inter_gbps", CLUSTER(inter_gbps), false, CLUSTER_MIN_GBPS,
     CLUSTER_MAX_GBPS, NULL},
    {"other_kinds", CLUSTER(n_other_kinds), false, 0, CLUSTER_MAX_OTHER_KINDS,
     NULL},
    {"nccl_bytes", CLUSTER(nccl_bytes), false, 0, 0x1p64, NULL},
    {"host_bytes", CLUSTER(host_bytes), false, 0, 0x1p64, NULL},
};

#endif
