/* SPDX-License-Identifier: MIT */
#include "core/rank_law.h"

#include <math.h>
#include <string.h>

double reuse_bin_count(unsigned k)
{
    return k < 2 ? k + 1.0 : ldexp(3.0, (int)k - 2);
}

unsigned reuse_bin_of(double count)
{
    unsigned k = 0;

    while (k < REUSE_BINS - 1 && count > ldexp(1.0, (int)k))
        k++;
    return k;
}

/* Divides `total` in proportion to the weights. Each bin first gets the floor
 * of its share. The rest is divided by largest remainder; among equal
 * remainders, the smaller index comes first. */
static void largest_remainder(uint64_t total, const double weight[REUSE_BINS],
                              uint64_t out[REUSE_BINS])
{
    double sum = 0, rest[REUSE_BINS];
    uint64_t given = 0;

    for (int k = 0; k < REUSE_BINS; k++)
        sum += weight[k];
    for (int k = 0; k < REUSE_BINS; k++) {
        double exact = (double)total * weight[k] / sum;

        /* min_u64 only matters if rounding errors occur */
        out[k] = min_u64((uint64_t)exact, total - given);
        rest[k] = weight[k] > 0 ? exact - (double)out[k] : -1;
        given += out[k];
    }
    while (given < total) {
        int best = 0;

        for (int k = 1; k < REUSE_BINS; k++)
            if (rest[k] > rest[best])
                best = k;
        out[best]++;
        rest[best]--;
        given++;
    }
}

/* Distributes n_lookups lookups over the bins: steps 2 and 3 of the method that
 * is described at law_apportion (core/rank_law.h). */
static void settle_lookups(uint64_t n_lookups,
                           const uint64_t unique[REUSE_BINS],
                           uint64_t lookups[REUSE_BINS])
{
    int64_t missing = (int64_t)n_lookups;
    int hottest = 0;

    for (int k = 0; k < REUSE_BINS; k++) {
        lookups[k] = unique[k] * (uint64_t)reuse_bin_count((unsigned)k);
        missing -= (int64_t)lookups[k];
        if (unique[k])
            hottest = k;
    }
    for (int strict = 1; strict >= 0; strict--)
        for (int k = hottest; k >= 0 && missing; k--) {
            const bool is_last = k == REUSE_BINS - 1;
            /* least and largest number of lookups of all rows of bin k */
            const uint64_t low =
                unique[k] * (strict && k ? (1ull << (k - 1)) + 1 : 1);
            const uint64_t high =
                unique[k] * (strict && !is_last ? 1ull << k : UINT32_MAX);
            int64_t change = missing;

            if (change > (int64_t)(high - lookups[k]))
                change = (int64_t)(high - lookups[k]);
            if (change < -(int64_t)(lookups[k] - low))
                change = -(int64_t)(lookups[k] - low);
            lookups[k] = (uint64_t)((int64_t)lookups[k] + change);
            missing -= change;
        }
}

void law_apportion(const double bins[REUSE_BINS], uint64_t n_lookups,
                   uint64_t n_rows, uint64_t unique[REUSE_BINS],
                   uint64_t lookups[REUSE_BINS])
{
    double weight[REUSE_BINS], share = 0, used = 0, wanted;
    uint64_t n_unique;

    memset(unique, 0, REUSE_BINS * sizeof *unique);
    memset(lookups, 0, REUSE_BINS * sizeof *lookups);
    if (!n_lookups)
        return;
    memcpy(weight, bins, sizeof weight);
    for (unsigned k = 0; k < REUSE_BINS; k++) {
        share += weight[k];
        used += weight[k] * reuse_bin_count(k);
    }
    if (share <= 0)
        share = used = weight[0] = 1;
    wanted = floor((double)n_lookups * share / used + 0.5);
    n_unique = min_u64(wanted < 1 ? 1 : (uint64_t)wanted, n_rows);
    largest_remainder(n_unique, weight, unique);
    if (wanted > (double)n_rows) {
        for (unsigned k = 0; k < REUSE_BINS; k++)
            weight[k] = (double)unique[k] * reuse_bin_count(k);
        largest_remainder(n_lookups, weight, lookups);
    } else {
        settle_lookups(n_lookups, unique, lookups);
    }
}

