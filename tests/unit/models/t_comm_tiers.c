/* SPDX-License-Identifier: MIT */
#include "costmodel/formulas/comm_tiers.h"

#include "core/cache_use.h"
#include "core/memory.h"
#include "core/plan_check.h"
#include "core/plan_price.h"
#include "costmodel/modelfile/gpu_file.h"
#include "costmodel/models/oracles.h"
#include "tests/tap.h"
#include "tests/tiered_plan.h"

/* Prices of tables in host memory, computed here by the formulas of
 * comm_tiers.h without the code of the cost model. */

static struct tiered_plan tiered;
static struct arena arena;

#define LINK_GBPS 42.3 /* link of an H100; less than 492 / 2 */
#define ID_MS (2.9 * 1e-6)

static void make_plan(enum optimizer optimizer, enum pipeline pipeline)
{
    tiered_plan_init(&tiered);
    for (unsigned t = 0; t < TIERED_TABLES; t++) {
        tiered.tables[t].num_embeddings *= 100;
        tiered.tables[t].skew_assumed = t % 2;
        tiered.tables[t].zipf_alpha = 0.8 + 0.05 * t;
        tiered.tables[t].pooling_factor = 1 + t;
        tiered.tables[t].optimizer = optimizer;
    }
    for (unsigned i = 0; i < TIERED_SHARDS; i++) {
        tiered.shards[i].row_begin *= 100;
        tiered.shards[i].row_end *= 100;
    }
    for (unsigned r = 0; r < TIERED_DEVICES; r++)
        tiered.memory[r] = 1u << 30;
    tiered.plan.problem.cluster.host_bytes = 16ull << 30;
    tiered.plan.problem.batch = 16384;
    tiered.plan.problem.job.pipeline = pipeline;
    problem_find_hot_rows(&tiered.plan.problem, &arena);
}

/* Adds a piece of a table to the lanes of its cache. */
static void add_piece(double *lanes, const struct shard *shard)
{
    const struct table *table = &tiered.tables[shard->table];
    const double n_lookups =
        table->pooling_factor * (double)tiered.plan.problem.batch;
    double piece[CACHE_LANES];
    struct cache_curve curve;

    cache_curve_init(&curve, table, n_lookups);
    cache_embed(piece, &curve,
                (double)(shard->row_end - shard->row_begin) /
                    (double)table->num_embeddings,
                4.0 * (shard->col_end - shard->col_begin), 0);
    for (unsigned k = 0; k < CACHE_LANES; k++)
        lanes[k] += piece[k];
}

/* Returns the bytes that GPU 0 misses: wide and whole share a cache, and tall
 * has one. */
static double missed_on_0(void)
{
    double columns[CACHE_LANES] = {0}, rows[CACHE_LANES] = {0};
    const double factor = (0.1 * 200000 + 0.5 * 50000) / 250000;

    add_piece(columns, &tiered.shards[AT_WIDE]);
    add_piece(columns, &tiered.shards[AT_WHOLE]);
    add_piece(rows, &tiered.shards[AT_TALL]);
    return cache_evaluate(columns, 32 * ceil(floor(250000 * factor) / 32))
               .miss_bytes +
           cache_evaluate(rows, 32 * ceil(0.25 * 100000 / 32)).miss_bytes;
}

/* Returns the ids of cached tables on GPU 0. */
static double cached_ids(void)
{
    const double batch = (double)tiered.plan.problem.batch;

    return batch * tiered.tables[WIDE].pooling_factor +
           batch * tiered.tables[WHOLE].pooling_factor +
           shard_lookups(&tiered.plan.problem, &tiered.shards[AT_TALL]);
}

static struct plan priced(const struct oracle *oracle)
{
    struct plan plan = tiered.plan;
    struct err err = {0};

    if (plan_price(&plan, oracle, &arena, &err) || plan_check(&plan, &err))
        ok(0, "priced and checked: %s", err.msg);
    return plan;
}

static struct oracle *open_oracle(void)
{
    struct oracle *oracle;
    struct err err = {0};

    if (oracle_roofline_open(&oracle, "h100", &tiered.plan.problem, &arena,
                             &err))
        ok(0, "opened: %s", err.msg);
    return oracle;
}

/* Returns the plan with all tables in the memory of GPUs. */
static struct plan without_tiers(void)
{
    static struct shard shards[TIERED_SHARDS];
    struct plan plan = tiered.plan;
    struct oracle *oracle;
    struct err err = {0};

    memcpy(shards, tiered.shards, sizeof(shards));
    for (unsigned i = 0; i < TIERED_SHARDS; i++)
        shards[i].tier = TIER_HBM;
    plan.shards = shards;
    plan.load_factors = NULL;
    plan.problem.cluster.host_bytes = 0;
    if (oracle_roofline_open(&oracle, "h100", &plan.problem, &arena, &err) ||
        plan_price(&plan, oracle, &arena, &err))
        ok(0, "priced: %s", err.msg);
    return plan;
}

