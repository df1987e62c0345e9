/* SPDX-License-Identifier: MIT */
#include "tests/unit/device/devices.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "device/canary.h"

#include <signal.h>

/* Judging ends, however busy the machine is. */
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

static void test_device(const struct test_device *which)
{
    struct device *device = test_device_open(which);
    struct canary *canary = NULL;
    struct err err = {0};

    if (!device)
        return;
    if (ok(!canary_open(&canary, device, &err), "a canary %s", err.msg))
        test_judge(canary);
    canary_close(canary);
    canary_close(NULL);
    device_close(device);
}

int main(void)
{
    struct device *device;
    struct canary *canary = NULL;
    struct err err = {0};

    interrupt_install();
    for (size_t i = 0; i < N_TEST_DEVICES; i++)
        test_device(&TEST_DEVICES[i]);
    device = test_device_open(&TEST_DEVICES[0]);
    if (ok(!canary_open(&canary, device, &err), "one more %s", err.msg))
        test_impatient(canary);
    canary_close(canary);
    device_close(device);
    return tap_done();
}
