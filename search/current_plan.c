/* SPDX-License-Identifier: MIT */
#include "search/current_plan.h"

/* Counts the bytes that stay in place. Then gives each table of the old plan
 * the number of rows that the table has today, without moving it, and joins
 * pieces that touch. */
void current_init(struct current_plan *current, const struct problem *problem,
                  const struct plan *from, struct arena *arena)
{
    struct plan grown = {.problem = *problem};

    *current = (struct current_plan){0};
    current->before = ARENA_NEW(arena, struct table_pieces, problem->n_tables);
    current->standing =
        ARENA_NEW(arena, struct table_pieces, problem->n_tables);
    table_pieces_find(current->before, problem->tables, problem->n_tables,
                      from);
    grown.problem.cluster =
        from->problem.cluster; /* the cluster whose GPUs hold the pieces */
    grown.shards = ARENA_NEW(arena, struct shard, from->n_shards);
    for (size_t t = 0; t < problem->n_tables; t++) {
        const struct table *now = &problem->tables[t];
        const struct table_pieces *before = &current->before[t];

        current->held_bytes = saturating_add(
            current->held_bytes, table_moves_count(before, before).kept);
        for (size_t i = 0; i < before->n && before->table->dim == now->dim;
             i++) {
            struct shard shard = before->pieces[i];

            shard.table = (uint32_t)t;
            if (shard.row_end == before->table->num_embeddings ||
                shard.row_end > now->num_embeddings)
                shard.row_end = now->num_embeddings;
            if (shard.row_begin < shard.row_end)
                grown.shards[grown.n_shards++] = shard;
        }
    }
    plan_derive_kinds(&grown);
    plan_join_columns(&grown, false, arena);
    table_pieces_find(current->standing, problem->tables, problem->n_tables,
                      &grown);
    current->shards = grown.shards;
    current->n_shards = grown.n_shards;
}