static void test_forward(void)
{
    struct plan plan, plain;
    double more_ms;

    make_plan(OPTIMIZER_ROWWISE_ADAGRAD, PIPELINE_SDD);
    plan = priced(open_oracle());
    plain = without_tiers();
    more_ms = 2 * missed_on_0() / (LINK_GBPS * 1e6) + ID_MS * cached_ids();
    is_near(plan.devices[0].compute_ms - plain.devices[0].compute_ms, more_ms,
            1e-9 * more_ms, "compute of a GPU with two caches");
    is_near(plan.devices[0].parts_ms[STEP_FORWARD] -
                plain.devices[0].parts_ms[STEP_FORWARD],
            more_ms, 1e-9 * more_ms, "all of it is in the forward");
    is_near(plan.devices[0].caches[0].fills /
                plan.devices[0].caches[0].rows_per_batch,
            plan.devices[0].caches[0].miss, 1e-12, "miss ratio");
    ok(plan.cost.tier_error.frac > 0, "the tiers have an error");
    is_str(plan.cost.tier_error.ground, "modelled",
           "its basis: the exponent of table 'tall' is given");
    ok(strcmp(plan.cost.hash, plain.cost.hash) != 0, "the hash differs");
}

/* Rows in host memory, and the optimizer's values per element. */
static void test_host(void)
{
    const double lookups = 16384.0 * 7, bytes = 4 * 64;
    const double ms = TIERS_FOLDED * lookups * bytes / (LINK_GBPS * 1e6);
    struct plan plan, plain;
    struct table_use use, tall;
    double state_ms;

    make_plan(OPTIMIZER_ADAM, PIPELINE_SDD);
    plan = priced(open_oracle());
    plain = without_tiers();
    use = problem_use(&tiered.plan.problem, COLD, 16384);
    state_ms = 2 * use.n_unique * 2 * bytes / (LINK_GBPS * 1e6);
    tall = problem_use(&tiered.plan.problem, TALL, 16384);
    tall = shard_use(&tiered.plan.problem, &tiered.shards[AT_TALL + 2], 16384,
                     &tall);
    state_ms += 2 * tall.n_unique * 2 * (4 * 32) / (LINK_GBPS * 1e6);
    is_near(plan.devices[2].parts_ms[STEP_BACKWARD] -
                plain.devices[2].parts_ms[STEP_BACKWARD],
            ms + state_ms, 1e-9, "backward: rows, and two values per element");
}

static void test_prefetch(void)
{
    struct plan plan, plain;
    double more_ms;

    make_plan(OPTIMIZER_ROWWISE_ADAGRAD, PIPELINE_PREFETCH);
    plan = priced(open_oracle());
    plain = without_tiers();
    is_near(plan.devices[0].parts_ms[STEP_FORWARD],
            plain.devices[0].parts_ms[STEP_FORWARD], 1e-12,
            "the forward is as without caches");
    more_ms = plan.devices[0].compute_ms - plain.devices[0].compute_ms;
    is_near(plan.devices[0].parts_ms[STEP_INPUT] -
                plain.devices[0].parts_ms[STEP_INPUT],
            more_ms, 1e-9, "caches are filled before it");
    is_i64((int64_t)plan.devices[0].n_caches, 3, "a cache for each width");
}

/* Slots of a search: all memory that is left goes to the cache. */
static void test_derived(void)
{
    struct oracle *oracle;
    double *sums, *vectors, compute_ms, plain_ms, want;
    double lanes[CACHE_LANES] = {0};
    uint64_t rooms[TIERED_DEVICES];
    const struct shard *shard = &tiered.shards[AT_WORDS];
    struct shard plain;

    make_plan(OPTIMIZER_ROWWISE_ADAGRAD, PIPELINE_SDD);
    for (unsigned r = 0; r < TIERED_DEVICES; r++)
        tiered.memory[r] = 60u << 20;
    oracle = open_oracle();
    plain = *shard;
    plain.tier = TIER_HBM;
    vectors = ARENA_NEW(&arena, double, 2 * oracle->width);
    sums = vectors + oracle->width;
    oracle->ops->embed(oracle, shard, 1, vectors);
    oracle->ops->embed(oracle, &plain, 1, sums);
    oracle->ops->compute(oracle, vectors, 1, &compute_ms);
    oracle->ops->compute(oracle, sums, 1, &plain_ms);
    problem_room_bytes(&tiered.plan.problem, rooms);
    add_piece(lanes, shard);
    want =
        cache_evaluate(
            lanes, ((double)rooms[0] -
                    (double)shard_memory(&tiered.plan.problem, shard).total) /
                       (4 * 32 + 16))
            .miss_bytes;
    is_near(compute_ms - plain_ms,
            2 * want / (LINK_GBPS * 1e6) + ID_MS * 16384 * 6, 1e-6,
            "a cache in all memory that is left");
    ok(want > 0, "it does not hold all rows");
}

static void test_refused(void)
{
    struct err err = {0};
    struct oracle *oracle;
    struct plan plan;

    make_plan(OPTIMIZER_ROWWISE_ADAGRAD, PIPELINE_SDD);
    ok(oracle_roofline_open(&oracle, "cpu", &tiered.plan.problem, &arena, &err),
       "no price without figures of the host");
    is_str(err.msg,
           "GPU 'cpu' has no figures host_gbps and cache_id_ns, which the "
           "price of tables in host memory needs",
           "refused by name");
    plan = tiered.plan;
    if (oracle_torchrec_open(&oracle, "", &plan.problem, &arena, &err))
        ok(0, "opened");
    ok(plan_price(&plan, oracle, &arena, &err), "no price by other models");
    is_str(err.msg,
           "cost model 'torchrec' cannot price tables in host memory (table "
           "'wide', tier 'cached')",
           "refused by name");
}

int main(void)
{
    test_forward();
    test_host();
    test_prefetch();
    test_derived();
    test_refused();
    arena_release(&arena);
    return tap_done();
}
