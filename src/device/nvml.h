/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_NVML_H
#define NEUROSHARD_DEVICE_NVML_H

#include "core/sample.h"

EXTERN_C_BEGIN

/*
 * Clocks, temperature, power and throttle reasons of one NVIDIA GPU, by the
 * driver's management library. It is loaded when it is asked for, so that
 * nothing needs it to build or to start.
 */
struct nvml; /* opaque */

#define NVML_LIBRARY "libnvidia-ml.so.1"

/* The throttle reasons that lower the clocks below what was asked for: heat,
 * power brake, hardware. Idling and the plain power cap are not among them. */
#define NVML_REASONS_SLOWED 0xe8u

/* library: NVML_LIBRARY, or NULL for the program itself (tests). pci_bus_id:
 * "0000:19:00.0". NULL where the library or the GPU is not there: nothing but
 * health is missing then. */
struct nvml *nvml_open(const char *library, const char *pci_bus_id);
void nvml_close(struct nvml *nvml); /* NULL is fine */

/* The driver's version, "570.86.15"; "" where the library does not say. */
void nvml_driver(const struct nvml *nvml, char *text, size_t size);
/* Now; a field that is not said is left as it is. */
void nvml_health(const struct nvml *nvml, struct sample_health *health);

EXTERN_C_END

#endif
