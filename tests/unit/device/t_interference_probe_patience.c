/* SPDX-License-Identifier: MIT */
/* Tests how long the interference probe has measurements repeated, and its
 * verdicts on a machine that is busy from the start. The test replaces the
 * clock: each reading of it takes look_ms. */
#include "device/interference_probe.h"

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
 * plus a tenth of the time since the probe was opened. */
static unsigned measure(struct interference_probe *interference,
                        double opened_ms, enum interference_verdict *verdict,
                        double *left_ms)
{
    const double usual_ms = look_ms;
    double waited_ms = 0;
    struct err err = {0};
    unsigned n = 0;

    do {
        double begin_ms = now_ms;

        *left_ms = 2000 + 0.1 * (now_ms - opened_ms) - waited_ms;
        now_ms += MEASUREMENT_MS;
        look_ms = n == moment ? 1 : usual_ms;
        if (interference_probe_judge(interference, begin_ms, verdict, &err))
            ok(0, "judged: %s", err.msg);
        look_ms = usual_ms;
        waited_ms += now_ms - begin_ms;
    } while (*verdict == PROBE_AGAIN && ++n < N_MOST);
    return n;
}

static int find_interference_probe(void *ctx,
                                   const struct sample_setting *setting,
                                   double *best_ms, struct err *err)
{
    (void)setting, (void)err;
    *best_ms = *(double *)ctx;
    return 0;
}

static int put_interference_probe(void *ctx,
                                  const struct sample_setting *setting,
                                  double best_ms, struct err *err)
{
    (void)setting, (void)err;
    ok(*(double *)ctx == 0 || best_ms < *(double *)ctx, "it is better");
    *(double *)ctx = best_ms;
    return 0;
}

/* Opens the probe on a busy machine: first without an earlier best time, then
 * after it learned one from a quieter time. */
static void test_steady(struct device *device, struct interference_probe *quiet)
{
    double best_ms = 0, opened_ms = now_ms, left_ms, quiet_ms;
    const struct sample_sink sink = {.ctx = &best_ms,
                                     .find_interference_probe =
                                         find_interference_probe,
                                     .put_interference_probe =
                                         put_interference_probe},
                             none = {0};
    enum interference_verdict verdict;
    struct interference_probe *interference;
    struct err err = {0};
    unsigned n;

    ok(!interference_probe_teach(quiet, &sink, NULL, &err) && best_ms > 0 &&
           !interference_probe_teach(quiet, &sink, NULL, &err),
       "a learned time is stored once");
    quiet_ms = best_ms;
    look_ms = 2;
    if (!ok(!interference_probe_open(&interference, device, &err),
            "a canary %s", err.msg))
        return;
    n = measure(interference, opened_ms, &verdict, &left_ms);
    ok(n == 0 && verdict == PROBE_QUIET, "a steady load seems quiet");
    ok(!interference_probe_learn(interference, &none, NULL, &err) &&
           !interference_probe_teach(interference, &none, NULL, &err),
       "with a sink that stores nothing");
    ok(!interference_probe_learn(interference, &sink, NULL, &err),
       "with a sink that has a better time");
    n = measure(interference, opened_ms, &verdict, &left_ms);
    ok(n > 0 && n < N_MOST && verdict == PROBE_DISTURBED,
       "the load is noticed from the first measurement on");
    now_ms += 1e5; /* time passes, which renews the patience */
    moment = 1;
    n = measure(interference, opened_ms, &verdict, &left_ms);
    ok(n > 2 && verdict == PROBE_DISTURBED,
       "also if the machine seems quiet for a moment");
    moment = N_MOST;
    ok(!interference_probe_teach(interference, &sink, NULL, &err) &&
           best_ms == quiet_ms,
       "nothing new is stored");
    now_ms += 1e5;
    look_ms = 0.5;
    n = measure(interference, opened_ms, &verdict, &left_ms);
    ok(n == 1 && verdict == PROBE_QUIET, "quieter than ever");
    ok(!interference_probe_teach(interference, &sink, NULL, &err) &&
           best_ms < quiet_ms,
       "the new best time is stored");
    interference_probe_close(interference);
}

int main(void)
{
    struct interference_probe *interference = NULL;
    struct device *device = NULL;
    enum interference_verdict verdict;
    struct err err = {0};
    double opened_ms, left_ms;
    unsigned n;

    ok(!device_open(&device, DEVICE_CPU, 0, 1, &err), "a device %s", err.msg);
    opened_ms = now_ms;
    ok(!interference_probe_open(&interference, device, &err), "a canary %s",
       err.msg);
    n = measure(interference, opened_ms, &verdict, &left_ms);
    ok(n == 0 && verdict == PROBE_QUIET, "a quiet measurement is kept at once");
    look_ms = 1.2;
    n = measure(interference, opened_ms, &verdict, &left_ms);
    ok(n == 0 && verdict == PROBE_QUIET, "so is a slightly slower one");
    look_ms = 2;
    n = measure(interference, opened_ms, &verdict, &left_ms);
    ok(n > 1 && n < N_MOST && verdict == PROBE_DISTURBED,
       "a disturbed measurement is repeated %u times", n);
    ok(left_ms < MEASUREMENT_MS && left_ms > -MEASUREMENT_MS,
       "until patience ends: %g ms are left", left_ms);
    look_ms = 1;
    n = measure(interference, opened_ms, &verdict, &left_ms);
    ok(n == 1 && verdict == PROBE_QUIET,
       "quiet again, once it was before and after");
    test_steady(device, interference);
    interference_probe_close(interference);
    device_close(device);
    return tap_done();
}
