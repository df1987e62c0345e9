/* SPDX-License-Identifier: MIT */
#include "core/tier_check.h"

#include "core/cache_pools.h"
#include "core/memory.h"
#include "core/plan_check.h"
#include "core/plan_memory.h"
#include "tests/tap.h"
#include "tests/tiered_plan.h"

/* Rules of tiers and caches, each broken by hand. */

static struct tiered_plan tiered;

/* Checks that the plan is refused with this sentence. */
static void refuses(const char *want)
{
    struct err err = {0};

    if (!plan_check(&tiered.plan, &err))
        snprintf(err.msg, sizeof(err.msg), "accepted");
    is_str(err.msg, want, want);
    tiered_plan_init(&tiered);
}

static void table_rules(void)
{
    struct err err = {0};

    tiered_plan_init(&tiered);
    ok(!plan_check(&tiered.plan, &err), "a plan with all tiers is legal: %s",
       err.msg);
    tiered.shards[AT_TALL + 1].tier = TIER_HOST;
    refuses("table 'tall' has a piece in tier 'cached' and one in tier 'host', "
            "but a table has one tier");
    tiered.tables[WIDE].tiers = 1u << TIER_HBM | 1u << TIER_HOST;
    refuses("table 'wide' is in tier 'cached', but the table does not allow "
            "it");
    tiered.tables[HOT].tiers = 1u << TIER_CACHED;
    refuses("table 'hot' is in tier 'hbm', but the table does not allow it");
    tiered.plan.problem.cluster.host_bytes = 0;
    refuses("table 'wide' is in tier 'cached', but the cluster has no host "
            "memory for tables");
    for (unsigned r = 0; r < TIERED_DEVICES; r++)
        tiered.shards[AT_SMALL + r].tier = TIER_HOST;
    refuses("table 'small' is in tier 'host', but a replicated table is in the "
            "memory of GPUs");
    tiered.tables[TALL].precision = PRECISION_BF16;
    refuses("table 'tall' is in tier 'cached', but caches hold fp32 and fp16");
    tiered.tables[TALL].row_order = ROW_ORDER_FREQUENCY;
    refuses("table 'tall' is in tier 'cached', but its rows are cut, but the "
            "hot rows are next to each other");
    tiered.tables[TALL].row_order = ROW_ORDER_UNIFORM;
    ok(!plan_check(&tiered.plan, &err), "rows in the order 'uniform': %s",
       err.msg);
    tiered_plan_init(&tiered);
    tiered.plan.problem.target = TARGET_DLRM;
    tiered.tables[WORDS].output = OUTPUT_POOLED;
    refuses("table 'wide' is in tier 'cached', but the plan's target keeps all "
            "tables in the memory of GPUs");
}

static void factor_rules(void)
{
    tiered.load_factors[WIDE] = 0;
    refuses("table 'wide' is cached with a load factor of 0, not in 1e-09 to "
            "1");
    tiered.load_factors[WIDE] = 1.5;
    refuses("table 'wide' is cached with a load factor of 1.5, not in 1e-09 to "
            "1");
    tiered.load_factors[COLD] = 0.5;
    refuses("table 'cold' has a load factor of 0.5, but is not cached");
    tiered.plan.load_factors = NULL;
    refuses("table 'wide' is cached with a load factor of 0, not in 1e-09 to "
            "1");
}

static void problem_rules(void)
{
    tiered.plan.problem.memory_model = MEMORY_WEIGHTS;
    refuses("the cluster has host memory for tables, but memory is counted by "
            "the model 'weights', not 'full'");
    tiered.plan.problem.cluster.host_bytes = 1 << 20;
    refuses("host 0 needs 1.13 MiB of its memory for tables, but it has 1.00 "
            "MiB");
}

