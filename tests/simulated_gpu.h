/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_SIMULATED_GPU_H
#define NEUROSHARD_TESTS_SIMULATED_GPU_H

/* Samples of a simulated GPU over many settings. Times follow the floor
 * formulas of embedding kernels: bytes over bandwidths, a cache that holds a
 * part of the rows, a cost per row, a sort whose number of passes depends on
 * the device's total number of rows, and launches. For training models as on a
 * real GPU. Include in one file only. */

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "core/rank_law.h"
#include "core/sample.h"

#define SIM_BATCHES 7 /* 65,536 down to 1,024 samples */
#define SIM_SETTINGS (SIM_BATCHES * 4)

/* Constants of the imaginary GPU, in bytes per ms unless the name has a
 * unit. */
#define SIM_DRAM 4.3e9
#define SIM_L2 5.5e9
#define SIM_SORT 3.0e9
#define SIM_L2_BYTES 30e6
#define SIM_ROWS 2.0e7 /* rows issued per ms */
#define SIM_LAUNCH_MS 0.003

/* Fills in all settings. The first is that of the published benchmark (batch
 * 65,536, fp32, SGD). */
static void simulated_settings(struct sample_setting settings[SIM_SETTINGS])
{
    for (uint32_t i = 0; i < SIM_SETTINGS; i++)
        settings[i] = (struct sample_setting){
            .device = "cuda:imaginary",
            .isa = "sm_00",
            .precision = i & 1 ? PRECISION_FP16 : PRECISION_FP32,
            .optimizer = i & 2 ? OPTIMIZER_ROWWISE_ADAGRAD : OPTIMIZER_SGD,
            .batch = 65536u >> (i / 4)};
}

static double simulated_log_uniform(struct rng *rng, double lo, double hi)
{
    return lo * pow(hi / lo, rng_uniform(rng));
}

static void simulated_table(struct sample_table *table, bool published,
                            uint32_t batch, struct rng *rng)
{
    struct table shape;

    table_init(&shape);
    shape.num_embeddings = (uint64_t)simulated_log_uniform(rng, 10, 2e7);
    shape.zipf_alpha =
        rng_uniform(rng) < 0.2 ? 0 : 0.6 + 0.8 * rng_uniform(rng);
    table->n_rows = shape.num_embeddings;
    table->dim = published ? 4u << rng_below(rng, 6)
                           : 4u * (uint32_t)simulated_log_uniform(rng, 1, 129);
    table->pooling_factor =
        rng_uniform(rng) < 0.3 ? 1 : simulated_log_uniform(rng, 1, 200);
    table->zipf_alpha = shape.zipf_alpha;
    table->n_unique =
        table_reuse(&shape, table->pooling_factor * batch, table->bins);
}

/* Sums over the tables of a device. */
struct simulated_sums {
    double rows, lookups, unique, bags, gather, unique_bytes, output, hot;
    double row_cost, hot_gather;
};

static struct simulated_sums simulated_add(const struct sample_setting *setting,
                                           const struct sample_table *tables,
                                           uint32_t n)
{
    struct simulated_sums sums = {0};

    for (uint32_t i = 0; i < n; i++) {
        const struct sample_table *table = &tables[i];
        const double lookups = table->pooling_factor * setting->batch;
        const double width = table->dim * precision_bytes(setting->precision);
        const double row = 32 * ceil(fmax(width, 64) / 32);
        double hot = 0, all = 0;

        for (unsigned k = 0; k < REUSE_BINS; k++) {
            all += table->bins[k] * reuse_bin_count(k);
            hot += k > 5 ? table->bins[k] * reuse_bin_count(k) : 0;
        }
        hot = all > 0 ? hot / all : 0;
        sums.rows += (double)table->n_rows;
        sums.lookups += lookups;
        sums.unique += table->n_unique;
        sums.bags += setting->batch;
        sums.gather += lookups * row;
        sums.hot_gather += hot * lookups * row;
        sums.unique_bytes += table->n_unique * row;
        sums.output += 4.0 * setting->batch * table->dim;
        sums.hot += hot * lookups;
        sums.row_cost += lookups * (0.5 + ceil(width / 512) +
                                    (table->pooling_factor < 8 ? 0.7 : 0));
    }
    return sums;
}

static double simulated_ms(const struct sample_setting *setting,
                           const struct sample_table *tables, uint32_t n)
{
    const struct simulated_sums s = simulated_add(setting, tables, n);
    const double adagrad = setting->optimizer != OPTIMIZER_SGD;
    const double key = s.rows < 4294967296.0 ? 4 : 8;
    const double passes = ceil(ceil(log2(s.rows + 1)) / 8);
    const double fit = fmin(1, SIM_L2_BYTES / (s.unique_bytes + 1));
    const double cold =
        fmin(s.gather,
             s.unique_bytes +
                 (1 - fit) * fmax(0, s.gather - s.hot_gather - s.unique_bytes));
    double forward, linearise, sort, reduce, update;

    forward =
        fmax(fmax((4 * s.lookups + 4 * s.bags + cold + s.output) / SIM_DRAM,
                  (4 * s.lookups + 4 * s.bags + s.gather + s.output) / SIM_L2),
             s.row_cost / SIM_ROWS);
    linearise = (s.lookups * (4 + 2 * key + 4) + 8 * s.unique) / SIM_DRAM;
    sort = (s.lookups * key + 2 * passes * s.lookups * (key + 4)) / SIM_SORT;
    reduce =
        fmax(s.output / SIM_DRAM,
             s.gather / SIM_L2 * (4.0 / precision_bytes(setting->precision))) +
        s.hot * 0.4 / SIM_ROWS;
    update = (2 * s.unique_bytes + adagrad * 64 * s.unique) / SIM_DRAM;
    return forward + linearise + sort +
           fmax(reduce, 0.6 * s.row_cost / SIM_ROWS) + update +
           (10 + 2 * passes) * SIM_LAUNCH_MS + 0.0004 * n;
}

/* Draws n fused cases. Two of five have the published setting with its 1 to 15
 * tables of dims 4 to 128. The others have any setting and 1 to 60 tables.
 * Times have relative noise `noise` (1 sigma, a fraction). */
__attribute__((unused)) static struct sample *
simulated_samples(size_t n, double noise, uint64_t seed, struct arena *arena)
{
    struct sample_setting *settings =
        ARENA_NEW(arena, struct sample_setting, SIM_SETTINGS);
    struct sample *samples = ARENA_NEW(arena, struct sample, n);
    struct rng rng;

    simulated_settings(settings);
    rng_init(&rng, seed, 0);
    for (size_t i = 0; i < n; i++) {
        struct sample *sample = &samples[i];
        const bool published = rng_below(&rng, 5) < 2;
        double sum = -6;

        sample->setting =
            &settings[published ? 0 : rng_below(&rng, SIM_SETTINGS)];
        sample->kind = SAMPLE_FUSED;
        sample->case_idx = i;
        sample->n_tables = 1 + (uint32_t)rng_below(&rng, published ? 15 : 60);
        sample->tables =
            ARENA_NEW(arena, struct sample_table, sample->n_tables);
        for (uint32_t t = 0; t < sample->n_tables; t++)
            simulated_table(&sample->tables[t], published,
                            sample->setting->batch, &rng);
        for (int k = 0; k < 12; k++)
            sum += rng_uniform(&rng);
        sample->total.median_ms =
            (1 + noise * sum) *
            simulated_ms(sample->setting, sample->tables, sample->n_tables);
        sample->version = "";
        sample->started_at = "";
    }
    return samples;
}

#endif
