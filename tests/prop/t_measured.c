/* SPDX-License-Identifier: MIT */
/* Compares cost models with the shipped measurements. One sample in ten of each
 * database is priced, so that no constant drifts from the measurements. */
#include "base/stats.h"
#include "tests/price_sample.h"
#include "tests/tap.h"

#include <math.h>
#include <stdlib.h>

#define ONE_IN 10

struct errors {
    double *list;
    size_t n;
};

static int add_errors(struct errors *errors, const struct sample *samples,
                      size_t n, const char *cost, struct arena *arena,
                      struct err *err)
{
    const struct sample **priced =
        ARENA_NEW(arena, const struct sample *, n / ONE_IN + 1);

    errors->list = mem_alloc(n / ONE_IN + 1, sizeof(double));
    for (size_t i = 0; i < n; i += ONE_IN)
        if (!(samples[i].flags & SAMPLE_THROTTLED))
            priced[errors->n++] = &samples[i];
    if (price_samples(errors->list, priced, errors->n, cost, arena, err))
        return -1;
    for (size_t i = 0; i < errors->n; i++)
        errors->list[i] =
            fabs(errors->list[i] / priced[i]->total.median_ms - 1);
    return 0;
}

static int find_errors(struct errors *errors, const char *db, const char *cost,
                       struct arena *arena, struct err *err)
{
    struct sample *samples = NULL;
    size_t n = 0;

    return read_samples(&samples, &n, db, arena, err) ||
                   add_errors(errors, samples, n, cost, arena, err)
               ? -1
               : 0;
}

int main(void)
{
    /* The roofline was not fitted to the H200. */
    static const struct {
        const char *db, *cost;
        double median, mean;
    } cases[] = {
        {"fbgemm-nvidia-h100", "roofline:h100", 0.08, 0.1},
        {"fbgemm-nvidia-h200", "roofline:h200", 0.08, 0.1},
        {"cpu-amd-epyc-2t", "roofline:cpu", 0.18, 0.22},
        {"fbgemm-nvidia-h100", "model:h100.nsm", 0.03, 0.05},
        {"fbgemm-nvidia-h200", "model:h200.nsm", 0.03, 0.05},
    };
    const char *data = getenv("NEUROSHARD_DATA");
    struct arena arena = {0};
    struct err err = {0};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct errors errors = {0};
        const char *db = arena_printf(&arena, "%s/measurements/%s.db",
                                      data ? data : "data", cases[i].db);

        if (find_errors(&errors, db, cases[i].cost, &arena, &err)) {
            printf("Bail out! %s\n", err.msg);
            return 1;
        }
        ok(stats_median(errors.list, errors.n) < cases[i].median &&
               stats_mean(errors.list, errors.n) < cases[i].mean,
           "%s on %zu samples of %s: median error %.3f, mean %.3f",
           cases[i].cost, errors.n, cases[i].db,
           stats_median(errors.list, errors.n),
           stats_mean(errors.list, errors.n));
        mem_free(errors.list);
    }
    arena_release(&arena);
    return tap_done();
}
