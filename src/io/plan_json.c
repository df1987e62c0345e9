/* SPDX-License-Identifier: MIT */
#include "io/plan_json.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "core/plan_check.h"
#include "io/json_place.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define FORMAT_VERSION 1

/* Optional members: an absent one leaves *out as it is. */

static int optional_u64(uint64_t *out, const struct json_place *place,
                        const char *key, struct err *err)
{
    return place_has(place, key)
               ? place_u64(out, place, key, 0, UINT64_MAX, err)
               : 0;
}

static int optional_double(double *out, const struct json_place *place,
                           const char *key, struct err *err)
{
    return place_has(place, key) ? place_double(out, place, key, err) : 0;
}

static int optional_string(const char **out, const struct json_place *place,
                           const char *key, struct arena *arena,
                           struct err *err)
{
    return place_has(place, key) ? place_string(out, place, key, arena, err)
                                 : 0;
}

/* As hash_text prints it. */
static int optional_hash(const char **out, const struct json_place *place,
                         const char *key, struct arena *arena, struct err *err)
{
    if (!place_has(place, key))
        return 0;
    if (place_string(out, place, key, arena, err))
        return -1;
    if (strlen(*out) == HASH_TEXT_MAX - 1 &&
        strspn(*out, "0123456789abcdef") == HASH_TEXT_MAX - 1)
        return 0;
    return place_error(place, err, "%s is '%.40s', not %d hexadecimal digits",
                       key, *out, HASH_TEXT_MAX - 1);
}

/* One of `names`, by its index; *out stays where the key is absent. */
static int optional_choice(int *out, const struct json_place *place,
                           const char *key, const char *const *names, int n,
                           struct err *err)
{
    const json_t *value = json_object_get(place->object, key);
    char list[128] = "";
    size_t used = 0;

    if (!place_has(place, key))
        return 0;
    for (int i = 0; i < n; i++) {
        if (json_is_string(value) &&
            !strcmp(json_string_value(value), names[i])) {
            *out = i;
            return 0;
        }
        used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
                                 i ? ", " : "", names[i]);
    }
    return place_error(place, err, "%s must be one of %s", key, list);
}

/* A list of kind names, as a mask. */
static int optional_kinds(unsigned *out, const struct json_place *place,
                          struct err *err)
{
    const json_t *list;
    unsigned kinds = 0;

    if (!place_has(place, "kinds"))
        return 0;
    if (place_list(&list, place, "kinds", err))
        return -1;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        unsigned kind = name ? shard_kind_from_name(name) : 0;

        if (!kind)
            return place_error(place, err,
                               "kinds[%zu] must be one of table, column, row, "
                               "grid, replicate",
                               i);
        kinds |= kind;
    }
    *out = kinds;
    return 0;
}

static int read_version(const struct json_place *root, struct err *err)
{
    uint64_t version = 0;

    if (place_u64(&version, root, "neuroshard_plan", 0, UINT64_MAX, err))
        return -1;
    if (version == FORMAT_VERSION)
        return 0;
    return place_error(root, err,
                       "neuroshard_plan is %" PRIu64
                       ", but this program reads version %d",
                       version, FORMAT_VERSION);
}

static int read_dense_optimizer(enum dense_optimizer *out,
                                const struct json_place *root, struct err *err)
{
    const char *names[N_DENSE_OPTIMIZERS];
    int optimizer = DENSE_AS_TABLE;

    for (int i = 0; i < N_DENSE_OPTIMIZERS; i++)
        names[i] = dense_optimizer_name((enum dense_optimizer)i);
    if (optional_choice(&optimizer, root, "dense_optimizer", names,
                        N_DENSE_OPTIMIZERS, err))
        return -1;
    *out = (enum dense_optimizer)optimizer;
    return 0;
}

/* What stands beside tables, shards and devices. */
static int read_head(struct plan *plan, const struct json_place *root,
                     struct arena *arena, struct err *err)
{
    struct problem *problem = &plan->problem;
    static const char *const memory_models[] = {"full", "weights"};
    uint64_t n_floored = 0;
    int memory_model = MEMORY_FULL;

