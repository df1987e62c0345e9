/* SPDX-License-Identifier: MIT */
/* How long a canary has measurements repeated, by a clock that this test
 * moves: each look at it takes look_ms. */
#include "device/canary.h"

#include "base/clock.h"
#include "tests/tap.h"

#include <time.h>

#define MEASUREMENT_MS 700
#define N_MOST 50

static double now_ms, look_ms = 1;

double clock_ms(void)
{
    return now_ms += look_ms;
}

const char *clock_utc(char buf[CLOCK_TEXT_MAX])
{
    snprintf(buf, CLOCK_TEXT_MAX, "2026-11-22T09:00:00Z");
    return buf;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    now_ms += (double)time->tv_sec * 1e3 + (double)time->tv_nsec * 1e-6;
    return 0;
}

/* Measures until one is kept; says how often, and how much of the patience of
 * 2 s and half of the time since then was left before the last. */
static unsigned measure(struct canary *canary, double opened_ms,
                        enum canary_verdict *verdict, double *left_ms)
{
    double waited_ms = 0;
    struct err err = {0};
    unsigned n = 0;

    do {
        double begin_ms = now_ms;

        *left_ms = 2000 + 0.5 * (now_ms - opened_ms) - waited_ms;
        now_ms += MEASUREMENT_MS;
        if (canary_judge(canary, begin_ms, verdict, &err))
            ok(0, "judged: %s", err.msg);
        waited_ms += now_ms - begin_ms;
    } while (*verdict == CANARY_AGAIN && ++n < N_MOST);
    return n;
}

int main(void)
{
    struct canary *canary = NULL;
    struct device *device = NULL;
    enum canary_verdict verdict;
    struct err err = {0};
    double opened_ms, left_ms;
    unsigned n;

    ok(!device_open(&device, DEVICE_CPU, 0, 1, &err), "a device %s", err.msg);
    opened_ms = now_ms;
    ok(!canary_open(&canary, device, &err), "a canary %s", err.msg);
    n = measure(canary, opened_ms, &verdict, &left_ms);
    ok(n == 0 && verdict == CANARY_QUIET, "what is quiet is kept at once");
    look_ms = 1.2;
    n = measure(canary, opened_ms, &verdict, &left_ms);
    ok(n == 0 && verdict == CANARY_QUIET, "so is what is hardly slower");
    look_ms = 2;
    n = measure(canary, opened_ms, &verdict, &left_ms);
    ok(n > 1 && n < N_MOST && verdict == CANARY_DISTURBED,
       "what is disturbed is repeated, %u times", n);
    ok(left_ms < MEASUREMENT_MS && left_ms > -MEASUREMENT_MS,
       "until patience ends: %g ms are left", left_ms);
    look_ms = 1;
    n = measure(canary, opened_ms, &verdict, &left_ms);
    ok(n == 0 && verdict == CANARY_QUIET, "quiet again");
    canary_close(canary);
    device_close(device);
    return tap_done();
}
