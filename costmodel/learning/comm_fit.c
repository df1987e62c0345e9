/* SPDX-License-Identifier: MIT */
#include "costmodel/learning/comm_fit.h"

#include "base/rng.h"
#include "base/stats.h"
#include "costmodel/formulas/linear.h"

#include <math.h>
#include <string.h>

#define N_FOLDS 10
/* Number of reweightings in a fit. Each one weights a point by 1 /
 * max(residual, SMALL_RESIDUAL). The fitted curve lies between least squares
 * and least absolute errors. */
#define N_REWEIGHTINGS 15
#define SMALL_RESIDUAL 0.03
/* Weight of the smoothness penalty in the fit of a curve. The penalty is the
 * sum of squared second differences of the times at the knots; each time is
 * divided by its guess. The penalty only matters between samples that are far
 * apart. */
#define SMOOTHNESS 1e-3
/* Relative improvement of the error that justifies more knots, or a change to
 * the other enum comm_form. */
#define WORTH_FRAC 0.03
#define POINTS_A_KNOT 3
/* Least number of exchanges from which on cross-validation may choose between
 * the two rules of enum comm_form. In tests with only 4 to 14 exchanges (copies
 * inside a host), the rule that cross-validation chose had errors that were 2
 * to 22 % larger. */
#define MIN_MEASURED 20
/* Least number of samples from which other samples are predicted. A line always
 * fits two samples, right or wrong. */
#define MIN_OTHERS 3
/* Ratio from which on a load is uneven: the bytes of the busiest port, divided
 * by the bytes that it would have in an even load. */
#define UNEVEN 1.05

/* Kinds of exchanges, the most direct measurement first, and the rules that
 * each kind uses by default. Every GPU has a network adapter, but the processes
 * of a host on CPUs share one. */
static const struct {
    const char *kind;
    struct comm_rules rules;
    const char *what;
} witnesses[] = {
    {"nccl", {COMM_PORT, false}, "measured all-to-all (NCCL)"},
    {"mpi", {COMM_TOTAL, true}, "measured all-to-all (MPI)"},
    {"shm", {COMM_TOTAL, false}, "measured all-to-all (shared memory)"},
    {"copy", {COMM_TOTAL, false}, "measured all-to-all (copies between ranks)"},
};
#define N_WITNESSES (sizeof(witnesses) / sizeof(witnesses[0]))

/* Numbers of knots that a fit tries. A curve with two knots is the line alpha +
 * bytes / bandwidth. */
static const uint32_t knot_choices[] = {2, 4, 6, 9, 12, 16, 20, 26, 32};
#define N_KNOT_CHOICES (sizeof(knot_choices) / sizeof(knot_choices[0]))

struct comm_point {
    double bytes, us;
    unsigned fold;
    /* Interval of the curve that holds the point: index of the knot at its end,
     * and position of the point in it (0 to 1). */
    uint32_t knot;
    double share;
};

/* Points of all samples with one kind, one number of ranks and one number of
 * hosts. */
struct points {
    struct comm_point *items; /* owned */
    size_t n;
    double low, high; /* least and most bytes of a point */
};

static bool is_like(const struct comm_sample *a, const struct comm_sample *b)
{
    return !strcmp(a->kind, b->kind) && a->n_ranks == b->n_ranks &&
           a->n_hosts == b->n_hosts;
}

static bool is_usable(const struct comm_sample *sample)
{
    return sample->max_bytes > 0 && sample->n_ranks > 1 &&
           isfinite(sample->time.median_ms) && sample->time.median_ms > 0;
}

/* Returns the cross-validation fold of a load, which does not depend on the
 * other samples. */
static unsigned fold_of(const struct comm_sample *sample)
{
    return (unsigned)(mix64(sample->total_bytes * 31 + sample->max_bytes) %
                      N_FOLDS);
}

static struct points take_points(const struct comm_sample *samples, size_t n,
                                 const struct comm_sample *like,
                                 struct comm_rules rules)
{
    struct points points = {mem_alloc(n, sizeof(*points.items)), 0, INFINITY,
                            0};

