/* SPDX-License-Identifier: MIT */
/*
 * The fit is a robust and damped least-squares fit of log(estimated /
 * measured): Gauss-Newton steps with Levenberg's damping. Errors beyond
 * TOLERANCE count linearly, so a disturbed sample does not distort the fit.
 * Every unknown has a ridge penalty. The unknowns are the logarithms of the
 * factors by which the GPU is slower, and the powers.
 */
#include "costmodel/learning/roofline_fit.h"

#include "costmodel/formulas/linear.h"
#include "costmodel/formulas/roofline.h"

#include <math.h>
#include <string.h>

#define MAX_UNKNOWNS (N_SLOWED + MAX_TOTALS)
#define MAX_STEPS 60
#define MAX_DAMPINGS 12
#define CONVERGED 1e-7
#define MOST_CHANGE 1 /* largest change of an unknown in one step */
#define DERIVATIVE 1e-4
#define TOLERANCE 0.1
/* Weights of the ridge penalties. The weight multiplies the square of an
 * unknown; the squared error of a sample has the weight 1. RIDGE_FACTOR is
 * small, since factors of ten are common. RIDGE_POWER is larger, since powers
 * are usually small. */
#define RIDGE_FACTOR 0.01
#define RIDGE_POWER 1.5

struct fit {
    const struct estimate *estimate;
    const double *sums, *ms;
    size_t n, width, n_unknowns;
};

static double ridge(size_t unknown)
{
    return unknown < N_SLOWED ? RIDGE_FACTOR : RIDGE_POWER;
}

static void factors_of(const double *x, double factors[N_SLOWED])
{
    for (unsigned k = 0; k < N_SLOWED; k++)
        factors[k] = exp(x[k]);
}

/* Returns the natural logarithm of total k of sample i, minus its mean over the
 * samples. The fit multiplies the result by the power of the total. */
static double log_total(const struct fit *fit, size_t i, size_t k)
{
    return log(2) * (log2(1 + fit->sums[i * fit->width + k]) -
                     fit->estimate->totals.items[k].mean);
}

/* Returns log(estimated / measured) of sample i. */
static double error_of(const struct fit *fit, const double *x, size_t i)
{
    const unsigned n_totals = fit->estimate->totals.n;
    double factors[N_SLOWED], lanes[FUSED_LANES], error;
    struct gpu_spec gpu;

    factors_of(x, factors);
    gpu = gpu_spec_slowed(&fit->estimate->gpu, factors);
    memcpy(lanes, fit->sums + i * fit->width + n_totals, sizeof(lanes));
    fused_slow(lanes, factors);
    error = log(fused_ms(&gpu, lanes) / fit->ms[i]);
    for (unsigned k = 0; k < n_totals; k++)
        error += x[N_SLOWED + k] * log_total(fit, i, k);
    return error;
}

static double loss_of(const struct fit *fit, const double *x)
{
    double loss = 0;

    for (size_t i = 0; i < fit->n; i++) {
        const double far = error_of(fit, x, i) / TOLERANCE;

        loss += 2 * TOLERANCE * TOLERANCE * (sqrt(1 + far * far) - 1);
    }
    for (size_t k = 0; k < fit->n_unknowns; k++)
        loss += ridge(k) * x[k] * x[k];
    return loss;
}

/* Fills the normal equations for a step from x: a * step = b. */
static void fill_normal(const struct fit *fit, double *x, double *a, double *b)
{
    const size_t n = fit->n_unknowns;
    double slope[MAX_UNKNOWNS];

    memset(a, 0, n * n * sizeof(*a));
    memset(b, 0, n * sizeof(*b));
    for (size_t i = 0; i < fit->n; i++) {
        const double error = error_of(fit, x, i), far = error / TOLERANCE;
        const double weight = 1 / sqrt(1 + far * far);

        for (size_t k = 0; k < N_SLOWED; k++) {
            const double pos = x[k];

            x[k] += DERIVATIVE;
            slope[k] = (error_of(fit, x, i) - error) / DERIVATIVE;
            x[k] = pos;
        }
        for (size_t k = N_SLOWED; k < n; k++)
            slope[k] = log_total(fit, i, k - N_SLOWED);
        normal_add(a, b, n, slope, n, -error, weight);
    }
    for (size_t k = 0; k < n; k++) {
        a[k * n + k] += ridge(k);
        b[k] -= ridge(k) * x[k];
    }
}

/* Takes a step that lowers the loss. Raises *damping, which shortens the step,
 * until the loss decreases. Returns false if no step lowers the loss. */
static bool take_step(const struct fit *fit, double *x, double *loss,
                      double *damping)
{
    const size_t n = fit->n_unknowns;
    double a[MAX_UNKNOWNS * MAX_UNKNOWNS], b[MAX_UNKNOWNS];
    double damped[MAX_UNKNOWNS * MAX_UNKNOWNS], next[MAX_UNKNOWNS];

    fill_normal(fit, x, a, b);
    for (int attempt = 0; attempt < MAX_DAMPINGS; attempt++) {
        double next_loss;

        memcpy(damped, a, n * n * sizeof(*a));
        memcpy(next, b, n * sizeof(*b));
        for (size_t k = 0; k < n; k++)
            damped[k * n + k] *= 1 + *damping;
        solve_symmetric(damped, next, n);
        for (size_t k = 0; k < n; k++) {
            next[k] = x[k] + fmax(-MOST_CHANGE, fmin(MOST_CHANGE, next[k]));
            if (k >= N_SLOWED && fit->estimate->is_monotone)
                next[k] = fmax(next[k], 0);
        }
        next_loss = loss_of(fit, next);
        if (next_loss < *loss) {
            memcpy(x, next, n * sizeof(*x));
            *loss = next_loss;
            *damping /= 5;
            return true;
        }
        *damping *= 5;
    }
    return false;
}

double roofline_fit(struct estimate *estimate, const double *sums,
                    const double *ms, size_t n)
{
    const struct fit fit = {estimate,
                            sums,
                            ms,
                            n,
                            estimate_width(estimate),
                            N_SLOWED + estimate->totals.n};
    double x[MAX_UNKNOWNS] = {0}, factors[N_SLOWED], damping = 1e-3, loss;

    feature_set_scale(&estimate->totals, sums, n, fit.width);
    loss = loss_of(&fit, x);
    for (int step = 0; step < MAX_STEPS; step++) {
        const double before = loss;

        if (!take_step(&fit, x, &loss, &damping) ||
            before - loss < CONVERGED * before)
            break;
    }
    factors_of(x, factors);
    estimate->gpu = gpu_spec_slowed(&estimate->gpu, factors);
    for (unsigned k = 0; k < estimate->totals.n; k++)
        estimate->totals.items[k].power = x[N_SLOWED + k];
    return loss / (double)n;
}
