/* SPDX-License-Identifier: MIT */
/* Tests how long the interference probe has measurements repeated, and its
 * verdicts on a machine that is busy from the start. The test replaces the
 * clock: each reading of it takes look_ms. */
#include "device/canary.h"

#include "base/clock.h"
#include "tests/tap.h"

#include <time.h>

#define MEASUREMENT_MS 700
#define N_MOST 50

static double now_ms, look_ms = 1;
/* Number of the measurement after which the machine is quiet for a moment. */
static unsigned moment = N_MOST;

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

/* Measures until a measurement is kept, and returns the number of repetitions.
 * Stores in *left_ms the patience left before the last one. The patience is 2 s
 * plus half of the time since the probe was opened. */
static unsigned measure(struct canary *canary, double opened_ms,
                        enum canary_verdict *verdict, double *left_ms)
{
    const double usual_ms = look_ms;
    double waited_ms = 0;
    struct err err = {0};
    unsigned n = 0;

    do {
        double begin_ms = now_ms;

        *left_ms = 2000 + 0.5 * (now_ms - opened_ms) - waited_ms;
        now_ms += MEASUREMENT_MS;
        look_ms = n == moment ? 1 : usual_ms;
        if (canary_judge(canary, begin_ms, verdict, &err))
            ok(0, "judged: %s", err.msg);
        look_ms = usual_ms;
        waited_ms += now_ms - begin_ms;
    } while (*verdict == CANARY_AGAIN && ++n < N_MOST);
    return n;
}

static int find_canary(void *ctx, const struct sample_setting *setting,
                       double *best_ms, struct err *err)
{
    (void)setting, (void)err;
    *best_ms = *(double *)ctx;
    return 0;
}

static int put_canary(void *ctx, const struct sample_setting *setting,
                      double best_ms, struct err *err)
{
    (void)setting, (void)err;
    ok(*(double *)ctx == 0 || best_ms < *(double *)ctx, "it is better");
    *(double *)ctx = best_ms;
    return 0;
}

/* Opens the probe on a busy machine: first without an earlier best time, then
 * after it learned one from a quieter time. */
static void test_steady(struct device *device, struct canary *quiet)
{
    double best_ms = 0, opened_ms = now_ms, left_ms, quiet_ms;
    const struct sample_sink sink = {.ctx = &best_ms,
                                     .find_canary = find_canary,
                                     .put_canary = put_canary},
                             none = {0};
    enum canary_verdict verdict;
    struct canary *canary;
    struct err err = {0};
    unsigned n;

    ok(!canary_teach(quiet, &sink, NULL, &err) && best_ms > 0 &&
           !canary_teach(quiet, &sink, NULL, &err),
       "a learned time is stored once");
    quiet_ms = best_ms;
    look_ms = 2;
    if (!ok(!canary_open(&canary, device, &err), "a canary %s", err.msg))
        return;
    n = measure(canary, opened_ms, &verdict, &left_ms);
    ok(n == 0 && verdict == CANARY_QUIET, "a steady load seems quiet");
    ok(!canary_learn(canary, &none, NULL, &err) &&
           !canary_teach(canary, &none, NULL, &err),
       "with a sink that stores nothing");
    ok(!canary_learn(canary, &sink, NULL, &err),
       "with a sink that has a better time");
    n = measure(canary, opened_ms, &verdict, &left_ms);
    ok(n > 0 && n < N_MOST && verdict == CANARY_DISTURBED,
       "the load is noticed from the first measurement on");
    now_ms += 1e4; /* time passes, which renews the patience */
    moment = 1;
    n = measure(canary, opened_ms, &verdict, &left_ms);
    ok(n > 2 && verdict == CANARY_DISTURBED,
       "also if the machine seems quiet for a moment");
    moment = N_MOST;
    ok(!canary_teach(canary, &sink, NULL, &err) && best_ms == quiet_ms,
       "nothing new is stored");
    look_ms = 0.5;
    n = measure(canary, opened_ms, &verdict, &left_ms);
    ok(n == 1 && verdict == CANARY_QUIET, "quieter than ever");
    ok(!canary_teach(canary, &sink, NULL, &err) && best_ms < quiet_ms,
       "the new best time is stored");
    canary_close(canary);
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
    ok(n == 0 && verdict == CANARY_QUIET,
       "a quiet measurement is kept at once");
    look_ms = 1.2;
    n = measure(canary, opened_ms, &verdict, &left_ms);
    ok(n == 0 && verdict == CANARY_QUIET, "so is a slightly slower one");
    look_ms = 2;
    n = measure(canary, opened_ms, &verdict, &left_ms);
    ok(n > 1 && n < N_MOST && verdict == CANARY_DISTURBED,
       "a disturbed measurement is repeated %u times", n);
    ok(left_ms < MEASUREMENT_MS && left_ms > -MEASUREMENT_MS,
       "until patience ends: %g ms are left", left_ms);
    look_ms = 1;
    n = measure(canary, opened_ms, &verdict, &left_ms);
    ok(n == 1 && verdict == CANARY_QUIET,
       "quiet again, once it was before and after");
    test_steady(device, canary);
    canary_close(canary);
    device_close(device);
    return tap_done();
}
