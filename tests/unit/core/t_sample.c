/* SPDX-License-Identifier: MIT */
#include "core/sample.h"

#include "base/rng.h"
#include "base/stats.h"
#include "tests/tap.h"

#define N_MAX 40u

/* Makes reference cases with random times, mixed with other samples; some have
 * no time. Stores the times in ms[n] and returns the number of samples. */
static size_t scatter(struct sample *samples, double *ms, size_t n,
                      struct rng *rng)
{
    size_t n_samples = 0;

    for (size_t i = 0; i < n && n_samples < 20 * N_MAX; n_samples++) {
        struct sample *sample = &samples[n_samples];
        bool has_time = rng_below(rng, 4);

        *sample = (struct sample){
            .kind = (enum sample_kind)rng_draw(rng, SAMPLE_SENTINEL + 1),
            .total.median_ms = has_time ? 1 + rng_uniform(rng) : 0};
        if (has_time && sample->kind == SAMPLE_SENTINEL)
            ms[i++] = sample->total.median_ms;
    }
    return n_samples;
}

static void check_sentinels(void)
{
    struct sample samples[20 * N_MAX];
    double ms[N_MAX], worst = 0;
    size_t n_wrong = 0;
    struct rng rng;

    rng_init(&rng, 3, 0);
    for (size_t n = 0; n < N_MAX; n++) {
        size_t n_samples = scatter(samples, ms, n, &rng);
        struct sentinels got = sample_sentinels(samples, n_samples);
        double drift =
            stats_median(ms + n / 2, n - n / 2) / stats_median(ms, n / 2);
        double spread =
            (stats_quantile(ms, n, 0.9) - stats_quantile(ms, n, 0.1)) /
            stats_median(ms, n);

        n_wrong += got.n != n || isnan(got.drift_frac) != (n < 2) ||
                   isnan(got.spread_frac) != (n < 2);
        if (n < 2)
            continue;
        worst = tap_worst(worst, fabs(got.drift_frac - (drift - 1)));
        worst = tap_worst(worst, fabs(got.spread_frac - spread));
    }
    is_i64((int64_t)n_wrong, 0, "sentinels that tell a time count");
    is_near(worst, 0, 1e-12, "drift and spread are theirs alone");
}

/* Samples of a disturbed machine are counted. Their times and the times of
 * other samples have a spread each. */
static void test_disturbed(void)
{
    struct sample samples[5] = {{.flags = 0}};
    struct disturbed_samples disturbed = sample_disturbed(samples, 0);

    ok(!disturbed.n_left_out && !disturbed.n_used &&
           isnan(disturbed.spread_frac) && isnan(disturbed.others_spread_frac),
       "no samples");
    for (unsigned i = 0; i < 5; i++)
        samples[i].total =
            (struct timing){.median_ms = 2, .p10_ms = 1, .p90_ms = 3 + i};
    samples[1].flags = samples[2].flags = SAMPLE_THROTTLED;
    samples[4].flags = SAMPLE_ACCEPTED;
    disturbed = sample_disturbed(samples, 5);
    ok(disturbed.n_left_out == 2 && disturbed.n_used == 1, "both are counted");
    is_near(disturbed.spread_frac, 2, 1e-12, "median of 1.5, 2 and 3");
    is_near(disturbed.others_spread_frac, 1.75, 1e-12, "median of 1 and 2.5");
}

int main(void)
{
    check_sentinels();
    test_disturbed();
    return tap_done();
}
