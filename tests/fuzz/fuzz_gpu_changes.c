/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "costmodel/modelfile/gpu_changes.h"
#include "tests/fuzz/target.h"

/* Changes of a GPU are refused with an error, or leave figures that price. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const none[] = {NULL};
    const struct cluster cluster = {
        .n_devices = 16, .devices_per_host = 8, .hosts_per_domain = 1};
    struct gpu_spec spec = {.name = "a",
                            .full_name = "A",
                            .aliases = none,
                            .memory_bytes = 1 << 30,
                            .dram_gbps = 1000,
                            .l2_gbps = 2000,
                            .l2_bytes = 1 << 20,
                            .clock_ghz = 1,
                            .n_sms = 80,
                            .row_cycles = 10,
                            .bag_row_us = 1,
                            .launch_us = 3,
                            .intra_gbps = 100,
                            .intra_alpha_us = 10,
                            .nic_gbps = 10};
    struct arena arena = {0};
    struct err err = {0};

    if (gpu_changes_apply(&spec, (const char *)data, size, &arena, &err)) {
        MUST(err.code == ERR_USAGE && *err.msg);
    } else {
        struct comm_model model = gpu_spec_comm(&spec, &cluster);

        MUST(spec.memory_bytes && spec.l2_bytes && spec.n_sms);
        MUST(spec.dram_gbps > 0 && spec.l2_gbps > 0 && spec.row_cycles > 0);
        for (uint32_t k = 0; k < model.intra.n_knots; k++)
            MUST(isfinite(model.intra.us[k]) && isfinite(model.inter.us[0]));
    }
    arena_release(&arena);
    return 0;
}
