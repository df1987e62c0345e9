/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_GOLDEN_TRAIN_H
#define NEUROSHARD_TESTS_GOLDEN_TRAIN_H

/* The 60,000 samples of a simulated GPU as struct sample. Sample i (from 1) is
 * fused case i, so that case % 10 gives the split that their README describes.
 * Include in one file only. */

#include <math.h>

#include "core/rank_law.h"
#include "core/sample.h"
#include "tests/golden.h"

static const struct sample_setting golden_setting = {
    .device = "simulated GPU",
    .precision = PRECISION_FP32,
    .optimizer = OPTIMIZER_SGD,
    .batch = 65536,
    .isa = "none",
};

static struct sample_table golden_sample_table(const struct table *table,
                                               uint32_t dim)
{
    const double lookups = table->pooling_factor * golden_setting.batch;
    struct sample_table out = {.n_rows = table->num_embeddings,
                               .dim = dim,
                               .pooling_factor = table->pooling_factor,
                               .zipf_alpha = NAN};

    out.n_unique = table_reuse(table, lookups, out.bins);
    return out;
}

/* Reads the first `max` samples and stores their number in *n. Bails out if the
 * file cannot be read. */
__attribute__((unused)) static struct sample *
golden_samples(size_t *n, size_t max, struct arena *arena)
{
    struct sample *samples = ARENA_NEW(arena, struct sample, max);
    const char *path = golden_path("golden/train_compute.txt.gz", arena);
    size_t n_pool;
    const struct table *pool = golden_tables(&n_pool, arena);
    FILE *pipe = popen(arena_printf(arena, "zcat '%s'", path), "r");
    char line[4096];

    *n = 0;
    while (pipe && *n < max && fgets(line, sizeof line, pipe)) {
        struct sample *sample = &samples[*n];
        struct sample_table tables[64];
        char *at = line;
        unsigned id, dim;
        int used;

        if (*line == '#')
            continue;
        sample->total.median_ms = strtod(line, &at);
        while (sample->n_tables < 64 &&
               sscanf(at, " %u:%u%n", &id, &dim, &used) == 2 && id < n_pool) {
            tables[sample->n_tables++] = golden_sample_table(&pool[id], dim);
            at += used;
        }
        sample->setting = &golden_setting;
        sample->kind = SAMPLE_FUSED;
        sample->case_idx = ++*n;
        sample->tables =
            ARENA_NEW(arena, struct sample_table, sample->n_tables);
        memcpy(sample->tables, tables, sample->n_tables * sizeof *tables);
        sample->version = "";
        sample->started_at = "";
    }
    if (pipe)
        pclose(pipe);
    if (!*n) {
        printf("Bail out! cannot read %s\n", path);
        exit(1);
    }
    return samples;
}

#endif
