/* SPDX-License-Identifier: MIT */
#include "io/cluster_json.h"

#include "base/file.h"
#include "base/text.h"
#include "io/cluster_fields.h"

#include <inttypes.h>
#include <string.h>

#define MAX_RESERVE_BYTES (UINT64_C(1) << 62)

/* The member "pod_size", whose range differs from that in plan files. All other
 * members are read with the field tables that plan files use. */
static const struct place_field pod_field[] = {
    {"pod_size", CLUSTER(hosts_per_domain), false, 1, CLUSTER_MAX_GPUS, NULL},
};

struct host {
    uint32_t count, gpus;
};
static const struct place_field host_fields[] = {
    {"count", MEMBER_OF(struct host, count), false, 1, CLUSTER_MAX_GPUS, NULL},
    {"gpus", MEMBER_OF(struct host, gpus), true, 1, CLUSTER_MAX_GPUS, NULL},
};

/* Permitted member names, NULL-terminated. `file_keys`: members of the file's
 * top level; `host_keys`: members of a host. */
static const char *const file_keys[] = {"gpu",         "pod_size",   "reserve",
                                        "intra_gbps",  "inter_gbps", "hosts",
                                        "other_kinds", NULL};
static const char *const host_keys[] = {"count",   "gpus",     "memory", "used",
                                        "busy_ms", "slowdown", NULL};

struct cluster_reader {
    struct cluster *cluster;
    struct json_place root;
    const json_t *hosts;
    const size_t *lines; /* line on which each host begins */
};

/* Reads a size of memory. It is a text such as "80GiB" or a whole number of
 * bytes. */
static int read_size(uint64_t *bytes, const struct json_place *place,
                     const char *name, const json_t *value, struct err *err)
{
    const char *text = json_string_value(value);

    if (text && text_to_bytes(text, bytes))
        return 0;
    if (json_is_integer(value) && json_integer_value(value) >= 0) {
        *bytes = (uint64_t)json_integer_value(value);
        return 0;
    }
    if (text)
        return place_error(
            place, err, "%s is '%.40s', not a size such as 80GiB", name, text);
    return place_error(
        place, err,
        "%s must be a size such as \"80GiB\" or a whole number of bytes", name);
}

/* Reads the memory reserve: a size of memory, or a percentage of a GPU's
 * memory. The text is kept as written, because a percentage needs the memory,
 * which is not known yet. */
static int read_reserve(const char **out, const struct json_place *place,
                        struct err *err)
{
    const json_t *value = json_object_get(place->object, "reserve");
    const char *text = json_string_value(value);
    uint64_t bytes = 0;

    if (!place_has(place, "reserve"))
        return 0;
    if (text && !text_to_share(text, MAX_RESERVE_BYTES, &bytes))
        return place_error(place, err,
                           "reserve is '%.40s', neither a size such as 4GiB "
                           "nor a percentage from 0%% to 100%%",
                           text);
    if (!text && read_size(&bytes, place, "reserve", value, err))
        return -1;
    *out = text ? arena_strdup(place->arena, text)
                : arena_printf(place->arena, "%" PRIu64, bytes);
    return 0;
}

/* Reads member `key`, a size of memory for the n GPUs of a host. The value is
 * one size for all GPUs, or a list of n sizes. If the member is absent, `bytes`
 * stays as it is. */
static int read_sizes(uint64_t *bytes, uint32_t n,
                      const struct json_place *place, const char *key,
                      struct err *err)
{
    const json_t *value = json_object_get(place->object, key);
    const bool is_list = json_is_array(value);

    if (!place_has(place, key))
        return 0;
    if (is_list && json_array_size(value) != n)
        return place_error(place, err,
                           "%s has %zu entries, but the host has %u gpus", key,
                           json_array_size(value), n);
    for (uint32_t g = 0; g < n; g++) {
        char name[32], idx[16] = "";

        if (is_list)
            snprintf(idx, sizeof(idx), "[%u]", g);
        snprintf(name, sizeof(name), "%s%s", key, idx);
        if (read_size(&bytes[g], place, name,
                      is_list ? json_array_get(value, g) : value, err))
            return -1;
    }
    return 0;
}

/* Reads the memory of one host. `memory` and `used` are arrays with an element
 * for each of the host's n GPUs. */
