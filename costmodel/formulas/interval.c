/* SPDX-License-Identifier: MIT */
#include "costmodel/formulas/interval.h"

#include "base/stats.h"

#include <math.h>
#include <string.h>

void device_load_add(struct device_load *load,
                     const struct feature_input *table)
{
    load->n_tables++;
    load->n_lookups += table->n_lookups;
    load->batch = fmax(load->batch, table->batch);
    load->n_columns = fmax(load->n_columns, table->dim);
    load->n_sparse += table->n_lookups < table->n_outputs;
}

const char *const interval_classes[MAX_INTERVALS + 1] = {
    INTERVAL_ALL,  "few look-ups",  "light loads", "few tables",
    "sparse bags", "small batches", "wide rows",   "usual"};

const char *interval_class(const struct device_load *load)
{
    return interval_classes[load->n_lookups < 1e4                 ? 1
                            : load->n_lookups < 1e5               ? 2
                            : load->n_tables < 5                  ? 3
                            : 2 * load->n_sparse > load->n_tables ? 4
                            : load->batch < 16384                 ? 5
                            : load->n_columns > 128               ? 6
                                                                  : 7];
}

size_t interval_class_idx(const char *class)
{
    size_t idx = MAX_INTERVALS - 1;

    while (idx > 0 && strcmp(interval_classes[idx], class) != 0)
        idx--;
    return idx;
}

const char *interval_class_of(const struct sample *sample)
{
    struct device_load load = {0};
    struct feature_input table;

    for (uint32_t t = 0; t < sample->n_tables; t++) {
        feature_input_of_sample(&table, sample->setting, &sample->tables[t]);
        device_load_add(&load, &table);
    }
    return interval_class(&load);
}

/* Returns the ratio of measured to predicted time, limited to a range. The
 * limits are needed because a net without an estimate may predict a negative
 * time. */
static double ratio_of(double ms, double predicted)
{
    return fmin(ms / fmax(predicted, 0), 1 + INTERVAL_MAX_ERROR);
}

double interval_error(double ms, double predicted)
{
    const double ratio = ratio_of(ms, predicted);

    return fmax(ratio, 1 / ratio) - 1;
}

/* Returns the 90 % conformal bound of errors[n], n >= 9: the error that nine of
 * ten new samples do not exceed. Sorts the errors. */
static double bound(double *errors, size_t n)
{
    const size_t k = (n + 1) - (n + 1) / 10; /* k = ceil(0.9 (n + 1)) */

    return stats_quantile(errors, n, (double)(k - 1) / (double)(n - 1));
}

struct interval_list intervals_make(const char *ground,
                                    const struct sample *const *samples,
                                    const double *ms, const double *predicted,
                                    size_t n, double scale)
{
    double *errors = mem_alloc(n, 2 * sizeof(*errors)), *pairs = errors + n;
    struct interval_list list = {.n = 0};

    for (size_t c = 0; c < MAX_INTERVALS; c++) {
        struct interval interval = {interval_classes[c], ground, 0, 0, 0, 0};
        double last = 1;

        for (size_t i = 0; i < n; i++) {
            if (c && interval_class_of(samples[i]) != interval.class)
                continue;
            if (interval.n)
                pairs[interval.n - 1] =
                    interval_error(ratio_of(ms[i], predicted[i]), last);
            last = ratio_of(ms[i], predicted[i]);
            errors[interval.n++] = interval_error(last, 1);
        }
        if (interval.n < INTERVAL_LEAST)
            continue;
        interval.error_frac = scale * bound(errors, interval.n);
        interval.pair_error_frac = scale * bound(pairs, interval.n - 1);
        list.items[list.n++] = interval;
    }
    mem_free(errors);
    return list;
}

const struct interval *interval_find(const struct interval_list *intervals,
                                     const char *class)
{
    for (size_t i = 0; i < intervals->n; i++)
        if (!strcmp(intervals->items[i].class, class))
            return &intervals->items[i];
    return intervals->n ? intervals->items : NULL;
}
