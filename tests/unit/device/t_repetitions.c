/* SPDX-License-Identifier: MIT */
#include "device/repetitions.h"
#include "tests/tap.h"

#include <string.h>

static void test_timing(void)
{
    double ms[] = {5, 1, 4, 2, 3}, one[] = {7}, pair[] = {2, 1};
    struct timing timing = timing_of(ms, 5);

    is_near(timing.median_ms, 3, 1e-12, "median");
    is_near(timing.p10_ms, 1.4, 1e-12, "10th percentile");
    is_near(timing.p90_ms, 4.6, 1e-12, "90th percentile");
    timing = timing_of(one, 1);
    ok(timing.median_ms == 7 && timing.p10_ms == 7 && timing.p90_ms == 7,
       "of one lap");
    is_near(timing_of(pair, 2).median_ms, 1.5, 1e-12, "of two");
}

/* Repetitions that report their own number, and count themselves. */
struct counted {
    unsigned fails_at, n;
    /* true: all take 1 ms except one; false: increasing times */
    bool is_steady;
};

static int count(void *ctx, unsigned number, double *ms, struct err *err)
{
    struct counted *counted = ctx;

    if (number == counted->fails_at)
        return err_set(err, ERR_DEVICE, "lap %u", number);
    ms[0] = 100 + number;
    ms[1] = counted->is_steady ? (number == 4 ? 90 : 1) : number;
    counted->n++;
    return 0;
}

static void test_repetitions(void)
{
    struct counted counted = {UINT32_MAX, 0, true};
    struct repetitions repetitions = {count, &counted, 2, 2, 5, 0, NULL};
    struct timing parts[2];
    struct err err = {0};

    ok(!repetitions_time(parts, &repetitions, &err), "laps %s", err.msg);
    ok(counted.n == 7 && repetitions.n == 5,
       "the requested number of repetitions");
    is_near(parts[0].median_ms, 104, 1e-12, "warm-up repetitions do not count");
    is_near(parts[1].median_ms, 1, 1e-12, "each part by itself");
    repetitions.n_most = 9;
    ok(!repetitions_time(parts, &repetitions, &err) && repetitions.n == 5,
       "an outlier leaves them steady");
    counted.is_steady = false;
    ok(!repetitions_time(parts, &repetitions, &err) && repetitions.n > 5 &&
           repetitions.n <= 9,
       "unsteady ones get more: %u", repetitions.n);
    is_near(parts[0].p10_ms, 102 + 0.1 * (repetitions.n - 1), 1e-9,
            "which count as well");
    counted.fails_at = 4;
    ok(repetitions_time(parts, &repetitions, &err) && !strcmp(err.msg, "lap 4"),
       "a lap that fails: %s", err.msg);
}

int main(void)
{
    test_timing();
    test_repetitions();
    return tap_done();
}
