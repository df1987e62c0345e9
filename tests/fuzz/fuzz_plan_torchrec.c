/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/printable.h"
#include "io/plan_torchrec.h"
#include "tests/fuzz/target.h"

#define N_TABLES 4

/* Makes tables a, b (in module m), c and d; alternately 8 rows x 16 and 1000 x
 * 64. */
static void make_tables(struct table *tables)
{
    static const char *const names[N_TABLES] = {"a", "m.b", "c", "d"};

    for (int i = 0; i < N_TABLES; i++) {
        table_init(&tables[i]);
        tables[i].name = names[i];
        tables[i].num_embeddings = i % 2 ? 1000 : 8;
        tables[i].dim = i % 2 ? 64 : 16;
    }
}

static void must_be_placed(const struct plan *plan)
{
    const struct problem *problem = &plan->problem;

    MUST(problem->n_tables >= 1 && problem->cluster.n_devices >= 1);
    MUST(plan->n_shards >= problem->n_tables);
    for (size_t t = 0; t < problem->n_tables; t++)
        MUST(*problem->tables[t].name &&
             text_is_printable(problem->tables[t].name));
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        const struct table *table = &problem->tables[shard->table];

        MUST(shard->table < problem->n_tables);
        MUST(shard->device < problem->cluster.n_devices);
        MUST(shard->row_begin < shard->row_end &&
             shard->row_end <= table->num_embeddings);
        MUST(shard->col_begin < shard->col_end && shard->col_end <= table->dim);
        MUST(shard->tier != TIER_CACHED ||
             (plan->load_factors[shard->table] > 0 &&
              plan->load_factors[shard->table] <= 1));
    }
}

static const struct tables_options options = {0};

/* Reads the plan once without a table list and once with one. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (size_t n = 0; n <= N_TABLES; n += N_TABLES) {
        struct plan plan = {0};
        struct arena arena = {0};
        struct err err = {0};
        char *text;

        text = arena_strndup(&arena, (const char *)data, size);
        plan.problem.tables = ARENA_NEW(&arena, struct table, n);
        plan.problem.n_tables = n;
        if (n)
            make_tables(plan.problem.tables);
        if (plan_from_torchrec(&plan, text, size, "fuzz", &options, &arena,
                               &err)) {
            MUST(err.code == ERR_INPUT && !strncmp(err.msg, "fuzz", 4));
            MUST(text_is_printable(err.msg));
        } else {
            must_be_placed(&plan);
        }
        arena_release(&arena);
    }
    return 0;
}
