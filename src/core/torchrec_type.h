/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_TORCHREC_TYPE_H
#define NEUROSHARD_CORE_TORCHREC_TYPE_H

#include "core/problem.h"

/* Sharding types of TorchRec. The tables of a module that have one sharding
 * type share lookups, exchanges and caches. */
enum torchrec_type {
    TORCHREC_TABLE_WISE,
    TORCHREC_COLUMN_WISE,
    TORCHREC_ROW_WISE,
    TORCHREC_TABLE_ROW_WISE,
    TORCHREC_GRID,
    TORCHREC_DATA_PARALLEL
};
#define N_TORCHREC_TYPES 6
/* TorchRec's names of the types, indexed by the type; NULL-terminated. */
extern const char *const torchrec_type_names[];

/* Returns the sharding type of a shard whose kind is set. A whole table is
 * table-wise. */
enum torchrec_type shard_torchrec_type(const struct problem *problem,
                                       const struct shard *shard);

#endif
