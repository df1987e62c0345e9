/* SPDX-License-Identifier: MIT */
#include "io/plan_torchrec.h"

#include "tests/tap.h"

/* Results of the last plan that was read. */
static struct arena arena;
static struct plan plan;
static struct err err;
static char warning[512];

static void heed(void *ctx, const char *sentence)
{
    (void)ctx;
    snprintf(warning, sizeof(warning), "%s", sentence);
}

static int read_plan(const char *text, bool has_list)
{
    static const struct {
        const char *name;
        uint64_t n_rows;
        uint32_t dim;
    } list[] = {{"a", 10, 8}, {"m.b", 100, 64}, {"unused", 1, 4}, {"c", 7, 48}};
    const size_t n = has_list ? sizeof(list) / sizeof(*list) : 0;

    static const struct tables_options options = {.warn = heed};

    warning[0] = '\0';
    arena_release(&arena);
    memset(&err, 0, sizeof(err));
    plan = (struct plan){.problem = {.n_tables = n}};
    plan.problem.tables = ARENA_NEW(&arena, struct table, n);
    for (size_t i = 0; i < n; i++) {
        table_init(&plan.problem.tables[i]);
        plan.problem.tables[i].name = list[i].name;
        plan.problem.tables[i].num_embeddings = list[i].n_rows;
        plan.problem.tables[i].dim = list[i].dim;
    }
    return plan_from_torchrec(&plan, text, strlen(text), "plan", &options,
                              &arena, &err);
}

/* Returns "a 0:10x0:8@3" for each piece, or the error message. */
static const char *pieces(const char *text, bool has_list)
{
    const char *all = "";

    if (read_plan(text, has_list))
        return err.msg;
    for (size_t i = 0; i < plan.n_shards; i++) {
        const struct shard *shard = &plan.shards[i];

        all =
            arena_printf(&arena, "%s%s%s %llu:%llux%u:%u@%u%s", all,
                         i ? ", " : "", plan.problem.tables[shard->table].name,
                         (unsigned long long)shard->row_begin,
                         (unsigned long long)shard->row_end, shard->col_begin,
                         shard->col_end, shard->device,
                         shard->kind == SHARD_REPLICATE ? "*" : "");
    }
    return all;
}

#define JSON(shape, tables) "{" shape ", \"plan\": {\"m\": {\n" tables "}}}"
#define SHAPE "\"world_size\": 4, \"local_world_size\": 2"
#define TABLE(name, type, kernel, ranks, shards)                           \
    "\"" name "\": {\"sharding_type\": \"" type "\", \"compute_kernel\": " \
    "\"" kernel "\", \"ranks\": " ranks shards "}"
#define SHARDS(list) ", \"shards\": [" list "]"
#define SHARD(row, col, rows, cols)                                   \
    "{\"shard_offsets\": [" row ", " col "], \"shard_sizes\": [" rows \
    ", " cols "], \"placement\": \"rank:0/cuda:0\"}"

