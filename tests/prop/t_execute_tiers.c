/* SPDX-License-Identifier: MIT */
#include "exec/exec.h"

#include <math.h>

#include "base/rng.h"
#include "core/cache_model.h"
#include "core/cache_pools.h"
#include "core/plan_check.h"
#include "tests/tap.h"
#include "tests/unit/exec/exec_fixture.h"

/* Random plans with tables in all tiers on 2 to 4 ranks. Their results equal
 * the reference's, and have the bits of the plan without tiers. The hit rate of
 * their caches is the one that core/cache_model.h predicts. */

#define MAX_TABLES 6
#define MAX_RANKS 4
#define LIMIT 2.0 /* points of a hit rate */

struct drawn {
    struct fixture fixture;
    struct rng rng;
    double load_factors[MAX_TABLES];
    uint64_t memory[MAX_RANKS], reserve[MAX_RANKS];
};

/* Adds the pieces of the last table in a tier. */
static void draw_pieces(struct drawn *drawn, enum tier tier)
{
    struct fixture *fixture = &drawn->fixture;
    const struct table *table = &fixture->tables[last_table(fixture)];
    const uint32_t n = fixture->plan.problem.cluster.n_devices;
    const size_t first = fixture->plan.n_shards;
    const uint64_t step = (table->num_embeddings + n - 1) / n;
    const uint32_t at = rng_draw(&drawn->rng, n);

    switch (rng_draw(&drawn->rng, 3)) {
    case 0:
        add_whole(fixture, at);
        break;
    case 1:
        add_columns(fixture, at, 0, table->dim / 2);
        add_columns(fixture, rng_draw(&drawn->rng, n), table->dim / 2,
                    table->dim);
        break;
    default:
        for (uint32_t r = 0; r < n; r++)
            add_rows(fixture, r, r * step,
                     min_u64((r + 1) * step, table->num_embeddings));
    }
    for (size_t i = first; i < fixture->plan.n_shards; i++)
        fixture->shards[i].tier = tier;
}

static void draw_table(struct drawn *drawn, enum optimizer optimizer)
{
    static const char *const names[MAX_TABLES] = {"a", "b", "c", "d", "e", "f"};
    struct fixture *fixture = &drawn->fixture;
    struct rng *rng = &drawn->rng;
    const uint32_t t = (uint32_t)fixture->plan.problem.n_tables;
    /* The first table is always cached. */
    const enum tier tier =
        (enum tier)(t ? rng_draw(rng, N_TIERS) : TIER_CACHED);
    struct table *table =
        add_table(fixture, names[t], 2000 + rng_draw(rng, 60000),
                  8 * (1 + rng_draw(rng, 6)), 1 + rng_draw(rng, 12));

    table->zipf_alpha = 0.5 + 0.8 * rng_uniform(rng);
    table->skew_assumed = false;
    table->optimizer = optimizer;
    if (!rng_draw(rng, 4))
        table->precision = PRECISION_FP16;
    if (!rng_draw(rng, 5))
        table->output = OUTPUT_SEQUENCE;
    if (tier == TIER_CACHED)
        drawn->load_factors[t] = 0.01 * pow(60, rng_uniform(rng));
    draw_pieces(drawn, tier);
}

static void draw_plan(struct drawn *drawn, uint64_t seed)
{
    struct fixture *fixture = &drawn->fixture;
    struct problem *problem = &fixture->plan.problem;
    enum optimizer optimizer;
    uint32_t n_tables;

    rng_init(&drawn->rng, seed, 0);
    fixture_init(fixture, 2 + rng_draw(&drawn->rng, MAX_RANKS - 1),
                 200 + rng_draw(&drawn->rng, 400));
    memset(drawn->load_factors, 0, sizeof(drawn->load_factors));
    problem->kinds = SHARD_ALL_KINDS;
    problem->cluster.memory_bytes = drawn->memory;
    problem->cluster.reserve_bytes = drawn->reserve;
    problem->cluster.devices_per_host = problem->cluster.n_devices;
    problem->cluster.host_bytes = (uint64_t)1 << 34;
    for (unsigned r = 0; r < MAX_RANKS; r++)
        drawn->memory[r] = (uint64_t)1 << 34;
    if (seed % 5 == 0)
        problem->job.pipeline = PIPELINE_PREFETCH;
    optimizer =
        rng_draw(&drawn->rng, 3) ? OPTIMIZER_ROWWISE_ADAGRAD : OPTIMIZER_SGD;
    n_tables = 2 + rng_draw(&drawn->rng, MAX_TABLES - 1);
    while (problem->n_tables < n_tables)
        draw_table(drawn, optimizer);
    fixture->plan.load_factors = drawn->load_factors;
    fixture->plan.total_ms = fixture->plan.bound_ms = NAN;
    plan_derive_kinds(&fixture->plan);
}

