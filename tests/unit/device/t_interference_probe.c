/* SPDX-License-Identifier: MIT */
#include "tests/unit/device/devices.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "device/interference_probe.h"

#include <signal.h>

/* Judging ends, however busy the machine is. */
static void test_judge(struct interference_probe *interference)
{
    enum interference_verdict verdict;
    struct err err = {0};
    int rc;

    do {
        double begin_ms = clock_ms();

        rc = interference_probe_judge(interference, begin_ms, &verdict, &err);
    } while (!rc && verdict == PROBE_AGAIN);
    ok(!rc, "a measurement is kept in the end %s", err.msg);
}

static void test_impatient(struct interference_probe *interference)
{
    enum interference_verdict verdict;
    struct err err = {0};
    int rc;

    raise(SIGTERM);
    rc = interference_probe_judge(interference, clock_ms(), &verdict, &err);
    ok(!rc && verdict != PROBE_AGAIN, "nothing is repeated once the user "
                                      "wants to stop");
}

static void test_device(const struct test_device *which)
{
    struct device *device = test_device_open(which);
    struct interference_probe *interference = NULL;
    struct err err = {0};

    if (!device)
        return;
    if (ok(!interference_probe_open(&interference, device, &err), "a canary %s",
           err.msg))
        test_judge(interference);
    interference_probe_close(interference);
    interference_probe_close(NULL);
    device_close(device);
}

int main(void)
{
    struct device *device;
    struct interference_probe *interference = NULL;
    struct err err = {0};

    interrupt_install();
    for (size_t i = 0; i < N_TEST_DEVICES; i++)
        test_device(&TEST_DEVICES[i]);
    device = test_device_open(&TEST_DEVICES[0]);
    if (ok(!interference_probe_open(&interference, device, &err), "one more %s",
           err.msg))
        test_impatient(interference);
    interference_probe_close(interference);
    device_close(device);
    return tap_done();
}
