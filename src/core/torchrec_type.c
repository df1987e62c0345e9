/* SPDX-License-Identifier: MIT */
#include "core/torchrec_type.h"

const char *const torchrec_type_names[] = {
    "table_wise", "column_wise",   "row_wise", "table_row_wise",
    "grid_shard", "data_parallel", NULL};

enum torchrec_type shard_torchrec_type(const struct problem *problem,
                                       const struct shard *shard)
{
    switch (shard->kind) {
    case SHARD_COLUMN:
        return TORCHREC_COLUMN_WISE;
    case SHARD_ROW:
        return shard_row_ranks(problem, shard) == problem->cluster.n_devices
                   ? TORCHREC_ROW_WISE
                   : TORCHREC_TABLE_ROW_WISE;
    case SHARD_GRID:
        return TORCHREC_GRID;
    case SHARD_REPLICATE:
        return TORCHREC_DATA_PARALLEL;
    case SHARD_TABLE:
        break;
    }
    return TORCHREC_TABLE_WISE;
}