    for (size_t i = 0; i < n; i++) {
        const struct comm_sample *sample = &samples[i];
        const double bytes = comm_rules_bytes(rules, sample);

        if (!is_like(sample, like) || !is_usable(sample))
            continue;
        points.items[points.n++] =
            (struct comm_point){.bytes = bytes,
                                .us = 1000 * sample->time.median_ms,
                                .fold = fold_of(sample)};
        points.low = fmin(points.low, bytes);
        points.high = fmax(points.high, bytes);
    }
    return points;
}

/* Places the knots of a curve: one at bytes[0] = 0, the others from the least
 * to the most bytes, evenly spaced in the logarithm. The guessed time of a knot
 * is the time of the nearest point. Also finds the position of each point
 * between the knots, once for all fits. */
static void place_knots(struct comm_curve *guess, struct points *points,
                        uint32_t n_knots)
{
    const double low = points->low, high = points->high;

    guess->n_knots = n_knots;
    for (uint32_t k = 0; k < n_knots; k++) {
        double nearest = INFINITY;

        guess->bytes[k] =
            k ? low * pow(high / low, (double)k / (n_knots - 1)) : 0;
        for (size_t i = 0; i < points->n; i++) {
            double away =
                fabs(log(points->items[i].bytes / fmax(guess->bytes[k], low)));

            if (away < nearest) {
                nearest = away;
                guess->us[k] = points->items[i].us;
            }
        }
    }
    for (size_t i = 0; i < points->n; i++) {
        struct comm_point *point = &points->items[i];

        point->knot = comm_curve_knot(guess, point->bytes, &point->share);
    }
}

/* Performs one step of reweighted least squares for the times at the knots of a
 * curve, relative to their guesses. If the fitted latency is negative, it is
 * set to 0 and the other times are fitted again. This second fit lowers the
 * median error for four exchanges of a host from 28 to 24 %. */
static void refine(struct comm_curve *curve, const struct points *points,
                   const double *guess, int without_fold, bool has_latency)
{
    const uint32_t n = curve->n_knots;
    double a[COMM_MAX_KNOTS * COMM_MAX_KNOTS] = {0}, b[COMM_MAX_KNOTS] = {0};

    for (size_t i = 0; i < points->n; i++) {
        const struct comm_point *point = &points->items[i];
        const uint32_t k = point->knot;
        const double share = point->share, *us = curve->us + k;
        double residual;

        if ((int)point->fold == without_fold)
            continue;
        residual = fabs((us[-1] + share * (us[0] - us[-1])) / point->us - 1);
        normal_add(a + (k - 1) * (n + 1), b + k - 1, n,
                   (const double[]){(1 - share) * guess[k - 1] / point->us,
                                    share * guess[k] / point->us},
                   2, 1, 1 / fmax(residual, SMALL_RESIDUAL));
    }
    for (uint32_t k = 0; k + 2 < n; k++)
        normal_add(a + k * (n + 1), b + k, n, (const double[]){1, -2, 1}, 3, 0,
                   SMOOTHNESS);
    if (!has_latency)
        a[0] += 1e12;
    solve_symmetric(a, b, n);
    for (uint32_t k = 0; k < n; k++)
        curve->us[k] = b[k] * guess[k];
}

/* Fits a curve to all points outside a cross-validation fold, or to all points
 * if the fold is -1. The positions of the points refer to the knots of
 * `guess`. */
static bool fit_curve(struct comm_curve *curve, const struct comm_curve *guess,
                      const struct points *points, int without_fold)
{
    bool has_latency = true;

    *curve = *guess;
    for (unsigned i = 0; i < N_REWEIGHTINGS; i++) {
        refine(curve, points, guess->us, without_fold, has_latency);
        if (curve->us[0] < 0 && has_latency) {
            has_latency = false;
            refine(curve, points, guess->us, without_fold, has_latency);
        }
    }
    curve->us[0] = has_latency ? fmax(curve->us[0], 0) : 0;
    for (uint32_t k = 1; k < curve->n_knots; k++) {
        if (!isfinite(curve->us[k]))
            return false;
        curve->us[k] = fmax(curve->us[k], curve->us[k - 1]);
    }
    /* Sizes beyond the last knot are extrapolated by the last line, so the last
     * line has to rise. */
    while (curve->n_knots > 2 &&
           curve->us[curve->n_knots - 1] <= curve->us[curve->n_knots - 2])
        curve->n_knots--;
    return isfinite(curve->us[0]) &&
           curve->us[curve->n_knots - 1] > curve->us[curve->n_knots - 2];
}

