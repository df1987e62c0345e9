/* SPDX-License-Identifier: MIT */
/* Tests how long a machine warms up before the first sample counts. The clock,
 * the bench setup and the interference probe are replaced. */
#include "tests/unit/microbench/fake_bench.h"

#include "microbench/bench.h"
#include "microbench/bench_case.h"

/* Times of the reference case. Each of the first n_falling repetitions takes
 * `factor` times the previous one; later ones take as long as the last of
 * these. */
static struct {
    double factor, pass_ms; /* clock time that passes per repetition, in ms */
    unsigned n_falling;
} scene;
static unsigned n_measured, n_before_first;

int setup_measure(struct bench_setup *setup,
                  struct interference_probe *interference,
                  struct sample *sample, const struct bench_case *what,
                  uint64_t stream_seed, struct err *err)
{
    const unsigned n =
        n_measured < scene.n_falling ? n_measured : scene.n_falling;

    (void)setup, (void)interference, (void)what, (void)stream_seed, (void)err;
    sample->total.median_ms = 10 * pow(scene.factor, n);
    sample->started_at = "";
    now_ms += scene.pass_ms;
    n_measured++;
    return 0;
}

static int put(void *ctx, const struct sample_setting *setting,
               const struct sample *sample, struct err *err)
{
    (void)ctx, (void)setting, (void)sample, (void)err;
    if (!n_before_first)
        n_before_first = n_measured - 1;
    return 0;
}

static int has(void *ctx, const struct sample_setting *setting, uint64_t seed,
               uint64_t case_idx, enum sample_kind kind, uint32_t part)
{
    (void)ctx, (void)setting, (void)seed, (void)case_idx, (void)kind,
        (void)part;
    return 0;
}

int main(void)
{
    static const struct {
        const char *name;
        enum device_kind kind;
        double factor, pass_ms;
        unsigned n_falling, want;
        double limit_s;
    } cases[] = {
        {"steady from the start", DEVICE_CPU, 1, 1, 0, 6, 0},
        {"faster by 3 %", DEVICE_CPU, 0.97, 1, 1, 7, 0},
        {"faster by 1.5 %", DEVICE_CPU, 0.985, 1, 1, 6, 0},
        {"faster ten times", DEVICE_CPU, 0.97, 1, 10, 16, 0},
        {"faster for ever", DEVICE_CPU, 0.97, 600, 1000, 17, 0},
        {"for a tenth of the time", DEVICE_CPU, 0.97, 600, 1000, 4, 24},
        {"but not longer", DEVICE_CPU, 0.97, 600, 1000, 17, 200},
        {"a GPU raises its clocks", DEVICE_CUDA, 1, 20, 0, 25, 0},
        {"and is slow", DEVICE_CUDA, 1, 200, 0, 6, 0},
    };

    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        struct device *host = NULL, device;
        struct sample_sink sink = {.put = put, .has = has};
        struct bench_options options;
        struct bench_result result;
        struct err err = {0};

        if (device_open(&host, DEVICE_CPU, 0, 1, &err)) {
            printf("Bail out! %s\n", err.msg);
            return 1;
        }
        device = *host;
        device.kind = cases[c].kind;
        scene.factor = cases[c].factor;
        scene.pass_ms = cases[c].pass_ms;
        scene.n_falling = cases[c].n_falling;
        now_ms = 0;
        n_measured = n_before_first = 0;
        bench_options_init(&options);
        options.n_cases = 1;
        options.time_limit_s = cases[c].limit_s;
        ok(!bench_lookup(&result, &device, &options, &sink, &err), "%s%s",
           cases[c].name, err.msg);
        is_i64(n_before_first, cases[c].want, "measurements before the first");
        ok(cases[c].limit_s > 0 ? limit_ms == 1e3 * cases[c].limit_s
                                : isinf(limit_ms),
           "the interference probe knows the time limit");
        device_close(host);
    }
    return tap_done();
}