    if (place_u64(&problem->batch, root, "batch", 1, UINT64_MAX, err) ||
        optional_choice(&memory_model, root, "memory_model", memory_models, 2,
                        err) ||
        read_dense_optimizer(&problem->dense_optimizer, root, err) ||
        optional_kinds(&problem->kinds, root, err) ||
        optional_string(&problem->source, root, "source", arena, err) ||
        optional_string(&plan->version, root, "version", arena, err) ||
        optional_hash(&plan->inputs_hash, root, "inputs_hash", arena, err) ||
        optional_string(&plan->search, root, "search", arena, err) ||
        optional_string(&plan->stopped, root, "stopped", arena, err) ||
        optional_u64(&plan->seed, root, "seed", err) ||
        optional_u64(&plan->n_evaluations, root, "n_evaluations", err) ||
        optional_double(&plan->total_ms, root, "total_ms", err) ||
        optional_double(&plan->bound_ms, root, "bound_ms", err))
        return -1;
    problem->memory_model = (enum memory_model)memory_model;
    if (place_has(root, "n_floored") &&
        place_u64(&n_floored, root, "n_floored", 0, problem->cluster.n_devices,
                  err))
        return -1;
    plan->n_floored = (uint32_t)n_floored;
    return 0;
}

/* cluster.KEY: a number a device. */
static int read_bytes(uint64_t **out, const struct json_place *place,
                      const char *key, uint32_t n, struct arena *arena,
                      struct err *err)
{
    const json_t *list;

    if (place_list(&list, place, key, err))
        return -1;
    if (json_array_size(list) != n)
        return place_error(place, err,
                           "%s has %zu entries, but the cluster has %u gpus",
                           key, json_array_size(list), n);
    *out = ARENA_NEW(arena, uint64_t, n);
    for (size_t r = 0; r < n; r++)
        if (place_list_u64(&(*out)[r], place, key, list, r, err))
            return -1;
    return 0;
}

/* Bandwidths that the user asked for. */
static int read_bandwidth(double *gbps, const struct json_place *place,
                          const char *key, struct err *err)
{
    if (!place_has(place, key))
        return 0;
    return place_double_within(gbps, place, key, CLUSTER_MIN_GBPS,
                               CLUSTER_MAX_GBPS, err);
}

static int read_cluster(struct cluster *cluster, const struct json_place *root,
                        struct arena *arena, struct err *err)
{
    struct json_place place;

    if (place_object(&place, root, "cluster", err))
        return -1;
    if (place_u32(&cluster->n_devices, &place, "gpus", 1, UINT32_MAX, err))
        return -1;
    cluster->devices_per_host = cluster->n_devices;
    if (place_has(&place, "gpus_per_host") &&
        place_u32(&cluster->devices_per_host, &place, "gpus_per_host", 1,
                  UINT32_MAX, err))
        return -1;
    if (place_has(&place, "pod_size") &&
        place_u32(&cluster->hosts_per_domain, &place, "pod_size", 1,
                  cluster->n_devices, err))
        return -1;
    if (read_bandwidth(&cluster->intra_gbps, &place, "intra_gbps", err) ||
        read_bandwidth(&cluster->inter_gbps, &place, "inter_gbps", err))
        return -1;
    /* First the list that the file must have: it bounds what is allocated. */
    if (read_bytes(&cluster->memory_bytes, &place, "memory_bytes",
                   cluster->n_devices, arena, err))
        return -1;
    cluster->reserve_bytes = ARENA_NEW(arena, uint64_t, cluster->n_devices);
    return place_has(&place, "reserve_bytes")
               ? read_bytes(&cluster->reserve_bytes, &place, "reserve_bytes",
                            cluster->n_devices, arena, err)
               : 0;
}

static int read_bins(struct table *table, const struct json_place *place,
                     struct err *err)
{
    const json_t *list;

    if (place_list(&list, place, "bins", err))
        return -1;
    if (json_array_size(list) != REUSE_BINS)
        return place_error(place, err, "bins has %zu entries, not %d",
                           json_array_size(list), REUSE_BINS);
    for (size_t k = 0; k < REUSE_BINS; k++)
        if (place_list_double(&table->bins[k], place, "bins", list, k, err))
            return -1;
    table->has_bins = true;
    return 0;
}