/* Returns the integral of r^-alpha over r from a to b. Accurate even if alpha
 * is at or near 1. */
static double power_integral(double a, double b, double alpha)
{
    double log_ratio = log(b / a), x = (1 - alpha) * log_ratio;

    if (fabs(x) < 1e-12)
        return log_ratio * pow(a, 1 - alpha);
    return pow(a, 1 - alpha) * log_ratio * expm1(x) / x;
}

/* Appends a run of n_ranks ranks, which together get `share` of the lookups. */
static void add_run(struct rank_law *law, double n_ranks, double share)
{
    const uint32_t i = law->n_runs;

    if (!(n_ranks > 0))
        return;
    law->first_rank[i + 1] = law->first_rank[i] + n_ranks;
    law->before[i + 1] = law->before[i] + share;
    law->n_runs++;
}

/* Initialises the runs of ranks from the bins. The rows of a bin differ by at
 * most one lookup. The rows with one more lookup come first, as in struct
 * stream_bin. */
static void init_bins(struct rank_law *law, const struct table *table,
                      double n_lookups)
{
    const uint64_t n = (uint64_t)fmin(fmax(n_lookups + 0.5, 1), INT32_MAX);
    uint64_t unique[REUSE_BINS], lookups[REUSE_BINS];

    law->n_lookups = (double)n;
    law_apportion(table->bins, n, table->num_embeddings, unique, lookups);
    for (int k = REUSE_BINS - 1; k >= LAW_FIRST_HOT_BIN; k--) {
        uint64_t count = unique[k] ? lookups[k] / unique[k] : 0;
        uint64_t n_more = unique[k] ? lookups[k] % unique[k] : 0;

        add_run(law, (double)n_more,
                (double)(n_more * (count + 1)) / (double)n);
        add_run(law, (double)(unique[k] - n_more),
                (double)((unique[k] - n_more) * count) / (double)n);
    }
    for (int k = 0; k < LAW_FIRST_HOT_BIN; k++)
        law->n_cold[k] = (double)unique[k];
    law->has_cold = law->n_rows > law->first_rank[law->n_runs];
    add_run(law, law->n_rows - law->first_rank[law->n_runs],
            1 - law->before[law->n_runs]);
}

void law_init(struct rank_law *law, const struct table *table, double n_lookups)
{
    const int n = (int)min_u64(table->num_embeddings, LAW_EXACT_RANKS);

    *law = (struct rank_law){.has_bins = table->has_bins,
                             .n_rows = (double)table->num_embeddings,
                             .alpha = table->zipf_alpha};
    if (law->has_bins) {
        init_bins(law, table, n_lookups);
        return;
    }
    for (int r = 0; r < n; r++)
        law->exact[r + 1] = law->exact[r] + pow(r + 1.0, -law->alpha);
    law->sum = law->exact[n];
    if (law->n_rows > n)
        law->sum += power_integral(n + 0.5, law->n_rows + 0.5, law->alpha);
    for (int r = 0; r < n; r++)
        law->exact[r + 1] /= law->sum;
}

/* Returns the index of the run that contains the rank. */
static uint32_t run_of(const struct rank_law *law, double rank)
{
    uint32_t i = 0;

    while (i + 1 < law->n_runs && rank >= law->first_rank[i + 1])
        i++;
    return i;
}

/* Returns the share of all lookups that a single rank of run i gets. */
static double run_share(const struct rank_law *law, uint32_t i)
{
    return (law->before[i + 1] - law->before[i]) /
           (law->first_rank[i + 1] - law->first_rank[i]);
}

double law_before(const struct rank_law *law, double rank)
{
    uint32_t i;

    if (law->has_bins) {
        i = run_of(law, rank);
        return law->before[i] + (rank - law->first_rank[i]) * run_share(law, i);
    }
    if (rank <= LAW_EXACT_RANKS)
        return law->exact[(int)rank];
    return law->exact[LAW_EXACT_RANKS] +
           power_integral(LAW_EXACT_RANKS + 0.5, rank + 0.5, law->alpha) /
               law->sum;
}

