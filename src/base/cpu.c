/* SPDX-License-Identifier: MIT */
#include "base/cpu.h"

#include "base/text.h"

#include <cpuid.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *const isa_names[] = {"portable", "avx2", "avx512", NULL};

const char *cpu_isa_name(enum cpu_isa isa)
{
    return isa_names[isa];
}

/* Returns the best instruction set that the environment variable NEUROSHARD_ISA
 * allows; CPU_AVX512 if the variable is not set, -1 if its value is not
 * valid. */
static int isa_wanted(void)
{
    const char *wanted = getenv("NEUROSHARD_ISA");

    return wanted && *wanted ? text_choice(isa_names, wanted) : CPU_AVX512;
}

int cpu_check_environment(struct err *err)
{
    if (isa_wanted() >= 0)
        return 0;
    return err_usage(err,
                     "environment variable NEUROSHARD_ISA must be portable, "
                     "avx2 or avx512, not '%s'",
                     getenv("NEUROSHARD_ISA"));
}

enum cpu_isa cpu_isa_best(void)
{
    unsigned eax, ebx, ecx, edx;
    const bool f16c =
        __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C);
    const bool avx2 =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && f16c;
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512dq");
    const int best = avx512 ? CPU_AVX512 : avx2 ? CPU_AVX2 : CPU_PORTABLE;
    const int wanted = isa_wanted();

    return (enum cpu_isa)(wanted >= 0 && wanted < best ? wanted : best);
}

/* Returns the number of processors that the container's quota allows. The file
 * cpu.max contains "200000 100000" for two processors, or "max 100000" without
 * a quota. */
static unsigned n_cpus_by_quota(void)
{
    FILE *fp = fopen("/sys/fs/cgroup/cpu.max", "re");
    unsigned long quota_us = 0, period_us = 0;
    char line[64], *rest;

    if (fp && fgets(line, sizeof line, fp)) {
        quota_us = strtoul(line, &rest, 10);
        period_us = strtoul(rest, NULL, 10);
    }
    if (fp)
        fclose(fp);
    if (!quota_us || !period_us || quota_us / period_us >= UINT_MAX)
        return UINT_MAX;
    return (unsigned)((quota_us + period_us - 1) / period_us);
}

unsigned cpu_count(void)
{
    const unsigned n_paid = n_cpus_by_quota();
    unsigned long mask[128];
    long n_bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
    unsigned n_allowed = 0;

    for (size_t i = 0; n_bytes > 0 && i < (size_t)n_bytes / sizeof *mask; i++)
        n_allowed += (unsigned)__builtin_popcountl(mask[i]);
    return (unsigned)max_u64(min_u64(n_allowed, n_paid), 1);
}

const char *cpu_model_name(char *buf, size_t size)
{
    FILE *fp = fopen("/proc/cpuinfo", "re");
    char line[256];

    snprintf(buf, size, "unknown");
    while (fp && fgets(line, sizeof line, fp)) {
        const char *value = strchr(line, ':');

        if (!value || strncmp(line, "model name", 10) != 0)
            continue;
        value += 1 + strspn(value + 1, " \t");
        snprintf(buf, size, "%.*s", (int)strcspn(value, "\n"), value);
        break;
    }
    if (fp)
        fclose(fp);
    return buf;
}
