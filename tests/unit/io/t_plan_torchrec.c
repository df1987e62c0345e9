/* SPDX-License-Identifier: MIT */
#include "io/plan_torchrec.h"

#include "tests/tap.h"

/* The last reading. */
static struct arena arena;
static struct plan plan;
static struct err err;

static int read_plan(const char *text, bool has_list)
{
    static const struct {
        const char *name;
        uint64_t n_rows;
        uint32_t dim;
    } list[] = {{"a", 10, 8}, {"m.b", 100, 64}, {"unused", 1, 4}, {"c", 7, 48}};
    const size_t n = has_list ? sizeof(list) / sizeof(*list) : 0;

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
    return plan_from_torchrec(&plan, text, strlen(text), "plan", &arena, &err);
}

/* "a 0:10x0:8@3" for each piece, or why not. */
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
         "plan:1: a plan of TorchRec has world_size, local_world_size, perhaps "
         "pod_size, and plan, no more"},
        {JSON("\"world_size\": 0, \"local_world_size\": 2", ""),
         "plan:1: a plan of TorchRec has world_size, local_world_size, perhaps "
         "pod_size, and plan, no more"},
        {JSON(SHAPE ", \"worldsize\": 3", ""),
         "plan:1: a plan of TorchRec has world_size, local_world_size, perhaps "
         "pod_size, and plan, no more"},
        {JSON(SHAPE, TABLE("a", "table_wise", "fused_uvm", "[0]", "")),
         "plan:2: table 'm.a' has the kernel 'fused_uvm'; only fused and dense "
         "keep it in the GPU's memory"},
        {JSON(SHAPE, "\n" TABLE("x", "table_wise", "fused", "[0]", "")),
         "plan:3: table 'm.x' is not in the table list, or placed twice"},
        {JSON(SHAPE, TABLE("a", "table_wise", "fused", "[4]", "")),
         "plan:2: table 'm.a' is on rank 4, but there are 4"},
        {JSON(SHAPE, TABLE("a", "table_wise", "fused", "[]", "")),
         "plan:2: table 'm.a' has no sharding_type, compute_kernel and ranks"},
        {JSON(SHAPE, TABLE("a", "table_wise", "fused", "[0]", "")),
         "plan:2: table 'm.a' has no shard 0, of 1, within 10 rows and 8 "
         "columns"},
        {JSON(SHAPE, TABLE("a", "table_wise", "fused", "[0]", SHARDS(""))),
         "plan:2: table 'm.a' has no shard 0, of 1, within 10 rows and 8 "
         "columns"},
        {JSON(SHAPE, TABLE("a", "table_wise", "fused", "[0]",
                           SHARDS(SHARD("0", "0", "11", "8")))),
         "plan:2: table 'm.a' has no shard 0, of 1, within 10 rows and 8 "
         "columns"},
        {JSON(SHAPE, TABLE("a", "table_wise", "fused", "[0]",
                           SHARDS("{\"shard_offsets\": [0]}"))),
         "plan:2: table 'm.a' has no shard 0, of 1, within 10 rows and 8 "
         "columns"},
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
    is_str(pieces(list.data, true), "plan:1: 'm' is no module", "a long list");
    buf_release(&list);
    is_str(pieces(JSON(SHAPE, TABLE("a", "table_wise", "fused", "[0]", "")),
                  false),
           "plan:1: a plan without the look-ups of its tables; option "
           "'--tables' gives them",
           "tables are to be given");
}

#define HEAD                                                               \
    "# --- Planner Statistics --- #\n"                                     \
    "#   Rank   HBM (GB)   Shards   #\n#   ----   ----   ----   #\n"       \
    "#   0   9.7 (72%)   CW: 3 RW: 2   #\n#   1   9 (7%)   TW: 1   #\n"    \
    "#   2   9.7 (72%)   CW: 3 RW: 2   #\n#   3   9 (7%)   TW: 1   #\n#  " \
    "#\n"                                                                  \
    "# Parameter Info: #\n"                                                \
    "#   FQN   Sharding   Compute Kernel   Num Indices   Sum Num "         \
    "Poolings   Output   Emb Dim (CW Dim)   Hash Size   Ranks   #\n"       \
    "#   ---   ---   ---   ---   ---   ---   ---   ---   ---   #\n"
#define ROW(fqn, type, kernel, dim, rows, ranks)                               \
    "#   " fqn "   " type "   " kernel "   2.5   3   pooled   " dim "   " rows \
    "   " ranks "   #\n"
#define TAIL "#   #\n# Batch Size: 16   #\n"