/* Host memory of host 0: wide, whole, words and half of tall. */
static void host_limit(void)
{
    const uint64_t bytes = 4 * (2000 * 64 + 500 * 16 + 3000 * 32 + 2000 * 32);
    struct err err = {0};

    tiered.plan.problem.cluster.host_bytes = 4 * (6000 * 64 + 2000 * 32);
    ok(!plan_check(&tiered.plan, &err), "host 1 is exactly full: %s", err.msg);
    ok(bytes < tiered.plan.problem.cluster.host_bytes, "host 0 has less");
    tiered.plan.problem.cluster.host_bytes--;
    ok(plan_check(&tiered.plan, &err) && err.code == ERR_NO_PLAN,
       "one byte less is too little: %s", err.msg);
    is_i64((int64_t)err.shortage.need_bytes, 4 * (6000 * 64 + 2000 * 32),
           "bytes that host 1 needs");
    tiered_plan_init(&tiered);
}

/* Pools by hand. GPU 0: wide 32 columns and whole share one, tall has its own.
 * GPU 1: wide, tall, words. GPUs 2 and 3: tall. */
static void pools_of_plan(void)
{
    struct cache_pools pools;
    const struct cache_pool *pool;
    struct buf name = {0};

    cache_pools_init(&pools, &tiered.plan);
    is_i64((int64_t)pools.n, 7, "pools");
    pool = &pools.pools[pools.of_shard[AT_WHOLE]];
    is_i64((int64_t)pools.of_shard[AT_WIDE], (int64_t)pools.of_shard[AT_WHOLE],
           "whole pooled tables and columns share a pool");
    is_near(pool->load_factor, (0.1 * 2000 + 0.5 * 500) / 2500, 1e-15,
            "mean factor, by rows of whole tables");
    is_i64((int64_t)pool->n_slots, 32 * ((450 + 31) / 32), "slots");
    is_i64(pool->slot_width, 32, "the widest piece");
    pool_print(&pool->key, &name);
    is_str(name.data, "pooled/column_wise/fp32/rowwise_adagrad", "name");
    buf_release(&name);
    pool = &pools.pools[pools.of_shard[AT_TALL + 3]];
    is_i64((int64_t)pool->n_slots, 256, "0.25 of 1000 rows, in sets of 32");
    ok(pools.of_shard[AT_HOT] == SIZE_MAX &&
           pools.of_shard[AT_COLD] == SIZE_MAX,
       "other tiers have no pool");
    cache_pools_release(&pools);
    tiered.plan.problem.job.pipeline = PIPELINE_PREFETCH;
    cache_pools_init(&pools, &tiered.plan);
    is_i64((int64_t)pools.n, 8,
           "widths separate pools if caches are filled "
           "ahead");
    pool_print(&pools.pools[pools.of_shard[AT_WHOLE]].key, &name);
    is_str(name.data, "pooled/column_wise/fp32/rowwise_adagrad/16", "name");
    buf_release(&name);
    cache_pools_release(&pools);
    tiered_plan_init(&tiered);
}

/* Modules have caches of their own, which the judge counts, too. */
static void pools_of_modules(void)
{
    struct device_cost devices[TIERED_DEVICES] = {{0}};
    struct arena arena = {0};
    struct err err = {0};

    tiered.tables[WIDE].name = "deep.wide";
    tiered.tables[WHOLE].name = "deer.whole";
    tiered.plan.devices = devices;
    plan_count_memory(&tiered.plan);
    plan_fill_caches(&tiered.plan, &arena);
    is_i64((int64_t)devices[0].n_caches, 3, "caches of GPU 0");
    is_str(devices[0].caches[0].pool,
           "deep/pooled/column_wise/fp32/rowwise_adagrad", "its first module");
    is_str(devices[0].caches[1].pool,
           "deer/pooled/column_wise/fp32/rowwise_adagrad", "its second module");
    for (unsigned r = 0; r < TIERED_DEVICES; r++)
        devices[r].compute_ms = devices[r].bwd_comm_ms =
            devices[r].fwd_comm_ms = devices[r].total_ms = NAN;
    ok(!plan_check(&tiered.plan, &err), "the judge has them, too: %s", err.msg);
    arena_release(&arena);
    tiered_plan_init(&tiered);
}