static void test_json(void)
{
    static const char text[] =
        "{\"world_size\": 4, \"local_world_size\": 2, \"plan\": {\"m\": {\n"
        "\"b\": {\"sharding_type\": \"column_wise\", \"ranks\": [1, 3],\n"
        "\"compute_kernel\": \"fused\", \"shards\": [\n"
        "{\"shard_offsets\": [0, 0], \"shard_sizes\": [100, 40]},\n"
        "{\"shard_offsets\": [0, 40], \"shard_sizes\": [100, 24]}]},\n"
        "\"c\": {\"sharding_type\": \"row_wise\", \"ranks\": [0, 1, 2, 3],\n"
        "\"compute_kernel\": \"fused\", \"shards\": [\n"
        "{\"shard_offsets\": [0, 0], \"shard_sizes\": [3, 48]},\n"
        "{\"shard_offsets\": [3, 0], \"shard_sizes\": [3, 48]},\n"
        "{\"shard_offsets\": [6, 0], \"shard_sizes\": [1, 48]},\n"
        "{\"shard_offsets\": [7, 0], \"shard_sizes\": [0, 48]}]},\n"
        "\"a\": {\"sharding_type\": \"data_parallel\", \"ranks\": [0, 1],\n"
        "\"compute_kernel\": \"dense\"}}}}\n";

    is_str(pieces(text, true),
           "m.b 0:100x0:40@1, m.b 0:100x40:64@3, c 0:3x0:48@0, c 3:6x0:48@1, "
           "c 6:7x0:48@2, a 0:10x0:8@0*, a 0:10x0:8@1*",
           "pieces of a ShardingPlan, without blocks of no rows");
    is_i64((int64_t)plan.problem.n_tables, 3, "without a table not placed");
    ok(plan.problem.cluster.n_devices == 4 &&
           plan.problem.cluster.devices_per_host == 2 && !plan.problem.batch,
       "its ranks and hosts, no batch");
}

static void test_json_refused(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {JSON("\"local_world_size\": 2", "\"sharding_type\": {}"),
         "plan:1: a TorchRec plan has the member plan, perhaps world_size and "
         "local_world_size together, perhaps pod_size, and no others"},
        {JSON("\"world_size\": 0, \"local_world_size\": 2", ""),
         "plan:1: a TorchRec plan has the member plan, perhaps world_size and "
         "local_world_size together, perhaps pod_size, and no others"},
        {JSON(SHAPE ", \"worldsize\": 3", ""),
         "plan:1: a TorchRec plan has the member plan, perhaps world_size and "
         "local_world_size together, perhaps pod_size, and no others"},
        {JSON(SHAPE, TABLE("a", "table_wise", "key_value", "[0]", "")),
         "plan:2: table 'm.a' has the kernel 'key_value', but only fused, "
         "dense, fused_uvm and fused_uvm_caching kernels can be planned"},
        {JSON(SHAPE, "\n" TABLE("x", "table_wise", "fused", "[0]", "")),
         "plan:3: table 'm.x' is not in the table list, or placed twice"},
        {JSON(SHAPE, TABLE("a", "table_wise", "fused", "[4]", "")),
         "plan:2: table 'm.a' is on rank 4, but there are 4 ranks"},
        {JSON(SHAPE, TABLE("a", "table_wise", "fused", "[]", "")),
         "plan:2: table 'm.a' has no sharding_type, compute_kernel and ranks"},
        {JSON(SHAPE, TABLE("a", "table_wise", "fused", "[0]", "")),
         "plan:2: table 'm.a': shard 0 of 1 is missing or not within 10 rows "
         "and 8 columns"},
        {JSON(SHAPE, TABLE("a", "table_wise", "fused", "[0]", SHARDS(""))),
         "plan:2: table 'm.a' has 1 ranks, but 0 shards"},
        {JSON(SHAPE, TABLE("a", "table_wise", "fused", "[0]",
                           SHARDS(SHARD("0", "0", "11", "8")))),
         "plan:2: table 'm.a': shard 0 of 1 is missing or not within 10 rows "
         "and 8 columns"},
        {JSON(SHAPE, TABLE("a", "table_wise", "fused", "[0]",
                           SHARDS("{\"shard_offsets\": [0]}"))),
         "plan:2: table 'm.a': shard 0 of 1 is missing or not within 10 rows "
         "and 8 columns"},
        {JSON(SHAPE, "\"a\": 3, \"sharding_type\": 4"),
         "plan:2: table 'm.a' has no sharding_type, compute_kernel and ranks"},
        {JSON(SHAPE, "\"sharding_type\": {}"),
         "plan:2: table 'm.sharding_type' has no sharding_type, compute_kernel "
         "and ranks"},
    };

    struct buf list = {0};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        is_str(pieces(cases[i].text, true), cases[i].want, "refused");
    buf_printf(&list, "{" SHAPE ", \"plan\": {\"m\": [0");
    for (size_t i = 0; i < 100000; i++)
        buf_printf(&list, ",0");
    buf_printf(&list, "]}}");
    is_str(pieces(list.data, true), "plan:1: 'm' is not a module",
           "a long list");
    buf_release(&list);
    is_str(pieces(JSON(SHAPE, TABLE("a", "table_wise", "fused", "[0]", "")),
                  false),
           "plan:1: the plan has no pooling factors; give a table list with "
           "'--tables'",
           "tables are to be given");
}

