/* SPDX-License-Identifier: MIT */
#include "costmodel/dataset.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"

enum split sample_split(const struct sample *sample)
{
    switch (sample->case_idx % 10) {
    case 8:
        return SPLIT_VALIDATION;
    case 9:
        return SPLIT_HELD_OUT;
    default:
        return SPLIT_TRAIN;
    }
}

bool sample_trains(const struct sample *sample)
{
    return (sample->kind == SAMPLE_FUSED || sample->kind == SAMPLE_SINGLE ||
            sample->kind == SAMPLE_EXECUTED) &&
           sample->n_tables > 0 && isfinite(sample->total.median_ms) &&
           sample->total.median_ms > 0 && !(sample->flags & SAMPLE_THROTTLED);
}

/* Distinct rows of features while they are collected: open addressing over
 * slots[n_slots], a power of two, 0 = free, else index + 1. */
struct row_index {
    size_t n_features, n_rows, capacity;
    double *x;       /* [capacity][n_features] */
    uint32_t *slots; /* [n_slots] */
    size_t n_slots;
};

/* Index of the row with these features, added where it is new. */
static uint32_t find_row(struct row_index *index, const double *x)
{
    const size_t n = index->n_features;
    size_t at = hash_bytes(x, n * sizeof(*x), 0) & (index->n_slots - 1);

    for (; index->slots[at]; at = (at + 1) & (index->n_slots - 1))
        if (!memcmp(index->x + (index->slots[at] - 1) * n, x, n * sizeof(*x)))
            return index->slots[at] - 1;
    if (index->n_rows == index->capacity) {
        index->capacity *= 2;
        index->x = mem_grow(index->x, index->capacity, n * sizeof(*x));
    }
    memcpy(index->x + index->n_rows * n, x, n * sizeof(*x));
    index->slots[at] = (uint32_t)++index->n_rows;
    return index->slots[at] - 1;
}

void dataset_init(struct dataset *dataset, const struct feature_set *features,
                  const struct sample_setting *setting,
                  const struct sample *samples, size_t n,
                  bool (*keep)(const struct sample *sample),
                  struct arena *arena)
{
    double x[MAX_FEATURES];
    struct feature_input input;
    struct row_index index = {
        .n_features = features->n, .capacity = 1024, .n_slots = 16};
    size_t n_kept = 0, n_tables = 0;

    memset(dataset, 0, sizeof(*dataset));
    dataset->features = *features;
    for (size_t i = 0; i < n; i++)
        if (keep(&samples[i])) {
            n_kept++;
            n_tables += samples[i].n_tables;
        }
    while (index.n_slots < 2 * n_tables)
        index.n_slots *= 2;
    index.slots = mem_alloc(index.n_slots, sizeof(*index.slots));
    index.x = mem_grow(NULL, index.capacity, features->n * sizeof(*index.x));
    dataset->samples = ARENA_NEW(arena, const struct sample *, n_kept);
    dataset->ms = ARENA_NEW(arena, double, n_kept);
    dataset->first = ARENA_NEW(arena, uint32_t, n_kept + 1);
    dataset->row = ARENA_NEW(arena, uint32_t, n_tables);
    for (size_t i = 0, k = 0; i < n; i++) {
        if (!keep(&samples[i]))
            continue;
        for (uint32_t j = 0; j < samples[i].n_tables; j++) {
            feature_input_of_sample(&input, setting, &samples[i].tables[j]);
            feature_set_fill(features, &input, x);
            dataset->row[k++] = find_row(&index, x);
        }
        dataset->samples[dataset->n_samples] = &samples[i];
        dataset->ms[dataset->n_samples] = samples[i].total.median_ms;
        dataset->first[++dataset->n_samples] = (uint32_t)k;
    }
    dataset->n_rows = index.n_rows;
    dataset->x = ARENA_NEW(arena, double, index.n_rows * features->n);
    memcpy(dataset->x, index.x, index.n_rows * features->n * sizeof(*index.x));
    mem_free(index.x);
    mem_free(index.slots);
}

static size_t most_tables(const struct dataset *dataset)
{
    size_t most = 1;

    for (size_t i = 0; i < dataset->n_samples; i++)
        if (most < dataset->first[i + 1] - dataset->first[i])
            most = dataset->first[i + 1] - dataset->first[i];
    return most;
}

void batch_builder_init(struct batch_builder *builder,
                        const struct dataset *dataset, const float *x,
                        size_t max_samples, struct arena *arena)
{
    const size_t max_entries = max_samples * most_tables(dataset);

    memset(builder, 0, sizeof(*builder));
    builder->dataset = dataset;
    builder->x = x;
    builder->max_samples = max_samples;
    builder->max_rows =
        max_entries < dataset->n_rows ? max_entries : dataset->n_rows;
    builder->slot = ARENA_NEW(arena, uint32_t, dataset->n_rows);
    builder->stamp = ARENA_NEW(arena, uint32_t, dataset->n_rows);
    builder->batch_x =
        ARENA_NEW(arena, float, builder->max_rows * dataset->features.n);
    builder->first = ARENA_NEW(arena, uint32_t, max_samples + 1);
    builder->row = ARENA_NEW(arena, uint32_t, max_entries);
    builder->ms = ARENA_NEW(arena, float, max_samples);
}

struct mlp_batch batch_build(struct batch_builder *builder,
                             const uint32_t *chosen, size_t n)
{
    const struct dataset *dataset = builder->dataset;
    const size_t n_features = dataset->features.n;
    uint32_t n_rows = 0, k = 0;

    builder->now++;
    for (size_t i = 0; i < n; i++) {
        builder->ms[i] = (float)dataset->ms[chosen[i]];
        for (uint32_t j = dataset->first[chosen[i]];
             j < dataset->first[chosen[i] + 1]; j++) {
            const uint32_t row = dataset->row[j];

            if (builder->stamp[row] != builder->now) {
                builder->stamp[row] = builder->now;
                builder->slot[row] = n_rows;
                memcpy(builder->batch_x + n_rows++ * n_features,
                       builder->x + row * n_features,
                       n_features * sizeof(float));
            }
            builder->row[k++] = builder->slot[row];
        }
        builder->first[i + 1] = k;
    }
    return (struct mlp_batch){.n_samples = n,
                              .n_rows = n_rows,
                              .x = builder->batch_x,
                              .first = builder->first,
                              .row = builder->row};
}

float *dataset_standardise(const struct dataset *dataset, const double *mean,
                           const double *std, struct arena *arena)
{
    const size_t n_features = dataset->features.n;
    float *x = ARENA_NEW(arena, float, dataset->n_rows *n_features);

    for (size_t i = 0; i < dataset->n_rows; i++)
        for (size_t f = 0; f < n_features; f++) {
            const size_t at = i * n_features + f;

            x[at] = (float)((dataset->x[at] - mean[f]) / std[f]);
        }
    return x;
}
