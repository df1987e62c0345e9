/* SPDX-License-Identifier: MIT */
#include "costmodel/gpu_spec.h"

#include "tests/tap.h"

/* Memory as drivers report it, in MiB; what is sold is more or less. */
static const struct {
    const char *name;
    uint64_t memory_mib;
    uint32_t gpus_per_host;
} CASES[] = {
    {"h100", 81559, 8}, {"h200", 143771, 8},     {"b200", 183359, 8},
    {"a100", 81251, 8}, {"v100-32gb", 32510, 8}, {"cpu", 16384, 0},
};
#define N_CASES (sizeof CASES / sizeof *CASES)

int main(void)
{
    size_t n_specs = 0;

    for (const struct gpu_spec *spec = gpu_specs(); spec->name; spec++) {
        ok(strstr(spec->source, "memory") != NULL,
           "%s says where its memory comes from", spec->name);
        n_specs++;
    }
    is_i64((int64_t)n_specs, N_CASES, "all are looked at");
    for (size_t i = 0; i < N_CASES; i++) {
        const struct gpu_spec *spec = gpu_spec_find(CASES[i].name);

        ok(spec->memory_bytes == CASES[i].memory_mib << 20, "%s has %d MiB",
           spec->name, (int)CASES[i].memory_mib);
        is_i64(spec->gpus_per_host, CASES[i].gpus_per_host, "on a host");
    }
    return tap_done();
}
