/* SPDX-License-Identifier: MIT */
#include "core/table.h"

#include "base/text.h"
#include "tests/tap.h"

static void test_init(void)
{
    struct table table;

    memset(&table, 0xff, sizeof(table));
    table_init(&table);
    ok(!table.name && !table.group, "a new table has no name and no group");
    is_i64((int64_t)table.num_embeddings, 0, "no rows");
    is_i64(table.dim, 0, "no dim");
    is_near(table.pooling_factor, 0, 0, "pooling 0");
    is_near(table.num_outputs, 1, 0, "one output");
    is_i64(table.output, OUTPUT_POOLED, "pooled");
    is_i64(table.precision, PRECISION_FP32, "fp32");
    is_i64(table.comm_precision, PRECISION_FP32, "communication in fp32");
    is_i64(table.optimizer, OPTIMIZER_ROWWISE_ADAGRAD, "row-wise Adagrad");
    ok(!table.has_bins && table.skew_assumed, "the skew is assumed");
    is_near(table.zipf_alpha, DEFAULT_ZIPF_ALPHA, 0, "Zipf 1.05");
    is_i64(table.kinds, SHARD_ALL_KINDS, "every kind is allowed");
    is_i64(table.n_reach, 0, "no reach was measured");
    is_i64(table.device, -1, "no pin");
    for (int k = 0; k < REUSE_BINS; k++)
        if (table.bins[k] != 0)
            ok(0, "bin %d is zero", k);
}

static void test_names(void)
{
    static const unsigned bytes[N_PRECISIONS] = {4, 2, 2, 1};
    static const char *const precisions[N_PRECISIONS] = {"fp32", "fp16", "bf16",
                                                         "int8"};
    static const char *const optimizers[N_OPTIMIZERS] = {
        "sgd",
        "rowwise_adagrad",
        "adagrad",
        "adam",
        "adama",
        "lamb",
        "partial_rowwise_adam",
        "partial_rowwise_lamb"};
    static const char *const kinds[] = {"table", "column", "row", "grid",
                                        "replicate"};
    static const char *const wrong[] = {"", "FP32", "fp3", "fp320", " sgd"};

    for (int i = 0; i < N_PRECISIONS; i++) {
        is_str(precision_names[(enum precision)i], precisions[i], "precision");
        is_i64(text_choice(precision_names, precisions[i]), i, precisions[i]);
        is_i64(precision_bytes((enum precision)i), bytes[i], "bytes");
    }
    for (int i = 0; i < N_OPTIMIZERS; i++) {
        is_str(optimizer_names[(enum optimizer)i], optimizers[i], "optimizer");
        is_i64(text_choice(optimizer_names, optimizers[i]), i, optimizers[i]);
    }
    for (unsigned i = 0; i < 5; i++) {
        is_str(shard_kind_name((enum shard_kind)(1u << i)), kinds[i], "kind");
        is_i64(shard_kinds_from_list(kinds[i], '\0'), 1 << i, kinds[i]);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        is_i64(text_choice(precision_names, wrong[i]), -1, "no such precision");
        is_i64(text_choice(optimizer_names, wrong[i]), -1, "no such optimizer");
        is_i64(shard_kinds_from_list(wrong[i], '\0'), 0, "no such kind");
    }
}

static void test_kinds(void)
{
    static const struct {
        const char *list;
        unsigned kinds;
    } lists[] = {{"table", SHARD_TABLE},
                 {"grid,row", SHARD_GRID | SHARD_ROW},
                 {"row,row", SHARD_ROW},
                 {"table,column,row,grid,replicate", SHARD_ALL_KINDS},
                 {"", 0},
                 {"row,", 0},
                 {",row", 0},
                 {"row,colum", 0},
                 {"row,columns", 0},
                 {"row|column", 0}};

    for (unsigned k = 0; k < N_SHARD_KINDS; k++) {
        const struct shard_traits *traits = &shard_traits[k];

        is_i64(shard_kind_idx(traits->kind), k, "kinds in the order of bits");
        is_i64(shard_kind_of_cuts(traits->cuts_rows, traits->cuts_columns,
                                  traits->is_replica),
               traits->kind, "its cuts tell a kind");
        ok(!(traits->made_of & traits->kind), "%s is not made of itself",
           traits->name);
    }
    ok(shard_cuts_rows(SHARD_GRID) && shard_cuts_columns(SHARD_GRID) &&
           shard_cuts_rows(SHARD_ROW) && !shard_cuts_columns(SHARD_ROW) &&
           !shard_cuts_rows(SHARD_COLUMN) && shard_is_replica(SHARD_REPLICATE),
       "what is cut");
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        is_i64(shard_kinds_from_list(lists[i].list, ','), lists[i].kinds,
               lists[i].list);
    is_i64(shard_kinds_from_list("row|column", '|'), SHARD_ROW | SHARD_COLUMN,
           "another separator");
}

static void test_reach(void)
{
    /* reach and misses of windows of 1 and 2 batches of a table of 100 rows */
    static const struct {
        const char *what;
        double reach[2], misses[2];
        unsigned wrong; /* index of the window that is wrong */
    } cases[] = {
        {"misses that fall", {40, 60}, {25, 15}, REACH_WINDOWS},
        {"equal misses", {40, 60}, {20, 20}, REACH_WINDOWS},
        {"no misses", {40, 40}, {0, 0}, REACH_WINDOWS},
        {"all rows", {100, 100}, {0, 0}, REACH_WINDOWS},
        {"0.9 % more than all rows", {100.9, 100.9}, {0, 0}, REACH_WINDOWS},
        {"1.1 % more than all rows", {101.1, 101.1}, {0, 0}, 0},
        {"infinite reach", {INFINITY, INFINITY}, {1, 1}, 0},
        {"a miss that is no number", {40, 60}, {20, NAN}, 1},
        {"a negative miss", {40, 60}, {20, -1}, 1},
        {"1.1 % more misses than rows of a batch", {40, 80}, {40.44, 30}, 0},
        {"misses that grow by 0.9 %", {40, 60}, {20, 20.18}, REACH_WINDOWS},
        {"misses that grow by 1.1 %", {40, 60}, {20, 20.22}, 1},
        {"reach that grows too much by 0.9 %",
         {40, 60.54},
         {20, 15},
         REACH_WINDOWS},
        {"reach that grows too much by 1.1 %", {40, 60.66}, {20, 15}, 1},
        {"reach that grows too little by 0.9 %",
         {40, 54.5},
         {20, 15},
         REACH_WINDOWS},
        {"reach that grows too little by 1.1 %", {40, 54.4}, {20, 15}, 1},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct table table;

        table_init(&table);
        table.num_embeddings = 100;
        table.n_reach = 2;
        memcpy(table.reach, cases[i].reach, sizeof(cases[i].reach));
        memcpy(table.misses, cases[i].misses, sizeof(cases[i].misses));
        is_i64(table_wrong_reach(&table), cases[i].wrong, cases[i].what);
    }
}

int main(void)
{
    test_init();
    test_reach();
    test_names();
    test_kinds();
    return tap_done();
}