static int read_host_memory(uint64_t *memory, uint64_t *used, uint32_t n,
                            const struct json_place *place, struct err *err)
{
    if (read_sizes(memory, n, place, "memory", err) ||
        read_sizes(used, n, place, "used", err))
        return -1;
    for (uint32_t g = 0; place_has(place, "memory") && g < n; g++) {
        if (!memory[g])
            return place_error(place, err, "memory is 0 for GPU %u", g);
        if (used[g] > memory[g])
            return place_error(place, err,
                               "used is %s for GPU %u, which has %s",
                               TEXT_BYTES(used[g]), g, TEXT_BYTES(memory[g]));
    }
    return 0;
}

/* Reads member `key`, a number from min to max for the n GPUs of a host. The
 * value is one number for all GPUs, or a list of n numbers. Number g is stored
 * in out[g * apart]. If the member is absent, `out` stays as it is. */
static int read_reals(double *out, size_t apart, uint32_t n,
                      const struct json_place *place, const char *key,
                      double min, double max, struct err *err)
{
    const json_t *value = json_object_get(place->object, key);
    double one = 0;
    const struct place_field field[] = {
        {key, MEMBER_REAL, 0, false, min, max, NULL}};

    if (!place_has(place, key))
        return 0;
    if (!json_is_array(value)) {
        if (PLACE_FIELDS(&one, place, field, err))
            return -1;
        for (uint32_t g = 0; g < n; g++)
            out[g * apart] = one;
        return 0;
    }
    if (json_array_size(value) != n)
        return place_error(place, err,
                           "%s has %zu entries, but the host has %u gpus", key,
                           json_array_size(value), n);
    for (uint32_t g = 0; g < n; g++)
        if (place_list_double(&out[g * apart], place, key, value, g, min, max,
                              err))
            return -1;
    return 0;
}

/* Reads the member "busy_ms" of a host with n GPUs, the first of which is GPU
 * `first` of the cluster. */
static int read_busy(struct cluster *cluster, uint32_t first, uint32_t n,
                     const struct json_place *host, struct err *err)
{
    struct json_place place;

    if (!place_has(host, "busy_ms"))
        return 0;
    if (place_object(&place, host, "busy_ms", err) ||
        place_check_keys(&place, busy_phase_names, err))
        return -1;
    if (!cluster->busy_ms)
        cluster->busy_ms = arena_alloc(host->arena, CLUSTER_MAX_GPUS,
                                       sizeof(*cluster->busy_ms));
    for (unsigned p = 0; p < N_BUSY_PHASES; p++)
        if (read_reals(&cluster->busy_ms[first][p], N_BUSY_PHASES, n, &place,
                       busy_phase_names[p], 0, CLUSTER_MAX_BUSY_MS, err))
            return -1;
    return 0;
}

/* Reads the member "slowdown" of a host in the same way. */
static int read_slowdown(struct cluster *cluster, uint32_t first, uint32_t n,
                         const struct json_place *host, struct err *err)
{
    if (!place_has(host, "slowdown"))
        return 0;
    if (!cluster->slowdown) {
        cluster->slowdown = ARENA_NEW(host->arena, double, CLUSTER_MAX_GPUS);
        for (uint32_t r = 0; r < CLUSTER_MAX_GPUS; r++)
            cluster->slowdown[r] = 1;
    }
    return read_reals(cluster->slowdown + first, 1, n, host, "slowdown", 1,
                      CLUSTER_MAX_SLOWDOWN, err);
}

/* Adds the hosts of one entry of "hosts", which stands for `count` identical
 * hosts. All hosts of a file must have the same number of GPUs. */
static int add_host(const struct cluster_reader *reader, size_t idx,
                    struct err *err)
{
    struct cluster *cluster = reader->cluster;
    struct json_place place, root = reader->root;
    struct host host = {.count = 1};
    uint64_t *memory = cluster->memory_bytes + cluster->n_devices;
    uint64_t *used = cluster->reserve_bytes + cluster->n_devices;
    uint64_t n;

    root.line = reader->lines[idx];
    root.lines = NULL;
    if (place_element(&place, &root, "hosts", reader->hosts, idx, err) ||
        place_check_keys(&place, host_keys, err) ||
        PLACE_FIELDS(&host, &place, host_fields, err))
        return -1;
    if (idx && host.gpus != cluster->devices_per_host)
        return place_error(&place, err,
                           "gpus is %u, but was %u before: all hosts must have "
                           "the same number of GPUs",
                           host.gpus, cluster->devices_per_host);
    n = (uint64_t)host.count * host.gpus;
    if (cluster->n_devices + n > CLUSTER_MAX_GPUS)
        return place_error(&place, err,
                           "gpus: the hosts up to here have more than %d GPUs",
                           CLUSTER_MAX_GPUS);
    if (read_host_memory(memory, used, host.gpus, &place, err) ||
        read_busy(cluster, cluster->n_devices, host.gpus, &place, err) ||
        read_slowdown(cluster, cluster->n_devices, host.gpus, &place, err))
        return -1;
    for (uint64_t k = host.gpus; k < n; k++) {
        memory[k] = memory[k - host.gpus];
        used[k] = used[k - host.gpus];
        if (cluster->slowdown)
            cluster->slowdown[cluster->n_devices + k] =
                cluster->slowdown[cluster->n_devices + k - host.gpus];
        if (cluster->busy_ms)
            memcpy(cluster->busy_ms[cluster->n_devices + k],
                   cluster->busy_ms[cluster->n_devices + k - host.gpus],
                   sizeof(*cluster->busy_ms));
    }
    cluster->devices_per_host = host.gpus;
    cluster->n_devices += (uint32_t)n;
    return 0;
}