/* A planner report; the arguments are the ranks' shards. */
#define TITLE "# --- Planner Statistics --- #\n"
#define RANKS(s0, s1, s2, s3)                        \
    "#   Rank   HBM (GB)   Perf (ms)   Shards   #\n" \
    "#   ----   ----   ----   ----   #\n"            \
    "#   0   9.7 (72%)   1.5 (1,0,0)   " s0 "   #\n" \
    "#   1   9 (7%)   2.5 (1,0,0)   " s1 "   #\n"    \
    "#   2   9.7 (72%)   1.5 (1,0,0)   " s2 "   #\n" \
    "#   3   9 (7%)   0.5 (1,0,0)   " s3 "   #\n#   #\n"
#define HEADING                                                      \
    "# Parameter Info: #\n"                                          \
    "#   FQN   Sharding   Compute Kernel   Num Indices   Sum Num "   \
    "Poolings   Output   Emb Dim (CW Dim)   Hash Size   Ranks   #\n" \
    "#   ---   ---   ---   ---   ---   ---   ---   ---   ---   #\n"
#define HEAD(s0, s1, s2, s3) TITLE RANKS(s0, s1, s2, s3) HEADING
#define ROW(fqn, type, kernel, dim, rows, ranks)                               \
    "#   " fqn "   " type "   " kernel "   2.5   3   pooled   " dim "   " rows \
    "   " ranks "   #\n"
#define TAIL "#   #\n# Batch Size: 16   #\n"

static void test_stats(void)
{
    is_str(pieces(HEAD("CW: 1 RW: 1 DP: 1", "CW: 1 RW: 1 DP: 1", "RW: 1 DP: 1",
                       "CW: 1 RW: 1 DP: 1")
                      ROW("x.m.b", "CW", "fused", "64 (24)", "100", "0,1,3")
                          ROW("c", "RW", "fused", "48", "7", "0-3")
                              ROW("a", "DP", "dense", "8", "10", "0-3") TAIL,
                  true),
           "m.b 0:100x0:24@0, m.b 0:100x24:48@1, m.b 0:100x48:64@3, "
           "c 0:2x0:48@0, c 2:4x0:48@1, c 4:6x0:48@2, c 6:7x0:48@3, "
           "a 0:10x0:8@0*, a 0:10x0:8@1*, a 0:10x0:8@2*, a 0:10x0:8@3*",
           "pieces that the planner has printed");
    is_i64((int64_t)plan.problem.batch, 64, "the batch of all ranks");
    is_i64(plan.problem.cluster.devices_per_host, 0, "hosts are not said");
    is_str(pieces(HEAD("GS: 2", "GS: 2", "GS: 1", "GS: 1") ROW(
                      "b", "GS", "fused", "12 (4)", "9", "0,0,1,1,2,3") TAIL,
                  false),
           "b 0:5x0:4@0, b 0:5x4:8@0, b 5:9x0:4@1, b 5:9x4:8@1, b 0:5x8:12@2, "
           "b 5:9x8:12@3",
           "a grid: two column blocks on the first host, one on the second");
    is_str(pieces(HEAD("", "TW: 1", "TWRW: 1", "TWRW: 1")
                      ROW("b", "TWRW", "fused", "12", "9", "2-3")
                          ROW("b", "TW", "fused", "8", "1", "1") TAIL,
                  false),
           "b 0:5x0:12@2, b 5:9x0:12@3, b#2 0:1x0:8@1",
           "rows over a host, and a second table of that name");
    ok(plan.problem.n_tables == 2 &&
           plan.problem.tables[0].pooling_factor == 2.5 &&
           plan.problem.tables[0].num_outputs == 3 &&
           plan.problem.tables[0].dim == 12,
       "whose look-ups and outputs are printed, too");
    is_str(pieces(HEAD("", "TW: 3", "", "")
                      ROW("b", "TW", "fused", "8", "1", "1")
                          ROW("b", "TW", "fused", "8", "1", "1")
                              ROW("b", "TW", "fused", "8", "1", "1") TAIL,
                  false),
           "plan:14: table 'b' is not in the table list, or placed twice",
           "but no third one");
    ok(!read_plan(HEAD("", "TW: 1", "", "")
                      ROW("b", "TW", "fused", "8", "1",
                          "1") "# Batch Size: 5000000000000000000   #\n",
                  false) &&
           plan.problem.batch <= 1000000000000,
       "no batch is larger than may be");
}