/* Names of enums, in the order of their values. */
static int read_formats(struct table *table, const struct json_place *place,
                        struct err *err)
{
    static const char *const outputs[] = {"pooled", "sequence"};
    const char *precisions[N_PRECISIONS], *optimizers[N_OPTIMIZERS];
    int output = (int)table->output, precision = (int)table->precision;
    int comm_precision = (int)table->comm_precision;
    int optimizer = (int)table->optimizer;

    for (int i = 0; i < N_PRECISIONS; i++)
        precisions[i] = precision_name((enum precision)i);
    for (int i = 0; i < N_OPTIMIZERS; i++)
        optimizers[i] = optimizer_name((enum optimizer)i);
    if (optional_choice(&output, place, "output", outputs, 2, err) ||
        optional_choice(&precision, place, "precision", precisions,
                        N_PRECISIONS, err) ||
        optional_choice(&comm_precision, place, "comm_precision", precisions,
                        N_PRECISIONS, err) ||
        optional_choice(&optimizer, place, "optimizer", optimizers,
                        N_OPTIMIZERS, err))
        return -1;
    table->output = (enum table_output)output;
    table->precision = (enum precision)precision;
    table->comm_precision = (enum precision)comm_precision;
    table->optimizer = (enum optimizer)optimizer;
    return 0;
}

/* Without bins and exponent the skew is assumed; a file may also say so. */
static int read_skew(struct table *table, const struct json_place *place,
                     struct err *err)
{
    if (place_has(place, "bins") && read_bins(table, place, err))
        return -1;
    table->skew_assumed = !table->has_bins && !place_has(place, "zipf_alpha");
    if (optional_double(&table->zipf_alpha, place, "zipf_alpha", err))
        return -1;
    return place_has(place, "skew_assumed")
               ? place_bool(&table->skew_assumed, place, "skew_assumed", err)
               : 0;
}

static int read_table(struct table *table, const struct json_place *place,
                      const struct cluster *cluster, struct arena *arena,
                      struct err *err)
{
    uint32_t device;

    table_init(table);
    if (place_string(&table->name, place, "name", arena, err) ||
        place_u64(&table->num_embeddings, place, "num_embeddings", 1,
                  UINT64_MAX, err) ||
        place_u32(&table->dim, place, "dim", 1, UINT32_MAX, err) ||
        place_double(&table->pooling_factor, place, "pooling_factor", err) ||
        optional_double(&table->num_outputs, place, "num_outputs", err) ||
        read_formats(table, place, err) || read_skew(table, place, err) ||
        optional_kinds(&table->kinds, place, err) ||
        optional_string(&table->group, place, "group", arena, err))
        return -1;
    if (!place_has(place, "device"))
        return 0;
    if (place_u32(&device, place, "device", 0, UINT32_MAX, err))
        return -1;
    if (device >= cluster->n_devices)
        return place_error(place, err,
                           "device is %u, but the cluster has %u gpus", device,
                           cluster->n_devices);
    table->device = device;
    return 0;
}

static int read_tables(struct problem *problem, const struct json_place *root,
                       struct arena *arena, struct err *err)
{
    const json_t *list;

    if (place_list(&list, root, "tables", err))
        return -1;
    problem->n_tables = json_array_size(list);
    problem->tables = ARENA_NEW(arena, struct table, problem->n_tables);
    for (size_t i = 0; i < problem->n_tables; i++) {
        struct json_place place;

        if (place_element(&place, root, "tables", list, i, err))
            return -1;
        if (read_table(&problem->tables[i], &place, &problem->cluster, arena,
                       err))
            return -1;
    }
    return 0;
}

/* The pair KEY_begin, KEY_end: not empty and at most max. */
static int read_range(uint64_t *begin, uint64_t *end,
                      const struct json_place *place, const char *begin_key,
                      const char *end_key, uint64_t max, struct err *err)
{
    if (place_u64(begin, place, begin_key, 0, max - 1, err))
        return -1;
    return place_u64(end, place, end_key, *begin + 1, max, err);
}

