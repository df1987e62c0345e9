/* SPDX-License-Identifier: MIT */
#include "base/stats.h"

#include "base/mem.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

double stats_mean(const double *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return n ? sum / (double)n : NAN;
}

static int compare_doubles(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

double stats_quantile(double *x, size_t n, double q)
{
    double place, frac;
    size_t i;

    if (!n)
        return NAN;
    qsort(x, n, sizeof *x, compare_doubles);
    place = q * (double)(n - 1);
    i = (size_t)place;
    if (i + 1 >= n)
        return x[n - 1];
    frac = place - (double)i;
    return x[i] + frac * (x[i + 1] - x[i]);
}

double stats_median(double *x, size_t n)
{
    return stats_quantile(x, n, 0.5);
}

double stats_mse(const double *want, const double *got, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (got[i] - want[i]) * (got[i] - want[i]);
    return n ? sum / (double)n : NAN;
}

void stats_apes(double *apes, const double *want, const double *got, size_t n)
{
    for (size_t i = 0; i < n; i++)
        apes[i] = fabs(got[i] - want[i]) / fabs(want[i]);
}

struct pair {
    double x, y;
};

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *p = a, *q = b;
    int by_x = (p->x > q->x) - (p->x < q->x);

    return by_x ? by_x : (p->y > q->y) - (p->y < q->y);
}

static double n_pairs(size_t n)
{
    return 0.5 * (double)n * ((double)n - 1);
}

/* Sorts by y (spare: room for n) and returns the number of swaps that a bubble
 * sort would need, that is of pairs out of order. */
static double sort_counting_swaps(struct pair *pairs, struct pair *spare,
                                  size_t n)
{
    size_t mid = n / 2, i = 0, j = mid;
    double n_swaps;

    if (n < 2)
        return 0;
    n_swaps = sort_counting_swaps(pairs, spare, mid) +
              sort_counting_swaps(pairs + mid, spare, n - mid);
    for (size_t k = 0; k < n; k++) {
        if (j == n || (i < mid && pairs[i].y <= pairs[j].y)) {
            spare[k] = pairs[i++];
        } else {
            n_swaps += (double)(mid - i);
            spare[k] = pairs[j++];
        }
    }
    memcpy(pairs, spare, n * sizeof *pairs);
    return n_swaps;
}

/* How often two of the pairs, sorted by that, have the same x, y, or both. */
static double n_tied(const struct pair *pairs, size_t n, bool by_x, bool by_y)
{
    double n_tied = 0;

    for (size_t i = 0, begin = 0; i < n; i++)
        if (i + 1 == n || (by_x && pairs[i + 1].x != pairs[begin].x) ||
            (by_y && pairs[i + 1].y != pairs[begin].y)) {
            n_tied += n_pairs(i + 1 - begin);
            begin = i + 1;
        }
    return n_tied;
}

/* Knight's algorithm: sort by (x, y); a pair is discordant exactly if a
 * stable sort by y then has to swap it. */
double stats_kendall_tau(const double *x, const double *y, size_t n)
{
    struct pair *pairs = mem_alloc(n, 2 * sizeof *pairs);
    double tied_x, tied_y, tied_both, n_swaps, scale, tau;

    for (size_t i = 0; i < n; i++)
        pairs[i] = (struct pair){x[i], y[i]};
    qsort(pairs, n, sizeof *pairs, compare_pairs);
    tied_x = n_tied(pairs, n, true, false);
    tied_both = n_tied(pairs, n, true, true);
    n_swaps = sort_counting_swaps(pairs, pairs + n, n);
    tied_y = n_tied(pairs, n, false, true);
    mem_free(pairs);
    scale = sqrt(n_pairs(n) - tied_x) * sqrt(n_pairs(n) - tied_y);
    if (scale == 0)
        return NAN;
    tau = (n_pairs(n) - tied_x - tied_y + tied_both - 2 * n_swaps) / scale;
    return fmax(-1, fmin(1, tau)); /* whatever the roots were rounded to */
}
