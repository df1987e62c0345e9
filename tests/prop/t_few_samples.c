/* SPDX-License-Identifier: MIT */
/* Models learned from few samples of a new GPU. The test measures mean errors
 * on cases that no training saw, for two simulated GPUs (tests/few_gpus.h) and
 * for the reference samples; how the chosen kind of model compares with each of
 * the three kinds; and the cost on the GPU itself of plans made with the model.
 * A full run uses all sizes, and the median over the seeds 0 to 4. */
#include <stdlib.h>
#include <unistd.h>

#include "base/stats.h"
#include "core/plan_price.h"
#include "costmodel/learning/choose.h"
#include "costmodel/learning/evaluate.h"
#include "costmodel/modelfile/gpu_file.h"
#include "costmodel/modelfile/model_file.h"
#include "costmodel/models/oracle_open.h"
#include "costmodel/models/oracles.h"
#include "device/gemm.h"
#include "search/search.h"
#include "tests/few_gpus.h"
#include "tests/golden_train.h"
#include "tests/predict_samples.h"
#include "tests/tap.h"

#define N_SEEDS 5
#define N_HELD_OUT 1500
#define NOISE 0.03
/* Seed of the samples that judge the models, and of the tasks. */
#define JUDGE_SEED 77
#define MOST_TASKS 40
#define N_DEVICES 4

/* The larger sizes take minutes, so only a full run uses them. */
static const struct size {
    char gpu; /* C: the reference samples */
    size_t n;
    double most_mape;
    bool is_quick;
} sizes[] = {
    {'A', 20, 0.03, true},      {'B', 20, 0.1, true},
    {'C', 20, 0.12, true},      {'B', 200, 0.05, false},
    {'C', 200, 0.06, false},    {'B', 1000, 0.03, false},
    {'C', 1000, 0.025, false},  {'B', 10000, 0.015, false},
    {'C', 60000, 0.012, false},
};

/* All reference samples, including the held-out ones. */
struct reference {
    struct sample *samples;
    size_t n;
};

static bool is_full(void)
{
    return tap_size(0, 100) > 50;
}

/* Draws samples. For GPU C each seed uses another fifth of the reference
 * samples, if a fifth is large enough. */
static const struct sample *draw(const struct size *size, uint64_t seed,
                                 const struct reference *reference,
                                 struct arena *arena)
{
    const size_t most = reference->n / N_SEEDS / 10 * 10;

    if (size->gpu != 'C')
        return few_samples(size->gpu, size->n, NOISE, seed, arena);
    return reference->samples + (size->n <= most ? seed * most : 0);
}

/* Returns the samples that judge the models. For GPU C these are the held-out
 * cases, which have noise of 1 %. */
static const struct sample *judges(const struct size *size, size_t *n,
                                   const struct reference *reference,
                                   struct arena *arena)
{
    struct sample *held_out;

    *n = N_HELD_OUT;
    if (size->gpu != 'C')
        return few_samples(size->gpu, *n, 0, JUDGE_SEED, arena);
    held_out = ARENA_NEW(arena, struct sample, reference->n);
    *n = 0;
    for (size_t i = 0; i < reference->n; i++)
        if (sample_split(&reference->samples[i]) == SPLIT_HELD_OUT)
            held_out[(*n)++] = reference->samples[i];
    return held_out;
}

static struct errors judge(const struct model *model,
                           const struct sample *samples, size_t n,
                           struct arena *arena)
{
    double *want = ARENA_NEW(arena, double, n);
    double *got = ARENA_NEW(arena, double, n);

    predict_samples(model, samples, n, got);
    for (size_t i = 0; i < n; i++)
        want[i] = samples[i].total.median_ms;
    return errors_of("", want, got, n);
}

/* Returns the error of the chosen kind of model, relative to the best of the
 * three kinds. */
static double regret(const struct model *chosen, double mape,
                     const struct sample *samples, size_t n, uint64_t seed,
                     const struct sample *held_out, size_t n_held_out,
                     struct arena *arena)
{
    double best = mape;

    for (int kind = 0; kind < MODEL_MONOTONE; kind++) {
        struct train_options options;
        struct model model;
        struct err err = {0};
        double tried;

        if (kind == (int)model_kind(chosen))
            continue;
        train_options_init(&options);
        options.kind = (enum model_kind)kind;
        options.seed = seed;
        if (train_fit(&model, samples, n, &options, arena, &err))
            continue; /* too few samples for a net */
        tried = judge(&model, held_out, n_held_out, arena).mape;
        printf("#     %s: %.2f %%\n", model_kind_names[kind], 100 * tried);
        best = fmin(best, tried);
    }
    return mape / best;
}

static void test_size(const struct size *size,
                      const struct reference *reference)
{
    double mapes[N_SEEDS], regrets[N_SEEDS], mses[N_SEEDS];
    const struct sample *held_out;
    struct arena arena = {0};
    size_t n_held_out;

    held_out = judges(size, &n_held_out, reference, &arena);
    for (uint64_t seed = 0; seed < N_SEEDS; seed++) {
        const struct sample *samples = draw(size, seed, reference, &arena);
        struct train_options options;
        struct errors errors;
        struct model model;
        struct err err = {0};

        train_options_init(&options);
        options.seed = seed;
        if (!ok(!train_choose(&model, samples, size->n, &options, &arena, &err),
                "%c, %zu samples%s", size->gpu, size->n, err.msg))
            goto out;
        errors = judge(&model, held_out, n_held_out, &arena);
        printf("# %c, %zu samples, seed %u: %s%s: %.2f %%\n", size->gpu,
               size->n, (unsigned)seed, model_kind_text(&model, &arena),
               choice_text(&model, &arena), 100 * errors.mape);
        mapes[seed] = errors.mape;
        mses[seed] = errors.mse;
        regrets[seed] = regret(&model, errors.mape, samples, size->n, seed,
                               held_out, n_held_out, &arena);
    }
    mapes[0] = stats_median(mapes, N_SEEDS);
    ok(mapes[0] <= size->most_mape,
       "%c, %zu samples: %.2f %% in the median, at most %.1f %%", size->gpu,
       size->n, 100 * mapes[0], 100 * size->most_mape);
    regrets[0] = stats_median(regrets, N_SEEDS);
    ok(regrets[0] <= 1.1, "%.2f times the error of the best kind", regrets[0]);
    mses[0] = stats_median(mses, N_SEEDS);
    if (size->gpu == 'C' && size->n == 60000)
        ok(mses[0] <= 0.0006, "MSE %.5f ms^2 in the median", mses[0]);
out:
    arena_release(&arena);
}

