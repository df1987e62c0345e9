/* SPDX-License-Identifier: MIT */
#include "io/plan_torchrec_tiers.h"

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

/* Reads a plan of table b, and maybe a and c, of 10 rows x 8. Returns a word
 * for each table, such as "b cached 0.1", and "prefetch" if that is the
 * pipeline; or the error message. */
static const char *tiers(const char *text)
{
    static const char *const names[] = {"a", "b", "c"};
    static const struct tables_options options = {.warn = heed};
    const char *all = "";

    warning[0] = '\0';
    arena_release(&arena);
    memset(&err, 0, sizeof(err));
    plan = (struct plan){.problem = {.n_tables = 3}};
    plan.problem.tables = ARENA_NEW(&arena, struct table, 3);
    for (size_t i = 0; i < 3; i++) {
        table_init(&plan.problem.tables[i]);
        plan.problem.tables[i].name = names[i];
        plan.problem.tables[i].num_embeddings = 10;
        plan.problem.tables[i].dim = 8;
    }
    if (plan_from_torchrec(&plan, text, strlen(text), "plan", &options, &arena,
                           &err))
        return err.msg;
    for (size_t i = 0; i < plan.n_shards; i++) {
        const struct shard *shard = &plan.shards[i];

        all = arena_printf(&arena, "%s%s%s %s", all, i ? ", " : "",
                           plan.problem.tables[shard->table].name,
                           tier_names[shard->tier]);
        if (shard->tier == TIER_CACHED)
            all = arena_printf(&arena, "%s %g", all,
                               plan.load_factors[shard->table]);
    }
    return plan.problem.job.pipeline == PIPELINE_PREFETCH
               ? arena_printf(&arena, "%s, prefetch", all)
               : all;
}

#define PLAN(tables)                                                  \
    "{\"world_size\": 2, \"local_world_size\": 2, \"plan\": {\"m\": " \
    "{\n" tables "}}}"
#define TABLE(name, kernel, more)                                        \
    "\"" name "\": {\"sharding_type\": \"table_wise\", \"ranks\": [0], " \
    "\"compute_kernel\": \"" kernel "\"" more ", \"shards\": [{"         \
    "\"shard_offsets\": [0, 0], \"shard_sizes\": [10, 8]}]}"
#define CACHED(name, params) \
    TABLE(name, "fused_uvm_caching", ", \"cache_params\": " params)
#define WRONG(key)                                             \
    "plan:2: cache_params of table 'm.b' has the member '" key \
    "', which cannot be planned"

static void test_json(void)
{
    is_str(tiers(PLAN(CACHED("b", "{\"load_factor\": 0.125}") ",\n" TABLE(
               "c", "fused_uvm", ""))),
           "b cached 0.125, c host", "a cached table and one in host memory");
    is_str(warning, "", "without a warning");
    is_str(tiers(PLAN(
               CACHED("c", "{\"load_factor\": 1, \"prefetch_pipeline\": "
                           "true}") ",\n" TABLE("a", "fused",
                                                ", \"cache_params\": "
                                                "{\"precision\": \"FP32\"}"))),
           "c cached 1, a hbm, prefetch",
           "the pipeline; other tables may have cache_params");
    is_str(tiers(PLAN(CACHED("b", "{\"load_factor\": 0.5, \"algorithm\": "
                                  "\"LRU\", \"precision\": \"FP32\", "
                                  "\"reserved_memory\": null, \"stats\": {}, "
                                  "\"prefetch_pipeline\": null}"))),
           "b cached 0.5", "usual members");
    is_str(tiers(PLAN(CACHED("b", "null"))), "b cached 0.2",
           "FBGEMM's default");
    is_str(warning,
           "table 'm.b' is cached, but the plan has no load factor; FBGEMM's "
           "default of 0.2 is assumed",
           "with a warning");
}

