/* SPDX-License-Identifier: MIT */
#include "device/canary.h"

#include "base/clock.h"
#include "tests/tap.h"

#include <signal.h>

static void test_check(struct canary *canary)
{
    struct err err = {0};
    double slowdown;
    int all = 1;

    for (int i = 0; i < 5; i++) {
        slowdown = 0;
        all &= !canary_check(canary, &slowdown, &err) && slowdown >= 1 &&
               isfinite(slowdown);
    }
    ok(all, "a slowdown is finite and at least 1 %s", err.msg);
}

/* Whatever the machine does, judging ends. */
static void test_judge(struct canary *canary)
{
    enum canary_verdict verdict;
    struct err err = {0};
    int rc;

    do {
        double begin_ms = clock_ms();

        rc = canary_judge(canary, begin_ms, &verdict, &err);
    } while (!rc && verdict == CANARY_AGAIN);
    ok(!rc, "a measurement is kept in the end %s", err.msg);
}

static void test_impatient(struct canary *canary)
{
    enum canary_verdict verdict;
    struct err err = {0};
    int rc;

    raise(SIGTERM);
    rc = canary_judge(canary, clock_ms(), &verdict, &err);
    ok(!rc && verdict != CANARY_AGAIN, "nothing is repeated once the user "
                                       "wants to stop");
}

int main(void)
{
    struct device *device = NULL;
    struct canary *canary = NULL;
    struct err err = {0};

    interrupt_install();
    if (!ok(!device_open(&device, DEVICE_CPU, 0, 2, &err) &&
                !canary_open(&canary, device, &err),
            "opened %s", err.msg))
        return tap_done();
    test_check(canary);
    test_judge(canary);
    test_impatient(canary);
    canary_close(canary);
    canary_close(NULL);
    device_close(device);
    return tap_done();
}
