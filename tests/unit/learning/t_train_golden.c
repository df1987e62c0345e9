/* SPDX-License-Identifier: MIT */
/* Training on a part of the reference samples. The net predicts fused costs
 * better than a sum of single costs does, and the same seed gives the same
 * bytes. */
#include "costmodel/learning/dataset.h"
#include "costmodel/learning/evaluate.h"
#include "costmodel/learning/train.h"
#include "costmodel/modelfile/model_file.h"
#include "tests/tap.h"

#include "tests/golden_train.h"

static void test_accuracy(const struct sample *samples, size_t n,
                          struct arena *arena)
{
    struct train_options options;
    struct evaluation evaluation;
    const struct errors *net = &evaluation.errors[PREDICTOR_NET];
    const struct errors *sum = &evaluation.errors[PREDICTOR_PREDICTED_SINGLES];
    const struct errors *linear = &evaluation.errors[PREDICTOR_LINEAR];
    struct model model;
    struct err err = {0};

    train_options_init(&options);
    options.epochs = 20;
    if (!ok(!train_fit(&model, samples, n, &options, arena, &err),
            "training on %zu samples%s", n, err.msg))
        return;
    evaluate_model(&evaluation, &model, samples, n);
    is_i64((int64_t)net->n, (int64_t)n / 10, "every tenth sample is held out");
    ok(net->mape <= 0.5 * sum->mape,
       "mean error %.2f %%, at most half of the sum of singles' %.2f %%",
       100 * net->mape, 100 * sum->mape);
    ok(net->mse <= 0.5 * sum->mse, "MSE %.5f, at most half of %.5f", net->mse,
       sum->mse);
    ok(net->mape <= 0.5 * linear->mape, "and half of a linear model's %.2f %%",
       100 * linear->mape);
    ok(net->mape < 0.05, "below 5 %%");
    ok(net->kendall_tau > 0.95, "Kendall's tau %.4f", net->kendall_tau);
}

static void test_same_bytes(const struct sample *samples, size_t n,
                            struct arena *arena)
{
    struct train_options options;
    struct model models[3];
    const char *data[3];
    size_t len[3];
    struct err err = {0};

    train_options_init(&options);
    options.epochs = 2;
    for (int i = 0; i < 3; i++) {
        options.seed = i == 2 ? 8 : 7;
        if (!ok(!train_fit(&models[i], samples, n, &options, arena, &err),
                "trained, %s", err.msg))
            return;
        model_to_bytes(&models[i], &data[i], &len[i], arena);
    }
    ok(len[0] == len[1] && !memcmp(data[0], data[1], len[0]),
       "one seed, one model file");
    ok(memcmp(models[0].mlp.params, models[2].mlp.params,
              models[0].mlp.n_params * sizeof(float)) != 0,
       "another seed, other weights");
}

int main(void)
{
    const struct sample *samples;
    struct arena arena = {0};
    size_t n;

    if (!file_exists(golden_path("golden/train_compute.txt.gz", &arena)))
        tap_skip_all("no ../shared");
    samples = golden_samples(&n, 20000, &arena);
    test_accuracy(samples, n, &arena);
    test_same_bytes(samples, 2000, &arena);
    arena_release(&arena);
    return tap_done();
}
