/* SPDX-License-Identifier: MIT */
#include "costmodel/learning/pseudo_labels.h"

#include "costmodel/formulas/linear.h"

#include <math.h>
#include <string.h>

/* Largest number of samples that the length scales are fitted to. */
#define MOST_SCALED 256
/* Prior variance of the fitted parameters, as logarithms. The mean of the prior
 * is the start value of each parameter. */
#define PRIOR_VARIANCE 2.25
#define FREEDOM 4
#define N_ROUNDS 3
#define N_PASSES 6

/* Fitted parameters, as logarithms: the standard deviations of the smooth part
 * and of the noise, and the length scale of each input. */
enum { SMOOTH, NOISE, SCALE };
#define MOST_CHOSEN (SCALE + MAX_FEATURES + MAX_TOTALS)

struct process {
    size_t n_inputs, n_samples;
    double *x; /* [n_inputs][n_samples] */
    /* Values for the known samples:
     *   y            log(measured / estimated), minus the mean
     *   loud         noise variance of a sample over the common variance
     *   weight       coefficients of the Gaussian process
     *   covariances  [n][n], between the samples */
    double *y, *loud, *weight, *covariances;
    double start[MOST_CHOSEN], chosen[MOST_CHOSEN];
    double per_scale[MOST_CHOSEN]; /* 1 / length scale of each input */
};

/* Fills the inputs that describe sample i: its totals, and the features of its
 * tables. The features are averaged over the tables, weighted by their
 * shares. */
static void fill_inputs(struct process *process, const struct dataset *dataset,
                        size_t i)
{
    const size_t n_features = dataset->features->n;
    const size_t n_totals = dataset->estimate->totals.n;
    const size_t n_inputs = estimate_head_inputs(dataset->estimate);
    double *x = process->x + i;

    for (size_t k = 0; k < n_totals; k++, x += process->n_samples)
        *x = (double)dataset->scaled_totals[i * n_inputs + k];
    for (size_t f = 0; f < n_features; f++, x += process->n_samples)
        for (uint32_t j = dataset->first[i]; j < dataset->first[i + 1]; j++)
            *x += (double)dataset->shares[j] *
                  (double)dataset->scaled_rows[j * n_features + f];
}

/* Fills out[n] with the covariances between sample i and n other samples, which
 * are every nth sample from the first on. The inner loop runs over all samples,
 * so that a compiler can vectorise it. */
static void covariances(double *restrict out, const struct process *process,
                        size_t i, size_t n, size_t nth)
{
    const double most = 2 * process->chosen[SMOOTH];

    memset(out, 0, n * sizeof(*out));
    for (size_t k = 0; k < process->n_inputs; k++) {
        const double *restrict x = process->x + k * process->n_samples;
        const double per_scale = process->per_scale[k], here = x[i];

        for (size_t j = 0; j < n; j++) {
            const double far = (here - x[j * nth]) * per_scale;

            out[j] += far * far;
        }
    }
    for (size_t j = 0; j < n; j++)
        out[j] = exp(most - out[j] / 2);
}

/* Fits the weights of the Gaussian process to n samples, which are every nth of
 * the known samples. Returns the negative logarithm of the posterior density of
 * the parameters, up to a constant. */
static double solve(struct process *process, size_t n, size_t nth)
{
    double *a = process->covariances, *w = process->weight, loss = 0;

    for (size_t k = 0; k < process->n_inputs; k++)
        process->per_scale[k] = exp(-process->chosen[SCALE + k]);
    for (size_t i = 0; i < n; i++) {
        covariances(a + i * n, process, i * nth, i + 1, nth);
        a[i * n + i] +=
            exp(2 * process->chosen[NOISE]) * process->loud[i * nth];
        w[i] = process->y[i * nth];
    }
    solve_symmetric(a, w, n); /* leaves the Cholesky factor in a */
    for (size_t i = 0; i < n; i++)
        loss += log(a[i * n + i]) + process->y[i * nth] * w[i] / 2;
    for (size_t k = 0; k < SCALE + process->n_inputs; k++)
        loss += pow(process->chosen[k] - process->start[k], 2) /
                (2 * PRIOR_VARIANCE);
    return loss;
}