double law_of_rank(const struct rank_law *law, uint32_t rank)
{
    return law->has_bins ? run_share(law, run_of(law, rank))
                         : pow(rank + 1.0, -law->alpha) / law->sum;
}

double law_uses(double count, double limit)
{
    return limit > 0 ? -limit * expm1(-count / limit) : count;
}

/* --- number of rows by number of uses --- */

/*
 * Reuse of the rows of a Zipf table.
 *
 * The row of rank r (1 .. R) is looked up with probability p(r) = r^-alpha / H.
 * In n lookups, its number of uses is a Poisson number with mean n p(r). The
 * expected number of unique rows and the expected histogram of uses are sums
 * over the ranks. The first LAW_EXACT_RANKS ranks are summed one by one. For
 * later ranks p changes so slowly that the ranks are summed in log-spaced
 * buckets. All ranks of a bucket get the mean probability of the bucket,
 * computed from its exact sum, so that the lookups still add up to n.
 *
 * Compared with the sum over all single ranks, the number of unique rows
 * differs by at most 2e-4 (relative), and the shares of the bins differ by at
 * most 3e-3 (absolute). The computation takes a few hundred steps.
 */
#define BUCKETS_AN_OCTAVE 16

/* Least mean for which Poisson probabilities are computed by the normal law. */
#define NORMAL_FROM 64.0
/* Number of standard deviations from the mean beyond which a count is treated
 * as having probability 0. */
#define NORMAL_REACH 8.5

/* Returns P(X <= m) for X ~ Poisson(mean) by Peizer and Pratt's normal
 * approximation (JASA 63, 1968). Accurate to 1e-5 if the mean is at least
 * NORMAL_FROM. */
static double poisson_cdf(double m, double mean)
{
    double distance = m + 2.0 / 3.0 - mean;
    double t = (m + 0.5) / mean, g;

    if (distance * distance >
        NORMAL_REACH * NORMAL_REACH * (mean > m ? mean : m))
        return distance > 0;
    /* g(t) is 0/0 at t = 1, and about (1 - t) / 3 close to t = 1 */
    g = fabs(1 - t) > 1e-3 ? (1 - t * t + 2 * t * log(t)) / ((1 - t) * (1 - t))
                           : (1 - t) / 3;
    distance += 0.02 / (m + 1);
    return 0.5 * erfc(-distance * sqrt((1 + g) / mean) * M_SQRT1_2);
}

/* Adds n_rows rows to rows[k], the expected number of rows in each bin k. The
 * number of uses of each row is a Poisson number with mean `mean`. Rows without
 * a use are in no bin. */
static void add_rows(double rows[REUSE_BINS], double n_rows, double mean)
{
    /* `most` is the largest count of bin k */
    double p = exp(-mean) * mean, most = 1, below = 0;
    unsigned count = 1;

    if (mean >= NORMAL_FROM) {
        for (unsigned k = 0; k < REUSE_BINS && below < 1; k++, most *= 2) {
            double cdf = k < REUSE_BINS - 1 ? poisson_cdf(most, mean) : 1;

            rows[k] += n_rows * (cdf - below);
            below = cdf;
        }
        return;
    }
    for (unsigned k = 0; count <= mean || p > 1e-16 * mean; k++, most *= 2) {
        double in_bin = rows[k];

        for (; count <= most && (count <= mean || p > 1e-16 * mean); count++) {
            in_bin += n_rows * p;
            p *= mean / (count + 1);
        }
        rows[k] = in_bin;
    }
}

