/* SPDX-License-Identifier: MIT */
/*
 * How far a net on a roofline goes from it, by the number of samples that it
 * learns from: what holds it back, the lessons, and when training ends decide.
 * The figures are those of the constants in costmodel/train.c and lessons.c,
 * which t_few_samples in its full size chose; whoever changes one looks there
 * and then writes the new figure here.
 */
#include "costmodel/train.h"

#include "costmodel/gemm.h"
#include "tests/few_gpus.h"
#include "tests/predict_samples.h"
#include "tests/tap.h"

#define N_JUDGES 200

/* Mean distance, as a logarithm, and the mean error of both. */
static void compare(const struct model *net, const struct model *roofline,
                    double figures[3])
{
    struct arena arena = {0};
    const struct sample *judges = few_samples('B', N_JUDGES, 0, 77, &arena);
    double says[N_JUDGES], ms[N_JUDGES];

    predict_samples(net, judges, N_JUDGES, says);
    predict_samples(roofline, judges, N_JUDGES, ms);
    memset(figures, 0, 3 * sizeof(*figures));
    for (size_t i = 0; i < N_JUDGES; i++) {
        const double want = judges[i].total.median_ms;

        figures[0] += fabs(log(says[i] / ms[i])) / N_JUDGES;
        figures[1] += fabs(says[i] / want - 1) / N_JUDGES;
        figures[2] += fabs(ms[i] / want - 1) / N_JUDGES;
    }
    arena_release(&arena);
}

static void test_size(size_t n, double distance, double error, double estimate)
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
        is_near(figures[k], want[k], 5e-3 * want[k], names[k]);
out:
    arena_release(&arena);
}

int main(void)
{
    struct err err = {0};

    if (gemm_init(&err)) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }
    test_size(60, 0.0021155, 0.052001, 0.052639);
    test_size(120, 0.025994, 0.038403, 0.053485);
    test_size(500, 0.038647, 0.026116, 0.05332);
    return tap_done();
}