static void slot_rule(void)
{
    static const struct {
        uint64_t n_rows;
        double factor;
        uint64_t slots;
    } cases[] = {{1000, 1e-9, 32}, {1000, 0.032, 32},  {1000, 0.033, 64},
                 {64, 1, 64},      {1000, 0.0329, 32}, {65, 1, 96}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        is_i64((int64_t)pool_slots(cases[i].n_rows, cases[i].factor),
               (int64_t)cases[i].slots, "sets of 32 slots");
}

/* Memory by hand, in bytes. */
static void memory_of_tiers(void)
{
    struct device_cost devices[TIERED_DEVICES] = {{0}};
    const struct memory_items *memory = &devices[2].memory;

    tiered.plan.devices = devices;
    plan_count_memory(&tiered.plan);
    is_i64((int64_t)memory->weights, 40 * 8 * 4, "weights: the replica");
    is_i64((int64_t)memory->optimizer, 4 * (40 + 1000 + 6000),
           "row-wise state of all tiers stays on the GPU");
    is_i64((int64_t)memory->cache, 256 * 32 * 4, "slots");
    is_i64((int64_t)memory->cache_state, 1000 * 4 + 256 * 16,
           "map of rows and state of slots");
    is_i64((int64_t)memory->host, 4 * (1000 * 32 + 6000 * 64), "host memory");
    tiered.tables[COLD].optimizer = OPTIMIZER_PARTIAL_ROWWISE_ADAM;
    tiered.plan.problem.job.pipeline = PIPELINE_PREFETCH;
    plan_count_memory(&tiered.plan);
    is_i64((int64_t)memory->host, 4 * (1000 * 32 + 2 * 6000 * 64),
           "state per element is in host memory");
    is_i64((int64_t)memory->optimizer, 4 * (40 + 1000 + 6000),
           "the second moment per row is not");
    is_i64((int64_t)memory->cache_state, 1000 * 4 + 256 * 20,
           "slots have a lock");
    tiered_plan_init(&tiered);
}

/* Buffers of a cached piece: 4 B per lookup for slots, and 48 B per lookup
 * while the cache is filled. */
static void buffers_of_caches(void)
{
    struct shard shard = tiered.shards[AT_WORDS], plain = shard;
    const double lookups = 2 * 256;
    struct step_buffers more, less;

    plain.tier = TIER_HBM;
    more = shard_buffers(&tiered.plan.problem, &shard);
    less = shard_buffers(&tiered.plan.problem, &plain);
    is_near(more.input - less.input, 4 * lookups, 1e-9, "slots of lookups");
    tiered.plan.problem.job.pipeline = PIPELINE_PREFETCH;
    more = shard_buffers(&tiered.plan.problem, &shard);
    less = shard_buffers(&tiered.plan.problem, &plain);
    is_near(more.input - less.input, 56 * lookups, 1e-9,
            "two batches, and one that is fetched");
    tiered_plan_init(&tiered);
}

/* Stored caches that do not follow from the shards. */
static void stored_caches(void)
{
    static const char want[] =
        "devices[2].caches does not agree with its shards: the cache of table "
        "'tall' has 256 slots of 32 columns, load factor 0.25";
    struct device_cost devices[TIERED_DEVICES];
    struct arena arena = {0};

    for (unsigned i = 0; i < 5; i++) {
        memset(devices, 0, sizeof(devices));
        tiered.plan.devices = devices;
        plan_count_memory(&tiered.plan);
        plan_fill_caches(&tiered.plan, &arena);
        for (unsigned r = 0; r < TIERED_DEVICES; r++)
            devices[r].compute_ms = devices[r].bwd_comm_ms =
                devices[r].fwd_comm_ms = devices[r].total_ms = NAN;
        switch (i) {
        case 0:
            devices[2].caches[0].n_slots += 32;
            refuses(want);
            break;
        case 1:
            devices[2].caches[0].slot_width = 64;
            refuses(want);
            break;
        case 2:
            devices[2].caches[0].load_factor = 0.26;
            refuses(want);
            break;
        case 3:
            devices[2].n_caches = 0;
            refuses(want);
            break;
        default:
            devices[3].memory.host++;
            refuses("accepted"); /* rounding of a byte per piece */
        }
    }
    arena_release(&arena);
}

int main(void)
{
    table_rules();
    factor_rules();
    problem_rules();
    host_limit();
    pools_of_plan();
    pools_of_modules();
    slot_rule();
    memory_of_tiers();
    buffers_of_caches();
    stored_caches();
    return tap_done();
}