/* Predicts the misses of a pool, and the rows of a batch, from its pieces. */
static double predict(const struct plan *plan, const struct cache_pools *pools,
                      size_t k, double *rows)
{
    double pool[CACHE_LANES] = {0}, lanes[CACHE_LANES];

    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        const struct table *table = &plan->problem.tables[shard->table];
        struct cache_curve curve;

        if (pools->of_shard[i] != k)
            continue;
        cache_curve_init(&curve, table,
                         table->pooling_factor * (double)plan->problem.batch);
        cache_embed(lanes, &curve,
                    (double)(shard->row_end - shard->row_begin) /
                        (double)table->num_embeddings,
                    1, 0);
        for (unsigned j = 0; j < CACHE_LANES; j++)
            pool[j] += lanes[j];
    }
    *rows = pool[CACHE_MISSES];
    return cache_evaluate(pool, (double)pools->pools[k].n_slots).misses;
}

/* Errors of the predicted hit rates in points. */
struct errors {
    double plan, worst_pool, worst_rows;
    size_t n_pools;
};

static struct errors compare_hits(const struct plan *plan,
                                  const struct exec_result *result)
{
    struct errors errors = {0};
    struct cache_pools pools;
    double misses = 0, rows = 0, got_misses = 0, got_rows = 0;

    cache_pools_init(&pools, plan);
    errors.n_pools = pools.n;
    for (size_t k = 0; k < pools.n; k++) {
        const struct exec_cache *cache = &result->caches[k];
        double own_rows, own = predict(plan, &pools, k, &own_rows);

        errors.worst_pool =
            fmax(errors.worst_pool,
                 100 * fabs(own / own_rows - cache->misses / cache->rows));
        errors.worst_rows =
            fmax(errors.worst_rows, fabs(cache->rows / own_rows - 1));
        if (cache->n_slots != pools.pools[k].n_slots)
            errors.worst_pool = INFINITY;
        misses += own;
        rows += own_rows;
        got_misses += cache->misses;
        got_rows += cache->rows;
    }
    errors.plan = 100 * fabs(misses / rows - got_misses / got_rows);
    cache_pools_release(&pools);
    return errors;
}

/* Runs the plan with and without tiers. Returns whether its hit rate is as
 * predicted. */
static bool test_plan(struct drawn *drawn, uint64_t seed)
{
    struct fixture *fixture = &drawn->fixture;
    struct plan *plan = &fixture->plan;
    struct exec_result result = {0}, plain = {0};
    struct exec_options options;
    struct errors errors = {INFINITY, 0, 0, 0};
    struct err err = {0};
    int rc;

    exec_options_init(&options);
    options.seed = seed;
    options.n_iterations = 20;
    options.wait_for_quiet = false;
    rc = plan_check(plan, &err) ||
         exec_run(&result, plan, fixture->world, fixture->device, &options,
                  &fixture->arena, &err);
    if (!rc)
        errors = compare_hits(plan, &result);
    options.n_iterations = 1;
    for (size_t i = 0; i < plan->n_shards; i++)
        fixture->shards[i].tier = TIER_HBM;
    plan->load_factors = NULL;
    rc = rc || exec_run(&plain, plan, fixture->world, fixture->device, &options,
                        &fixture->arena, &err);
    ok(!rc && !result.failure && result.outputs.n && result.weights.n &&
           result.output_hash == plain.output_hash &&
           result.weight_hash == plain.weight_hash && result.n_caches,
       "seed %llu: %zu pieces of %zu tables on %u ranks equal the reference, "
       "and without tiers they have the same bits %s%s",
       (unsigned long long)seed, plan->n_shards, plan->problem.n_tables,
       plan->problem.cluster.n_devices, rc ? err.msg : "",
       result.failure ? result.failure : "");
    printf(
        "# %zu caches, hit rates off by %.2f points, of one cache %.2f, rows "
        "by %.3f\n",
        errors.n_pools, errors.plan, errors.worst_pool, errors.worst_rows);
    return errors.plan <= LIMIT;
}

int main(void)
{
    const uint64_t n_plans = tap_size(10, 100);
    static struct drawn drawn;
    uint64_t n_right = 0;

    for (uint64_t seed = 0; seed < n_plans; seed++) {
        draw_plan(&drawn, seed);
        n_right += test_plan(&drawn, seed);
        fixture_release(&drawn.fixture);
    }
    ok(n_right * 100 >= n_plans * 95,
       "hit rates are within %g points in %llu of %llu plans", LIMIT,
       (unsigned long long)n_right, (unsigned long long)n_plans);
    return tap_done();
}
