/* SPDX-License-Identifier: MIT */
#include "core/reshard_rules.h"

#include "tests/tap.h"

static const char *bars(struct table table, const struct shard *shards,
                        size_t n)
{
    const struct table_pieces pieces = {
        .table = &table, .pieces = shards, .n = n, .n_devices = 4};
    const char *reason = reshard_bars_pieces(&pieces);

    return reason ? reason : "none";
}

static void test_pieces(void)
{
    const struct shard whole[] = {{0, SHARD_TABLE, 0, 9, 0, 8, 3, TIER_HBM}};
    const struct shard columns[] = {{0, SHARD_COLUMN, 0, 9, 0, 4, 3, TIER_HBM},
                                    {0, SHARD_COLUMN, 0, 9, 4, 8, 1, TIER_HBM}};
    const struct shard same[] = {{0, SHARD_COLUMN, 0, 9, 0, 4, 1, TIER_HBM},
                                 {0, SHARD_COLUMN, 0, 9, 4, 8, 1, TIER_HBM}};
    const struct shard rows[] = {{0, SHARD_ROW, 0, 5, 0, 8, 0, TIER_HBM},
                                 {0, SHARD_ROW, 5, 9, 0, 8, 1, TIER_HBM}};
    struct table table;

    table_init(&table);
    is_str(bars(table, whole, 1), "none", "a whole table moves");
    is_str(bars(table, columns, 2), "none", "columns on two ranks move");
    is_str(bars(table, same, 2), "two pieces on one rank",
           "columns on one rank do not");
    is_str(bars(table, rows, 2), "rows, grids and replicas are not moved",
           "rows do not");
    table.output = OUTPUT_SEQUENCE;
    is_str(bars(table, whole, 1),
           "a sequence: only EmbeddingBagCollections are moved",
           "a sequence does not");
}

static void test_tables(void)
{
    struct table a, b;

    table_init(&a);
    a.num_embeddings = 9;
    a.dim = 8;
    b = a;
    b.pooling_factor = 7;
    ok(!reshard_bars_table(&a, &b), "other lookups change nothing");
    for (unsigned i = 0; i < 4; i++) {
        b = a;
        b.num_embeddings += i == 0;
        b.dim += i == 1;
        b.precision = i == 2 ? PRECISION_BF16 : a.precision;
        b.optimizer = i == 3 ? OPTIMIZER_ADAM : a.optimizer;
        is_str(reshard_bars_table(&a, &b),
               "another size, precision or optimizer", "another property");
    }
}

static void test_job(void)
{
    struct table table;
    struct table_pieces before[2] = {{.table = &table}, {.table = &table}};
    struct problem from = {.n_tables = 2, .cluster.n_devices = 4};
    struct problem now = from;

    ok(!reshard_bars_job(&from, &now, before), "the same job");
    now.cluster.n_devices = 5;
    is_str(reshard_bars_job(&from, &now, before), "another number of ranks",
           "a rank more");
    now = from;
    now.n_tables = 1;
    is_str(reshard_bars_job(&from, &now, before), "another set of tables",
           "a table less");
    before[1].table = NULL;
    is_str(reshard_bars_job(&from, &from, before), "another set of tables",
           "another table");
}

int main(void)
{
    test_pieces();
    test_tables();
    test_job();
    return tap_done();
}