static void test_stats(void)
{
    is_str(pieces(HEAD ROW("x.m.b", "CW", "fused", "64 (24)", "100", "0,1,3")
                      ROW("c", "RW", "fused", "48", "7", "0-3")
                          ROW("a", "DP", "dense", "8", "10", "0-3") TAIL,
                  true),
           "m.b 0:100x0:24@0, m.b 0:100x24:48@1, m.b 0:100x48:64@3, "
           "c 0:2x0:48@0, c 2:4x0:48@1, c 4:6x0:48@2, c 6:7x0:48@3, "
           "a 0:10x0:8@0*, a 0:10x0:8@1*, a 0:10x0:8@2*, a 0:10x0:8@3*",
           "pieces that the planner has printed");
    is_i64((int64_t)plan.problem.batch, 64, "the batch of all ranks");
    is_i64(plan.problem.cluster.devices_per_host, 0, "hosts are not said");
    is_str(pieces(HEAD ROW("b", "GS", "fused", "12 (4)", "9", "0,0,1,1,2,3")
                      TAIL,
                  false),
           "b 0:5x0:4@0, b 0:5x4:8@0, b 5:9x0:4@1, b 5:9x4:8@1, b 0:5x8:12@2, "
           "b 5:9x8:12@3",
           "a grid: two column blocks on the first host, one on the second");
    is_str(pieces(HEAD ROW("b", "TWRW", "fused", "12", "9", "2-3")
                      ROW("b", "TW", "fused", "8", "1", "1") TAIL,
                  false),
           "b 0:5x0:12@2, b 5:9x0:12@3, b#2 0:1x0:8@1",
           "rows over a host, and a second table of that name");
    ok(plan.problem.n_tables == 2 &&
           plan.problem.tables[0].pooling_factor == 2.5 &&
           plan.problem.tables[0].num_outputs == 3 &&
           plan.problem.tables[0].dim == 12,
       "whose look-ups and outputs are printed, too");
    is_str(pieces(HEAD ROW("b", "TW", "fused", "8", "1", "1")
                      ROW("b", "TW", "fused", "8", "1", "1")
                          ROW("b", "TW", "fused", "8", "1", "1") TAIL,
                  false),
           "plan:14: table 'b' is not in the table list, or placed twice",
           "but no third one");
    ok(!read_plan(HEAD ROW("b", "TW", "fused", "8", "1",
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
        {HEAD ROW("a", "TW", "fused", "8", "11", "0"),
         "plan:12: table 'a' has 11 rows and 8 columns, but 10 and 8 in the "
         "table list"},
        {HEAD ROW("a", "TW", "fused", "8", "10", "4"),
         "plan:12: table 'a' is on rank 4, but there are 4"},
        {HEAD ROW("a", "TW", "fused", "8", "10", "0,"),
         "plan:12: table 'a' cannot have the Ranks '0,'"},
        {HEAD ROW("a", "TW", "fused", "8", "10", "None"),
         "plan:12: table 'a' cannot have the Ranks 'None'"},
        {HEAD ROW("a", "ZW", "fused", "8", "10", "0"),
         "plan:12: table 'a' cannot have the Sharding 'ZW'"},
        {HEAD ROW("a", "TW", "fused", "8", "1e1", "0"),
         "plan:12: table 'a': Hash Size '1e1' is not a whole number from 1 to "
         "9223372036854775807"},
        {HEAD ROW("a", "CW", "fused", "8 (0)", "10", "0"),
         "plan:12: table 'a' cannot have the Emb Dim (CW Dim) '8 (0)'"},
        {HEAD ROW("a", "CW", "fused", "8 (4)", "10", "0,1,2"),
         "plan:12: table 'a' cannot have the Ranks '0,1,2'"},
        {HEAD ROW("a", "TW", "key_value", "8", "10", "0"),
         "plan:12: table 'a' has the kernel 'key_value'; only fused and dense "
         "keep it in the GPU's memory"},
        {HEAD "#   a   TW   fused   -1   3   pooled   8   10   0   #\n",
         "plan:12: table 'a': Num Indices '-1' is not a number from 0 to "
         "1000000"},
        {HEAD "#   a   TW   fused   1   3e7   pooled   8   10   0   #\n",
         "plan:12: table 'a': Sum Num Poolings '3e7' is not a number from 0 to "
         "1000000"},
        {HEAD "#   a   TW   fused   1   3   pulled   8   10   0   #\n",
         "plan:12: table 'a': Output 'pulled' is not pooled or sequence"},
        {HEAD "#   a   TW   #\n", "plan:12: table 'a' lacks columns"},
        {"# --- Planner Statistics --- #\n#   FQN   Ranks   #\n",
         "plan:2: there is no column 'Sharding'"},
        {HEAD TAIL,
         "plan:1: no tables with their ranks; the planner lists them where it "
         "is told to debug"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        is_str(pieces(cases[i].text, true), cases[i].want, "refused");
}

int main(void)
{
    test_json();
    test_json_refused();
    test_stats();
    test_stats_refused();
    arena_release(&arena);
    return tap_done();
}
