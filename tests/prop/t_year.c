/* SPDX-License-Identifier: MIT */
/* A year of nights. Each night some cases are measured on a simulated GPU
 * (tests/few_gpus.h), and a model is retrained as `retrain` does it. The noise
 * is 3 to 5 %, drawn per night. One sample of fifty is disturbed and not
 * flagged, and so is one night of a hundred. A driver makes all times 15 %
 * faster, a clock drops by 10 % and recovers, and another driver is slower. The
 * models are judged by the simulated GPU of that night, without noise.
 *
 * The quick run is a year of 73 nights. The full run is 365 nights, both GPUs,
 * three seeds, and nets. Results of the full run that set constants:
 *
 *   - A model is replaced if it gains three standard errors. With two, one of
 *     some seventy replacements was worse by 5 %.
 *   - Samples from before a drift do not count at all, also for later models.
 *     Otherwise the next night goes back to the old state of the device.
 *   - Drift is a change of at least 3 % and 6 standard errors.
 */
#include "base/stats.h"
#include "costmodel/learning/choose.h"
#include "costmodel/learning/drift.h"
#include "costmodel/learning/evaluate.h"
#include "costmodel/modelfile/model_file.h"
#include "device/gemm.h"
#include "tests/few_gpus.h"
#include "tests/predict_samples.h"
#include "tests/tap.h"

#define MOST_CASES 1500
#define N_JUDGES 100 /* the first cases, which are never measured */
#define N_FIRST 200  /* samples of the first model */

/* States of the GPU over the year. Parts of the time that depend on the clock
 * take 1 / clock times as long. */
static const struct state {
    double from; /* share of the year */
    double driver, clock;
} states[] = {
    {0, 1, 1},       {0.22, 0.85, 1}, {0.47, 0.85, 0.9},
    {0.71, 0.85, 1}, {0.85, 0.95, 1},
};
#define N_STATES (sizeof(states) / sizeof(*states))

/* All cases: their tables, the sums of their features, and the share of the
 * largest table. */
struct gpu {
    char name;
    size_t n;
    struct sample cases[MOST_CASES];
    double sums[MOST_CASES][FEW_LANES], shares[MOST_CASES];
};

struct year {
    const struct gpu *gpu;
    bool drifts, has_nets;
    unsigned n_nights, per_night;
    struct sample *samples; /* [n], so far */
    size_t n;
    struct model *use;   /* model in use */
    struct model *first; /* model of the first night */
    struct rng rng;
    struct arena *arena;
};

/* Result of a year. */
struct outcome {
    /* replacements, and those no better on the GPU itself */
    unsigned n_replaced, n_in_vain;
    /* largest ratio of errors after and before a replacement */
    double worst;
    /* sums of errors after the first drift, of the model in use and of the
     * first one */
    double use, never;
};

static double normal(struct rng *rng)
{
    double sum = -6;

    for (int k = 0; k < 12; k++)
        sum += rng_uniform(rng);
    return sum;
}

static void draw_case(struct gpu *gpu, size_t at, uint32_t most_tables,
                      struct rng *rng, struct arena *arena)
{
    struct sample *sample = &gpu->cases[at];

    *sample =
        (struct sample){.setting = &few_setting,
                        .kind = SAMPLE_FUSED,
                        .n_tables = 1 + (uint32_t)rng_below(rng, most_tables),
                        .version = ""};
    gpu->shares[at] =
        few_draw_tables(gpu->name, sample, rng, gpu->sums[at], arena);
}

static unsigned first_night(const struct year *year, size_t state)
{
    return (unsigned)(states[state].from * year->n_nights);
}

/* Returns the time of a case on the GPU as it is that night, in ms. */
static double truth(const struct year *year, unsigned night, size_t at)
{
    static const int clocked[] = {FEW_L2_US, FEW_ISSUE_US, FEW_GRADIENTS_US,
                                  FEW_HOT};
    double sums[FEW_LANES];
    size_t state = 0;

    while (year->drifts && state + 1 < N_STATES &&
           night >= first_night(year, state + 1))
        state++;
    memcpy(sums, year->gpu->sums[at], sizeof(sums));
    for (int k = 0; k < 4; k++)
        sums[clocked[k]] /= states[state].clock;
    return states[state].driver *
           few_ms(year->gpu->name, sums, year->gpu->shares[at]);
}

static void measure(struct year *year, unsigned night, unsigned n)
{
    const double noise = 0.03 + 0.02 * rng_uniform(&year->rng);
    const double disturbed = rng_below(&year->rng, 100) ? 1 : 1.3;
    const char *now = arena_printf(year->arena, "2026-%02u-%02uT02:00:00Z",
                                   1 + night / 31, 1 + night % 31);

    for (unsigned i = 0; i < n; i++) {
        const size_t at =
            N_JUDGES + rng_below(&year->rng, year->gpu->n - N_JUDGES);
        struct sample *sample = &year->samples[year->n++];

        *sample = year->gpu->cases[at];
        sample->seed = night;
        sample->case_idx = i;
        sample->started_at = now;
        sample->total.median_ms = truth(year, night, at) * disturbed *
                                  (1 + noise * normal(&year->rng));
        if (!rng_below(&year->rng, 50))
            sample->total.median_ms *= 1.2 + rng_uniform(&year->rng);
    }
}

static double error_of(const struct year *year, const struct model *model,
                       unsigned night)
{
    double says[N_JUDGES], sum = 0;

    predict_samples(model, year->gpu->cases, N_JUDGES, says);
    for (size_t i = 0; i < N_JUDGES; i++)
        sum += fabs(says[i] / truth(year, night, i) - 1);
    return sum / N_JUDGES;
}