/* Updates the noise variance of each sample from the residual of the sample. */
static void listen(struct process *process, size_t n, size_t nth)
{
    for (size_t i = 0; i < n; i++) {
        double *loud = &process->loud[i * nth];
        const double left =
            exp(process->chosen[NOISE]) * *loud * process->weight[i];

        *loud = (FREEDOM + left * left) / (FREEDOM + 1);
    }
}

/* Coordinate search. Moves one parameter after the other by a step up or down,
 * and keeps the step if it raises the posterior density. */
static void choose_scales(struct process *process, size_t n, size_t nth)
{
    for (int pass = 0; pass < N_PASSES; pass++) {
        double least = solve(process, n, nth);

        for (size_t k = 0; k < SCALE + process->n_inputs; k++) {
            const double was = process->chosen[k];
            double step = 1.0 / (1 << pass / 2), loss = INFINITY;

            for (int side = 0; side < 2 && !(loss < least); side++) {
                process->chosen[k] = was + step;
                loss = solve(process, n, nth);
                step = -step;
            }
            if (loss < least)
                least = loss;
            else
                process->chosen[k] = was;
        }
        solve(process, n, nth);
        listen(process, n, nth);
    }
}

void pseudo_labels_price(struct dataset *all, size_t n_known)
{
    const size_t nth = 1 + n_known / MOST_SCALED;
    const size_t n = all->n_samples;
    const size_t d = all->estimate->totals.n + all->features->n;
    double *ms = all->ms, *like, mean = 0;
    struct process process = {
        .n_inputs = d, .n_samples = n, .start = {-2.3, -3.5}};
    struct arena arena = {0};

    process.x = arena_alloc(&arena, n * d, sizeof(double));
    process.y = ARENA_NEW(&arena, double, n_known);
    process.loud = ARENA_NEW(&arena, double, n_known);
    process.weight = ARENA_NEW(&arena, double, n_known);
    process.covariances =
        arena_alloc(&arena, n_known * n_known, sizeof(double));
    like = ARENA_NEW(&arena, double, n_known);
    for (size_t k = 0; k < d; k++)
        process.start[SCALE + k] = log((double)d) / 2;
    memcpy(process.chosen, process.start, sizeof(process.start));
    for (size_t i = 0; i < n; i++)
        fill_inputs(&process, all, i);
    for (size_t i = 0; i < n_known; i++) {
        process.y[i] = log(ms[i] / all->unit[i]);
        process.loud[i] = 1;
        mean += process.y[i] / (double)n_known;
    }
    for (size_t i = 0; i < n_known; i++)
        process.y[i] -= mean;
    choose_scales(&process, n_known / nth, nth);
    for (int round = 0; round < N_ROUNDS; round++) {
        solve(&process, n_known, 1);
        if (round + 1 < N_ROUNDS)
            listen(&process, n_known, 1);
    }
    for (size_t i = n_known; i < n; i++) {
        double log_ratio = mean;

        covariances(like, &process, i, n_known, 1);
        for (size_t j = 0; j < n_known; j++)
            log_ratio += process.weight[j] * like[j];
        ms[i] = all->unit[i] * exp(log_ratio);
    }
    arena_release(&arena);
}

static void draw_set(struct sample *out, const struct dataset *known,
                     struct rng *rng, struct arena *arena)
{
    const size_t n = known->n_samples;
    const struct sample *like = known->samples[rng_below(rng, n)];

    *out = *like;
    out->tables = ARENA_NEW(arena, struct sample_table, out->n_tables);
    for (uint32_t t = 0; t < out->n_tables; t++) {
        const struct sample *from;

        do
            from = known->samples[rng_below(rng, n)];
        while (from->setting != like->setting);
        out->tables[t] = from->tables[rng_below(rng, from->n_tables)];
        out->tables[t].dim =
            (uint32_t)min_u64(out->tables[t].dim, out->tables[0].dim);
    }
}

void pseudo_labels_add(struct dataset *dataset, size_t n, uint64_t seed,
                       struct arena *arena)
{
    const size_t n_known = dataset->n_samples;
    struct sample *all = ARENA_NEW(arena, struct sample, n_known + n);
    struct rng rng;

    rng_init(&rng, seed, 'L');
    for (size_t i = 0; i < n_known; i++)
        all[i] = *dataset->samples[i];
    for (size_t i = n_known; i < n_known + n; i++)
        draw_set(&all[i], dataset, &rng, arena);
    dataset_init(dataset, dataset->features, dataset->estimate, all,
                 n_known + n, sample_trains, arena);
}
