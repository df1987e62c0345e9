/* SPDX-License-Identifier: MIT */
#include "core/table.h"

#include <math.h>
#include <string.h>

/*
 * Reuse of the rows of a Zipf table. The row of rank r (1 .. R) is looked up
 * with probability p(r) = r^-alpha / H, so that of n look-ups it gets a
 * Poisson number with mean n p(r). Expected unique rows and the histogram of
 * counts are sums over the ranks. The first EXACT_RANKS are summed one by one;
 * beyond, p changes so slowly that ranks are taken in buckets, log-spaced,
 * each with the mean of its exact mass: the look-ups still add up to n.
 * Against the plain sum over all ranks this is within 2e-4 (relative, unique
 * rows) and 3e-3 (absolute, shares), and takes a few hundred steps.
 */
#define EXACT_RANKS 128
#define BUCKETS_AN_OCTAVE 16

/* From this mean on Poisson probabilities come from the normal law. */
#define NORMAL_FROM 64.0
/* Counts further than this many deviations away do not happen. */
#define NORMAL_REACH 8.5

double reuse_bin_count(unsigned k)
{
    return k < 2 ? k + 1.0 : ldexp(3.0, (int)k - 2);
}

/* The bin of rows that are looked up `count` >= 1 times. */
static unsigned bin_of_count(double count)
{
    unsigned k = 0;

    while (k < REUSE_BINS - 1 && count > ldexp(1.0, (int)k))
        k++;
    return k;
}

/* P(X <= m) for X ~ Poisson(mean), by Peizer and Pratt's normal approximation
 * (JASA 63, 1968); good to 1e-5 where the mean is at least NORMAL_FROM. */
static double poisson_cdf(double m, double mean)
{
    double distance = m + 2.0 / 3.0 - mean;
    double t = (m + 0.5) / mean;
    double g = 0;

    if (distance * distance >
        NORMAL_REACH * NORMAL_REACH * (mean > m ? mean : m))
        return distance > 0;
    /* g(t) is 0/0 at t = 1 and about (1 - t) / 3 beside it */
    if (fabs(1 - t) > 1e-3)
        g = (1 - t * t + 2 * t * log(t)) / ((1 - t) * (1 - t));
    else
        g = (1 - t) / 3;
    distance += 0.02 / (m + 1);
    return 0.5 * erfc(-distance * sqrt((1 + g) / mean) * M_SQRT1_2);
}

/* Adds n_rows rows, each with a Poisson count of this mean, to the expected
 * number of rows in each bin. Rows that are not used fall in none. */
static void add_rows(double rows[REUSE_BINS], double n_rows, double mean)
{
    double p, below = 0;
    unsigned k = 0;

    if (mean >= NORMAL_FROM) {
        for (k = 0; k < REUSE_BINS - 1; k++) {
            double cdf = poisson_cdf(ldexp(1.0, (int)k), mean);

            rows[k] += n_rows * (cdf - below);
            below = cdf;
        }
        rows[k] += n_rows * (1 - below);
        return;
    }
    p = exp(-mean) * mean;
    for (unsigned count = 1; count <= mean || p > 1e-16 * mean; count++) {
        if (count > 1u << k)
            k++;
        rows[k] += n_rows * p;
        p *= mean / (count + 1);
    }
}

/* Integral of r^-alpha from a to b, also where alpha is 1 or close to it. */
static double power_integral(double a, double b, double alpha)
{
    double log_ratio = log(b / a), x = (1 - alpha) * log_ratio;

    if (fabs(x) < 1e-12)
        return log_ratio * pow(a, 1 - alpha);
    return pow(a, 1 - alpha) * log_ratio * expm1(x) / x;
}

/* The weights r^-alpha of the first ranks; returns the sum over all. */
static double zipf_weights(double weight[EXACT_RANKS], double n_rows,
                           double alpha)
{
    double n_exact = n_rows < EXACT_RANKS ? n_rows : EXACT_RANKS, sum = 0;

    for (int r = 0; r < (int)n_exact; r++)
        sum += weight[r] = pow(r + 1.0, -alpha);
    if (n_rows > n_exact)
        sum += power_integral(n_exact + 0.5, n_rows + 0.5, alpha);
    return sum;
}

static void add_zipf(double rows[REUSE_BINS], double n_rows, double alpha,
                     double n_lookups)
{
    double n_exact = n_rows < EXACT_RANKS ? n_rows : EXACT_RANKS;
    double weight[EXACT_RANKS], sum = zipf_weights(weight, n_rows, alpha);
    double begin = n_exact + 1;

    for (int r = 0; r < (int)n_exact; r++)
        add_rows(rows, 1, n_lookups * weight[r] / sum);
    while (begin < n_rows + 1) {
        double next = floor(begin * (1 + M_LN2 / BUCKETS_AN_OCTAVE)) + 1;
        double end = fmin(next, n_rows + 1);

        add_rows(rows, end - begin,
                 n_lookups / sum / (end - begin) *
                     power_integral(begin - 0.5, end - 0.5, alpha));
        begin = end;
    }
}

/* A histogram that was given: unique rows follow from the mean count. */
static double unique_of_bins(const struct table *table, double n_lookups)
{
    double share = 0, lookups = 0, unique;

    for (unsigned k = 0; k < REUSE_BINS; k++) {
        share += table->bins[k];
        lookups += table->bins[k] * reuse_bin_count(k);
    }
    if (share <= 0)
        return 0;
    unique = n_lookups * share / lookups;
    return fmin(unique, (double)table->num_embeddings);
}

double table_reuse(const struct table *table, double n_lookups,
                   double bins[REUSE_BINS])
{
    double n_rows = (double)table->num_embeddings, unique = 0;
    double rows[REUSE_BINS] = {0};

    memset(bins, 0, REUSE_BINS * sizeof(bins[0]));
    if (n_lookups <= 0)
        return 0;
    if (table->has_bins) {
        memcpy(bins, table->bins, REUSE_BINS * sizeof(bins[0]));
        return unique_of_bins(table, n_lookups);
    }
    if (table->num_embeddings == 1) { /* no chance in it, so no Poisson */
        bins[bin_of_count(n_lookups)] = 1;
        return fmin(n_lookups, 1);
    }
    add_zipf(rows, n_rows, table->zipf_alpha, n_lookups);
    for (unsigned k = 0; k < REUSE_BINS; k++)
        unique += rows[k];
    for (unsigned k = 0; k < REUSE_BINS && unique > 0; k++)
        bins[k] = rows[k] / unique;
    return fmin(unique, fmin(n_rows, n_lookups));
}

double table_top_share(const struct table *table, double n_lookups)
{
    double bins[REUSE_BINS], weight[EXACT_RANKS], unique;
    unsigned k = REUSE_BINS;

    if (n_lookups <= 0)
        return 0;
    if (!table->has_bins)
        return 1 / zipf_weights(weight, (double)table->num_embeddings,
                                table->zipf_alpha);
    unique = table_reuse(table, n_lookups, bins);
    while (k > 0 && unique * bins[k - 1] < 0.5)
        k--;
    return k ? fmin(1, reuse_bin_count(k - 1) / n_lookups) : 0;
}
