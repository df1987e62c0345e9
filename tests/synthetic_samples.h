/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_SYNTHETIC_SAMPLES_H
#define NEUROSHARD_TESTS_SYNTHETIC_SAMPLES_H

/* Samples of a machine with a known cost function: a launch of 0.2 ms, bytes
 * over a bandwidth, and 30 % off if tables are fused. For tests of training and
 * of commands that use its models. Include in one file only. */

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "core/rank_law.h"
#include "core/sample.h"

static const struct sample_setting synthetic_setting = {
    .device = "cpu:imaginary",
    .n_threads = 2,
    .precision = PRECISION_FP32,
    .optimizer = OPTIMIZER_ROWWISE_ADAGRAD,
    .batch = 4096,
    .isa = "avx512",
    .driver = "Linux 6.1.0",
    .host = "box",
};

static double synthetic_ms(const struct sample_table *tables, uint32_t n)
{
    double bytes = 0;

    for (uint32_t i = 0; i < n; i++)
        bytes += tables[i].pooling_factor * synthetic_setting.batch *
                 tables[i].dim * 4;
    return 0.2 + (n > 1 ? 0.7 : 1) * bytes / 20e6;
}

static void synthetic_table(struct sample_table *table, struct rng *rng)
{
    struct table shape;
    double lookups;

    table_init(&shape);
    shape.num_embeddings = 1000 + rng_below(rng, 1000000);
    shape.zipf_alpha = 1.3 * rng_uniform(rng);
    table->n_rows = shape.num_embeddings;
    table->dim = 4u << rng_below(rng, 6);
    table->pooling_factor = 1 + (double)rng_below(rng, 30);
    table->zipf_alpha = shape.zipf_alpha;
    lookups = table->pooling_factor * synthetic_setting.batch;
    table->n_unique = table_reuse(&shape, lookups, table->bins);
}

static struct sample synthetic_sample(enum sample_kind kind, uint64_t case_idx,
                                      uint32_t part,
                                      struct sample_table *tables, uint32_t n)
{
    struct sample sample = {.setting = &synthetic_setting,
                            .kind = kind,
                            .seed = 1,
                            .case_idx = case_idx,
                            .part = part,
                            .tables = tables,
                            .n_tables = n,
                            .n_iterations = 20,
                            .version = "0.1.0",
                            .started_at = case_idx < 200
                                              ? "2026-11-20T10:00:00Z"
                                              : "2026-11-21T10:00:00Z"};

    sample.total.median_ms = synthetic_ms(tables, n);
    return sample;
}

/* Makes n_cases fused cases of 1 to 8 tables, each followed by its single
 * tables. Every fourth case is repeated 2 % slower, and every tenth is followed
 * by the reference case. Stores the number of samples in *n. */
__attribute__((unused)) static struct sample *
synthetic_samples(size_t *n, size_t n_cases, uint64_t seed, struct arena *arena)
{
    struct sample *samples = ARENA_NEW(arena, struct sample, 12 * n_cases);
    struct sample_table *sentinel = ARENA_NEW(arena, struct sample_table, 1);
    struct rng rng;

    *n = 0;
    rng_init(&rng, seed, 0);
    synthetic_table(sentinel, &rng);
    for (size_t c = 0; c < n_cases; c++) {
        uint32_t n_tables = 1 + (uint32_t)rng_below(&rng, 8);
        struct sample_table *tables =
            ARENA_NEW(arena, struct sample_table, n_tables);

        for (uint32_t t = 0; t < n_tables; t++)
            synthetic_table(&tables[t], &rng);
        samples[(*n)++] =
            synthetic_sample(SAMPLE_FUSED, c, 0, tables, n_tables);
        for (uint32_t t = 0; t < n_tables; t++)
            samples[(*n)++] =
                synthetic_sample(SAMPLE_SINGLE, c, t + 1, &tables[t], 1);
        if (c % 4 == 0) {
            samples[*n] =
                synthetic_sample(SAMPLE_REPEAT, c, 0, tables, n_tables);
            samples[(*n)++].total.median_ms *= 1.02;
        }
        if (c % 10 == 0)
            samples[(*n)++] =
                synthetic_sample(SAMPLE_SENTINEL, c, 0, sentinel, 1);
    }
    return samples;
}

#endif