static void test_refused(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {PLAN(CACHED("b", "{\"load_factor\": 0}")),
         "plan:2: table 'm.b' has a load factor of 0, not in 1e-09 to 1"},
        {PLAN(CACHED("b", "{\"load_factor\": 1.5}")),
         "plan:2: table 'm.b' has a load factor of 1.5, not in 1e-09 to 1"},
        {PLAN(CACHED("b", "{\"load_factor\": \"1\"}")), WRONG("load_factor")},
        {PLAN(CACHED("b", "{\"algorithm\": \"LFU\"}")), WRONG("algorithm")},
        {PLAN(CACHED("b", "{\"precision\": \"FP16\"}")), WRONG("precision")},
        {PLAN(CACHED("b", "{\"reserved_memory\": 8.5}")),
         WRONG("reserved_memory")},
        {PLAN(CACHED("b", "{\"prefetch_pipeline\": 1}")),
         WRONG("prefetch_pipeline")},
        {PLAN(CACHED("b", "{\"multipass_prefetch_config\": {}}")),
         WRONG("multipass_prefetch_config")},
        {PLAN(CACHED("b", "7")),
         "plan:2: cache_params of table 'm.b' are not an object"},
        {PLAN(CACHED("b", "{\"prefetch_pipeline\": true}") ",\n" CACHED("c",
                                                                        "{}")),
         "plan:3: table 'm.c' has not a prefetch_pipeline, but table 'm.b' "
         "has; a job has one pipeline"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        is_str(tiers(cases[i].text), cases[i].want, "refused");
}

/* A report of TorchRec's planner. */
#define REPORT(factor)                                                         \
    "# --- Planner Statistics --- #\n"                                         \
    "# --- Evaluating 1 proposals, on 1 ranks --- #\n# --- #\n"                \
    "#   Rank   HBM (GB)   Perf (ms)   Shards   #\n"                           \
    "#   ---   ---   ---   ---   #\n"                                          \
    "#   0   9.7 (72%)   1.5 (1,0,0)   TW: 1   #\n#   #\n"                     \
    "# Parameter Info: #\n"                                                    \
    "#   FQN   Sharding   Compute Kernel   Num Indices   Cache Load Factor   " \
    "Emb Dim"                                                                  \
    "   Hash Size   Ranks   #\n"                                               \
    "#   ---   ---   ---   ---   ---   ---   ---   ---   #\n"                  \
    "#   m.b   TW   fused_uvm_caching   2   " factor "   8   10   0   #\n"     \
    "#   #\n# Batch Size: 16   #\n"

static void test_report(void)
{
    is_str(tiers(REPORT("0.25")), "b cached 0.25", "a load factor of a report");
    is_str(warning, "", "which is told");
    is_str(tiers(REPORT("None")), "b cached 0.2", "FBGEMM's default");
    ok(strstr(warning, "FBGEMM's default") != NULL, "with a warning");
    is_str(tiers(REPORT("many")),
           "plan:11: table 'm.b' has a load factor of nan, not in 1e-09 to 1",
           "no number");
}

/* Output of repr(plan.plan). */
static void test_repr(void)
{
    is_str(tiers("{'m': {'b': ParameterSharding(sharding_type='table_wise', "
                 "compute_kernel='fused_uvm_caching', ranks=[0], sharding_spec="
                 "EnumerableShardingSpec(shards=[ShardMetadata(shard_offsets="
                 "[0, 0], shard_sizes=[10, 8], placement=rank:0/cuda:0)]), "
                 "cache_params=CacheParams(algorithm=<CacheAlgorithm.LRU: 0>, "
                 "load_factor=0.1, reserved_memory=None, precision="
                 "<DataType.FP32: 'FP32'>, prefetch_pipeline=True, "
                 "stats=None), enforce_hbm=None)}}"),
           "b cached 0.1, prefetch", "a printed cache");
}

int main(void)
{
    test_json();
    test_refused();
    test_report();
    test_repr();
    arena_release(&arena);
    return tap_done();
}
