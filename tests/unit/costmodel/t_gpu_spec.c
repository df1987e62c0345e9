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

/* All-to-alls across hosts: bytes that each GPU sends in all, ms. Of the
 * MI355X, whose adapter has the same rate, nothing went into the formula. */
static void check_hosts(void)
{
    static const struct {
        const char *what;
        uint32_t n_hosts;
        double bytes, ms, tolerance;
    } cases[] = {
        {"2 x 8 H100, EFA", 2, 1073741824, 11.8, 0.05},
        {"8 x 8 H800", 8, 8388608, 0.317, 0.1},
        {"2 x 8 MI355X", 2, 8589934592, 92.988, 0.05},
        {"4 x 8 MI355X", 4, 8589934592, 165.769, 0.1},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct cluster cluster = {.n_devices = 8 * cases[i].n_hosts,
                                        .devices_per_host = 8};
        const struct comm_model model =
            gpu_spec_comm(gpu_spec_find("h100"), &cluster);
        const double far = 1 - 1.0 / cases[i].n_hosts;
        const double ms =
            comm_curve_us(&model.inter, cases[i].bytes * far) / 1000;

        is_near(ms, cases[i].ms, cases[i].tolerance * cases[i].ms,
                cases[i].what);
    }
}

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
    check_hosts();
    return tap_done();
}