/* Draws a task of 12 to 40 tables on four H100. */
static void draw_task(struct problem *problem, uint64_t seed,
                      struct arena *arena)
{
    struct rng rng;

    rng_init(&rng, seed, 'T');
    *problem = (struct problem){
        .n_tables = 12 + rng_below(&rng, 29),
        .cluster = {.n_devices = N_DEVICES,
                    .devices_per_host = N_DEVICES,
                    .memory_bytes = ARENA_NEW(arena, uint64_t, N_DEVICES),
                    .reserve_bytes = ARENA_NEW(arena, uint64_t, N_DEVICES)},
        .batch = few_setting.batch,
        .kinds = SHARD_TABLE | SHARD_COLUMN};
    problem->tables = ARENA_NEW(arena, struct table, problem->n_tables);
    for (uint32_t r = 0; r < N_DEVICES; r++)
        problem->cluster.memory_bytes[r] = (uint64_t)1 << 40;
    for (size_t t = 0; t < problem->n_tables; t++) {
        few_table(&problem->tables[t], &rng);
        problem->tables[t].name = arena_printf(arena, "t%zu", t);
    }
}

/* Searches for the cheapest plan under the oracle `by` and returns its cost
 * under the oracle `truth`, or NAN if no plan is found. */
static double price_best(const struct problem *problem, const struct oracle *by,
                         const struct oracle *truth, struct arena *arena)
{
    struct plan plan = {.problem = *problem};
    struct search_options options;
    struct err err = {0};

    search_options_init(&options);
    options.effort = 20000;
    if (search_full(&plan, by, &options, arena, &err) ||
        plan_price(&plan, truth, arena, &err)) {
        printf("# %s\n", err.msg);
        return NAN;
    }
    return plan.total_ms;
}

/* Trains a model on n samples of GPU B and returns its cost model text. If n is
 * 0, this is the unchanged roofline. */
static const char *learn(size_t n, const char *folder, struct arena *arena)
{
    const char *path = arena_printf(arena, "%s/%zu.nsm", folder, n);
    struct train_options options;
    struct model model;
    struct err err = {0};

    if (!n)
        return "roofline:h100";
    train_options_init(&options);
    if (train_choose(&model, few_samples('B', n, NOISE, 0, arena), n, &options,
                     arena, &err) ||
        model_save(&model, path, &err))
        printf("# %s\n", err.msg);
    return arena_printf(arena, "model:%s", path);
}

static void test_plans(const struct gpu_spec *h100)
{
    /* The mean over few tasks varies more than that over many. */
    const struct {
        size_t n;
        double most;
    } models[] = {
        {0, 1.4}, {20, is_full() ? 1.05 : 1.1}, {200, 1.03}, {2000, 1.015}};
    const size_t n_models = is_full() ? 4 : 2;
    const size_t n_tasks = tap_size(4, MOST_TASKS);
    char folder[] = "/tmp/t_few_samples_XXXXXX";
    struct arena arena = {0};

    if (!mkdtemp(folder))
        exit(1);
    for (size_t m = 0; m < n_models; m++) {
        const char *cost = learn(models[m].n, folder, &arena);
        double ratios = 0;

        for (uint64_t task = 0; task < n_tasks; task++) {
            const struct arena_mark mark = arena_mark(&arena);
            struct problem problem;
            struct oracle *oracle = NULL, *truth;
            struct err err = {0};

            draw_task(&problem, task, &arena);
            truth = few_oracle(h100, &problem, &arena);
            if (oracle_open(&oracle, cost, &problem, &arena, &err))
                printf("# %s\n", err.msg);
            else
                ratios += price_best(&problem, oracle, truth, &arena) /
                          price_best(&problem, truth, truth, &arena);
            arena_rewind(&arena, mark);
        }
        ok(ratios > 0 && ratios / (double)n_tasks <= models[m].most,
           "plans by %zu samples cost %.3f times those by the GPU itself",
           models[m].n, ratios / (double)n_tasks);
        if (models[m].n)
            unlink(cost + strlen("model:"));
    }
    rmdir(folder);
    arena_release(&arena);
}

int main(void)
{
    struct reference reference = {NULL, 0};
    const struct gpu_spec *h100;
    struct err err = {0};
    struct arena arena = {0};

    if (gpu_spec_get(&h100, "h100", &arena, &err) || gemm_init(&err)) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }
    if (file_exists(golden_path("golden/train_compute.txt.gz", &arena)))
        reference.samples =
            golden_samples(&reference.n, tap_size(3000, 60000), &arena);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        if ((sizes[i].is_quick || is_full()) &&
            (sizes[i].gpu != 'C' || reference.n >= sizes[i].n))
            test_size(&sizes[i], &reference);
    test_plans(h100);
    arena_release(&arena);
    return tap_done();
}