size_t law_split(const struct rank_law *law, double n_lookups, double begin,
                 double end, struct law_group out[LAW_MAX_GROUPS])
{
    const double n_exact = fmin(end, LAW_EXACT_RANKS);
    size_t n = 0;

    for (uint32_t i = 0; i < law->n_runs; i++)
        out[n++] = (struct law_group){fmax(fmin(end, law->first_rank[i + 1]) -
                                               fmax(begin, law->first_rank[i]),
                                           0),
                                      run_share(law, i) * law->n_lookups};
    if (law->has_bins)
        return n;
    for (; begin < n_exact; begin++)
        out[n++] = (struct law_group){
            1, n_lookups * pow(begin + 1, -law->alpha) / law->sum};
    while (begin < end) {
        double next =
            fmin(floor((begin + 1) * (1 + M_LN2 / BUCKETS_AN_OCTAVE)), end);

        out[n++] = (struct law_group){
            next - begin,
            n_lookups / law->sum / (next - begin) *
                power_integral(begin + 0.5, next + 0.5, law->alpha)};
        begin = next;
    }
    return n;
}

void law_add_rows(const struct rank_law *law, double n_lookups, double begin,
                  double end, double rows[REUSE_BINS])
{
    struct law_group groups[LAW_MAX_GROUPS];
    const size_t n =
        law_split(law, n_lookups, begin, end, groups) - (law->has_cold ? 1 : 0);

    for (size_t i = 0; i < n; i++)
        if (law->has_bins)
            rows[reuse_bin_of(groups[i].mean)] += groups[i].n_rows;
        else
            add_rows(rows, groups[i].n_rows, groups[i].mean);
    for (int k = 0; k < LAW_FIRST_HOT_BIN && law->has_cold; k++)
        rows[k] += law->n_cold[k] * groups[n].n_rows /
                   (law->n_rows - law->first_rank[n]);
}

double table_reuse(const struct table *table, double n_lookups,
                   double bins[REUSE_BINS])
{
    double n_rows = (double)table->num_embeddings, unique = 0;
    double share = 0, lookups = 0; /* sums over the table's histogram */
    double rows[REUSE_BINS] = {0};
    struct rank_law law;

    memset(bins, 0, REUSE_BINS * sizeof(bins[0]));
    if (n_lookups <= 0)
        return 0;
    /* the number of unique rows is n_lookups / mean uses of a row */
    if (table->has_bins) {
        for (unsigned k = 0; k < REUSE_BINS; k++) {
            bins[k] = table->bins[k];
            share += bins[k];
            lookups += bins[k] * reuse_bin_count(k);
        }
        return share > 0 ? fmin(n_lookups * share / lookups, n_rows) : 0;
    }
    /* a single row gets all lookups, so its count has no Poisson law */
    if (table->num_embeddings == 1) {
        bins[reuse_bin_of(n_lookups)] = 1;
        return fmin(n_lookups, 1);
    }
    law_init(&law, table, n_lookups);
    law_add_rows(&law, n_lookups, 0, n_rows, rows);
    for (unsigned k = 0; k < REUSE_BINS; k++)
        unique += rows[k];
    for (unsigned k = 0; k < REUSE_BINS && unique > 0; k++)
        bins[k] = rows[k] / unique;
    return fmin(unique, fmin(n_rows, n_lookups));
}

/* --- uses of rows after de-duplication of ids --- */

static double sum_uses(const struct law_group *groups, size_t n, double limit)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += groups[i].n_rows * law_uses(groups[i].mean, limit);
    return sum;
}

double law_sum_uses(const struct rank_law *law, double n_lookups, double begin,
                    double end, double limit)
{
    struct law_group groups[LAW_MAX_GROUPS];

    return sum_uses(groups, law_split(law, n_lookups, begin, end, groups),
                    limit);
}

/* Finds the limit by bisection of its logarithm, since the number of uses that
 * law_uses keeps increases with the limit. */
double law_limit(const struct rank_law *law, double n_lookups, double kept)
{
    struct law_group groups[LAW_MAX_GROUPS];
    double low = log(1e-9), high = log(1e15), wanted;
    size_t n;

    if (kept >= 1)
        return 0;
    n = law_split(law, n_lookups, 0, law->n_rows, groups);
    wanted = kept * sum_uses(groups, n, 0);
    for (int step = 0; step < 40; step++) {
        const double middle = (low + high) / 2;

        if (sum_uses(groups, n, exp(middle)) < wanted)
            low = middle;
        else
            high = middle;
    }
    return exp(low);
}
