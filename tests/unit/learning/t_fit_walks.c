/* SPDX-License-Identifier: MIT */
/* Results of fits on random samples, to five digits: all-to-all curves and a
 * roofline. Folds, reweightings, knots, dampings and pulls affect these
 * results. A change of any of them changes a line here, so its author can judge
 * whether the new line is better. */
#include "base/rng.h"
#include "costmodel/formulas/comm_curves.h"
#include "costmodel/learning/comm_fit.h"
#include "costmodel/learning/dataset.h"
#include "costmodel/learning/roofline_fit.h"
#include "costmodel/modelfile/gpu_file.h"
#include "tests/rng_normal.h"
#include "tests/tap.h"
#include "tests/unit/learning/estimated_samples.h"

#include <math.h>

static struct arena arena;
static struct err err;

/* Kind of exchange, number of samples and of rank groups, and noise. */
struct scene {
    const char *kind;
    uint32_t n_samples, n_groups;
    /* beyond bend_bytes a byte takes twice as long; 0: no bend */
    double noise, bend_bytes;
    bool by_port;
};

static const struct scene scenes[] = {
    {"copy", 8, 1, 0.1, 0, false},       {"copy", 40, 1, 0.05, 1 << 20, false},
    {"copy", 120, 1, 0.3, 0, false},     {"nccl", 60, 1, 0.1, 1 << 18, true},
    {"nccl", 60, 1, 0.1, 0, false},      {"mpi", 120, 3, 0.1, 1 << 22, false},
    {"shm", 24, 2, 0.02, 0, true},       {"nccl", 160, 2, 0.02, 1 << 16, true},
    {"copy", 3, 1, 0.1, 0, false},       {"copy", 19, 1, 0.3, 1 << 20, true},
    {"copy", 20, 1, 0.3, 1 << 20, true},
};

static size_t draw(struct comm_sample *samples, const struct scene *scene,
                   uint64_t seed)
{
    struct rng rng;

    rng_init(&rng, seed, 3);
    for (uint32_t i = 0; i < scene->n_samples; i++) {
        const uint32_t n_ranks = 2u << i % scene->n_groups;
        const double total = floor(4096 * pow(2, 14 * rng_uniform(&rng)));
        const double port = ceil(
            total / n_ranks * (1 + (n_ranks - 1) * pow(rng_uniform(&rng), 2)));
        const double decides = scene->by_port ? port * n_ranks : total;
        double us = 20 + 2 * n_ranks + decides / 8e3;

        if (scene->bend_bytes > 0 && decides > scene->bend_bytes)
            us += (decides - scene->bend_bytes) / 8e3;
        samples[i] = (struct comm_sample){
            .kind = scene->kind,
            .n_ranks = n_ranks,
            .n_hosts = 1,
            .total_bytes = (uint64_t)total,
            .max_bytes = (uint64_t)port,
            .time.median_ms = us / 1000 * exp(scene->noise * rng_normal(&rng))};
    }
    return scene->n_samples;
}

static const char *comm_walk(const struct scene *scene, uint64_t seed)
{
    struct comm_sample *samples =
        ARENA_NEW(&arena, struct comm_sample, scene->n_samples);
    const size_t n = draw(samples, scene, seed);
    const struct cluster cluster = {.n_devices = 16, .devices_per_host = 8};
    struct comm_errors errors;
    struct comm_curves fit;
    struct comm_model model = {0};
    const char *text;

    if (!comm_fit_samples(&fit, samples, n, &arena))
        return "nothing to fit";
    text = fit.rules.form == COMM_PORT ? "port" : "total";
    for (uint32_t c = 0; c < fit.n_curves; c++)
        text = arena_printf(&arena, "%s, %u ranks %u knots %.5g %.5g %.5g",
                            text, fit.curves[c].n_ranks, fit.curves[c].n_knots,
                            comm_curve_us(&fit.curves[c], 0),
                            comm_curve_us(&fit.curves[c], 1 << 18),
                            comm_curve_gbps(&fit.curves[c]));
    comm_fit_validate(&errors, samples, n, &samples[0]);
    text = arena_printf(&arena, "%s; off %zu %.5g %.5g, %zu %.5g %.5g", text,
                        errors.n, errors.median_frac, errors.p90_frac,
                        errors.n_uneven, errors.uneven_median_frac,
                        errors.uneven_p90_frac);
    return arena_printf(&arena, "%s; applies %d", text,
                        comm_curves_apply(&fit, &cluster, &arena, &model));
}

/* Fits a roofline to noisy samples of a GPU that is slower than its figures.
 * Returns the fitted values as text. */
