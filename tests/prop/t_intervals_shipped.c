/* SPDX-License-Identifier: MIT */
/* The intervals in the shipped models match those of the shipped held-out
 * samples. Intervals made from half of the cases contain nine in ten of the
 * other half. If two predicted times differ by more than the pair error, nine
 * in ten pairs are in the right order. This also holds for pairs whose
 * difference is only slightly larger. */
#include "costmodel/learning/evaluate.h"
#include "costmodel/modelfile/model_file.h"
#include "device/gemm.h"
#include "tests/predict_samples.h"
#include "tests/price_sample.h"
#include "tests/tap.h"

#include <math.h>
#include <stdlib.h>

/* Pairs are near if they differ by at most twice the pair error, as a
 * logarithm. */
#define NEAR 2

struct counts {
    size_t n, n_right;
};

/* Held-out samples, and a model's predictions for them. */
struct side {
    const struct sample **samples;
    double *ms, *says;
    size_t n;
};

static bool is_held_out(const struct sample *sample)
{
    return sample_trains(sample) && sample->kind == SAMPLE_FUSED &&
           sample_split(sample) == SPLIT_HELD_OUT;
}

static bool is_even(const struct sample *sample)
{
    return is_held_out(sample) && sample->case_idx / 10 % 2 == 0;
}

static bool is_odd(const struct sample *sample)
{
    return is_held_out(sample) && sample->case_idx / 10 % 2 == 1;
}

static struct side side_of(const struct model *model,
                           const struct sample *samples, size_t n,
                           bool (*keep)(const struct sample *sample),
                           struct arena *arena)
{
    struct dataset dataset;
    double *says = model_predicts(&dataset, model, samples, n, keep, arena);

    return (struct side){dataset.samples, dataset.ms, says, dataset.n_samples};
}

static struct interval_list make(const struct side *side)
{
    return intervals_make("held-out samples", side->samples, side->ms,
                          side->says, side->n, 1);
}

static bool is_alike(const struct sample_setting *a,
                     const struct sample_setting *b)
{
    return a->batch == b->batch && a->precision == b->precision &&
           a->optimizer == b->optimizer;
}

/* Tests the intervals of one side on the other side. */
static void judge(const struct side *by, const struct side *other,
                  struct counts *within, struct counts *ordered,
                  struct counts *near)
{
    const struct interval_list intervals = make(by);

    for (size_t i = 0; i < other->n; i++) {
        const struct sample *sample = other->samples[i];
        const struct interval *own =
            interval_find(&intervals, interval_class_of(sample));

        within->n++;
        within->n_right +=
            interval_error(other->ms[i], other->says[i]) <= own->error_frac;
        for (size_t j = 0; j < i; j++) {
            const double gap = interval_error(other->says[i], other->says[j]);
            const bool is_right = (other->says[i] < other->says[j]) ==
                                  (other->ms[i] < other->ms[j]);

            if (interval_find(&intervals,
                              interval_class_of(other->samples[j])) != own ||
                !is_alike(sample->setting, other->samples[j]->setting) ||
                gap <= own->pair_error_frac)
                continue;
            ordered->n++;
            ordered->n_right += is_right;
            if (log1p(gap) > NEAR * log1p(own->pair_error_frac))
                continue;
            near->n++;
            near->n_right += is_right;
        }
    }
}

static double share(const struct counts *counts)
{
    return counts->n ? (double)counts->n_right / (double)counts->n : NAN;
}

/* Compares with the intervals in the file. The tolerance allows for other
 * rounding on another machine. Errors of pairs depend on the order of samples,
 * which a merged database changes. */
static void compare_file(const struct model *model, const struct side *held_out,
                         const char *name, bool is_merged)
{
    const struct interval_list want = make(held_out);
    const struct interval_list *has = &model->intervals;
    bool same = want.n == has->n;

    for (size_t i = 0; same && i < want.n; i++)
        same =
            !strcmp(has->items[i].class, want.items[i].class) &&
            has->items[i].n == want.items[i].n &&
            fabs(has->items[i].error_frac - want.items[i].error_frac) < 1e-5 &&
            (is_merged || fabs(has->items[i].pair_error_frac -
                               want.items[i].pair_error_frac) < 1e-5);
    ok(same && want.n > 2, "%s has the %zu intervals of %zu held-out samples",
       name, want.n, held_out->n);
}

int main(void)
{
    static const struct {
        const char *db, *model;
        bool is_merged; /* the model also learned from another database */
    } cases[] = {{"fbgemm-nvidia-h100", "h100", true},
                 {"fbgemm-nvidia-h200", "h200", false},
                 {"cuda-nvidia-h100", "cuda-nvidia-h100", false},
                 {"cpu-amd-epyc-2t", "cpu-amd-epyc-2t", false}};
    const char *data = getenv("NEUROSHARD_DATA");
    struct counts all = {0}, all_near = {0}, all_ordered = {0};
    struct arena arena = {0};
    struct err err = {0};

    if (!data)
        data = "data";
    if (gemm_init(&err)) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct counts within = {0}, ordered = {0}, near = {0};
        struct side even, odd, both;
        struct sample *samples;
        struct model model;
        size_t n;

        if (model_load(
                &model,
                arena_printf(&arena, "%s/models/%s.nsm", data, cases[i].model),
                &arena, &err) ||
            read_samples(&samples, &n,
                         arena_printf(&arena, "%s/measurements/%s.db", data,
                                      cases[i].db),
                         &arena, &err)) {
            printf("Bail out! %s\n", err.msg);
            return 1;
        }
        both = side_of(&model, samples, n, is_held_out, &arena);
        even = side_of(&model, samples, n, is_even, &arena);
        odd = side_of(&model, samples, n, is_odd, &arena);
        compare_file(&model, &both, cases[i].model, cases[i].is_merged);
        judge(&even, &odd, &within, &ordered, &near);
        judge(&odd, &even, &within, &ordered, &near);
        ok(share(&ordered) >= 0.9 && share(&near) >= 0.9,
           "%s orders %.1f %% of %zu pairs right, %.1f %% of %zu near ones",
           cases[i].model, 100 * share(&ordered), ordered.n, 100 * share(&near),
           near.n);
        printf("# %s: %.1f %% of %zu within\n", cases[i].model,
               100 * share(&within), within.n);
        all.n += within.n;
        all.n_right += within.n_right;
        all_ordered.n += ordered.n;
        all_ordered.n_right += ordered.n_right;
        all_near.n += near.n;
        all_near.n_right += near.n_right;
    }
    ok(share(&all) >= 0.87 && share(&all) <= 0.93,
       "%.1f %% of %zu samples within", 100 * share(&all), all.n);
    printf("# pairs: %.2f %% of %zu, near ones %.2f %% of %zu\n",
           100 * share(&all_ordered), all_ordered.n, 100 * share(&all_near),
           all_near.n);
    arena_release(&arena);
    return tap_done();
}
