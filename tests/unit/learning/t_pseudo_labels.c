/* SPDX-License-Identifier: MIT */
/* Pseudo-labels: sets of tables that nobody measured, with times predicted by a
 * Gaussian process. The simulated GPU does not follow the roofline exactly. */
#include "costmodel/learning/pseudo_labels.h"

#include "base/stats.h"
#include "costmodel/learning/train.h"
#include "device/gemm.h"
#include "tests/few_gpus.h"
#include "tests/tap.h"

#define N_KNOWN 150
#define N_PSEUDO_LABELS 200
#define N_ALL (N_KNOWN + N_PSEUDO_LABELS)

static struct arena arena;

/* Returns the exact time of the sample on simulated GPU B, in ms. */
static double truth(const struct sample *sample)
{
    double sums[FEW_LANES] = {0}, most = 0;

    for (uint32_t t = 0; t < sample->n_tables; t++) {
        const struct sample_table *table = &sample->tables[t];
        const double n = table->pooling_factor * few_setting.batch;

        few_add('B',
                &(struct few_piece){(double)table->n_rows, table->dim, n,
                                    few_setting.batch, table->n_unique,
                                    table->bins},
                sums);
        most = fmax(most, n);
    }
    return few_ms('B', sums, most / sums[FEW_LOOKUPS]);
}

static struct sample *known_samples(void)
{
    return few_samples('B', N_KNOWN, 0.03, 1, &arena);
}

/* Makes a data set of known samples followed by pseudo-labels, and a roofline
 * fitted to the known samples. */
static void make(struct dataset *dataset, struct model *model,
                 struct sample *samples)
{
    struct train_options options;
    struct err err = {0};

    train_options_init(&options);
    options.kind = MODEL_ROOFLINE;
    ok(!train_fit(model, samples, N_KNOWN, &options, &arena, &err),
       "a roofline%s", err.msg);
    feature_set_init(&model->features, FEATURES_ROOFLINE);
    dataset_init(dataset, &model->features, &model->estimate, samples, N_KNOWN,
                 sample_trains, &arena);
    feature_set_scale(&model->features, dataset->rows, dataset->first[N_KNOWN],
                      dataset->n_columns);
    pseudo_labels_add(dataset, N_PSEUDO_LABELS, 1, &arena);
}

static bool is_of_setting(const struct sample_table *table,
                          const struct sample_setting *setting,
                          const struct sample *samples)
{
    for (size_t i = 0; i < N_KNOWN; i++)
        for (uint32_t t = 0; t < samples[i].n_tables; t++)
            if (samples[i].setting == setting &&
                samples[i].tables[t].n_rows == table->n_rows &&
                samples[i].tables[t].n_unique == table->n_unique &&
                samples[i].tables[t].dim >= table->dim)
                return true;
    return false;
}

static void test_sets(void)
{
    struct sample *samples = known_samples();
    struct sample_setting other = few_setting;
    size_t n_same = 0, n_cut = 0, n_known = 0, n_tables = 0;
    struct dataset dataset;
    struct model model;

    for (size_t i = 0; i < N_KNOWN; i += 3)
        samples[i].setting = &other;
    make(&dataset, &model, samples);
    is_i64((int64_t)dataset.n_samples, N_ALL,
           "pseudo-labels follow the known samples");
    for (size_t i = 0; i < N_KNOWN; i++)
        n_same += dataset.ms[i] == samples[i].total.median_ms &&
                  dataset.samples[i]->tables == samples[i].tables;
    is_i64((int64_t)n_same, N_KNOWN, "the known samples are unchanged");
    for (size_t i = N_KNOWN; i < dataset.n_samples; i++) {
        const struct sample *set = dataset.samples[i];

        for (uint32_t t = 0; t < set->n_tables; t++, n_tables++) {
            n_cut += set->tables[t].dim <= set->tables[0].dim;
            n_known += is_of_setting(&set->tables[t], set->setting, samples);
        }
    }
    is_i64((int64_t)n_cut, (int64_t)n_tables, "no wider than their first");
    is_i64((int64_t)n_known, (int64_t)n_tables,
           "they consist of tables of their setting");
}

/* Returns the mean error of the pseudo-labels, and in *rough that of the
 * roofline. */
static double judge(struct sample *samples, double *rough)
{
    double want[N_PSEUDO_LABELS], apes[N_PSEUDO_LABELS], *ms;
    struct dataset dataset;
    struct model model;

    make(&dataset, &model, samples);
    ms = dataset.ms;
    dataset_scale(&dataset, 1, N_ALL, &arena);
    pseudo_labels_price(&dataset, N_KNOWN);
    for (size_t i = 0; i < N_PSEUDO_LABELS; i++)
        want[i] = truth(dataset.samples[N_KNOWN + i]);
    stats_apes(apes, want, dataset.unit + N_KNOWN, N_PSEUDO_LABELS);
    *rough = stats_mean(apes, N_PSEUDO_LABELS);
    stats_apes(apes, want, ms + N_KNOWN, N_PSEUDO_LABELS);
    return stats_mean(apes, N_PSEUDO_LABELS);
}

static void test_prices(void)
{
    struct sample *samples = known_samples();
    double rough, mape = judge(samples, &rough), again = judge(samples, &rough);

    ok(mape < 0.75 * rough, "%.2f %% off, the roofline %.2f %%", 100 * mape,
       100 * rough);
    ok(mape == again, "twice the same");
    for (size_t i = 0; i < N_KNOWN; i += 15)
        samples[i].total.median_ms *= 1.5;
    again = judge(samples, &rough);
    ok(again < 1.25 * mape, "disturbed samples count little: %.2f %% off",
       100 * again);
}

int main(void)
{
    struct err err = {0};

    if (gemm_init(&err)) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }
    test_sets();
    test_prices();
    arena_release(&arena);
    return tap_done();
}