/* Returns the mean relative error of fitted curves on held-out folds. The error
 * of one point counts at most 1. Returns INFINITY if some fold cannot be
 * predicted. */
static double validate(struct points *points, uint32_t n_knots)
{
    struct comm_curve guess = {0}, curve;
    double sum = 0;

    place_knots(&guess, points, n_knots);
    for (int fold = 0; fold < N_FOLDS; fold++) {
        if (!fit_curve(&curve, &guess, points, fold))
            return INFINITY;
        for (size_t i = 0; i < points->n; i++)
            if ((int)points->items[i].fold == fold)
                sum += fmin(fabs(comm_curve_us(&curve, points->items[i].bytes) /
                                     points->items[i].us -
                                 1),
                            1);
    }
    return sum / (double)points->n;
}

/* Returns the number of knots with the least error on held-out folds. A smaller
 * number is preferred if its error is hardly larger. Sets *error to INFINITY if
 * no curve can be fitted. */
static uint32_t choose_knots(struct points *points, double *error)
{
    /* If there are too few points to hold any out, the curve is a line through
     * all points. */
    uint32_t best = 2;

    *error = INFINITY;
    for (size_t c = 0; c < N_KNOT_CHOICES; c++) {
        double own;

        if (c && points->n < (size_t)POINTS_A_KNOT * knot_choices[c])
            break;
        own = validate(points, knot_choices[c]);
        if (own < (1 - WORTH_FRAC) * *error) {
            *error = own;
            best = knot_choices[c];
        }
    }
    return best;
}

/* Fits a curve to the samples of the group of `like`. Sets *error to the mean
 * error on held-out folds. Returns the number of samples, or 0 if they cannot
 * be fitted. */
static size_t fit_group(struct comm_curve *curve, double *error,
                        const struct comm_sample *samples, size_t n,
                        const struct comm_sample *like, struct comm_rules rules)
{
    struct points points = take_points(samples, n, like, rules);
    struct comm_curve guess = {0};
    bool is_fitted = points.high >= 2 * points.low;

    if (is_fitted) {
        place_knots(&guess, &points, choose_knots(&points, error));
        is_fitted = fit_curve(curve, &guess, &points, -1);
    }
    curve->n_ranks = like->n_ranks;
    curve->n_hosts = like->n_hosts;
    mem_free(points.items);
    return is_fitted ? points.n : 0;
}

bool comm_fit_is_new_group(const struct comm_sample *samples, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (is_like(&samples[j], &samples[i]))
            return false;
    return true;
}

/* Fits a curve to every group of one kind of exchange. Sets *error to the mean
 * error over all samples of the groups. Returns the number of samples. */
static size_t fit_kind(struct comm_curves *fit, const char *kind,
                       struct comm_rules rules,
                       const struct comm_sample *samples, size_t n,
                       double *error)
{
    size_t n_points = 0;

    *fit = (struct comm_curves){.rules = rules};
    *error = 0;
    for (size_t i = 0; i < n && fit->n_curves < COMM_MAX_CURVES; i++) {
        double group_error;
        size_t n_group = 0;

        if (!strcmp(samples[i].kind, kind) && comm_fit_is_new_group(samples, i))
            n_group = fit_group(&fit->curves[fit->n_curves], &group_error,
                                samples, n, &samples[i], rules);
        if (!n_group)
            continue;
        fit->n_curves++;
        *error += group_error * (double)n_group;
        n_points += n_group;
    }
    *error /= (double)n_points;
    return n_points;
}

/* Returns true if the bytes that cross the border of a host are known for all
 * exchanges of one kind. */
static bool knows_hosts(const char *kind, const struct comm_sample *samples,
                        size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(samples[i].kind, kind) && is_usable(&samples[i]) &&
            samples[i].n_hosts > 1 && !samples[i].host_bytes)
            return false;
    return true;
}

