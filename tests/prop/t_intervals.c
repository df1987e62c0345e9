/* SPDX-License-Identifier: MIT */
/* Checks that nine in ten measured times lie within the error intervals of
 * models of two simulated GPUs (tests/few_gpus.h) and of the reference samples.
 * Each model is judged by 3,000 cases with the same noise that neither training
 * nor calibration saw. The quick run uses a fitted roofline of 4,000 samples,
 * or 10,000 of the reference, whose held-out cases make the intervals. The full
 * run also uses the chosen kind of model, with the median over the seeds 0
 * to 4. For 200 samples the intervals come from cross-validation, whose nets
 * learn from nine tenths of the model's samples. */
#include "base/stats.h"
#include "costmodel/learning/choose.h"
#include "costmodel/learning/evaluate.h"
#include "device/gemm.h"
#include "tests/few_gpus.h"
#include "tests/golden_train.h"
#include "tests/predict_samples.h"
#include "tests/tap.h"

#define N_SEEDS 5
#define N_JUDGES 3000
#define NOISE 0.03
#define JUDGE_SEED 78

static const struct size {
    char gpu; /* C: the reference samples */
    size_t n;
    bool is_chosen; /* otherwise a fitted roofline */
    double most;
} sizes[] = {
    {'A', 4000, false, 0.93},  {'B', 4000, false, 0.93},
    {'C', 10000, false, 0.93}, {'A', 200, true, 0.93},
    {'B', 200, true, 0.93},    {'C', 200, true, 0.93},
    {'A', 1000, true, 0.93},   {'B', 1000, true, 0.93},
    {'C', 1000, true, 0.93},   {'A', 10000, true, 0.93},
    {'B', 10000, true, 0.93},  {'C', 10000, true, 0.93},
};

/* All reference samples that are read. */
struct reference {
    struct sample *samples;
    size_t n;
};

/* Returns the share of the judging samples that lie within the interval of
 * their class. */
static double coverage(const struct model *model, const struct sample *judges,
                       struct arena *arena)
{
    double *says = ARENA_NEW(arena, double, N_JUDGES);
    size_t n_within = 0;

    predict_samples(model, judges, N_JUDGES, says);
    for (size_t c = 0; c < model->intervals.n; c++) {
        const struct interval *interval = &model->intervals.items[c];
        size_t n = 0, n_own = 0;

        for (size_t i = 0; i < N_JUDGES; i++) {
            const double ms = judges[i].total.median_ms;

            if (interval_find(&model->intervals,
                              interval_class_of(&judges[i])) != interval)
                continue;
            n++;
            n_own += interval_error(ms, says[i]) <= interval->error_frac;
        }
        n_within += n_own;
        if (n)
            printf("#     %s: +-%.1f %% of %u %s hold %.1f %% of %zu\n",
                   interval->class, 100 * interval->error_frac,
                   (unsigned)interval->n, interval->ground,
                   100 * (double)n_own / (double)n, n);
    }
    return (double)n_within / N_JUDGES;
}

static int train_size(struct model *model, const struct size *size,
                      const struct sample *samples, uint64_t seed,
                      struct arena *arena, struct err *err)
{
    struct evaluation evaluation;
    struct train_options options;

    train_options_init(&options);
    options.seed = seed;
    options.kind = MODEL_ROOFLINE;
    if (size->is_chosen
            ? train_choose(model, samples, size->n, &options, arena, err)
            : train_fit(model, samples, size->n, &options, arena, err))
        return -1;
    evaluate_model(&evaluation, model, samples, size->n);
    evaluation_store(model, &evaluation);
    return 0;
}

static void test_size(const struct size *size,
                      const struct reference *reference)
{
    const unsigned n_seeds = size->n > 1000 ? 1 : N_SEEDS;
    const bool is_drawn = size->gpu != 'C' || !reference->samples;
    double shares[N_SEEDS];
    struct arena arena = {0};
    const struct sample *judges =
        is_drawn ? few_samples(size->gpu, N_JUDGES, NOISE, JUDGE_SEED, &arena)
                 : reference->samples + reference->n - N_JUDGES;

    for (uint64_t seed = 0; seed < n_seeds; seed++) {
        const struct sample *samples =
            is_drawn ? few_samples(size->gpu, size->n, NOISE, seed, &arena)
                     : reference->samples + seed * size->n;
        struct model model;
        struct err err = {0};

        if (!ok(!train_size(&model, size, samples, seed, &arena, &err) &&
                    model.intervals.n,
                "%c, %zu samples%s", size->gpu, size->n, err.msg))
            goto out;
        shares[seed] = coverage(&model, judges, &arena);
        printf("# %c, %zu samples, seed %u: %s: %.2f %%\n", size->gpu, size->n,
               (unsigned)seed, model_kind_text(&model, &arena),
               100 * shares[seed]);
    }
    shares[0] = stats_median(shares, n_seeds);
    ok(shares[0] >= 0.87 && shares[0] <= size->most,
       "%c, %zu samples: intervals hold %.1f %% of %d, 87 to %.0f", size->gpu,
       size->n, 100 * shares[0], N_JUDGES, 100 * size->most);
out:
    arena_release(&arena);
}

int main(void)
{
    const bool is_full = tap_size(0, 100) > 50;
    struct reference reference = {NULL, 0};
    struct err err = {0};
    struct arena arena = {0};

    if (gemm_init(&err)) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }
    if (file_exists(golden_path("golden/train_compute.txt.gz", &arena)))
        reference.samples = golden_samples(&reference.n, 13000, &arena);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        if ((!sizes[i].is_chosen || is_full) &&
            (sizes[i].gpu != 'C' || reference.n >= sizes[i].n + N_JUDGES))
            test_size(&sizes[i], &reference);
    arena_release(&arena);
    return tap_done();
}
