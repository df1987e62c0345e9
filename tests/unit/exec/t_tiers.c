/* SPDX-License-Identifier: MIT */
#include "exec/exec.h"

#include "core/plan_check.h"
#include "exec/exec_train.h"
#include "exec_fixture.h"
#include "tests/tap.h"
#include "tests/tiered_plan.h"

/* Plans with tables in caches and in host memory give the same bits as plans in
 * the memory of the devices. */

static struct tiered_plan tiered;
static struct fixture fixture;

static void quick_options(struct exec_options *options)
{
    exec_options_init(options);
    options->n_iterations = 12;
    options->seed = 7;
    options->wait_for_quiet = false;
}

/* Runs the plan as it is now. */
static int run(struct exec_result *result, const struct exec_options *options,
               struct err *err)
{
    plan_derive_kinds(&tiered.plan);
    if (plan_check(&tiered.plan, err))
        return -1;
    return exec_run(result, &tiered.plan, fixture.world, fixture.device,
                    options, &fixture.arena, err);
}

static void everything_into_hbm(void)
{
    for (size_t i = 0; i < tiered.plan.n_shards; i++)
        tiered.shards[i].tier = TIER_HBM;
    tiered.plan.load_factors = NULL;
}

static void same_bits(const struct exec_result *a, const struct exec_result *b,
                      const char *what)
{
    ok(a->output_hash == b->output_hash && a->weight_hash == b->weight_hash,
       "%s", what);
}

/* Runs the plan with all tiers, in little memory, and without tiers. */
static void test_step(enum optimizer optimizer, enum pipeline pipeline,
                      size_t n_caches)
{
    struct exec_result plain = {0}, result = {0}, little = {0};
    struct exec_options options;
    struct err err = {0};
    int rc;

    tiered_plan_init(&tiered);
    quick_options(&options);
    options.step.pipeline = tiered.plan.problem.job.pipeline = pipeline;
    for (unsigned t = 0; t < TIERED_TABLES; t++)
        tiered.tables[t].optimizer = optimizer;
    rc = run(&result, &options, &err);
    ok(!rc && !result.failure && result.outputs.n && result.weights.n,
       "%s, %s: agrees with the reference %s%s", optimizer_names[optimizer],
       pipeline_names[pipeline], rc ? err.msg : "",
       result.failure ? result.failure : "");
    is_i64((int64_t)result.n_caches, (int64_t)n_caches, "number of caches");
    options.n_iterations = 1;
    /* the least memory, of some sizes, that is enough */
    rc = -1;
    for (uint64_t bytes = 1 << 25; rc && bytes < 1 << 30; bytes += bytes / 64) {
        options.memory_bytes = bytes;
        rc = run(&little, &options, &err);
    }
    ok(!rc && little.n_turns > 1, "in %u turns %s", little.n_turns,
       rc ? err.msg : "");
    same_bits(&result, &little, "... with the same bits");
    everything_into_hbm();
    options.memory_bytes = 0;
    rc = run(&plain, &options, &err);
    ok(!rc && !plain.n_caches, "without tiers");
    same_bits(&result, &plain, "... with the same bits");
}

/* Checks the uses of the caches in the result. */
static void test_counts(void)
{
    struct exec_result result = {0};
    struct exec_options options;
    const struct exec_cache *words = NULL;
    bool is_right = true;
    struct err err = {0};

    tiered_plan_init(&tiered);
    quick_options(&options);
    ok(!run(&result, &options, &err), "runs %s", err.msg);
    for (size_t k = 0; k < result.n_caches; k++) {
        const struct exec_cache *cache = &result.caches[k];

        is_right &= cache->n_batches >= options.n_iterations &&
                    cache->full_frac >= 0.99 && cache->misses > 0 &&
                    cache->misses < cache->rows &&
                    cache->conflicts <= cache->misses &&
                    result.ranks[cache->device].n_fills > 0 &&
                    result.ranks[cache->device].fill.median_ms > 0;
        if (cache->device == 1 && !strncmp(cache->pool, "sequence", 8))
            words = cache;
    }
    ok(is_right, "all caches are full and miss some rows");
    ok(words && words->n_slots == 64 && words->slot_width == 32 &&
           words->row_bytes == 128,
       "cache of the sequence");
    /* A full cache writes a row back for each row that it reads. */
    ok(words && words->conflicts > 0 &&
           fabs(words->bytes - 256 * words->misses) < 1e-6 * words->bytes,
       "%g bytes a batch for %g fills, %g of them conflicts",
       words ? words->bytes : 0, words ? words->misses : 0,
       words ? words->conflicts : 0);
    ok(result.caches && result.caches[0].row_bytes == 0,
       "pieces of 16 and 32 columns");
}

static void test_refusals(void)
{
    struct exec_result result = {0};
    struct exec_options options;
    struct err err = {0};

    tiered_plan_init(&tiered);
    quick_options(&options);
    options.step.n_chunks = 2;
    ok(run(&result, &options, &err) != 0, "chunks are refused");
    is_str(err.msg, "cached tables are not run in chunks yet; give --chunks 1",
           "why");
}

/* Trains the plan, whose rows leave and enter the caches from step to step. */
static void train(struct train_result *result, bool check)
{
    static const char spec[] = "bottom:4-8-16;interaction:cat;top:8-1";
    struct exec_train_options options = {
        .n_steps = 8,
        .pipeline = PIPELINE_SDD,
        .dense_optimizer = OPTIMIZER_SGD,
        .scale_rows = 1,
        .seed = 3,
        .check = check,
    };
    struct err err = {0};
    int rc;

    plan_derive_kinds(&tiered.plan);
    rc = plan_check(&tiered.plan, &err) ||
         dense_read(&options.dense, spec, strlen(spec), tiered.tables,
                    TIERED_TABLES, &fixture.arena, &err) ||
         exec_train(result, &tiered.plan, fixture.world, fixture.device,
                    &options, &fixture.arena, &err);
    ok(!rc && !result->failure, "trains %s%s", rc ? err.msg : "",
       result->failure ? result->failure : "");
}

static void test_training(enum optimizer optimizer)
{
    struct train_result result = {0}, unchecked = {0}, plain = {0};

    tiered_plan_init(&tiered);
    tiered.tables[WORDS].output = OUTPUT_POOLED;
    for (unsigned t = 0; t < TIERED_TABLES; t++)
        tiered.tables[t].optimizer = optimizer;
    train(&result, true);
    train(&unchecked, false);
    everything_into_hbm();
    train(&plain, true);
    ok(result.weight_hash == plain.weight_hash &&
           unchecked.weight_hash == plain.weight_hash &&
           result.dense_hash == plain.dense_hash,
       "... to the same bits without tiers");
}

int main(void)
{
    fixture_init(&fixture, TIERED_DEVICES, 256);
    test_step(OPTIMIZER_SGD, PIPELINE_NONE, 7);
    /* A cache holds pieces of one width only. */
    test_step(OPTIMIZER_ROWWISE_ADAGRAD, PIPELINE_PREFETCH, 8);
    test_counts();
    test_refusals();
    test_training(OPTIMIZER_SGD);
    test_training(OPTIMIZER_ROWWISE_ADAGRAD);
    fixture_release(&fixture);
    return tap_done();
}