static void test_stats_refused(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {HEAD("TW: 1", "", "", "") ROW("a", "TW", "fused", "8", "11", "0"),
         "plan:12: table 'a' has 11 rows and 8 columns, but 10 and 8 in the "
         "table list"},
        {HEAD("TW: 1", "", "", "") ROW("a", "TW", "fused", "8", "10", "4"),
         "plan:12: table 'a' is on rank 4, but there are 4 ranks"},
        {HEAD("TW: 1", "", "", "") ROW("a", "TW", "fused", "8", "10", "0,"),
         "plan:12: table 'a' cannot have the Ranks '0,'"},
        {HEAD("TW: 1", "", "", "") ROW("a", "TW", "fused", "8", "10", "None"),
         "plan:12: table 'a' cannot have the Ranks 'None'"},
        {HEAD("TW: 1", "", "", "") ROW("a", "ZW", "fused", "8", "10", "0"),
         "plan:12: table 'a' cannot have the Sharding 'ZW'"},
        {HEAD("TW: 1", "", "", "") ROW("a", "TW", "fused", "8", "1e1", "0"),
         "plan:12: table 'a': Hash Size '1e1' is not a whole number from 1 to "
         "9223372036854775807"},
        {HEAD("CW: 1", "", "", "") ROW("a", "CW", "fused", "8 (0)", "10", "0"),
         "plan:12: table 'a' cannot have the Emb Dim (CW Dim) '8 (0)'"},
        {HEAD("CW: 1", "CW: 1", "CW: 1", "")
             ROW("a", "CW", "fused", "8 (4)", "10", "0,1,2"),
         "plan:12: table 'a' cannot have the Ranks '0,1,2'"},
        {HEAD("TW: 1", "", "", "") ROW("a", "TW", "key_value", "8", "10", "0"),
         "plan:12: table 'a' has the kernel 'key_value', but only fused, "
         "dense, fused_uvm and fused_uvm_caching kernels can be planned"},
        {HEAD("TW: 1", "", "",
              "") "#   a   TW   fused   -1   3   pooled   8   10   0   #\n",
         "plan:12: table 'a': Num Indices '-1' is not a number from 0 to "
         "1000000"},
        {HEAD("TW: 1", "", "",
              "") "#   a   TW   fused   1   3e7   pooled   8   10   0   #\n",
         "plan:12: table 'a': Sum Num Poolings '3e7' is not a number from 0 to "
         "1000000"},
        {HEAD("TW: 1", "", "",
              "") "#   a   TW   fused   1   3   pulled   8   10   0   #\n",
         "plan:12: table 'a': Output 'pulled' is not pooled or sequence"},
        {HEAD("TW: 1", "", "", "") "#   a   TW   #\n",
         "plan:1: no tables with their ranks, which TorchRec's planner prints "
         "with debug=True"},
        {"# --- Planner Statistics --- #\n#   FQN   Ranks   #\n",
         "plan:2: there is no column 'Sharding'"},
        {HEAD("TW: 1", "TW: 1", "", "") ROW("a", "TW", "fused", "8", "10", "0"),
         "plan:5: rank 1 has 1 TW shards in its row, but the tables list 0 on "
         "it"},
        {TITLE RANKS("TW: 1", "", "", "")
             HEADING ROW("a", "TW", "fused", "8", "10", "0")
                 ROW("c", "TW", "fused", "48", "7", "0"),
         "plan:4: rank 0 has 1 TW shards in its row, but the tables list 2 on "
         "it"},
        {HEAD("TW: 1", "", "", "") ROW("a", "TW", "fused", "8", "10", "0") TAIL
         "# Maximum of HBM: 9 GB on ranks 0-4 #\n",
         "plan:15: rank 4 is named, but only 4 ranks are listed"},
        {HEAD("TW: 1", "", "", "") ROW("a", "TW", "fused", "8", "10", "0") TAIL
         "# Mean Total Perf: 1.6 ms #\n",
         "plan:15: the mean of the ranks is 1.500 ms, but 'Mean Total Perf' is "
         "1.600 ms"},
        {HEAD("TW: 1", "", "", "")
             ROW("a", "TW", "fused", "8", "10",
                 "0") "# # \n# Compute Kernels Count: #\n#   fused: 2   #\n",
         "plan:15: 2 tables have a compute kernel, but 1 are listed"},
        {HEAD("TW: 1", "", "",
              "") "#   a   TW   fused   1   3   pooled   8   10   0   #"
                  "#   c   TW   fused   1   3   pooled   48   7   0   #\n",
         "plan:12: a row has 19 cells or more, but the heading has 9: rows "
         "have run into each other"},
        {TITLE "#   Rank   Shards   #\n#   0   TW: 1   #\n#   2   TW: 1   #\n",
         "plan:4: rank 2 is listed instead of rank 1"},
        {TITLE HEADING ROW("a", "TW", "fused", "8", "10", "0"),
         "plan:1: no ranks with their shards are listed before the tables"},
        {HEAD("TW: 1", "", "", "") TAIL,
         "plan:1: no tables with their ranks, which TorchRec's planner prints "
         "with debug=True"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        is_str(pieces(cases[i].text, true), cases[i].want, "refused");
}

#define OLD_HEADING                                                           \
    "# Parameter Info: #\n#   FQN   Sharding   Compute Kernel   Perf (ms)   " \
    "Pooling Factor   Num Poolings   Output   Features   Emb Dim   "          \
    "Hash Size   Ranks   #\n"

/* Versions 0.3 to 1.0 print neither the lookups nor the width of column
 * pieces. */
static void test_old_stats(void)
{
    is_str(pieces(TITLE RANKS("CW: 1", "CW: 1", "", "") OLD_HEADING
                  "#   t   CW   batched_fused   0.1 (0,0)   30.0   2.0   pooled"
                  "   2   48   100   0,1   #\n" TAIL,
                  false),
           "t 0:100x0:24@0, t 0:100x24:48@1",
           "equal pieces, where no width is printed");
    ok(plan.problem.n_tables == 1 &&
           plan.problem.tables[0].pooling_factor == 30 &&
           plan.problem.tables[0].num_outputs == 2,
       "two features of 15 look-ups each: %g, %g",
       plan.problem.tables[0].pooling_factor,
       plan.problem.tables[0].num_outputs);
    is_str(pieces(TITLE RANKS("TW: 1", "", "", "") OLD_HEADING
                  "#   t   TW   fused   0.1 (0,0)   10.0   3.0   pooled"
                  "   1   48   100   0   #\n" TAIL,
                  false),
           "t 0:100x0:48@0", "one feature");
    ok(plan.problem.tables[0].pooling_factor == 30, "of three poolings of 10");
}

#define GOOD \
    HEAD("TW: 1", "", "", "") ROW("a", "TW", "fused", "8", "10", "0") TAIL
#define BROKEN \
    HEAD("TW: 1", "TW: 1", "", "") ROW("c", "TW", "fused", "48", "7", "0")

/* A log with several reports and lines of other programs. The last complete
 * report is read. */
static void test_log(void)
{
    is_str(pieces(BROKEN GOOD, true), "a 0:10x0:8@0", "the last is whole");
    is_str(warning, "", "and so no warning");
    is_str(pieces(GOOD BROKEN, true), "a 0:10x0:8@0", "the last is broken");
    is_str(
        warning,
        "plan:19: rank 1 has 1 TW shards in its row, but the tables list 0 on "
        "it; the report of line 15 is incomplete, so the one of line 1 is read",
        "with a warning");
    is_str(pieces(GOOD TITLE, true), "a 0:10x0:8@0", "the last is cut");
    ok(strstr(warning, "of line 15 is incomplete") != NULL,
       "with a warning: %s", warning);
    is_str(
        pieces("[0]: I0101 12:00 x.py] " TITLE RANKS(
                   "TW: 1", "", "",
                   "") "\nINFO: other #3\n#1 started\n" HEADING
                       "12:00 [1,0]<stdout>:" ROW("a", "TW", "fused", "8", "10",
                                                  "0") "warning: # 7\n" TAIL,
               true),
        "a 0:10x0:8@0", "lines of others are passed over");
    is_str(warning, "", "and no warning");
}

/* A table list can be made from a report whose kernels a plan cannot have. */
static void test_list(void)
{
    static const struct tables_options options = {0};
    static const char text[] = HEAD("TW: 1", "", "", "")
        ROW("a", "TW", "key_value", "8", "10", "0") TAIL;
    struct table_list list;

    is_str(pieces(text, true),
           "plan:12: table 'a' has the kernel 'key_value', but only fused, "
           "dense, fused_uvm and fused_uvm_caching kernels can be planned",
           "no plan");
    ok(!tables_from_stats(&list, text, strlen(text), "log", &options, &arena,
                          &err) &&
           list.n_tables == 1 && list.tables[0].dim == 8,
       "but a list");
}

#define PRINTED_PARAMS                                    \
    "  param | sharding type | compute kernel | ranks \n" \
    "------- | ------------- | -------------- | ------\n"
#define PRINTED_SHARDS                                     \
    "\n param | shard offsets | shard sizes | placement\n" \
    "------ | ------------- | ----------- | -----\n"
#define PRINTED_A "    a   | table_wise    | fused          | [3]\n"
#define PRINTED_B "    b   | column_wise   | fused          | [1, 2]\n"
#define SHARD_A "    a   | [0, 0] | [10, 8]   | rank:3/cuda:1\n"
#define SHARD_B0 "    b   | [0, 0] | [100, 40] | rank:1/cuda:1\n"
#define SHARD_B1 "    b   | [0, 40] | [100, 24] | rank:2/cuda:0\n"
#define PRINTED                                                               \
    "module: m\n\n" PRINTED_PARAMS PRINTED_A PRINTED_B PRINTED_SHARDS SHARD_A \
        SHARD_B0 SHARD_B1
#define PIECES "a 0:10x0:8@3, m.b 0:100x0:40@1, m.b 0:100x40:64@2"

/* output of print(plan) */
static void test_printed(void)
{
    static const struct {
        const char *text, *want, *warning;
    } cases[] = {
        {PRINTED, PIECES, ""},
        {"I0101 x.py:3] module: m\n0: " PRINTED_PARAMS "0: " PRINTED_A
         "\nsome | other | line\n0: " PRINTED_B PRINTED_SHARDS "0: " SHARD_A
         "0: " SHARD_B0 "0: " SHARD_B1,
         PIECES, ""},
        {PRINTED "\nrestarted\n" PRINTED, PIECES, ""},
        {"module: m\n" PRINTED_PARAMS PRINTED_A PRINTED_SHARDS SHARD_A
         "module: \n" PRINTED_PARAMS
         " c | data_parallel | dense | [0, 1]\n" PRINTED_SHARDS,
         "a 0:10x0:8@3, c 0:7x0:48@0*, c 0:7x0:48@1*", ""},
        {PRINTED "module: m\n" PRINTED_PARAMS PRINTED_B PRINTED_SHARDS SHARD_B0,
         PIECES,
         "plan:16: table 'b' has 2 ranks, but 1 shards are listed; the plan of "
         "line 13 is incomplete, so the one of line 1 is read"},
        {"module: m\n" PRINTED_PARAMS PRINTED_A PRINTED_A PRINTED_SHARDS
             SHARD_A,
         "plan:5: table 'a' is listed twice", ""},
        {"module: m\n" PRINTED_PARAMS PRINTED_A PRINTED_SHARDS SHARD_A SHARD_A,
         "plan:4: table 'a' has 1 ranks, but 2 shards are listed", ""},
        {"module: m\n" PRINTED_PARAMS PRINTED_A PRINTED_SHARDS SHARD_B0,
         "plan:8: a shard of table 'b', but the table has no row", ""},
        {"module: m\n" PRINTED_PARAMS PRINTED_A PRINTED_SHARDS
         "a | [0, 0] | [10, 8] | rank:3/cuda:1 b | [0, 0] | [1, 1] | rank:1\n",
         "plan:8: a row has 7 cells, but the heading has 4: rows have run into "
         "each other",
         ""},
        {"module: m\n" PRINTED_PARAMS PRINTED_A PRINTED_SHARDS
         "a | [0, 0] | [10, 8] | rank:2/cuda:1\n",
         "plan:4: table 'm.a' has shard 0 on 'rank:2/cuda:1', but lists rank 3 "
         "for it",
         ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        is_str(pieces(cases[i].text, true), cases[i].want, "print(plan)");
        is_str(warning, cases[i].warning, "its warning");
    }
}

#define REPR_SPEC(row, col, rows, cols, rank)                            \
    "ShardMetadata(shard_offsets=[" row ", " col "], shard_sizes=[" rows \
    ", " cols "], placement=rank:" rank "/cuda:" rank ")"
#define REPR_TABLE(name, type, ranks, shards)                     \
    "'" name "': ParameterSharding(sharding_type='" type          \
    "', compute_kernel='fused', ranks=[" ranks                    \
    "], sharding_spec=EnumerableShardingSpec(shards=[" shards     \
    "]), cache_params=None, key_value_params=CacheParams(a=1.5, " \
    "b=<Kind.LRU: 'lru'>))"
#define REPR_A \
    REPR_TABLE("a", "table_wise", "3", REPR_SPEC("0", "0", "10", "8", "3"))

/* output of repr(plan.plan) */
static void test_repr(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"{'m': {" REPR_A
         ", 'c': ParameterSharding(sharding_type='data_parallel'"
         ", compute_kernel='dense', ranks=[0, 1], sharding_spec=None)}}",
         "a 0:10x0:8@3, c 0:7x0:48@0*, c 0:7x0:48@1*"},
        {"log: {'x': 1} and\nthe plan {'': {" REPR_A "}} done\n",
         "a 0:10x0:8@3"},
        {"{" REPR_A "}", "a 0:10x0:8@3"},
        {"{'m': {" REPR_A "} {'n': {" REPR_A "}}", "a 0:10x0:8@3"},
        {"{'m': {" REPR_TABLE("b", "x y", "3", "z") ", 'n': {" REPR_A "}}",
         "plan:1: the text ends before '}'"},
        {"{'m': {" REPR_A ", " REPR_A "}}", "plan:1: 'a' is given twice"},
        {"{'m': {" REPR_A, "plan:1: the text ends before '}'"},
        {"{'m': {" REPR_TABLE("a", "table_wise", "3", "") "}}",
         "plan:1: table 'a' has 1 ranks, but 0 shards are listed"},
        {"{'m': {" REPR_TABLE(
             "a", "table_wise", "3, 1",
             REPR_SPEC("0", "0", "10", "4", "3") ", " REPR_SPEC("0", "4", "10",
                                                                "4", "1")) "}}",
         "plan:1: table 'm.a' is whole, but on 2 ranks"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        is_str(pieces(cases[i].text, true), cases[i].want, "repr(plan)");
}

#define BARE(name, type, ranks)                 \
    "\"" name "\": {\"sharding_type\": \"" type \
    "\", \"compute_kernel\": \"fused\", \"ranks\": " ranks "}"

/* Plans that lack the number of ranks or the shards. */
static void test_json_short(void)
{
    is_str(
        pieces("{\"plan\": {\"m\": {" TABLE(
                   "a", "table_wise", "fused", "[2]",
                   SHARDS("{\"shard_offsets\": [0, 0], \"shard_sizes\": "
                          "[10, 8], \"placement\": \"rank:2/cuda:2\"}")) "}}}",
               true),
        "a 0:10x0:8@2", "_serialize()");
    is_i64(plan.problem.cluster.n_devices, 3, "as many ranks as it needs");
    ok(!plan_says_ranks("{\"plan\": {}}"), "which it does not say");
    is_str(
        pieces("{\"m\": {" BARE("a", "table_wise", "[2]") ",\n" BARE(
                   "b", "column_wise",
                   "[0, 3]") ",\n" BARE("c", "row_wise", "[0, 1, 2, 3]") "}}",
               true),
        "a 0:10x0:8@2, m.b 0:100x0:32@0, m.b 0:100x32:64@3, c 0:2x0:48@0, "
        "c 2:4x0:48@1, c 4:6x0:48@2, c 6:7x0:48@3",
        "TorchEasyRec's: equal blocks");
    is_str(
        pieces("{\"m\": {\n" BARE("b", "column_wise", "[0, 3, 1]") "}}", true),
        "plan:2: table 'm.b' lists no shards, and its 64 columns do not divide "
        "evenly over 3 ranks",
        "which there must be");
    is_str(pieces("{\"m\": {\n" BARE("b", "grid_shard", "[0, 1]") "}}", true),
           "plan:2: table 'm.b' is cut in a grid over hosts; option "
           "'--gpus-per-host' is needed: how many ranks a host has",
           "a grid needs its hosts");
    is_str(
        pieces(JSON(SHAPE, "\n" TABLE("a", "cut", "fused", "[0]", "")), true),
        "plan:3: table 'm.a' has the sharding_type 'cut', not data_parallel, "
        "table_wise, column_wise, table_column_wise, row_wise, "
        "table_row_wise or grid_shard",
        "an unknown kind");
    is_str(
        pieces(JSON(SHAPE, TABLE("a", "row_wise", "fused", "[0, 0]",
                                 SHARDS(SHARD("0", "0", "10", "4") ", " SHARD(
                                     "0", "4", "10", "4")))),
               true),
        "plan:2: table 'm.a' is row_wise, but its shard 0 has 10 of 10 rows "
        "and 4 of 8 columns",
        "shards of another kind");
    is_str(pieces(JSON(SHAPE, TABLE("a", "data_parallel", "dense", "[0, 1]",
                                    SHARDS(SHARD("0", "0", "10", "8")))),
                  true),
           "plan:2: table 'm.a' is data_parallel, but has 1 shards",
           "shards of replicas");
}

int main(void)
{
    test_json();
    test_json_refused();
    test_stats();
    test_stats_refused();
    test_old_stats();
    test_log();
    test_list();
    test_printed();
    test_repr();
    test_json_short();
    arena_release(&arena);
    return tap_done();
}