static int learn(const struct year *year, struct model *model,
                 const struct sample *samples, size_t n, struct arena *arena)
{
    struct train_options options;
    struct err err = {0};
    int rc;

    train_options_init(&options);
    options.kind = MODEL_ROOFLINE;
    options.epochs = 20;
    rc = (year->has_nets ? train_choose : train_fit)(model, samples, n,
                                                     &options, arena, &err);
    if (rc)
        ok(0, "training: %s", err.msg);
    return rc;
}

/* Retrains with the defaults of `retrain`. Returns the new model, in the arena,
 * or NULL. */
static struct model *retrain(const struct year *year, struct arena *arena)
{
    const struct least_gain least = {3, true};
    struct sample *samples = ARENA_NEW(arena, struct sample, year->n);
    struct model *model = ARENA_NEW(arena, struct model, 1);
    struct paired paired;
    struct drift drift;
    double needed;
    size_t n;

    memcpy(samples, year->samples, year->n * sizeof(*samples));
    drift_find(&drift, year->use, samples, year->n);
    n = drift_weigh(drift.since, samples, year->n);
    if (evaluate_n_held_out(samples, n) < EVALUATE_MIN_HELD_OUT ||
        learn(year, model, samples, n, arena))
        return NULL;
    evaluate_pair(&paired, year->use, model, samples, n);
    return paired_suffices(&paired, &least, &needed) ? model : NULL;
}

static void run_night(struct year *year, unsigned night,
                      struct outcome *outcome)
{
    const double before = error_of(year, year->use, night);
    struct arena *arena = mem_alloc(1, sizeof(*arena));
    double after = before;
    struct model *model;

    measure(year, night, year->per_night);
    model = retrain(year, arena);
    if (model) {
        const char *data;
        size_t len;
        struct err err = {0};

        /* read back from its file format, as `retrain` does */
        model_to_bytes(model, &data, &len, year->arena);
        year->use = ARENA_NEW(year->arena, struct model, 1);
        if (model_parse(year->use, data, len, "model", year->arena, &err))
            ok(0, "%s", err.msg);
        after = error_of(year, year->use, night);
        outcome->n_replaced++;
        outcome->n_in_vain += after >= before;
        outcome->worst = fmax(outcome->worst, after / before);
        printf("#   night %u: %.2f %% instead of %.2f %%\n", night, 100 * after,
               100 * before);
    }
    if (year->drifts && night >= first_night(year, 1)) {
        outcome->use += after;
        outcome->never += error_of(year, year->first, night);
    }
    arena_release(arena);
    mem_free(arena);
}

static void test_year(const struct gpu *gpu, bool drifts, bool has_nets,
                      unsigned n_nights, unsigned per_night, uint64_t seed)
{
    struct outcome outcome = {0};
    struct arena arena = {0};
    struct year year = {.gpu = gpu,
                        .drifts = drifts,
                        .has_nets = has_nets,
                        .n_nights = n_nights,
                        .per_night = per_night,
                        .arena = &arena};

    rng_init(&year.rng, seed, 'Y');
    year.samples = ARENA_NEW(&arena, struct sample,
                             N_FIRST + (size_t)n_nights * per_night);
    measure(&year, 0, N_FIRST);
    year.first = year.use = ARENA_NEW(&arena, struct model, 1);
    printf("# %c, seed %d, %u nights of %u samples, %s, %s\n", gpu->name,
           (int)seed, n_nights, per_night, drifts ? "drifts" : "noise alone",
           has_nets ? "nets" : "a roofline");
    if (!learn(&year, year.use, year.samples, year.n, &arena))
        for (unsigned night = 1; night < n_nights; night++)
            run_night(&year, night, &outcome);
    ok(outcome.worst <= 1.02,
       "no replacement is worse by more than 2 %%: at most %.3f times the "
       "error",
       outcome.worst);
    ok(outcome.n_in_vain <= 3, "%u of %u replacements by noise alone",
       outcome.n_in_vain, outcome.n_replaced);
    if (drifts)
        ok(outcome.never > 0 && outcome.use <= 0.75 * outcome.never,
           "%.3f times the error of the first model in the mean after drifts",
           outcome.use / outcome.never);
    else
        ok(outcome.n_replaced <= 3, "which are few");
    arena_release(&arena);
}

static void test_gpu(char name, uint64_t seed, bool is_full)
{
    struct gpu *gpu = mem_alloc(1, sizeof(*gpu));
    struct arena arena = {0};
    struct rng rng;

    rng_init(&rng, seed, (uint64_t)name);
    gpu->name = name;
    for (; gpu->n < (is_full ? MOST_CASES : 400); gpu->n++)
        draw_case(gpu, gpu->n, is_full ? 15 : 4, &rng, &arena);
    for (int drifts = 0; drifts < 2; drifts++)
        test_year(gpu, drifts, false, is_full ? 365 : 73, is_full ? 20 : 30,
                  seed);
    if (is_full && name == 'B' && seed == 0)
        test_year(gpu, true, true, 73, 100, seed);
    arena_release(&arena);
    mem_free(gpu);
}

int main(void)
{
    const bool is_full = tap_size(0, 100) > 50;
    struct err err = {0};

    if (gemm_init(&err)) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }
    test_gpu('A', 0, is_full);
    for (uint64_t seed = 0; is_full && seed < 3; seed++) {
        test_gpu('B', seed, is_full);
        if (seed)
            test_gpu('A', seed, is_full);
    }
    return tap_done();
}
