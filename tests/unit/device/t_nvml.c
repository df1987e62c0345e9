/* SPDX-License-Identifier: MIT */
#include "tests/tap.h"

#include "base/mem.h"
#include "device/nvml.h"

/*
 * A fake library, in this program itself, for nvml_open to find. It has one
 * GPU, which cannot report its power. Names and types are NVML's.
 */
static char GPU;
static int n_starts;
static int start_status;

int nvmlInit_v2(void);
int nvmlShutdown(void);
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
    return 3; /* NVML's code for "not supported" */
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
    struct nvml *nvml = nvml_open(NULL, "0000:19:00.0");

    if (!ok(nvml != NULL, "open"))
        return;
    is_i64(n_starts, 1, "started");
    nvml_driver(nvml, driver, sizeof(driver));
    is_str(driver, "570.86.15", "driver");
    nvml_health(nvml, &health);
    is_near(health.sm_mhz, 1755, 0, "clock");
    is_near(health.memory_mhz, 2619, 0, "of the memory");
    is_near(health.temperature_c, 61, 0, "temperature");
    is_near(health.power_w, -1, 0, "values that cannot be read stay unchanged");
    is_i64((int64_t)health.throttle_reasons, 0x20, "throttle reasons");
    ok(health.throttle_reasons & NVML_REASONS_SLOWED,
       "heat is one that counts");
    nvml_close(nvml);
    nvml_close(NULL);
    is_i64(n_starts, 0, "stopped");
}

static void test_refused(const char *library, const char *pci_bus_id)
{
    ok(!nvml_open(library, pci_bus_id), "there is none");
    is_i64(n_starts, 0, "nothing is left open");
}

int main(void)
{
    test_health();
    test_refused(NULL, "0000:1a:00.0");
    start_status = 9;
    test_refused(NULL, "0000:19:00.0");
    test_refused("libm.so.6", "0000:19:00.0");
    test_refused("libno-such-thing.so", "0000:19:00.0");
    return tap_done();
}
