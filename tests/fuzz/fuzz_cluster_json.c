/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "io/cluster_fields.h"
#include "io/cluster_json.h"
#include "tests/fuzz/target.h"

static void must_be_legal(const struct cluster *cluster)
{
    MUST(cluster->n_devices >= 1 && cluster->n_devices <= CLUSTER_MAX_GPUS);
    MUST(cluster->devices_per_host >= 1);
    MUST(cluster->n_devices % cluster_group(cluster) == 0);
    MUST(cluster_group(cluster) % cluster->devices_per_host == 0);
    MUST(isfinite(cluster->intra_gbps) && cluster->intra_gbps >= 0);
    MUST(isfinite(cluster->inter_gbps) && cluster->inter_gbps >= 0);
    MUST(cluster->n_other_kinds <= CLUSTER_MAX_OTHER_KINDS);
    for (uint32_t r = 0; cluster->busy_ms && r < cluster->n_devices; r++)
        for (unsigned p = 0; p < N_BUSY_PHASES; p++)
            MUST(cluster->busy_ms[r][p] >= 0 &&
                 cluster->busy_ms[r][p] <= CLUSTER_MAX_BUSY_MS);
    for (uint32_t r = 0; r < cluster->n_devices; r++)
        MUST(cluster_slowdown(cluster, r) >= 1 &&
             cluster_slowdown(cluster, r) <= CLUSTER_MAX_SLOWDOWN);
    for (uint32_t r = 0; r < cluster->n_devices; r++)
        MUST(!cluster->memory_bytes[r] ||
             cluster->reserve_bytes[r] <= cluster->memory_bytes[r]);
}

/* A cluster file is either valid or refused with an error that names a line. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cluster cluster = {0};
    struct arena arena = {0};
    struct err err = {0};

    if (cluster_from_json(&cluster, (const char *)data, size, "fuzz", &arena,
                          &err)) {
        MUST(err.code == ERR_INPUT);
        MUST(!strncmp(err.msg, "fuzz:", 5) && err.msg[5] >= '1' &&
             err.msg[5] <= '9');
    } else {
        must_be_legal(&cluster);
    }
    arena_release(&arena);
    return 0;
}
