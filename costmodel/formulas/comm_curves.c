/* SPDX-License-Identifier: MIT */
#include "costmodel/formulas/comm_curves.h"

#include "costmodel/formulas/linear.h"

#include <math.h>

/*
 * Prior for the growth of the time of an exchange with ranks and hosts. It
 * decides whatever the measured curves do not determine.
 *
 *   GROWTH_PULL  weight of the prior, relative to a measured curve
 *   RANK_RISE    growth of the latency with each rank, as a fraction of the
 *                latency extrapolated to no ranks
 *   HOSTS_RISE   growth of a byte's time with each doubling of the hosts, as
 *                a fraction of the time for one host
 *
 * Both rises follow from across_hosts of gpu_spec.c.
 */
#define GROWTH_PULL 1e-4
#define RANK_RISE 0.02
#define HOSTS_RISE 0.294
/* Least value of a point in the fit of a growth, as a fraction of the largest
 * value. It limits the weight of small values. */
#define SMALL_VALUE 0.03

/* Returns the ratio of two numbers, the larger over the smaller, as a measure
 * of their dissimilarity. */
static double unlikeness(double a, double b)
{
    return a > 0 && b > 0 ? fmax(a / b, b / a) : 1;
}

/* Returns the factor by which y changes between x = from and x = to, given n
 * points (x, y) with x > 0 and y >= 0. Fits a line by least squares of the
 * relative error. A weak prior pulls the slope of the line to `rise` times its
 * start; the prior only matters if the points do not determine the slope. The
 * line neither starts below 0 nor falls. */
static double growth(const double *x, const double *y, size_t n, double rise,
                     double from, double to)
{
    /* line[] is the start and the slope of the fitted line. */
    double a[4] = {0}, line[2] = {0}, most = 0;

    for (size_t i = 0; i < n; i++)
        most = fmax(most, y[i]);
    for (size_t i = 0; i < n; i++) {
        const double over = 1 / fmax(y[i], SMALL_VALUE * most);

        normal_add(a, line, 2, (const double[]){1, x[i]}, 2, y[i], over * over);
        normal_add(a, line, 2, (const double[]){-rise * x[i], x[i]}, 2, 0,
                   GROWTH_PULL * over * over);
    }
    solve_symmetric(a, line, 2);
    if (!(most > 0) || !(line[1] > 0))
        return 1;
    line[0] = fmax(line[0], 0);
    return (line[0] + line[1] * to) / (line[0] + line[1] * from);
}

/* Returns the variable in which the time of a byte is linear. Across hosts it
 * is log2 of the number of hosts. Inside a host it is log2 of the number of
 * ranks. (The latency is linear in the ranks.) */
static double doublings(bool is_inter, double n_ranks, double n_hosts)
{
    return log2(is_inter ? n_hosts : n_ranks);
}

/* Extrapolates a curve from the numbers of ranks and hosts at which it was
 * measured to the given numbers. */
static void grow(struct comm_curve *curve, const struct comm_curves *fit,
                 bool is_inter, double n_ranks, double n_hosts)
{
    double ranks[COMM_MAX_CURVES], twice[COMM_MAX_CURVES];
    double latency_us[COMM_MAX_CURVES], byte_us[COMM_MAX_CURVES];
    double by_ranks, by_doublings, first_us = curve->us[0];
    size_t n = 0;

    for (uint32_t i = 0; i < fit->n_curves; i++) {
        const struct comm_curve *other = &fit->curves[i];

        if ((other->n_hosts > 1) != is_inter || other->n_ranks < 2)
            continue;
        ranks[n] = other->n_ranks;
        twice[n] = doublings(is_inter, other->n_ranks, other->n_hosts);
        latency_us[n] = other->us[0];
        byte_us[n++] = 1e-3 / comm_curve_gbps(other);
    }
    by_ranks = growth(ranks, latency_us, n, is_inter ? RANK_RISE : 0,
                      curve->n_ranks, n_ranks);
    by_doublings = growth(twice, byte_us, n, is_inter ? HOSTS_RISE : 0,
                          doublings(is_inter, curve->n_ranks, curve->n_hosts),
                          doublings(is_inter, n_ranks, n_hosts));
    for (uint32_t k = 0; k < curve->n_knots; k++)
        curve->us[k] =
            first_us * by_ranks + (curve->us[k] - first_us) * by_doublings;
}

/* Fills the curve of one level of the cluster (inside a host, or across hosts).
 * Sets *grown to true if no curve was measured at the ranks and hosts of this
 * level, so that the curve is extrapolated. */
static bool apply_level(const struct comm_curves *fit, bool is_inter,
                        double n_ranks, double n_hosts, struct comm_curve *out,
                        bool *grown)
{
    const struct comm_curve *best = NULL;
    double least = INFINITY;

    for (uint32_t i = 0; i < fit->n_curves; i++) {
        const struct comm_curve *curve = &fit->curves[i];
        const double unlike = unlikeness(curve->n_ranks, n_ranks) *
                              unlikeness(curve->n_hosts, n_hosts);

        if ((curve->n_hosts > 1) == is_inter && unlike < least) {
            least = unlike;
            best = curve;
        }
    }
    if (!best)
        return false;
    *out = *best;
    if (least > 1 && best->n_ranks > 1) {
        *grown = true;
        grow(out, fit, is_inter, n_ranks, n_hosts);
    }
    return true;
}

bool comm_curves_apply(const struct comm_curves *fit,
                       const struct cluster *cluster, struct arena *arena,
                       struct comm_model *model)
{
    const uint32_t n_ranks = cluster->n_devices;
    const uint32_t per_host = comm_group_devices(cluster);
    const bool is_one_host = per_host == n_ranks;
    const char *own = model->source;
    bool grown = false;
    const bool inside = per_host > 1 && apply_level(fit, false, per_host, 1,
                                                    &model->intra, &grown);
    const bool across =
        !is_one_host &&
        apply_level(fit, true, n_ranks, fmax(2, (double)n_ranks / per_host),
                    &model->inter, &grown);
    const char *lacking = per_host > 1 && !inside   ? "inside a host"
                          : !is_one_host && !across ? "across hosts"
                                                    : NULL;

    if (inside)
        model->rules.form = fit->rules.form;
    if (across)
        model->rules.shares_port = fit->rules.shares_port;
    model->measured_intra = inside;
    model->measured_inter = across;
    if (lacking && !inside && !across) {
        model->source =
            arena_printf(arena, "%s (none measured %s)", own, lacking);
        return false;
    }
    model->source = arena_printf(arena, "%s%s", fit->source,
                                 grown ? ", of other numbers of ranks" : "");
    if (lacking)
        model->source =
            arena_printf(arena, "%s; %s %s", model->source, lacking, own);
    return true;
}

const char *comm_curves_text(const struct comm_curves *fit, struct arena *arena)
{
    const char *text = "";

    for (uint32_t i = 0; i < fit->n_curves; i++) {
        const struct comm_curve *curve = &fit->curves[i];
        const char *ranks =
            curve->n_ranks ? arena_printf(arena, "%u ranks", curve->n_ranks)
                           : "any ranks";

        text = arena_printf(arena, "%s%s%s%s %.1f us, %.2f GB/s", text,
                            *text ? "; " : "", ranks,
                            curve->n_hosts > 1 ? " across hosts" : "",
                            curve->us[0], comm_curve_gbps(curve));
    }
    return text;
}
