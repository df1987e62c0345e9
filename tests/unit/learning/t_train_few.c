/* SPDX-License-Identifier: MIT */
/* Distance between a net on a roofline and that roofline, by number of samples.
 * Regularisation, pseudo-labels and the end of training decide it. The figures
 * depend on the constants in costmodel/learning/train.c and pseudo_labels.c,
 * which the full run of t_few_samples chose. If you change one, look there
 * first and then write the new figure here. */
#include "costmodel/learning/train.h"

#include "costmodel/learning/dataset.h"
#include "device/gemm.h"
#include "tests/few_gpus.h"
#include "tests/predict_samples.h"
#include "tests/tap.h"

#define N_JUDGES 200

/* Computes the mean distance between net and roofline, as a logarithm, and the
 * mean error of each. */
static void compare(const struct model *net, const struct model *roofline,
                    double figures[3])
{
    struct arena arena = {0};
    const struct sample *judges = few_samples('B', N_JUDGES, 0, 77, &arena);
    double predicted[N_JUDGES], ms[N_JUDGES];

    predict_samples(net, judges, N_JUDGES, predicted);
    predict_samples(roofline, judges, N_JUDGES, ms);
    memset(figures, 0, 3 * sizeof(*figures));
    for (size_t i = 0; i < N_JUDGES; i++) {
        const double want = judges[i].total.median_ms;

        figures[0] += fabs(log(predicted[i] / ms[i])) / N_JUDGES;
        figures[1] += fabs(predicted[i] / want - 1) / N_JUDGES;
        figures[2] += fabs(ms[i] / want - 1) / N_JUDGES;
    }
    arena_release(&arena);
}

/* The tolerance allows for other processors: they round sums differently, and
 * many training steps amplify that. */
static void test_size(size_t n, double tolerance, double distance, double error,
                      double estimate)
{
    const double want[] = {distance, error, estimate};
    static const char *const names[] = {"distance from the roofline",
                                        "error of the net",
                                        "error of the roofline"};
    struct arena arena = {0};
    const struct sample *samples = few_samples('B', n, 0.03, 1, &arena);
    struct model net, roofline;
    struct train_options options;
    struct err err = {0};
    double figures[3];

    train_options_init(&options);
    options.epochs = 12;
    options.kind = MODEL_ROOFLINE;
    if (!ok(!train_fit(&roofline, samples, n, &options, &arena, &err),
            "a roofline of %zu%s", n, err.msg))
        goto out;
    options.kind = MODEL_ROOFLINE_NET;
    if (!ok(!train_fit(&net, samples, n, &options, &arena, &err),
            "a net of %zu%s", n, err.msg))
        goto out;
    compare(&net, &roofline, figures);
    for (unsigned k = 0; k < 3; k++)
        is_near(figures[k], want[k], tolerance * want[k], names[k]);
out:
    arena_release(&arena);
}

/* No predicted time may be less than the bytes of a load at the highest rate of
 * any valid sample. */
static void test_floor(void)
{
    struct arena arena = {0};
    const struct sample *drawn = few_samples('A', 60, 0.03, 1, &arena);
    struct sample *samples = ARENA_NEW(&arena, struct sample, 60);
    struct train_options options;
    struct model model;
    struct err err = {0};
    double highest = 0;

    memcpy(samples, drawn, 60 * sizeof(*samples));
    samples[3].flags = SAMPLE_THROTTLED;
    samples[3].total.median_ms *= 1e-3;
    for (size_t i = 0; i < 60; i++) {
        struct feature_input input;
        double bytes = 0;

        for (uint32_t t = 0; i != 3 && t < samples[i].n_tables; t++) {
            feature_input_of_sample(&input, samples[i].setting,
                                    &samples[i].tables[t]);
            bytes += feature_floor_bytes(&input);
        }
        highest = fmax(highest, bytes / (samples[i].total.median_ms * 1e6));
    }
    train_options_init(&options);
    options.kind = MODEL_ROOFLINE;
    if (ok(!train_fit(&model, samples, 60, &options, &arena, &err),
           "a roofline%s", err.msg))
        is_near(model.floor_gbps, highest, 1e-9 * highest,
                "the highest rate of what counts");
    arena_release(&arena);
}

/* Without validation samples the weights of the last epoch are kept. This holds
 * even if, as at this learning rate, its loss is not the least. */
static void test_unvalidated(void)
{
    struct arena arena = {0};
    const struct sample *drawn = few_samples('B', 60, 0.03, 1, &arena);
    struct sample *samples = ARENA_NEW(&arena, struct sample, 60);
    struct train_options options;
    struct model net, roofline;
    struct err err = {0};
    double figures[3];

    memcpy(samples, drawn, 60 * sizeof(*samples));
    for (uint64_t i = 0; i < 60; i++)
        samples[i].case_idx = 10 * i;
    train_options_init(&options);
    options.epochs = 12;
    options.kind = MODEL_ROOFLINE;
    if (train_fit(&roofline, samples, 60, &options, &arena, &err))
        ok(0, "a roofline: %s", err.msg);
    options.kind = MODEL_ROOFLINE_NET;
    options.learning_rate = 0.05;
    options.decay = false;
    if (ok(!train_fit(&net, samples, 60, &options, &arena, &err), "a net%s",
           err.msg)) {
        is_i64((int64_t)net.training.best_epoch, 12,
               "the weights are those of the last epoch");
        compare(&net, &roofline, figures);
        ok(figures[0] > 1e-3, "which has learned: %.4f from the roofline",
           figures[0]);
    }
    arena_release(&arena);
}

int main(void)
{
    struct err err = {0};

    if (gemm_init(&err)) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }
    test_floor();
    test_unvalidated();
    test_size(60, 3e-4, 0.0021155, 0.052001, 0.052639);
    test_size(120, 3e-4, 0.025994, 0.038403, 0.053485);
    test_size(500, 5e-3, 0.038647, 0.026116, 0.05332);
    return tap_done();
}
