/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_RIVALS_PARTITION_H
#define NEUROSHARD_SEARCH_RIVALS_PARTITION_H

#include <stdbool.h>

#include "base/mem.h"
#include "base/ranked.h"
#include "core/problem.h"

/*
 * TorchRec's greedy partitioner. First what goes on all ranks (replicas, rows
 * over all), then the tables by their storage, largest first: each shard to the
 * least loaded rank that has room, or the whole table to the least loaded host
 * that has.
 */

/* In the order in which TorchRec lists them, which breaks ties. */
enum sharding_type {
    DATA_PARALLEL,
    TABLE_WISE,
    COLUMN_WISE,
    TABLE_COLUMN_WISE, /* column-wise on one host */
    ROW_WISE,
    TABLE_ROW_WISE, /* row-wise over one host */
    N_SHARDING_TYPES
};

/* One way to cut one table. The costs of a type are alike for its shards, and
 * so are the sizes, but for the rest that blocks of rows leave. */
struct sharding_option {
    enum sharding_type type;
    enum shard_kind kind;
    uint32_t n_shards;   /* as TorchRec counts them: some may have no rows */
    uint32_t n_full;     /* those with as many rows as there may be */
    uint64_t rows;       /* of a full shard */
    uint32_t columns;    /* of a shard */
    double ms;           /* of a shard, also of one without rows */
    uint64_t bytes;      /* of a full shard */
    uint64_t rest_bytes; /* of the one behind them, if it has rows */
    /* Likewise what TorchRec takes them to hold, by which it sorts; that
     * they fit is counted as everywhere here. */
    double storage, rest_storage;
};

/* Bytes of shard i. */
uint64_t sharding_option_bytes(const struct sharding_option *option,
                               uint32_t shard);
/* TorchRec's storage of all shards. */
double sharding_option_storage(const struct sharding_option *option);

/* Room for one problem, used again and again; in the arena of its init. */
struct partitioner {
    uint32_t n_ranks, n_local, n_hosts;
    uint64_t *room_bytes; /* [n_ranks]: to start with */
    uint64_t *free_bytes; /* [n_ranks]: left */
    double *ms;           /* [n_ranks] */
    uint32_t *heap;       /* [n_heap] ranks, the least loaded first */
    uint32_t n_heap;
    bool is_heap;        /* false where loads have changed unseen */
    uint32_t *set_aside; /* [n_ranks] */
    double *kept_ms;     /* [n_local]: to go back to */
    uint64_t *kept_bytes;
    struct ranked *hosts; /* [n_hosts] by load */
    struct ranked *order; /* [n_tables] by storage */
};

void partitioner_init(struct partitioner *partitioner,
                      const struct problem *problem, struct arena *arena);

/* Places n options, one a table; false where one has no room. Afterwards `ms`
 * has the loads, and placement[t][i] the rank of shard i (of a DATA_PARALLEL
 * or ROW_WISE one it is rank i and not written). */
bool partition(struct partitioner *partitioner,
               const struct sharding_option *const *proposal, uint32_t n,
               uint32_t *const *placement);

#endif
