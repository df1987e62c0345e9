/* SPDX-License-Identifier: MIT */
#include "search/migration.h"

#include "search/to_plan.h"

double migration_excess(const struct search_space *space, uint64_t limit_bytes,
                        uint64_t moved_bytes)
{
    return excess_over(limit_bytes, moved_bytes, space->current->held_bytes);
}

uint64_t migration_of_unit(const struct search_space *space,
                           const struct snapshot *pieces)
{
    const struct problem *problem = space->problem;
    struct plan plan;
    struct arena arena = {0};
    uint64_t bytes = 0;
    size_t n = 0; /* pieces of each table of the unit */

    for (uint32_t i = 0; i < pieces->n; i++)
        n += !space->types[pieces->pieces[i].type].is_empty;
    snapshot_to_plan(pieces, space, &plan, &arena);
    for (size_t i = 0; i < plan.n_shards; i += n) {
        uint32_t t = plan.shards[i].table;
        const struct table_pieces *before = &space->current->before[t];
        struct table_pieces after = {
            &problem->tables[t], &plan.shards[i],          n,
            space->n_devices,    problem->dense_optimizer, problem->layout};

        bytes = saturating_add(bytes, table_moves_count(before, &after).moved);
    }
    arena_release(&arena);
    return bytes;
}
