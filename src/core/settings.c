/* SPDX-License-Identifier: MIT */
#include "core/settings.h"

#include "base/text.h"

#include <inttypes.h>
#include <string.h>

static int set_number(uint64_t *out, const char *key, const char *value,
                      double max, struct err *err)
{
    if (text_to_u64(value, out) && *out && (double)*out <= max)
        return 0;
    return err_usage(err, "'%s' takes a whole number from 1 to %.0f, not '%s'",
                     key, max, value);
}

static int set_reserve(struct settings *settings, const char *value,
                       struct err *err)
{
    uint64_t bytes;

    settings->reserve = value;
    if (text_to_share(value, INT64_MAX, &bytes))
        return 0;
    return err_usage(err,
                     "'reserve' takes a size such as 4GiB or a percentage from "
                     "0%% to 100%%, not '%s'",
                     value);
}

/* Parses one setting, "KEY=VALUE". */
static int set_one(struct settings *settings, char *setting, struct err *err)
{
    static const char *const keys[] = {"batch", "gpus", "reserve", NULL};
    char *value = strchr(setting, '=');
    uint64_t n = settings->n_devices;
    bool is_set[3] = {settings->batch > 0, n > 0, settings->reserve != NULL};
    int key;

    if (value)
        *value++ = '\0';
    key = text_choice(keys, setting);
    if (key < 0)
        return err_usage(err,
                         "no setting '%s'; the settings are batch=N, "
                         "gpus=N and reserve=SIZE|PERCENT",
                         setting);
    if (!value)
        return err_usage(err, "'%s' needs a value, as in '%s'", setting,
                         key == 2 ? "reserve=20%" : "batch=65536,gpus=8");
    if (is_set[key])
        return err_usage(err, "'%s' is given twice", setting);
    if (key == 2)
        return set_reserve(settings, value, err);
    if (set_number(key ? &n : &settings->batch, setting, value,
                   key ? SETTINGS_MAX_DEVICES : PROBLEM_MAX_BATCH, err))
        return -1;
    settings->n_devices = (uint32_t)n;
    return 0;
}

int settings_parse(struct settings *settings, const char *text, size_t len,
                   struct arena *arena, struct err *err)
{
    char *next = arena_strndup(arena, text, len);

    *settings = (struct settings){0};
    while (next) {
        char *setting = next;

        next = strchr(setting, ',');
        if (next)
            *next++ = '\0';
        if (set_one(settings, setting, err))
            return -1;
    }
    return 0;
}

/* Changes the number of GPUs. If NCCL's buffers are known, each GPU keeps at
 * least their new size free. */
static int resize(struct cluster *cluster, uint32_t n, struct arena *arena,
                  struct err *err)
{
    cluster_grow(cluster, n, 0, arena);
    if (cluster_check_hosts(cluster, err)) {
        err->code = ERR_USAGE;
        return -1;
    }
    if (cluster->host_size && cluster->devices_per_host == 1 && n > 1)
        return err_usage(err,
                         "%u GPUs do not fill whole hosts of 2 to %u GPUs each",
                         n, cluster->host_size);
    if (cluster->nccl_bytes)
        cluster->nccl_bytes = cluster_nccl_bytes(cluster);
    for (uint32_t r = 0; r < n; r++)
        cluster->reserve_bytes[r] =
            max_u64(cluster->reserve_bytes[r],
                    min_u64(cluster->nccl_bytes, cluster->memory_bytes[r]));
    return 0;
}

/* Sets the reserve of each GPU. */
static int keep_free(struct cluster *cluster, const char *reserve,
                     struct arena *arena, struct err *err)
{
    cluster->reserve_bytes = ARENA_NEW(arena, uint64_t, cluster->n_devices);
    cluster->reserve = reserve;
    if (cluster_add_reserve(cluster) == cluster->n_devices)
        return 0;
    return err_usage(err,
                     "'reserve' takes a size up to a GPU's memory or a "
                     "percentage from 0%% to 100%%, not '%s'",
                     reserve);
}

int settings_apply(const struct settings *settings, struct problem *problem,
                   struct arena *arena, struct err *err)
{
    struct cluster *cluster = &problem->cluster;
    const uint64_t batch = problem->batch;

    if (settings->n_devices && problem_n_groups(problem) > 1)
        return err_usage(err, "'gpus' cannot change a plan of %u groups",
                         problem_n_groups(problem));
    if (settings->batch % problem_n_groups(problem))
        return err_usage(err, "%u groups cannot share a batch of %" PRIu64,
                         problem_n_groups(problem), settings->batch);
    if (settings->n_devices && resize(cluster, settings->n_devices, arena, err))
        return -1;
    if (settings->reserve && keep_free(cluster, settings->reserve, arena, err))
        return -1;
    if (settings->batch) {
        problem->batch = settings->batch / problem_n_groups(problem);
        problem->device_batch = 0;
    } else if (problem->device_batch)
        problem->batch = problem->device_batch * cluster->n_devices;
    if (problem->hot && problem->batch != batch)
        problem_find_hot_rows(problem, arena);
    return 0;
}
