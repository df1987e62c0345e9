/* SPDX-License-Identifier: MIT */
#include "microbench/tasks.h"
#include "tests/tap.h"

#include <math.h>
#include <string.h>

#define N_POOL 3
#define N_DEVICES 4

/* Makes a pool of tables and four GPUs of 4 GiB; table i has n_rows * (i + 1)
 * rows. */
static void make_pool(struct problem *pool, uint64_t n_rows,
                      struct arena *arena)
{
    *pool = (struct problem){
        .source = "pool.csv", .n_tables = N_POOL, .batch = 4096};
    pool->tables = ARENA_NEW(arena, struct table, N_POOL);
    for (size_t i = 0; i < N_POOL; i++) {
        table_init(&pool->tables[i]);
        pool->tables[i].name = arena_printf(arena, "t%zu", i);
        pool->tables[i].num_embeddings = n_rows * (i + 1);
        pool->tables[i].dim = 16;
        pool->tables[i].pooling_factor = 10;
    }
    pool->cluster.n_devices = pool->cluster.devices_per_host = N_DEVICES;
    pool->cluster.memory_bytes = ARENA_NEW(arena, uint64_t, N_DEVICES);
    pool->cluster.reserve_bytes = ARENA_NEW(arena, uint64_t, N_DEVICES);
    for (size_t r = 0; r < N_DEVICES; r++)
        pool->cluster.memory_bytes[r] = UINT64_C(4) << 30;
}

static double weight_bytes(const struct problem *task)
{
    double bytes = 0;

    for (size_t i = 0; i < task->n_tables; i++)
        bytes += (double)task->tables[i].num_embeddings * task->tables[i].dim *
                 precision_bytes(task->tables[i].precision);
    return bytes;
}

/* Tests the properties of each task, however large its tables are. */
static void test_tasks(uint64_t n_rows, struct arena *arena)
{
    struct err err = {0};
    struct problem pool;
    int n_bad = 0, n_failed = 0;
    double largest = 0;

    make_pool(&pool, n_rows, arena);
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct problem task, again;
        struct rng rng;

        rng_init(&rng, seed, 0);
        n_failed += task_draw(&task, &pool, &rng, arena, &err) != 0;
        rng_init(&rng, seed, 0);
        n_failed += task_draw(&again, &pool, &rng, arena, &err) != 0;
        n_bad += task.n_tables < 10 || task.n_tables > 59 ||
                 weight_bytes(&task) > 15 * 0x1p30 ||
                 again.n_tables != task.n_tables;
        largest = fmax(largest, weight_bytes(&task));
        for (size_t i = 0; i < task.n_tables; i++) {
            const uint32_t dim = task.tables[i].dim;

            n_bad += dim < 4 || dim > 128 || dim & (dim - 1) ||
                     dim != again.tables[i].dim ||
                     strcmp(task.tables[i].name, again.tables[i].name) != 0;
        }
    }
    ok(n_failed == 0, "tasks are found: %s", err.msg);
    is_i64(n_bad, 0, "as the benchmark says, and the same again");
    ok(n_rows < 1000000 || largest > 12 * 0x1p30,
       "up to %.1f of 15 GiB, if tables are large", largest / 0x1p30);
}

static void test_none(struct arena *arena)
{
    struct err err = {0};
    struct problem pool, task;
    struct rng rng;

    make_pool(&pool, UINT64_C(1) << 33, arena);
    rng_init(&rng, 1, 0);
    is_i64(task_draw(&task, &pool, &rng, arena, &err), -1, "too large a pool");
    is_i64(err.code, ERR_USAGE, "is asked for in vain");
    ok(strstr(err.msg, "'pool.csv'") != NULL, "and named");
}

int main(void)
{
    struct arena arena = {0};

    test_tasks(1000, &arena);
    test_tasks(4000000, &arena);
    test_none(&arena);
    arena_release(&arena);
    return tap_done();
}
