/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_NVML_H
#define NEUROSHARD_DEVICE_NVML_H

#include "core/sample.h"

EXTERN_C_BEGIN

/*
 * Clocks, temperature, power and throttle reasons of one NVIDIA GPU. They are
 * read from the driver's management library (NVML). nvml_open loads this
 * library at run time, so it is needed neither to build nor to start the
 * program.
 */
struct nvml; /* opaque */

#define NVML_LIBRARY "libnvidia-ml.so.1"

/* Mask of the throttle reasons that lower the clocks below the requested
 * clocks: heat, power brake, hardware. Two reasons are left out: an idle GPU
 * and the plain power cap. */
#define NVML_REASONS_SLOWED 0xe8u

/* Loads the library and finds the GPU with this PCI bus id, such as
 * "0000:19:00.0". Returns NULL if either is missing. The program then works
 * without health data. library: NVML_LIBRARY; tests pass NULL, which stands for
 * the program itself. */
struct nvml *nvml_open(const char *library, const char *pci_bus_id);
void nvml_close(struct nvml *nvml); /* NULL is fine */

/* Stores the version of the GPU driver, such as "570.86.15", in text[size].
 * Stores "" if the library does not know the version. */
void nvml_driver(const struct nvml *nvml, char *text, size_t size);
/* Stores the GPU's current clocks, temperature, power and throttle reasons.
 * Fields that the library does not report stay unchanged. */
void nvml_health(const struct nvml *nvml, struct sample_health *health);

EXTERN_C_END

#endif
