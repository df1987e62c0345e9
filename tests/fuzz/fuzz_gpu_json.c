/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "costmodel/modelfile/gpu_file.h"
#include "tests/fuzz/target.h"

static void must_price(const struct gpu_spec *spec)
{
    const struct cluster cluster = {
        .n_devices = 16, .devices_per_host = 8, .hosts_per_domain = 1};
    struct comm_model model = gpu_spec_comm(spec, &cluster);

    MUST(*spec->name && spec->full_name);
    MUST(spec->memory_bytes && spec->l2_bytes && spec->n_sms);
    MUST(spec->dram_gbps > 0 && spec->l2_gbps > 0 && spec->row_cycles > 0);
    for (uint32_t k = 0; k < model.intra.n_knots; k++)
        MUST(isfinite(model.intra.us[k]) && isfinite(model.inter.us[0]));
}

/* A GPU file is either valid or refused with an error. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gpu_spec spec;
    struct arena arena = {0};
    struct err err = {0};

    if (gpu_spec_from_json(&spec, (const char *)data, size, "fuzz", &arena,
                           &err)) {
        MUST(err.code == ERR_INPUT);
        MUST(!strncmp(err.msg, "fuzz:", 5));
    } else {
        must_price(&spec);
    }
    arena_release(&arena);
    return 0;
}
