/* SPDX-License-Identifier: MIT */
#include "tests/tap.h"

#include "base/mem.h"
#include "device/nvml.h"

/*
 * The library that nvml_open finds in this program itself: one GPU, whose
 * power is not to be had. These are NVML's own names and types.
 */
static char GPU;
static int n_starts;
static int start_status;

int nvmlInit_v2(void);
int nvmlShutdown(void);
const char *nvmlErrorString(int status);
int nvmlDeviceGetHandleByPciBusId_v2(const char *pci_bus_id, void **handle);
int nvmlDeviceGetClockInfo(void *handle, int type, unsigned *mhz);
int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned *celsius);
int nvmlDeviceGetPowerUsage(void *handle, unsigned *milliwatts);
int nvmlDeviceGetCurrentClocksThrottleReasons(void *handle,
                                              unsigned long long *reasons);
int nvmlSystemGetDriverVersion(char *text, unsigned size);

int nvmlInit_v2(void)
{
    n_starts += !start_status;
    return start_status;
}

int nvmlShutdown(void)
{
    n_starts--;
    return 0;
}

const char *nvmlErrorString(int status)
{
    return status == 6 ? "Not Found" : "Driver Not Loaded";
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *pci_bus_id, void **handle)
{
    *handle = &GPU;
    return strcmp(pci_bus_id, "0000:19:00.0") == 0 ? 0 : 6;
}

int nvmlDeviceGetClockInfo(void *handle, int type, unsigned *mhz)
{
    *mhz = type == 1 ? 1755 : 2619;
    return handle == &GPU && (type == 1 || type == 2) ? 0 : 2;
}

int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned *celsius)
{
    *celsius = 61;
    return handle == &GPU && sensor == 0 ? 0 : 2;
}

int nvmlDeviceGetPowerUsage(void *handle, unsigned *milliwatts)
{
    (void)handle;
    *milliwatts = 123456;
    return 3; /* not supported */
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *handle,
                                              unsigned long long *reasons)
{
    *reasons = 0x20;
    return handle == &GPU ? 0 : 2;
}

int nvmlSystemGetDriverVersion(char *text, unsigned size)
{
    return snprintf(text, size, "570.86.15") > 0 ? 0 : 7;
}

static void test_health(void)
{
    char driver[16];
    struct sample_health health = {.power_w = -1};
    struct nvml *nvml = NULL;
    struct err err = {0};

    if (!ok(!nvml_open(&nvml, NULL, "0000:19:00.0", &err), "open %s", err.msg))
        return;
    is_i64(n_starts, 1, "started");
    nvml_driver(nvml, driver, sizeof(driver));
    is_str(driver, "570.86.15", "driver");
    nvml_health(nvml, &health);
    is_near(health.sm_mhz, 1755, 0, "clock");
    is_near(health.memory_mhz, 2619, 0, "of the memory");
    is_near(health.temperature_c, 61, 0, "temperature");
    is_near(health.power_w, -1, 0, "what is not said stays as it was");
    is_i64((int64_t)health.throttle_reasons, 0x20, "throttle reasons");
    ok(health.throttle_reasons & NVML_REASONS_SLOWED,
       "heat is one that counts");
    nvml_close(nvml);
    nvml_close(NULL);
    is_i64(n_starts, 0, "stopped");
}

static void test_refused(const char *library, const char *pci_bus_id,
                         const char *want)
{
    struct nvml *nvml = NULL;
    struct err err = {0};

    is_i64(nvml_open(&nvml, library, pci_bus_id, &err), -1, "cannot open");
    is_i64(err.code, ERR_DEVICE, "a device error");
    is_str(err.msg, want, "the sentence");
    is_i64(n_starts, 0, "nothing is left open");
}

int main(void)
{
    test_health();
    test_refused(NULL, "0000:1a:00.0",
                 "cannot read the health of GPU '0000:1a:00.0': Not Found");
    start_status = 9;
    test_refused(
        NULL, "0000:19:00.0",
        "cannot read the health of GPU '0000:19:00.0': Driver Not Loaded");
    test_refused("libm.so.6", "0000:19:00.0",
                 "cannot read the GPU's health: 'libm.so.6' lacks a function");
    test_refused("libnone.so.1", "0000:19:00.0",
                 "cannot read the GPU's health: libnone.so.1: cannot open "
                 "shared object file: No such file or directory");
    return tap_done();
}
