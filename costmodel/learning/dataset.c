/* SPDX-License-Identifier: MIT */
#include "costmodel/learning/dataset.h"

#include "costmodel/learning/mlp_train.h"
#include "costmodel/modelfile/gpu_file.h"

#include <math.h>
#include <string.h>

/* Least time that a sample may have: one nanosecond. No lookup is faster, and
 * the limit keeps rates finite. */
#define LEAST_MS 1e-6
#define US_PER_MS 1000

enum split sample_split(const struct sample *sample)
{
    const uint64_t turn = sample->case_idx % 10;

    return turn == 9   ? SPLIT_HELD_OUT
           : turn == 8 ? SPLIT_VALIDATION
                       : SPLIT_TRAIN;
}

bool sample_trains(const struct sample *sample)
{
    return (sample->kind == SAMPLE_FUSED || sample->kind == SAMPLE_SINGLE ||
            sample->kind == SAMPLE_EXECUTED) &&
           sample->n_tables > 0 && isfinite(sample->total.median_ms) &&
           sample->total.median_ms >= LEAST_MS &&
           !(sample->flags & SAMPLE_THROTTLED);
}

bool sample_is_train(const struct sample *sample)
{
    return sample_trains(sample) && sample_split(sample) == SPLIT_TRAIN;
}

bool sample_is_known(const struct sample *sample)
{
    return sample_trains(sample) && sample_split(sample) != SPLIT_HELD_OUT;
}

static void add_ms(struct timing *timing, double ms)
{
    timing->median_ms = fmax(timing->median_ms + ms, 0);
    timing->p10_ms = fmax(timing->p10_ms + ms, 0);
    timing->p90_ms = fmax(timing->p90_ms + ms, 0);
}

int sample_leave_out_checks(struct sample *sample,
                            const struct sample_setting *setting,
                            struct arena *arena, struct err *err)
{
    const struct gpu_spec *spec = NULL;
    struct id_rates ids;
    double ms;

    if (strncmp(setting->device, "fbgemm:", strlen("fbgemm:")) == 0 &&
        gpu_spec_of_device(&spec, setting->device, arena, err))
        return -1;
    if (!spec)
        return 0;
    ids = gpu_spec_ids(spec, 1);
    ms = -1e-3 * ids.check.base_us;
    for (uint32_t t = 0; t < sample->n_tables; t++)
        ms -= 1e-6 * comm_id_work_ns(&ids.check, setting->batch,
                                     setting->batch *
                                         sample->tables[t].pooling_factor);
    add_ms(&sample->forward, ms);
    add_ms(&sample->total, ms);
    return 0;
}

void dataset_init(struct dataset *dataset, const struct feature_set *features,
                  const struct estimate *estimate, const struct sample *samples,
                  size_t n, bool (*keep)(const struct sample *sample),
                  struct arena *arena)
{
    const size_t width = estimate_width(estimate);
    size_t n_tables = 0;
    double *row, *sums;

    *dataset =
        (struct dataset){.features = features,
                         .estimate = estimate,
                         .n_columns = features->n + width,
                         .width = width,
                         .samples = ARENA_NEW(arena, const struct sample *, n)};
    for (size_t i = 0; i < n; i++)
        if (keep(&samples[i])) {
            dataset->samples[dataset->n_samples++] = &samples[i];
            n_tables += samples[i].n_tables;
            dataset->most_tables =
                max_u64(dataset->most_tables, samples[i].n_tables);
        }
    n = dataset->n_samples;
    row = dataset->rows =
        ARENA_NEW(arena, double, n_tables * dataset->n_columns);
    sums = dataset->sums = ARENA_NEW(arena, double, n *width);
    dataset->ms = ARENA_NEW(arena, double, n);
    dataset->first = ARENA_NEW(arena, uint32_t, n + 1);
    for (size_t i = 0; i < n; i++, sums += width) {
        const struct sample *sample = dataset->samples[i];

        for (uint32_t j = 0; j < sample->n_tables; j++) {
            struct feature_input input;

            feature_input_of_sample(&input, sample->setting,
                                    &sample->tables[j]);
            estimate_describe(estimate, features, &input, row,
                              row + features->n);
            for (size_t f = 0; f < width; f++)
                sums[f] += row[features->n + f];
            row += dataset->n_columns;
        }
        dataset->first[i + 1] = dataset->first[i] + sample->n_tables;
        dataset->ms[i] = sample->total.median_ms;
    }
}

