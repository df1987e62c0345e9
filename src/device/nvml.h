/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_NVML_H
#define NEUROSHARD_DEVICE_NVML_H

#include "core/sample.h"

EXTERN_C_BEGIN

/*
 * Clocks, temperature, power and throttle reasons of one NVIDIA GPU, read from
 * the driver's management library. The library is loaded by nvml_open, so it is
 * needed neither to build nor to start the program.
 */
struct nvml; /* opaque */

#define NVML_LIBRARY "libnvidia-ml.so.1"

/* Mask of the throttle reasons that lower the clocks below the requested ones:
 * heat, power brake, hardware. It excludes idling and the plain power cap. */
#define NVML_REASONS_SLOWED 0xe8u

/* Loads the library and finds a GPU. Returns NULL if either is missing; then
 * only the health data are missing. library: NVML_LIBRARY, or NULL for the
 * program itself (tests). pci_bus_id: "0000:19:00.0". */
struct nvml *nvml_open(const char *library, const char *pci_bus_id);
void nvml_close(struct nvml *nvml); /* NULL is fine */

/* Stores the driver's version, such as "570.86.15"; "" if the library does not
 * know it. */
void nvml_driver(const struct nvml *nvml, char *text, size_t size);
/* Stores the current values. Fields that the library does not report stay
 * unchanged. */
void nvml_health(const struct nvml *nvml, struct sample_health *health);

EXTERN_C_END

#endif
