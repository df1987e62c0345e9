/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_CPU_H
#define NEUROSHARD_BASE_CPU_H

#include "base/err.h"

#include <stddef.h>

/* Processors that this process may keep busy, by its affinity mask and its
 * container's quota; at least 1. */
unsigned cpu_count(void);

/* The instruction sets that bodies are written for. */
enum cpu_isa { CPU_PORTABLE, CPU_AVX2, CPU_AVX512 };
/* The best one this machine has; NEUROSHARD_ISA=portable|avx2|avx512 lowers
 * it (for tests). AVX2 means AVX2+FMA+F16C, AVX512 means F+BW+VL+DQ. */
enum cpu_isa cpu_isa_best(void);
/* ERR_USAGE where NEUROSHARD_ISA is something else, which then counts for
 * nothing. */
int cpu_check_environment(struct err *err) MUST_CHECK;
const char *cpu_isa_name(enum cpu_isa isa);
/* "AMD EPYC 9575F", from /proc/cpuinfo; "unknown" where not to be had. */
const char *cpu_model_name(char *buf, size_t size);

#endif
