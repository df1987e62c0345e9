/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_CPU_H
#define NEUROSHARD_BASE_CPU_H

#include "base/err.h"

#include <stddef.h>

/* Returns the number of processors that this process may keep busy, by its
 * affinity mask and its container's quota; at least 1. */
unsigned cpu_count(void);

/* Instruction sets for which the kernels have versions. */
enum cpu_isa { CPU_PORTABLE, CPU_AVX2, CPU_AVX512 };
/* Returns the best instruction set of this machine. The environment variable
 * NEUROSHARD_ISA=portable|avx2|avx512 lowers it (for tests). AVX2 means
 * AVX2+FMA+F16C, AVX512 means AVX-512 F+BW+VL+DQ. */
enum cpu_isa cpu_isa_best(void);
/* Fails with ERR_USAGE if the environment variable NEUROSHARD_ISA has a value
 * other than portable, avx2 or avx512. cpu_isa_best ignores a wrong value. */
int cpu_check_environment(struct err *err) MUST_CHECK;
const char *cpu_isa_name(enum cpu_isa isa);
/* Returns the name of the processor, such as "AMD EPYC 9575F", from
 * /proc/cpuinfo; "unknown" if the file gives no name. The name is written to
 * buf. */
const char *cpu_model_name(char *buf, size_t size);

#endif
