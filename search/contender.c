/* SPDX-License-Identifier: MIT */
#include "search/contender.h"

#include <math.h>

unsigned placing_kinds(const struct placing *placing, uint32_t table)
{
    return placing->problem->tables[table].kinds & placing->problem->kinds &
           placing->inputs->oracle->kinds;
}

void placing_begin(struct placing *placing)
{
    for (uint32_t r = 0; r < placing->n_devices; r++)
        placing->devices[r] = (struct filling){0, placing->room_bytes[r]};
}

bool placing_is_best(struct placing *placing)
{
    double most = 0;

    for (uint32_t r = 0; r < placing->n_devices; r++)
        most = fmax(most, placing->devices[r].load);
    if (!(most < placing->least_load))
        return false;
    placing->least_load = most;
    placing->plan->n_shards = 0;
    return true;
}

struct shard rival_piece(const struct problem *problem, uint32_t table,
                         enum shard_kind kind, uint32_t i, uint32_t n,
                         uint32_t device)
{
    struct shard shard = shard_whole(problem, table, device);
    uint64_t rows = (shard.row_end - 1) / n + 1;
    uint32_t columns = shard.col_end / n;

    shard.kind = kind;
    if (kind == SHARD_ROW) {
        shard.row_begin = min_u64(i * rows, shard.row_end);
        shard.row_end = min_u64(shard.row_begin + rows, shard.row_end);
    } else if (kind == SHARD_COLUMN) {
        shard.col_begin = i * columns;
        shard.col_end = shard.col_begin + columns;
    }
    return shard;
}
