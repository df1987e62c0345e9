/* SPDX-License-Identifier: MIT */
/* A long plan is written and read one table or shard at a time. So the memory
 * of JSON values does not grow with the list; it is counted, not timed. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "io/plan_json.h"
#include "io/plan_json_write.h"
#include "tests/tap.h"

#define N_TABLES 3000
/* Most bytes of JSON values at any time. One object takes up to 6 KiB. */
#define MOST_BYTES 12000

static size_t n_live, n_most;

/* Allocators of jansson that count bytes. Each block begins with its size. */
static void *count_take(size_t size)
{
    size_t *block = malloc(size + 16);

    if (!block)
        abort();
    *block = size;
    n_live += size;
    n_most = n_live > n_most ? n_live : n_most;
    return block + 2;
}

static void count_free(void *data)
{
    size_t *block = data;

    if (!block)
        return;
    n_live -= block[-2];
    free(block - 2);
}

/* Makes a plan with each table whole, on one of two devices. */
static void make(struct plan *plan, struct arena *arena)
{
    struct cluster *cluster = &plan->problem.cluster;

    *plan = (struct plan){.problem = {.n_tables = N_TABLES,
                                      .batch = 1024,
                                      .kinds = SHARD_ALL_KINDS,
                                      .layout = LAYOUT_FBGEMM},
                          .n_shards = N_TABLES,
                          .total_ms = NAN,
                          .bound_ms = NAN};
    *cluster = (struct cluster){.n_devices = 2,
                                .devices_per_host = 2,
                                .memory_bytes = ARENA_NEW(arena, uint64_t, 2),
                                .reserve_bytes = ARENA_NEW(arena, uint64_t, 2)};
    cluster->memory_bytes[0] = cluster->memory_bytes[1] = UINT64_C(80) << 30;
    plan->problem.tables = ARENA_NEW(arena, struct table, N_TABLES);
    plan->shards = ARENA_NEW(arena, struct shard, N_TABLES);
    for (uint32_t t = 0; t < N_TABLES; t++) {
        struct table *table = &plan->problem.tables[t];

        table_init(table);
        table->name = arena_printf(arena, "table %u", t);
        table->num_embeddings = 1000 + t;
        table->dim = 16;
        table->pooling_factor = 1 + t / 7.0;
        plan->shards[t] = shard_whole(&plan->problem, t, t % 2);
    }
    problem_find_hot_rows(&plan->problem, arena);
}

static void test_long(void)
{
    char dir[] = "/tmp/t_plan_json_long.XXXXXX";
    struct arena arena = {0};
    struct plan plan, again;
    struct err err = {0};
    const char *path, *text = "";
    size_t len;

    if (!ok(mkdtemp(dir) != NULL, "a temporary folder"))
        return;
    path = arena_printf(&arena, "%s/plan.json", dir);
    make(&plan, &arena);
    if (!ok(!plan_save(&plan, path, &err), "saved"))
        printf("# %s\n", err.msg);
    ok(n_most > 1000 && n_most <= MOST_BYTES, "by few values at a time: %zu B",
       n_most);
    n_most = 0;
    ok(!plan_load(&again, path, &arena, &err) &&
           again.problem.n_tables == N_TABLES && again.n_shards == N_TABLES,
       "and loaded");
    ok(n_most > 1000 && n_most <= MOST_BYTES, "by few values at a time: %zu B",
       n_most);
    is_i64((int64_t)n_live, 0, "none are left");
    ok(!file_read(&text, &len, path, &arena, &err) &&
           !strcmp(text, plan_document_text(plan_document(&plan), &arena)),
       "the file has the text of the whole document");
    unlink(path);
    rmdir(dir);
    arena_release(&arena);
}

int main(void)
{
    json_set_alloc_funcs(count_take, count_free);
    test_long();
    return tap_done();
}
