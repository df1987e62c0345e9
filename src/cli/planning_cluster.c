/* SPDX-License-Identifier: MIT */
#include "cli/planning.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "costmodel/oracles.h"
#include "io/cluster_json.h"

/* "4GiB" or "15%" of memory_bytes. */
static int parse_reserve(uint64_t *reserve_bytes, const char *text,
                         uint64_t memory_bytes, struct err *err)
{
    size_t len = strlen(text);
    char number[32];
    double percent;

    if (len && len < sizeof(number) && text[len - 1] == '%') {
        memcpy(number, text, len - 1);
        number[len - 1] = '\0';
        if (text_to_double(number, &percent) && percent >= 0 &&
            percent <= 100) {
            *reserve_bytes = (uint64_t)((double)memory_bytes * percent / 100);
            return 0;
        }
    } else if (text_to_bytes(text, reserve_bytes) &&
               *reserve_bytes <= memory_bytes) {
        return 0;
    }
    return err_set(err, ERR_USAGE,
                   "option '--reserve' takes a size up to a GPU's memory or a "
                   "percentage from 0%% to 100%%, not '%s'",
                   text);
}

/* What is to stay free comes to what is taken already; no more can be kept from
 * use than there is. */
static int add_reserve(struct cluster *cluster, struct cli *cli,
                       struct err *err)
{
    for (uint32_t r = 0; r < cluster->n_devices; r++) {
        uint64_t memory = cluster->memory_bytes[r];
        uint64_t taken = cluster->reserve_bytes[r], reserve = 0;

        if (parse_reserve(&reserve, cli_string(cli, "reserve"), memory, err))
            return -1;
        cluster->reserve_bytes[r] =
            reserve < memory - taken ? taken + reserve : memory;
    }
    return 0;
}

void planning_set_bandwidths(struct cluster *cluster, const struct cli *cli)
{
    if (cli_given(cli, "intra-gbps"))
        cluster->intra_gbps = cli_double(cli, "intra-gbps");
    if (cli_given(cli, "inter-gbps"))
        cluster->inter_gbps = cli_double(cli, "inter-gbps");
}

/* Options beside a cluster whose GPUs and memory are known. */
static int finish(struct problem *problem, struct cli *cli, struct err *err)
{
    struct cluster *cluster = &problem->cluster;

    planning_set_bandwidths(cluster, cli);
    problem->batch = cli_u64(cli, "batch");
    if (cli_given(cli, "batch-per-gpu"))
        problem->batch = cli_u64(cli, "batch-per-gpu") * cluster->n_devices;
    return add_reserve(cluster, cli, err);
}

int planning_counts(struct planning_counts *counts, struct cli *cli,
                    struct err *err)
{
    uint64_t first, last, per_host = 1;

    if (!cli_given(cli, "gpus"))
        return err_set(err, ERR_USAGE,
                       "option '--gpus' is needed: how many "
                       "GPUs to plan for");
    *counts = (struct planning_counts){
        .is_range = cli_range(cli, "gpus", &first, &last)};
    counts->n_gpus = ARENA_NEW(cli_arena(cli), uint32_t, last - first + 1);
    if (cli_given(cli, "gpus-per-host"))
        per_host = cli_u64(cli, "gpus-per-host");
    for (uint64_t n = first; n <= last; n++)
        if (!counts->is_range || n < per_host || n % per_host == 0)
            counts->n_gpus[counts->n++] = (uint32_t)n;
    if (counts->n)
        return 0;
    return err_set(err, ERR_USAGE,
                   "no number of GPUs from %" PRIu64 " to %" PRIu64
                   " is that of whole hosts with %" PRIu64 " GPUs each",
                   first, last, per_host);
}

int planning_set_gpus(struct problem *problem, uint32_t n_gpus, struct cli *cli,
                      struct err *err)
{
    struct cluster *cluster = &problem->cluster;
    const struct gpu_spec *gpu;
    uint32_t per_host = n_gpus;

    if (gpu_spec_get(&gpu, cli_string(cli, "gpu"), err))
        return -1;
    if (cli_given(cli, "gpus-per-host") &&
        cli_u64(cli, "gpus-per-host") < n_gpus)
        per_host = (uint32_t)cli_u64(cli, "gpus-per-host");
    if (n_gpus % per_host)
        return err_set(err, ERR_USAGE,
                       "%u GPUs are no whole number of hosts with %u GPUs each",
                       n_gpus, per_host);
    *cluster = (struct cluster){
        .n_devices = n_gpus,
        .devices_per_host = per_host,
        .memory_bytes = ARENA_NEW(cli_arena(cli), uint64_t, n_gpus),
        .reserve_bytes = ARENA_NEW(cli_arena(cli), uint64_t, n_gpus),
        .gpu = gpu->name};
    for (uint32_t r = 0; r < n_gpus; r++)
        cluster->memory_bytes[r] = cli_given(cli, "memory")
                                       ? cli_bytes(cli, "memory")
                                       : gpu->memory_bytes;
    return finish(problem, cli, err);
}

/* Each thing is said once: by the file or by an option. */
static int check_said_once(const struct cluster *cluster, struct cli *cli,
                           struct err *err)
{
    const struct {
        const char *option;
        bool is_said;
    } said[] = {
        {"gpus", true},
        {"gpus-per-host", true},
        {"memory", true},
        {"gpu", cluster->gpu != NULL},
        {"intra-gbps", cluster->intra_gbps > 0},
        {"inter-gbps", cluster->inter_gbps > 0},
    };

    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (said[i].is_said && cli_given(cli, said[i].option))
            return err_set(err, ERR_USAGE,
                           "option '--%s' cannot stand beside '--cluster': "
                           "'%s' says it",
                           said[i].option, cli_string(cli, "cluster"));
    return 0;
}

int planning_set_cluster(struct problem *problem, struct cli *cli,
                         struct err *err)
{
    const char *path = cli_string(cli, "cluster");
    struct cluster *cluster = &problem->cluster;
    const struct gpu_spec *gpu;

    if (cluster_load(cluster, path, cli_arena(cli), err) ||
        check_said_once(cluster, cli, err))
        return -1;
    if (!cluster->gpu)
        cluster->gpu = cli_string(cli, "gpu");
    if (gpu_spec_get(&gpu, cluster->gpu, err))
        return cli_given(cli, "gpu") ? -1 : err_prefix(err, "%s", path);
    for (uint32_t r = 0; r < cluster->n_devices; r++) {
        char used[TEXT_BYTES_MAX], has[TEXT_BYTES_MAX];

        if (cluster->memory_bytes[r])
            continue;
        cluster->memory_bytes[r] = gpu->memory_bytes;
        if (cluster->reserve_bytes[r] > gpu->memory_bytes)
            return err_set(
                err, ERR_USAGE,
                "%s: %s of GPU %u are used, but a GPU of kind %s has %s", path,
                text_from_bytes(used, (double)cluster->reserve_bytes[r]), r,
                gpu->name, text_from_bytes(has, (double)gpu->memory_bytes));
    }
    return finish(problem, cli, err);
}
