/* SPDX-License-Identifier: MIT */
#include "costmodel/train.h"

#include <math.h>
#include <string.h>

/* Kinds of exchanges, the best witness first. */
static const struct {
    const char *kind;
    enum comm_form form;
    const char *what;
} witnesses[] = {
    {"nccl", COMM_PORT, "measured all-to-all (NCCL)"},
    {"copy", COMM_TOTAL, "measured all-to-all (copies between ranks)"},
    {"mpi", COMM_TOTAL, "measured all-to-all (MPI)"},
};

/* One point of the line: microseconds against bytes. */
struct point {
    double bytes, us;
};

static size_t take_points(struct point *points, const char *kind,
                          enum comm_form form,
                          const struct comm_sample *samples, size_t n)
{
    size_t n_points = 0;

    for (size_t i = 0; i < n; i++) {
        const struct comm_sample *sample = &samples[i];
        uint64_t bytes =
            form == COMM_PORT ? sample->max_bytes : sample->total_bytes;

        if (!strcmp(sample->kind, kind) && bytes > 0 &&
            isfinite(sample->time.median_ms) && sample->time.median_ms > 0)
            points[n_points++] =
                (struct point){(double)bytes, 1000 * sample->time.median_ms};
    }
    return n_points;
}

static bool has_three_sizes(const struct point *points, size_t n)
{
    double low = INFINITY, high = 0;

    for (size_t i = 0; i < n; i++) {
        low = fmin(low, points[i].bytes);
        high = fmax(high, points[i].bytes);
    }
    for (size_t i = 0; i < n; i++)
        if (points[i].bytes > low && points[i].bytes < high)
            return true;
    return false;
}

/* us = alpha + slope bytes with weights 1 / us^2; where the best alpha is
 * negative, the best line through the origin. */
static bool fit_line(double *alpha, double *slope, const struct point *points,
                     size_t n)
{
    double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0, det;

    for (size_t i = 0; i < n; i++) {
        double x = points[i].bytes, y = points[i].us;
        double weight = 1 / (y * y);

        w += weight;
        wx += weight * x;
        wy += weight * y;
        wxx += weight * x * x;
        wxy += weight * x * y;
    }
    det = w * wxx - wx * wx;
    *slope = (w * wxy - wx * wy) / det;
    *alpha = (wy - *slope * wx) / w;
    if (*alpha < 0) {
        *alpha = 0;
        *slope = wxy / wxx;
    }
    return isfinite(*alpha) && isfinite(*slope) && *slope > 0;
}

bool train_comm(struct comm_model *comm, const struct comm_sample *samples,
                size_t n, struct arena *arena)
{
    struct point *points = mem_alloc(n, sizeof(*points));
    bool found = false;

    for (size_t k = 0; k < sizeof(witnesses) / sizeof(witnesses[0]); k++) {
        const enum comm_form form = witnesses[k].form;
        size_t n_points =
            take_points(points, witnesses[k].kind, form, samples, n);
        double alpha, slope;

        if (!has_three_sizes(points, n_points) ||
            !fit_line(&alpha, &slope, points, n_points))
            continue;
        *comm = (struct comm_model){
            .form = form,
            .alpha_us = alpha,
            .intra_gbps = 1e-3 / slope,
            .source = arena_printf(arena, "%s, %zu sizes", witnesses[k].what,
                                   n_points),
        };
        found = true;
        break;
    }
    mem_free(points);
    return found;
}
