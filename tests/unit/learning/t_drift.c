/* SPDX-License-Identifier: MIT */
/* Detection of drift on a simulated GPU, and the samples that count
 * afterwards. */
#include "costmodel/learning/drift.h"

#include "costmodel/learning/train.h"
#include "tests/few_gpus.h"
#include "tests/tap.h"

#define N 600
#define N_SEEN 300 /* samples of the first nights, some of them held out */
#define PER_NIGHT 20

/* Samples of a GPU that does not change, and a model trained on the first
 * ones. */
struct scene {
    /* setting of the samples, and a spare one */
    struct sample_setting settings[2];
    struct sample *samples; /* [N] */
    struct model model;
    struct arena *arena;
};

static void scene_init(struct scene *scene, double noise, struct arena *arena)
{
    struct train_options options;
    struct err err = {0};

    scene->arena = arena;
    scene->settings[0] = few_setting;
    scene->settings[0].host = "box";
    scene->settings[0].driver = "1";
    scene->settings[1] = scene->settings[0];
    scene->samples = few_samples('A', N, noise, 1, arena);
    for (unsigned i = 0; i < N; i++) {
        struct sample *sample = &scene->samples[i];
        const unsigned night = i / PER_NIGHT;

        sample->setting = &scene->settings[0];
        sample->seed = night;
        sample->started_at = arena_printf(arena, "2026-%02u-%02uT02:00:00Z",
                                          1 + night / 28, 1 + night % 28);
    }
    train_options_init(&options);
    options.kind = MODEL_ROOFLINE;
    if (train_fit(&scene->model, scene->samples, N_SEEN, &options, arena,
                  &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
}

static struct sample *copy(const struct scene *scene)
{
    struct sample *samples = ARENA_NEW(scene->arena, struct sample, N);

    memcpy(samples, scene->samples, N * sizeof(*samples));
    return samples;
}

/* Multiplies the times of all samples from index `from` on by `times`. */
static struct sample *slow(struct sample *samples, size_t from, double times)
{
    for (size_t i = from; i < N; i++)
        samples[i].total.median_ms *= times;
    return samples;
}

/* Checks that drift is seen at sample `at`, or not at all if at is N. */
static void sees(const struct scene *scene, struct sample *samples, size_t at,
                 const char *name)
{
    const size_t want = at < N ? N - at : N;
    struct drift drift;
    size_t n;

    drift_find(&drift, &scene->model, samples, N);
    ok((at < N) == drift.is_seen, "%s", name);
    is_str(drift.since, scene->samples[at < N ? at : 0].started_at, "since");
    n = drift_weigh(drift.since, samples, N);
    ok(n == want && strcmp(samples[0].started_at, drift.since) >= 0,
       "%zu samples count", n);
}

static void test_changes(const struct scene *scene)
{
    struct sample *samples;

    sees(scene, copy(scene), N, "nothing changes");
    sees(scene, slow(copy(scene), 400, 0.85), 400, "a faster driver");
    sees(scene, slow(copy(scene), 500, 1 / 0.9), 500, "a slower clock");
    sees(scene, slow(copy(scene), N - 20, 1.3), N - 20, "since one night");
    sees(scene, slow(slow(copy(scene), 360, 0.85), 480, 1.1), 480,
         "the last of two changes");
    sees(scene, slow(copy(scene), 450, 1.015), N, "less than counts");
    samples = slow(copy(scene), N - 5, 1.3);
    sees(scene, samples, N, "too few to tell");
    samples = copy(scene);
    for (size_t i = 0; i < N; i += 17)
        samples[i].total.median_ms *= 3;
    sees(scene, samples, N, "disturbed samples here and there");
    sees(scene, slow(samples, 400, 0.85), 400, "do not hide a change");
}

/* Changes of the samples that are not drift of the device. */
static void test_others(struct scene *scene)
{
    struct sample_setting *other = &scene->settings[1];
    struct sample *samples = slow(copy(scene), 400, 1.4);

    for (size_t i = 400; i < N; i++)
        samples[i].setting = other;
    other->host = "elsewhere";
    sees(scene, samples, N, "another host");
    other->host = "box";
    other->precision = PRECISION_FP16;
    sees(scene, samples, N, "another precision");
    other->precision = few_setting.precision;
    other->optimizer = OPTIMIZER_ADAM;
    sees(scene, samples, N, "another optimizer");
    other->optimizer = few_setting.optimizer;
    other->driver = "2";
    sees(scene, samples, 400, "another driver is one");
    samples = slow(copy(scene), 400, 1.4);
    for (size_t i = 400; i < N; i++)
        samples[i].flags = SAMPLE_THROTTLED;
    sees(scene, samples, N, "flagged samples tell nothing");
    samples = slow(copy(scene), 400, 1.4);
    for (size_t i = 400; i < N; i++)
        samples[i].kind = SAMPLE_SINGLE;
    sees(scene, samples, N, "single tables are no drift");
    samples = copy(scene);
    for (size_t i = 0; i < 200; i++)
        if (samples[i].case_idx % 10 != 9)
            samples[i].total.median_ms *= 1.5;
    sees(scene, samples, N,
         "samples that the model was trained on are no drift");
}

/* A model that was trained on samples after a drift. */
static void test_follower(const struct scene *scene)
{
    struct scene later = *scene;
    struct sample *samples = copy(scene);
    struct drift drift;

    later.model.training.measured_from = samples[160].started_at;
    for (size_t i = 0; i < 160; i++)
        samples[i].total.median_ms *= 2;
    samples[3].started_at = NULL;
    drift_find(&drift, &later.model, samples, N);
    ok(!drift.is_seen, "samples before the training data are no drift");
    is_i64((int64_t)drift_weigh(drift.since, samples, N), N - 160,
           "and does not count");
    drift_find(&drift, &later.model, samples, 0);
    ok(!drift.is_seen && !drift.classes[0].now.n, "no samples, no drift");
}

static void test_classes(const struct scene *scene)
{
    struct drift drift;
    const struct drift_class *classes = drift.classes;
    size_t n_then = 0, n_now = 0;
    double sum = 0;

    drift_find(&drift, &scene->model, slow(copy(scene), 400, 0.85), N);
    ok(classes[0].then.n == N_SEEN / 10 && classes[0].now.n == N - 400,
       "held-out samples then, all since the drift now");
    ok(classes[0].then.mape < 0.05, "then the model was good: %g",
       classes[0].then.mape);
    is_near(classes[0].now.mape, 1 / 0.85 - 1, 0.02,
            "now it predicts too much");
    is_near(classes[0].ratio, 0.85, 0.01, "by this ratio");
    for (unsigned c = 1; c < MAX_INTERVALS; c++) {
        is_str(classes[c].now.name, interval_classes[c], "a class");
        n_then += classes[c].then.n;
        n_now += classes[c].now.n;
        if (classes[c].now.n)
            sum += (double)classes[c].now.n * classes[c].now.mape;
    }
    ok(n_then == classes[0].then.n && n_now == classes[0].now.n &&
           classes[3].now.n && classes[7].now.n,
       "the classes are all samples");
    is_near(sum / (double)n_now, classes[0].now.mape, 1e-9,
            "with their errors");
    drift_find(&drift, &scene->model, copy(scene), N_SEEN);
    ok(!classes[0].now.n && isnan(classes[0].now.mape) &&
           isnan(classes[0].ratio),
       "nothing since");
}

/* Samples of one case, all measured after the model was trained. With 1 %
 * noise, samples are faster, exact and slower in turn. The last n_last samples
 * are slower by a factor. */
static void test_thresholds(const struct scene *scene)
{
    enum { N_ALIKE = 200 };
    static const struct {
        const char *name;
        unsigned n_last;
        double factor;
        bool is_drift;
    } cases[] = {
        {"3.5 % of half of the samples", 100, 1.035, true},
        {"3.5 % faster", 100, 1 / 1.035, true},
        {"2.5 % is weather", 100, 1.025, false},
        {"2.5 % faster, too", 100, 1 / 1.025, false},
        {"3.5 % of 12 samples", 12, 1.035, true},
        {"3.5 % of 9 samples are too few", 9, 1.035, false},
        {"7 outliers count as 3 usual errors each", 7, 20, false},
    };
    struct sample *samples = ARENA_NEW(scene->arena, struct sample, N_ALIKE);

    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        struct drift drift;

        for (unsigned i = 0; i < N_ALIKE; i++) {
            samples[i] = scene->samples[0];
            samples[i].started_at = arena_printf(
                scene->arena, "2027-01-01T%02u:%02u:00Z", i / 60, i % 60);
            samples[i].total.median_ms *= i % 3 == 0   ? 1 / 1.01
                                          : i % 3 == 1 ? 1
                                                       : 1.01;
            if (i >= N_ALIKE - cases[c].n_last)
                samples[i].total.median_ms *= cases[c].factor;
        }
        drift_find(&drift, &scene->model, samples, N_ALIKE);
        ok(drift.is_seen == cases[c].is_drift, "%s: %s", cases[c].name,
           cases[c].is_drift ? "a drift" : "no drift");
    }
}

/* The times hardly vary, as on a GPU with locked clocks, and the model predicts
 * them well. A large change is still drift, and a small one is still not. */
static void test_quiet(struct arena *arena)
{
    static const double noises[] = {0.003, 0};

    for (size_t i = 0; i < 2; i++) {
        struct scene scene;

        scene_init(&scene, noises[i], arena);
        sees(&scene, copy(&scene), N, "nothing changes");
        sees(&scene, slow(copy(&scene), 400, 0.85), 400, "a faster driver");
        sees(&scene, slow(copy(&scene), 500, 1 / 0.9), 500, "a slower clock");
        sees(&scene, slow(copy(&scene), 500, 1.04), 500, "4 %");
        sees(&scene, slow(copy(&scene), 500, 1.025), N, "2.5 %");
        sees(&scene, slow(copy(&scene), N - 20, 1.3), N - 20, "one night");
        sees(&scene, slow(copy(&scene), N - 5, 1.3), N, "too few to tell");
    }
}

int main(void)
{
    struct scene scene;
    struct arena arena = {0};

    scene_init(&scene, 0.04, &arena);
    test_changes(&scene);
    test_others(&scene);
    test_thresholds(&scene);
    test_follower(&scene);
    test_classes(&scene);
    test_quiet(&arena);
    arena_release(&arena);
    return tap_done();
}
