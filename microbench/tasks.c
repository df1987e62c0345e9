/* SPDX-License-Identifier: MIT */
#include "microbench/tasks.h"

#define MAX_TABLES 59
#define MAX_TRIES 10000

/* Draws the tables of a task once. Returns the bytes of the weights of all
 * drawn tables. */
static double draw_tables(struct problem *task, const struct problem *pool,
                          struct rng *rng)
{
    double bytes = 0;

    task->n_tables = 10 + rng_below(rng, MAX_TABLES - 9);
    for (size_t i = 0; i < task->n_tables; i++) {
        struct table *table = &task->tables[i];

        *table = pool->tables[rng_below(rng, pool->n_tables)];
        table->dim = UINT32_C(4) << rng_below(rng, 6);
        bytes += (double)table->num_embeddings * table->dim *
                 precision_bytes(table->precision);
    }
    return bytes;
}

int task_draw(struct problem *task, const struct problem *pool, struct rng *rng,
              struct arena *arena, struct err *err)
{
    const struct cluster *cluster = &pool->cluster;
    double room_bytes = 0;
    int n_tries = 0;

    for (uint32_t r = 0; r < cluster->n_devices; r++)
        room_bytes +=
            (double)(cluster->memory_bytes[r] - cluster->reserve_bytes[r]) *
            15 / 16;
    *task = *pool;
    task->tables = ARENA_NEW(arena, struct table, MAX_TABLES);
    while (draw_tables(task, pool, rng) > room_bytes)
        if (++n_tries == MAX_TRIES)
            return err_usage(err,
                             "no task can be drawn from '%s': its tables are "
                             "too large for 15/16 of all memory",
                             pool->source);
    for (size_t i = 0; i < task->n_tables; i++)
        task->tables[i].name =
            arena_printf(arena, "%s#%zu", task->tables[i].name, i);
    problem_find_hot_rows(task, arena);
    return 0;
}