/* Kind 0 where the file has none. */
static int read_shard(struct shard *shard, const struct json_place *place,
                      const struct problem *problem, struct err *err)
{
    const struct table *table;
    const char *kind =
        json_string_value(json_object_get(place->object, "kind"));
    uint64_t col_begin = 0, col_end = 0;

    if (place_u32(&shard->table, place, "table", 0, UINT32_MAX, err))
        return -1;
    if (shard->table >= problem->n_tables)
        return place_error(place, err,
                           "table is %u, but the plan has %zu tables",
                           shard->table, problem->n_tables);
    table = &problem->tables[shard->table];
    if (place_u32(&shard->device, place, "device", 0, UINT32_MAX, err))
        return -1;
    if (shard->device >= problem->cluster.n_devices)
        return place_error(place, err,
                           "device is %u, but the cluster has %u gpus",
                           shard->device, problem->cluster.n_devices);
    if (read_range(&shard->row_begin, &shard->row_end, place, "row_begin",
                   "row_end", table->num_embeddings, err) ||
        read_range(&col_begin, &col_end, place, "col_begin", "col_end",
                   table->dim, err))
        return -1;
    shard->col_begin = (uint32_t)col_begin;
    shard->col_end = (uint32_t)col_end;
    shard->kind = kind ? (enum shard_kind)shard_kind_from_name(kind) : 0;
    if (place_has(place, "kind") && !shard->kind)
        return place_error(place, err,
                           "kind must be one of table, column, row, grid, "
                           "replicate");
    return 0;
}

static int read_shards(struct plan *plan, const struct json_place *root,
                       struct arena *arena, struct err *err)
{
    const json_t *list;
    bool has_costs = false;

    if (place_list(&list, root, "shards", err))
        return -1;
    plan->n_shards = json_array_size(list);
    plan->shards = ARENA_NEW(arena, struct shard, plan->n_shards);
    plan->shard_ms = ARENA_NEW(arena, double, plan->n_shards);
    for (size_t i = 0; i < plan->n_shards; i++) {
        struct json_place place;

        plan->shard_ms[i] = NAN;
        if (place_element(&place, root, "shards", list, i, err) ||
            read_shard(&plan->shards[i], &place, &plan->problem, err) ||
            optional_double(&plan->shard_ms[i], &place, "alone_ms", err))
            return -1;
        has_costs |= !isnan(plan->shard_ms[i]);
    }
    if (!has_costs)
        plan->shard_ms = NULL;
    return 0;
}

/* Kinds that the file leaves out come from the geometry; those it gives stay,
 * so that the judge can compare. */
static void fill_kinds(struct plan *plan)
{
    struct plan copy = *plan;
    enum shard_kind *kinds = mem_alloc(plan->problem.n_tables, sizeof(*kinds));

    copy.shards = mem_alloc(plan->n_shards, sizeof(*copy.shards));
    copy.shard_ms = NULL; /* stays in the order of plan->shards */
    memcpy(copy.shards, plan->shards, plan->n_shards * sizeof(*copy.shards));
    plan_derive_kinds(&copy);
    for (size_t i = 0; i < copy.n_shards; i++)
        kinds[copy.shards[i].table] = copy.shards[i].kind;
    for (size_t i = 0; i < plan->n_shards; i++)
        if (!plan->shards[i].kind)
            plan->shards[i].kind = kinds[plan->shards[i].table];
    mem_free(copy.shards);
    mem_free(kinds);
}

static int read_device(struct device_cost *device,
                       const struct json_place *place, struct err *err)
{
    struct memory_items *memory = &device->memory;
    struct json_place bytes;

    device->compute_ms = device->bwd_comm_ms = NAN;
    device->fwd_comm_ms = device->total_ms = NAN;
    if (optional_double(&device->compute_ms, place, "compute_ms", err) ||
        optional_double(&device->bwd_comm_ms, place, "bwd_comm_ms", err) ||
        optional_double(&device->fwd_comm_ms, place, "fwd_comm_ms", err) ||
        optional_double(&device->total_ms, place, "total_ms", err) ||
        place_object(&bytes, place, "memory_bytes", err) ||
        place_u64(&memory->weights, &bytes, "weights", 0, UINT64_MAX, err) ||
        place_u64(&memory->optimizer, &bytes, "optimizer", 0, UINT64_MAX,
                  err) ||
        place_u64(&memory->io, &bytes, "io", 0, UINT64_MAX, err) ||
        place_u64(&memory->reserve, &bytes, "reserve", 0, UINT64_MAX, err) ||
        place_u64(&memory->total, &bytes, "total", 0, UINT64_MAX, err))
        return -1;
    return 0;
}