static const char *roofline_walk(const struct gpu_spec *figures, size_t n,
                                 double noise)
{
    const double slower[N_SLOWED] = {2, 3, 1.5, 1.2, 2};
    const struct gpu_spec slow = gpu_spec_slowed(figures, slower);
    struct sample *samples = estimated_samples(&slow, n, &arena);
    struct estimate estimate = {.gpu = *figures};
    struct feature_set features;
    struct dataset dataset;
    struct rng rng;
    double off;

    rng_init(&rng, 9, n);
    for (size_t i = 0; i < n; i++)
        samples[i].total.median_ms *= exp(noise * rng_normal(&rng));
    feature_set_init(&features, FEATURES_STANDARD);
    feature_set_init(&estimate.totals, TOTALS_ALL);
    dataset_init(&dataset, &features, &estimate, samples, n, sample_trains,
                 &arena);
    off = roofline_fit(&estimate, dataset.sums, dataset.ms, dataset.n_samples);
    return arena_printf(&arena,
                        "off %.4g: launch %.4g, rows %.4g, memory %.4g, hot "
                        "rows %.4g, power %.3g",
                        off, estimate.gpu.launch_us, estimate.gpu.row_cycles,
                        estimate.gpu.dram_gbps, estimate.gpu.hot_rows,
                        estimate.totals.items[0].power);
}

static const char *const want[] = {
    "total, 2 ranks 2 knots 23.396 54.573 8.4084; off 8 0.10672 0.15143"
    ", 7 0.10609 0.15436; applies 1",
    "total, 2 ranks 2 knots 21.511 54.015 8.065; off 8 0.087438 0.15475"
    ", 7 0.070791 0.16356; applies 1",
    "total, 2 ranks 6 knots 24.851 58.46 4.1587; off 40 0.041295 0.0989"
    "14, 31 0.038357 0.098174; applies 1",
    "total, 2 ranks 6 knots 23.314 54.749 4.2615; off 40 0.041411 0.103"
    "42, 35 0.042196 0.10873; applies 1",
    "total, 2 ranks 2 knots 23.276 53.754 8.601; off 120 0.19894 0.4655"
    "1, 86 0.20828 0.48519; applies 1",
    "total, 2 ranks 2 knots 21.035 49.644 9.1631; off 120 0.19167 0.452"
    "06, 95 0.18647 0.4471; applies 1",
    "port, 2 ranks 6 knots 25.503 257.77 1.0363; off 60 0.070864 0.2020"
    "4, 45 0.063622 0.19949; applies 1",
    "total, 2 ranks 2 knots 24.159 56.81 8.0287; off 60 0.069826 0.1849"
    "6, 45 0.069557 0.19081; applies 1",
    "total, 2 ranks 12 knots 21.079 58.764 3.9776, 4 ranks 9 knots 30.1"
    "21 66.727 3.5087, 8 ranks 12 knots 39.154 70.826 4.7885; off 40 0."
    "11588 0.28741, 29 0.11104 0.22291; applies 1",
    "port, 2 ranks 2 knots 24.288 154.46 2.0139, 4 ranks 2 knots 27.793"
    " 202.09 1.504; off 12 0.059896 0.21366, 9 0.02716 0.21437; applies"
    " 1",
    "port, 2 ranks 9 knots 23.876 275.49 1.0306, 4 ranks 9 knots 27.157"
    " 368.92 0.73187; off 80 0.011519 0.037078, 53 0.012739 0.04124; ap"
    "plies 1",
    "total, 2 ranks 2 knots 22.529 53.812 8.3797; off 0 nan nan, 0 nan "
    "nan; applies 1",
    "total, 2 ranks 2 knots 16.567 76.959 4.3407; off 19 0.15481 0.5891"
    "4, 13 0.26149 0.54057; applies 1",
    "port, 2 ranks 2 knots 15.597 236.81 1.185; off 20 0.15096 0.58626,"
    " 14 0.2185 0.52008; applies 1",
    "off 0.004419: launch 4.631, rows 17.98, memory 1774, hot rows 0, p"
    "ower 0.000951",
    "off 0.007932: launch 3.383, rows 17.15, memory 2832, hot rows 3.16"
    "2, power -0.0179",
};
static size_t n_got;

static void is_next(const char *got, const char *name)
{
    const size_t i = n_got++;

    if (!(i < sizeof(want) / sizeof(*want) ? is_str(got, want[i], name)
                                           : ok(0, "%s", name)))
        printf("---\n%s---\n", got);
}

int main(void)
{
    const struct gpu_spec *h100;

    for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++)
        for (uint64_t seed = 0; seed < 1 + (i < 3); seed++)
            is_next(comm_walk(&scenes[i], seed), "all-to-alls");
    if (gpu_spec_get(&h100, "h100", &arena, &err)) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }
    is_next(roofline_walk(h100, 5, 0.05), "five samples");
    is_next(roofline_walk(h100, 16, 0.2), "sixteen noisy ones");
    arena_release(&arena);
    return tap_done();
}