/* Fits curves to one kind of exchange by its default rules. Another rule is
 * used instead if there are enough exchanges and it predicts clearly better.
 * The two rules concern different groups of samples, so they are chosen one
 * after the other. */
static size_t fit_best_rules(struct comm_curves *fit, size_t witness,
                             const struct comm_sample *samples, size_t n)
{
    struct comm_rules rules = witnesses[witness].rules;
    const char *kind = witnesses[witness].kind;
    const bool may_share = knows_hosts(kind, samples, n);
    double error, other_error;
    size_t n_points;

    rules.shares_port &= may_share;
    n_points = fit_kind(fit, kind, rules, samples, n, &error);
    for (int i = 0; i < 2 && n_points >= MIN_MEASURED; i++) {
        struct comm_rules others = rules;
        struct comm_curves other;

        if (i)
            others.shares_port = may_share && !rules.shares_port;
        else
            others.form = rules.form == COMM_PORT ? COMM_TOTAL : COMM_PORT;
        if (fit_kind(&other, kind, others, samples, n, &other_error) !=
                n_points ||
            !(other_error < (1 - WORTH_FRAC) * error))
            continue;
        *fit = other;
        rules = others;
        error = other_error;
    }
    return n_points;
}

/* Returns true if a curve is of ranks that share the ports of their hosts. */
static bool has_shared_port(const struct comm_curves *fit)
{
    for (uint32_t i = 0; i < fit->n_curves; i++)
        if (fit->rules.shares_port && fit->curves[i].n_hosts > 1 &&
            fit->curves[i].n_ranks > fit->curves[i].n_hosts)
            return true;
    return false;
}

bool comm_fit_samples(struct comm_curves *fit,
                      const struct comm_sample *samples, size_t n,
                      struct arena *arena)
{
    for (size_t w = 0; w < N_WITNESSES; w++) {
        size_t n_points = fit_best_rules(fit, w, samples, n);

        if (!n_points)
            continue;
        fit->source =
            arena_printf(arena, "%s, %zu sizes%s", witnesses[w].what, n_points,
                         has_shared_port(fit) ? ", one port for a host" : "");
        return true;
    }
    return false;
}

void comm_fit_validate(struct comm_errors *errors,
                       const struct comm_sample *samples, size_t n,
                       const struct comm_sample *like)
{
    struct comm_sample *others;
    double *all, *uneven;
    struct arena arena = {0};

    others = ARENA_NEW(&arena, struct comm_sample, n);
    all = ARENA_NEW(&arena, double, n);
    uneven = ARENA_NEW(&arena, double, n);
    *errors = (struct comm_errors){0};
    for (unsigned fold = 0; fold < N_FOLDS; fold++) {
        struct comm_curves fit;
        size_t n_others = 0;

        for (size_t i = 0; i < n; i++)
            if (is_like(&samples[i], like) && is_usable(&samples[i]) &&
                fold_of(&samples[i]) != fold)
                others[n_others++] = samples[i];
        if (n_others < MIN_OTHERS ||
            !comm_fit_samples(&fit, others, n_others, &arena))
            continue;
        for (size_t i = 0; i < n; i++) {
            const struct comm_sample *sample = &samples[i];
            double us = 1000 * sample->time.median_ms, error;

            if (!is_like(sample, like) || !is_usable(sample) ||
                fold_of(sample) != fold)
                continue;
            error = fabs(comm_curve_us(&fit.curves[0],
                                       comm_rules_bytes(fit.rules, sample)) /
                             us -
                         1);
            all[errors->n++] = error;
            if ((double)sample->max_bytes * sample->n_ranks >
                UNEVEN * (double)sample->total_bytes)
                uneven[errors->n_uneven++] = error;
        }
    }
    errors->median_frac = stats_median(all, errors->n);
    errors->p90_frac = stats_quantile(all, errors->n, 0.9);
    errors->uneven_median_frac = stats_median(uneven, errors->n_uneven);
    errors->uneven_p90_frac = stats_quantile(uneven, errors->n_uneven, 0.9);
    arena_release(&arena);
}