static int read_devices(struct plan *plan, const struct json_place *root,
                        struct arena *arena, struct err *err)
{
    uint32_t n_devices = plan->problem.cluster.n_devices;
    const json_t *list;

    if (!place_has(root, "devices"))
        return isnan(plan->total_ms)
                   ? 0
                   : place_error(root, err,
                                 "total_ms is given, but devices is missing");
    if (place_list(&list, root, "devices", err))
        return -1;
    if (json_array_size(list) != n_devices)
        return place_error(
            root, err, "devices has %zu entries, but the cluster has %u gpus",
            json_array_size(list), n_devices);
    plan->devices = ARENA_NEW(arena, struct device_cost, n_devices);
    for (size_t r = 0; r < n_devices; r++) {
        struct json_place place;

        if (place_element(&place, root, "devices", list, r, err))
            return -1;
        if (read_device(&plan->devices[r], &place, err))
            return -1;
    }
    return 0;
}

/* `basis` wins over `measured`, which stands for two of its three values. */
static int read_basis(struct cost_source *cost, const struct json_place *place,
                      struct err *err)
{
    const char *names[BASIS_MEASURED + 1];
    bool is_measured = false;
    int basis;

    if (place_has(place, "measured") &&
        place_bool(&is_measured, place, "measured", err))
        return -1;
    basis = is_measured ? BASIS_MEASURED : BASIS_ANALYTIC;
    for (int i = 0; i <= BASIS_MEASURED; i++)
        names[i] = cost_basis_name((enum cost_basis)i);
    if (optional_choice(&basis, place, "basis", names, BASIS_MEASURED + 1, err))
        return -1;
    cost->basis = (enum cost_basis)basis;
    return 0;
}

static int read_cost_model(struct cost_source *cost,
                           const struct json_place *root, struct arena *arena,
                           struct err *err)
{
    struct json_place place;

    if (!place_has(root, "cost_model"))
        return 0;
    if (place_object(&place, root, "cost_model", err) ||
        place_string(&cost->name, &place, "name", arena, err) ||
        optional_hash(&cost->hash, &place, "hash", arena, err) ||
        optional_string(&cost->comm, &place, "comm", arena, err) ||
        optional_string(&cost->device, &place, "device", arena, err))
        return -1;
    return read_basis(cost, &place, err);
}

static int read_plan(struct plan *plan, const struct json_place *root,
                     struct arena *arena, struct err *err)
{
    if (read_version(root, err) ||
        read_cluster(&plan->problem.cluster, root, arena, err) ||
        read_head(plan, root, arena, err) ||
        read_tables(&plan->problem, root, arena, err) ||
        read_shards(plan, root, arena, err) ||
        read_devices(plan, root, arena, err) ||
        read_cost_model(&plan->cost, root, arena, err))
        return -1;
    fill_kinds(plan);
    if (plan_check(plan, err))
        return err_prefix(err, "%s", root->source);
    plan_sort_shards(plan);
    return 0;
}

int plan_from_json(struct plan *plan, const char *text, size_t len,
                   const char *source, struct arena *arena, struct err *err)
{
    struct json_place place;
    json_t *root = NULL;
    int rc = -1;

    *plan = (struct plan){
        .problem = {.source = arena_strdup(arena, source),
                    .kinds = SHARD_ALL_KINDS},
        .total_ms = NAN,
        .bound_ms = NAN,
    };
    if (json_parse(&root, text, len, source, err))
        goto out;
    if (place_root(&place, root, source, err))
        goto out;
    if (read_plan(plan, &place, arena, err))
        goto out;
    rc = 0;
out:
    json_decref(root);
    return rc;
}

int plan_load(struct plan *plan, const char *path, struct arena *arena,
              struct err *err)
{
    const char *text;
    size_t len;

    if (file_read(&text, &len, path, arena, err))
        return -1;
    return plan_from_json(plan, text, len,
                          strcmp(path, "-") ? path : "standard input", arena,
                          err);
}
