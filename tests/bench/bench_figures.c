/* SPDX-License-Identifier: MIT */
#include "base/stats.h"
#include "costmodel/formulas/interval.h"
#include "tests/price_sample.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Compares measured lookups of a database with a cost model:
 *
 *     bench_figures [DATABASE [COST [LIST]]]
 *
 * LIST is the name of a case list as `bench` prints it. For each of its
 * samples, in the order of its cases, there is one line with the phases and the
 * prediction of COST (roofline:cpu) for the whole step. Without LIST only the
 * summary is printed: the errors over all samples, and for each class of
 * devices the error that nine in ten samples do not exceed (costmodel/formulas/
 * interval.h).
 */

#define SHIPPED_DB "data/measurements/cpu-amd-epyc-2t.db"

struct figures {
    const char *cost;
    uint64_t list; /* 0: none */
    double *errors;
    size_t n;
};

static void print_case(const struct sample *sample, double predicted_ms)
{
    const struct sample_table *table = &sample->tables[0];
    const struct sample_setting *setting = sample->setting;

    printf("%4" PRIu64 " %2" PRIu32 " x %3" PRIu32 " %9" PRIu64
           " %6.1f %4.2f %6" PRIu32 " %s %-7.7s %9.0f %8.4f %8.4f %8.4f %8.4f "
           "%8.4f %8.4f %8.4f %5.2f%s\n",
           sample->case_idx, sample->n_tables, table->dim, table->n_rows,
           table->pooling_factor, table->zipf_alpha, setting->batch,
           precision_names[setting->precision],
           optimizer_names[setting->optimizer], table->n_unique,
           sample->forward.median_ms, sample->linearise.median_ms,
           sample->sort.median_ms, sample->update.median_ms,
           sample->backward.median_ms, sample->total.median_ms, predicted_ms,
           predicted_ms / sample->total.median_ms,
           sample->flags & SAMPLE_THROTTLED ? " disturbed" : "");
}

static void print_classes(const struct sample *const *samples, const double *ms,
                          const double *predicted, size_t n)
{
    const struct interval_list intervals =
        intervals_make("samples", samples, ms, predicted, n, 1);

    printf("%-16s %7s %10s %9s\n", "class", "n", "error %", "inside %");
    for (size_t c = 0; c < intervals.n; c++) {
        const struct interval *interval = &intervals.items[c];
        size_t n_within = 0;

        for (size_t i = 0; i < n; i++)
            n_within +=
                (!c || interval_class_of(samples[i]) == interval->class) &&
                interval_error(ms[i], predicted[i]) <= interval->error_frac;
        printf("%-16s %7" PRIu64 " %10.1f %9.1f\n", interval->class,
               interval->n, 100 * interval->error_frac,
               100 * (double)n_within / (double)interval->n);
    }
}

static int print_all(struct figures *figures, const char *db,
                     struct arena *arena, struct err *err)
{
    struct sample *samples = NULL;
    const struct sample **undisturbed;
    double *measured, *predicted;
    size_t n = 0;

    if (read_samples(&samples, &n, db, arena, err))
        return -1;
    if (figures->list)
        printf("case tables      rows  look-  zipf  batch                      "
               "unique  forward  lineari     sort   update backward    total "
               "   model ratio\n");
    figures->errors = mem_alloc(n + 1, sizeof(double));
    undisturbed = ARENA_NEW(arena, const struct sample *, n);
    measured = ARENA_NEW(arena, double, n);
    predicted = ARENA_NEW(arena, double, n);
    for (size_t i = 0; i < n; i++) {
        const struct sample *sample = &samples[i];
        struct arena_mark mark = arena_mark(arena);
        double ms;

        if (price_samples(&ms, &sample, 1, figures->cost, arena, err))
            return -1;
        if (samples[i].seed == figures->list && samples[i].kind == SAMPLE_FUSED)
            print_case(&samples[i], ms);
        if (!(samples[i].flags & SAMPLE_THROTTLED)) {
            undisturbed[figures->n] = &samples[i];
            measured[figures->n] = samples[i].total.median_ms;
            predicted[figures->n] = ms;
            figures->errors[figures->n++] =
                fabs(ms / samples[i].total.median_ms - 1);
        }
        arena_rewind(arena, mark);
    }
    printf("%s against %zu samples of %s: median error %.1f %%, mean %.1f %%, "
           "p90 %.1f %%\n",
           figures->cost, figures->n, db,
           100 * stats_median(figures->errors, figures->n),
           100 * stats_mean(figures->errors, figures->n),
           100 * stats_quantile(figures->errors, figures->n, 0.9));
    print_classes(undisturbed, measured, predicted, figures->n);
    return 0;
}

int main(int argc, char **argv)
{
    struct figures figures = {.cost = argc > 2 ? argv[2] : "roofline:cpu"};
    struct arena arena = {0};
    struct err err = {0};
    int rc;

    if (argc > 3)
        figures.list = strtoull(argv[3], NULL, 16);
    rc = print_all(&figures, argc > 1 ? argv[1] : SHIPPED_DB, &arena, &err);
    if (rc)
        fprintf(stderr, "bench_figures: %s\n", err.msg);
    mem_free(figures.errors);
    arena_release(&arena);
    return rc ? 1 : 0;
}
