/* SPDX-License-Identifier: MIT */
#include "microbench/rig.h"
#include "tests/tap.h"

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

static void test_spread(void)
{
    static const double steady[] = {10, 10, 10, 10, 90};
    static const double wide[] = {8, 9, 10, 11, 12};
    static const double none[] = {0, 0, 0};

    is_near(timing_spread(steady, 5), 0, 1e-12, "one outlier does not count");
    is_near(timing_spread(wide, 5), 0.1, 1e-12, "median deviation, relative");
    is_near(timing_spread(none, 3), 0, 1e-12, "of no time at all");
    ok(steady[4] == 90, "laps stay as they are");
}

int main(void)
{
    test_timing();
    test_spread();
    return tap_done();
}