static int read_cluster(struct cluster_reader *reader, struct err *err)
{
    struct cluster *cluster = reader->cluster;
    const struct json_place *root = &reader->root;

    if (!json_is_object(root->object))
        return err_input(err,
                         "%s:1: the file must be an object with a member "
                         "'hosts', not a list",
                         root->source);
    if (place_check_keys(root, file_keys, err) ||
        PLACE_FIELDS(cluster, root, pod_field, err) ||
        place_fields(cluster, root, &cluster_fields[OF_GPU], 4, err) ||
        read_reserve(&cluster->reserve, root, err) ||
        (place_has(root, "hosts") &&
         place_list(&reader->hosts, root, "hosts", err)))
        return -1;
    if (!json_array_size(reader->hosts))
        return place_error(root, err, "hosts is missing or empty");
    cluster->memory_bytes = ARENA_NEW(root->arena, uint64_t, CLUSTER_MAX_GPUS);
    cluster->reserve_bytes = ARENA_NEW(root->arena, uint64_t, CLUSTER_MAX_GPUS);
    for (size_t i = 0; i < json_array_size(reader->hosts); i++)
        if (add_host(reader, i, err))
            return -1;
    return cluster_check_hosts(cluster, err)
               ? err_prefix(err, "%s:%zu", root->source,
                            place_line(root, "pod_size"))
               : 0;
}

int cluster_from_json(struct cluster *cluster, const char *text, size_t len,
                      const char *source, struct arena *arena, struct err *err)
{
    struct cluster_reader reader = {
        .cluster = cluster,
        .root = {.source = source, .line = 1, .arena = arena}};
    json_t *root = NULL;
    int rc = json_parse(&root, text, len, source, err);

    if (!rc) {
        reader.root.object = root;
        reader.root.lines = place_child_lines(text, len, 1, arena);
        /* The list of hosts is the only list or object at the file's top level,
         * so every object at depth two is a host. */
        reader.lines = place_child_lines(text, len, 2, arena);
        rc = read_cluster(&reader, err);
    }
    json_decref(root);
    return rc ? -1 : 0;
}

int cluster_load(struct cluster *cluster, const char *path, struct arena *arena,
                 struct err *err)
{
    const char *text;
    size_t len;

    if (file_read(&text, &len, path, arena, err))
        return -1;
    return cluster_from_json(cluster, text, len, file_source(path), arena, err);
}

json_t *cluster_to_json(const struct cluster *cluster)
{
    const uint32_t n = cluster->devices_per_host;
    json_t *root = json_object(), *hosts = json_array();

    if (cluster->gpu)
        json_object_set_new(root, "gpu", json_string(cluster->gpu));
    if (cluster->hosts_per_domain > 1)
        json_object_set_new(root, "pod_size",
                            json_integer(cluster->hosts_per_domain));
    if (cluster->intra_gbps > 0)
        json_object_set_new(root, "intra_gbps", json_real(cluster->intra_gbps));
    if (cluster->inter_gbps > 0)
        json_object_set_new(root, "inter_gbps", json_real(cluster->inter_gbps));
    for (uint32_t first = 0; first < cluster->n_devices; first += n) {
        json_t *memory = json_array(), *slowdown = json_array();

        for (uint32_t r = first; r < first + n; r++) {
            json_array_append_new(
                memory, json_integer((json_int_t)cluster->memory_bytes[r]));
            json_array_append_new(slowdown,
                                  json_real(cluster_slowdown(cluster, r)));
        }
        json_array_append_new(hosts,
                              json_pack("{s:i, s:o, s:o}", "gpus", n, "memory",
                                        memory, "slowdown", slowdown));
    }
    json_object_set_new(root, "hosts", hosts);
    return root;
}
