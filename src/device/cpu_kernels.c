/* SPDX-License-Identifier: MIT */
#include "device/cpu_kernels.h"

#include "base/cpu.h"

const struct cpu_kernels *cpu_kernels_best(void)
{
    static const struct cpu_kernels *const kernels[] = {
        [CPU_PORTABLE] = &CPU_KERNELS_PORTABLE,
        [CPU_AVX2] = &CPU_KERNELS_AVX2,
        [CPU_AVX512] = &CPU_KERNELS_AVX512,
    };

    return kernels[cpu_isa_best()];
}