static void scale_rows(struct dataset *dataset, struct arena *arena)
{
    const struct feature_set *features = dataset->features;
    const size_t n_rows = dataset->first[dataset->n_samples];
    float *to = ARENA_NEW(arena, float, n_rows * features->n);

    dataset->scaled_rows = to;
    for (size_t i = 0; i < n_rows; i++)
        for (size_t f = 0; f < features->n; f++)
            *to++ = (float)((dataset->rows[i * dataset->n_columns + f] -
                             features->items[f].mean) /
                            features->items[f].std);
}

/* Fills, for each sample, its totals and its unit, and the share of each of its
 * tables in the unit. */
static void scale_samples(struct dataset *dataset, double unit_ms,
                          struct arena *arena)
{
    const struct estimate *estimate = dataset->estimate;
    const struct feature_set *totals = &estimate->totals;
    float *to = ARENA_NEW(arena, float,
                          dataset->n_samples *estimate_head_inputs(estimate));

    dataset->unit = ARENA_NEW(arena, double, dataset->n_samples);
    dataset->scaled_totals = to;
    dataset->shares =
        ARENA_NEW(arena, float, dataset->first[dataset->n_samples]);
    for (size_t i = 0; i < dataset->n_samples; i++) {
        const double *sums = dataset->sums + i * dataset->width;
        const double unit = estimate_ms(estimate, sums);
        const struct sample_setting *setting = dataset->samples[i]->setting;
        const double context[HEAD_CONTEXT] = {US_PER_MS * unit, setting->batch,
                                              setting->optimizer !=
                                                  OPTIMIZER_SGD};

        dataset->unit[i] = unit_ms * unit;
        for (size_t f = 0; f < totals->n; f++)
            *to++ = (float)((log2(1 + sums[f]) - totals->items[f].mean) /
                            totals->items[f].std);
        for (int k = 0; estimate->is_monotone && k < HEAD_CONTEXT; k++)
            *to++ =
                (float)((log2(1 + context[k]) - MLP_LOG_MEAN) / MLP_LOG_STD);
        for (uint32_t j = dataset->first[i]; j < dataset->first[i + 1]; j++)
            dataset->shares[j] =
                (float)(estimate_added_ms(estimate, dataset->rows +
                                                        j * dataset->n_columns +
                                                        dataset->features->n) /
                        unit);
    }
}

void dataset_scale(struct dataset *dataset, double unit_ms, size_t max_samples,
                   struct arena *arena)
{
    const size_t n_rows = dataset->first[dataset->n_samples];
    struct mlp_batch *batch = &dataset->batch;

    dataset->max_samples = max_samples;
    dataset->max_rows = min_u64(max_samples * dataset->most_tables, n_rows);
    dataset->order = ARENA_NEW(arena, uint32_t, dataset->n_samples);
    batch->x =
        ARENA_NEW(arena, float, dataset->max_rows * dataset->features->n);
    batch->first = ARENA_NEW(arena, uint32_t, max_samples + 1);
    batch->weight = ARENA_NEW(arena, float, dataset->max_rows);
    batch->totals = ARENA_NEW(
        arena, float, max_samples *estimate_head_inputs(dataset->estimate));
    for (uint32_t i = 0; i < dataset->n_samples; i++)
        dataset->order[i] = i;
    scale_rows(dataset, arena);
    scale_samples(dataset, unit_ms, arena);
}

void dataset_batch(struct dataset *dataset, size_t begin)
{
    const size_t n_features = dataset->features->n;
    const size_t n_totals = estimate_head_inputs(dataset->estimate);
    const size_t n = min_u64(dataset->n_samples - begin, dataset->max_samples);
    struct mlp_batch *batch = &dataset->batch;
    uint32_t n_rows = 0;

    for (size_t i = 0; i < n; i++) {
        const size_t pos = dataset->order[begin + i];
        const size_t from = dataset->first[pos];
        const size_t n_tables = dataset->first[pos + 1] - from;
        const double unit_ms = dataset->unit[pos];

        memcpy(batch->x + n_rows * n_features,
               dataset->scaled_rows + from * n_features,
               n_tables * n_features * sizeof(float));
        for (size_t j = 0; j < n_tables; j++)
            batch->weight[n_rows + j] = (float)estimate_weight(
                dataset->estimate, (double)dataset->shares[from + j], unit_ms);
        memcpy(batch->totals + i * n_totals,
               dataset->scaled_totals + pos * n_totals,
               n_totals * sizeof(float));
        n_rows += (uint32_t)n_tables;
        batch->first[i + 1] = n_rows;
    }
    batch->n_samples = n;
    batch->n_rows = n_rows;
}
