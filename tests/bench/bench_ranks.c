/* SPDX-License-Identifier: MIT */
/*
 * Judges models by lists of tables that they never saw (tests/left_out.h).
 * Prints, for each list, the errors of the predictions of its ranks, the share
 * inside their intervals, and the regret of the plan whose slowest rank the
 * model predicts to be fastest. Also prints the errors of the ratios of two of
 * its plans: the median, the error that nine of ten ratios do not exceed, and
 * the latter as a share of the error of one price (RATIO_ERROR_SHARE).
 *
 *     bench_ranks [monotone|roofline-net|net|roofline]
 */

#include "base/stats.h"
#include "tests/left_out.h"

#define MAX_PAIRS (MAX_PLANS * (MAX_PLANS - 1) / 2)

/* Sums over the lists. */
struct tally {
    double *apes; /* [n] */
    size_t n, n_within;
    double pairs[MAX_PAIRS], shares[MAX_PAIRS]; /* [n_pairs] */
    size_t n_pairs;
};

/* Returns the regret of the plan that the model picks: time of its slowest rank
 * over that of the best plan, minus 1. */
static double regret_of(const struct left_out *left_out)
{
    const struct measured *measured = left_out->measured;
    double picked_ms = NAN, least_predicted = INFINITY, least_ms = INFINITY;

    for (size_t p = 0; p < measured->n_plans; p++) {
        struct slowest slowest;

        if (strcmp(measured->plans[p].list, left_out->list) != 0)
            continue;
        slowest = slowest_of(left_out, &measured->plans[p]);
        least_ms = fmin(least_ms, slowest.ms);
        if (slowest.predicted_ms < least_predicted) {
            least_predicted = slowest.predicted_ms;
            picked_ms = slowest.ms;
        }
    }
    return picked_ms / least_ms - 1;
}

/* Prints the columns of the ratios; sorts them. */
static void print_ratios(double *pairs, double *shares, size_t n)
{
    printf(" %6zu %6.2f %6.2f %6.2f\n", n, 100 * stats_median(pairs, n),
           100 * stats_quantile(pairs, n, 0.9), stats_quantile(shares, n, 0.9));
}

static void judge(const struct left_out *left_out, struct tally *tally)
{
    const size_t n = left_out->n_ranks, first = tally->n_pairs;
    struct ratio_error errors[MAX_PAIRS];
    const size_t n_pairs = ratio_errors(errors, left_out);
    double *apes = tally->apes + tally->n, bias = 0;
    size_t n_within = 0;

    for (size_t i = 0; i < n; i++) {
        const double ms = left_out->ranks[i].total.median_ms;
        const double predicted = left_out->predicted[i];
        const struct interval *interval = interval_find(
            &left_out->model.intervals, interval_class_of(&left_out->ranks[i]));

        apes[i] = fabs(predicted / ms - 1);
        bias += log(predicted / ms) / (double)n;
        n_within +=
            interval && interval_error(ms, predicted) <= interval->error_frac;
    }
    tally->n += n;
    tally->n_within += n_within;
    for (size_t i = 0; i < n_pairs; i++) {
        tally->pairs[tally->n_pairs] = errors[i].frac;
        tally->shares[tally->n_pairs++] = errors[i].share;
    }
    printf("%-32s %6zu %7.2f %8.2f %8.3f %9.1f %8.2f", left_out->list, n,
           100 * stats_mean(apes, n), 100 * stats_median(apes, n), exp(bias),
           100 * (double)n_within / (double)n, 100 * regret_of(left_out));
    print_ratios(tally->pairs + first, tally->shares + first, n_pairs);
}

static int judge_lists(const struct measured *measured,
                       const struct train_options *options, struct tally *tally,
                       struct err *err)
{
    const char *list = NULL;

    while ((list = measured_next(measured, list))) {
        struct left_out left_out;
        struct arena arena = {0};
        int rc = leave_out(&left_out, measured, list, options, &arena, err);

        if (!rc)
            judge(&left_out, tally);
        arena_release(&arena);
        if (rc)
            return rc;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct train_options options;
    struct measured measured;
    struct tally tally = {.n = 0};
    struct arena arena = {0};
    struct err err = {0};
    const char *kind = argc > 1 ? argv[1] : "monotone";

    train_options_init(&options);
    options.kind = !strcmp(kind, "roofline")       ? MODEL_ROOFLINE
                   : !strcmp(kind, "net")          ? MODEL_NET
                   : !strcmp(kind, "roofline-net") ? MODEL_ROOFLINE_NET
                                                   : MODEL_MONOTONE;
    if (measured_read(&measured, &arena, &err)) {
        fprintf(stderr, "bench_ranks: %s\n", err.msg);
        return 1;
    }
    tally.apes = ARENA_NEW(&arena, double, measured.n_ranks);
    printf("ranks of a list that the %s never saw, and ratios of its plans\n"
           "%-32s %6s %7s %8s %8s %9s %8s %6s %6s %6s %6s\n",
           kind, "list", "ranks", "mean %", "median %", "bias", "inside %",
           "regret %", "pairs", "50 %", "90 %", "share");
    if (judge_lists(&measured, &options, &tally, &err)) {
        fprintf(stderr, "bench_ranks: %s\n", err.msg);
        return 1;
    }
    printf("%-32s %6zu %7.2f %8.2f %8s %9.1f %8s", "all", tally.n,
           100 * stats_mean(tally.apes, tally.n),
           100 * stats_median(tally.apes, tally.n), "",
           100 * (double)tally.n_within / (double)tally.n, "");
    print_ratios(tally.pairs, tally.shares, tally.n_pairs);
    arena_release(&arena);
    return 0;
}
