/* SPDX-License-Identifier: MIT */
#include "device/nvml.h"

#include "base/mem.h"

#include <dlfcn.h>
#include <string.h>

/* Constants of NVML's public interface. */
enum { NVML_SUCCESS = 0 };
enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 };
enum { NVML_TEMPERATURE_GPU = 0 };

struct nvml {
    void *library;
    void *handle; /* NVML's handle of the GPU */
    bool is_started;
    int (*start)(void);
    int (*stop)(void);
    int (*find)(const char *pci_bus_id, void **handle);
    /* Functions that may be missing, because an older version of NVML may not
     * have them: */
    int (*clock)(void *handle, int type, unsigned *mhz);
    int (*temperature)(void *handle, int sensor, unsigned *celsius);
    int (*power)(void *handle, unsigned *milliwatts);
    int (*reasons)(void *handle, unsigned long long *reasons);
    int (*driver)(char *text, unsigned size);
};

/* Stores the address of the NVML function `name` in *function. Returns true if
 * the library has this function. */
static bool load(const struct nvml *nvml, const char *name, void *function)
{
    void *address = dlsym(nvml->library, name);

    memcpy(function, &address, sizeof address);
    return address;
}

/* Loads the addresses of all NVML functions. Returns true if all indispensable
 * functions exist. */
static bool load_all(struct nvml *nvml)
{
    load(nvml, "nvmlDeviceGetClockInfo", &nvml->clock);
    load(nvml, "nvmlDeviceGetTemperature", &nvml->temperature);
    load(nvml, "nvmlDeviceGetPowerUsage", &nvml->power);
    load(nvml, "nvmlSystemGetDriverVersion", &nvml->driver);
    if (!load(nvml, "nvmlDeviceGetCurrentClocksEventReasons", &nvml->reasons))
        load(nvml, "nvmlDeviceGetCurrentClocksThrottleReasons",
             &nvml->reasons); /* the function's name before driver 535 */
    return load(nvml, "nvmlInit_v2", &nvml->start) &&
           load(nvml, "nvmlShutdown", &nvml->stop) &&
           load(nvml, "nvmlDeviceGetHandleByPciBusId_v2", &nvml->find);
}

struct nvml *nvml_open(const char *library, const char *pci_bus_id)
{
    struct nvml *nvml = mem_alloc(1, sizeof *nvml);

    nvml->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    nvml->is_started =
        nvml->library && load_all(nvml) && nvml->start() == NVML_SUCCESS;
    if (nvml->is_started &&
        nvml->find(pci_bus_id, &nvml->handle) == NVML_SUCCESS)
        return nvml;
    nvml_close(nvml);
    return NULL;
}

void nvml_close(struct nvml *nvml)
{
    if (!nvml)
        return;
    if (nvml->is_started)
        nvml->stop();
    if (nvml->library)
        dlclose(nvml->library);
    mem_free(nvml);
}

void nvml_driver(const struct nvml *nvml, char *text, size_t size)
{
    if (!nvml->driver || nvml->driver(text, (unsigned)size) != NVML_SUCCESS)
        *text = '\0';
}

void nvml_health(const struct nvml *nvml, struct sample_health *health)
{
    unsigned value;
    unsigned long long reasons;

    if (nvml->clock &&
        nvml->clock(nvml->handle, NVML_CLOCK_SM, &value) == NVML_SUCCESS)
        health->sm_mhz = value;
    if (nvml->clock &&
        nvml->clock(nvml->handle, NVML_CLOCK_MEM, &value) == NVML_SUCCESS)
        health->memory_mhz = value;
    if (nvml->temperature &&
        nvml->temperature(nvml->handle, NVML_TEMPERATURE_GPU, &value) ==
            NVML_SUCCESS)
        health->temperature_c = value;
    if (nvml->power && nvml->power(nvml->handle, &value) == NVML_SUCCESS)
        health->power_w = value * 1e-3;
    if (nvml->reasons && nvml->reasons(nvml->handle, &reasons) == NVML_SUCCESS)
        health->throttle_reasons = reasons;
}
