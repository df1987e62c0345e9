/* SPDX-License-Identifier: MIT */
#include "io/plan_json.h"

#include "base/file.h"
#include "core/canonical.h"
#include "core/cluster.h"
#include "core/plan_check.h"
#include "io/plan_fields.h"
#include "io/plan_tiers_json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define GPUS "but the cluster's gpus are"

/* Reads member "kinds", a list of kind names, as a mask. */
static int optional_kinds(unsigned *out, const struct json_place *place,
                          struct err *err)
{
    const json_t *list;

    if (!place_has(place, "kinds"))
        return 0;
    if (place_list(&list, place, "kinds", err))
        return -1;
    *out = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        unsigned kind = name ? shard_kinds_from_list(name, '\0') : 0;

        if (!kind)
            return place_error(place, err,
                               "kinds[%zu] must be one of table, column, row, "
                               "grid, replicate",
                               i);
        *out |= kind;
    }
    return 0;
}

static int read_version(const struct json_place *root, struct err *err)
{
    uint64_t version = 0;

    if (place_u64(&version, root, "neuroshard_plan", 0, UINT64_MAX, err))
        return -1;
    if (version == PLAN_FORMAT_VERSION)
        return 0;
    return place_error(root, err,
                       "neuroshard_plan is %" PRIu64
                       ", but this program reads version %d",
                       version, PLAN_FORMAT_VERSION);
}

/* Reads the top-level members of a plan file, except for the cluster, the
 * tables, the shards and the devices, which have their own readers. */
static int read_head(struct plan *plan, const struct json_place *root,
                     struct err *err)
{
    struct problem *problem = &plan->problem;

    if (PLACE_FIELDS(plan, root, plan_fields, err) ||
        optional_kinds(&problem->kinds, root, err))
        return -1;
    if (problem->min_width % TABLE_COLUMN_STEP)
        return place_error(root, err, "min_width is %u, not a multiple of %u",
                           problem->min_width, TABLE_COLUMN_STEP);
    if (plan->n_floored > problem->cluster.n_devices)
        return place_error(root, err, "n_floored is %u, outside 0 to %u",
                           plan->n_floored, problem->cluster.n_devices);
    return 0;
}

static int read_bytes(uint64_t **out, const struct json_place *place,
                      const char *key, uint32_t n, struct err *err)
{
    const json_t *list;

    if (place_list_of(&list, place, key, n, GPUS, err))
        return -1;
    *out = ARENA_NEW(place->arena, uint64_t, n);
    for (size_t r = 0; r < n; r++)
        if (place_list_u64(&(*out)[r], place, key, list, r, err))
            return -1;
    return 0;
}

/* Reads member `key`, a list of n numbers from 0 to max. */
static int read_reals(double *out, const struct json_place *place,
                      const char *key, size_t n, double max, struct err *err)
{
    const json_t *list;

    if (place_list_of(&list, place, key, n, "not", err))
        return -1;
    for (size_t i = 0; i < n; i++)
        if (place_list_double(&out[i], place, key, list, i, 0, max, err))
            return -1;
    return 0;
}

/* Reads the cluster's member "busy_ms". A phase that it lacks takes no time. */
static int read_busy(struct cluster *cluster, const struct json_place *in,
                     struct err *err)
{
    const uint32_t n = cluster->n_devices;
    struct json_place place;
    double *ms;

    if (!place_has(in, "busy_ms"))
        return 0;
    if (place_object(&place, in, "busy_ms", err))
        return -1;
    ms = ARENA_NEW(in->arena, double, n);
    cluster->busy_ms = arena_alloc(in->arena, n, sizeof(*cluster->busy_ms));
    for (unsigned p = 0; p < N_BUSY_PHASES; p++) {
        if (!place_has(&place, busy_phase_names[p]))
            continue;
        if (read_reals(ms, &place, busy_phase_names[p], n, CLUSTER_MAX_BUSY_MS,
                       err))
            return -1;
        for (uint32_t r = 0; r < n; r++)
            cluster->busy_ms[r][p] = ms[r];
    }
    return 0;
}

/* Reads the cluster's member "slowdown". */
static int read_slowdown(struct cluster *cluster, const struct json_place *in,
                         struct err *err)
{
    const json_t *list;

    if (!place_has(in, "slowdown"))
        return 0;
    if (place_list_of(&list, in, "slowdown", cluster->n_devices, "not", err))
        return -1;
    cluster->slowdown = ARENA_NEW(in->arena, double, cluster->n_devices);
    for (uint32_t r = 0; r < cluster->n_devices; r++)
        if (place_list_double(&cluster->slowdown[r], in, "slowdown", list, r, 1,
                              CLUSTER_MAX_SLOWDOWN, err))
            return -1;
    return 0;
}

static int read_cluster(struct cluster *cluster, const struct json_place *root,
                        struct err *err)
{
    struct json_place place;

    /* memory_bytes is read first, because it is required and its length bounds
     * the size of all other allocations. */
    if (place_object(&place, root, "cluster", err) ||
        PLACE_FIELDS(cluster, &place, cluster_fields, err) ||
        (place_has(&place, "pod_size") &&
         place_u32(&cluster->hosts_per_domain, &place, "pod_size", 1,
                   cluster->n_devices, err)) ||
        read_bytes(&cluster->memory_bytes, &place, "memory_bytes",
                   cluster->n_devices, err) ||
        read_busy(cluster, &place, err) || read_slowdown(cluster, &place, err))
        return -1;
    if (!cluster->devices_per_host)
        cluster->devices_per_host = cluster->n_devices;
    cluster->reserve_bytes =
        ARENA_NEW(root->arena, uint64_t, cluster->n_devices);
    return place_has(&place, "reserve_bytes")
               ? read_bytes(&cluster->reserve_bytes, &place, "reserve_bytes",
                            cluster->n_devices, err)
               : 0;
}

/* Reads the reuse histogram of a table. If the file gives neither bins nor an
 * exponent nor skew_assumed, the skew counts as assumed. */
static int read_skew(struct table *table, const struct json_place *place,
                     struct err *err)
{
    table->has_bins = place_has(place, "bins");
    if (table->has_bins &&
        read_reals(table->bins, place, "bins", REUSE_BINS, 1, err))
        return -1;
    if (!place_has(place, "skew_assumed"))
        table->skew_assumed =
            !table->has_bins && !place_has(place, "zipf_alpha");
    return 0;
}

/* Reads an index that must be below n. `whose` and `what` are words of the
 * error message: "but the <whose> has <n> <what>". */
static int read_idx(uint32_t *out, const struct json_place *place,
                    const char *key, const char *whose, size_t n,
                    const char *what, struct err *err)
{
    if (place_u32(out, place, key, 0, UINT32_MAX, err))
        return -1;
    if (*out < n)
        return 0;
    return place_error(place, err, "%s is %u, but the %s has %zu %s", key, *out,
                       whose, n, what);
}

/* Reads the row seed of a table. Old plans, from before row seeds existed, have
 * none: they scattered the rows by the table's name. */
static int read_row_seed(struct table *table, const struct json_place *place,
                         struct err *err)
{
    const char *text = NULL;

    if (PLACE_FIELDS(&text, place, row_seed_field, err))
        return -1;
    table->row_seed =
        text ? strtoull(text, NULL, 16) : row_seed_of_name(table->name);
    return 0;
}

static int read_table(struct table *table, const struct json_place *place,
                      const struct cluster *cluster, struct err *err)
{
    uint32_t device;

    table_init(table);
    if (PLACE_FIELDS(table, place, table_fields, err) ||
        read_skew(table, place, err) || read_row_seed(table, place, err) ||
        optional_kinds(&table->kinds, place, err) ||
        plan_read_table_tiers(table, place, err))
        return -1;
    if (!place_has(place, "device"))
        return 0;
    if (read_idx(&device, place, "device", "cluster", cluster->n_devices,
                 "gpus", err))
        return -1;
    table->device = device;
    return 0;
}

static int read_tables(struct problem *problem, const struct json_place *root,
                       struct json_list *list, struct err *err)
{
    if (place_long_list(list, root, err))
        return -1;
    problem->n_tables = list->n;
    problem->tables = ARENA_NEW(root->arena, struct table, problem->n_tables);
    for (size_t i = 0; i < problem->n_tables; i++) {
        struct json_place place;

        if (place_next(&place, list, root, err) ||
            read_table(&problem->tables[i], &place, &problem->cluster, err))
            return -1;
    }
    return 0;
}

/* Reads a shard. If the file gives no kind, the shard's kind is 0. */
static int read_shard(struct shard *shard, const struct json_place *place,
                      const struct problem *problem, struct err *err)
{
    const struct table *table;
    const char *kind =
        json_string_value(json_object_get(place->object, "kind"));

    if (read_idx(&shard->table, place, "table", "plan", problem->n_tables,
                 "tables", err) ||
        read_idx(&shard->device, place, "device", "cluster",
                 problem->cluster.n_devices, "gpus", err))
        return -1;
    table = &problem->tables[shard->table];
    if (place_u64(&shard->row_begin, place, "row_begin", 0,
                  table->num_embeddings - 1, err) ||
        place_u64(&shard->row_end, place, "row_end", shard->row_begin + 1,
                  table->num_embeddings, err) ||
        place_u32(&shard->col_begin, place, "col_begin", 0, table->dim - 1,
                  err) ||
        place_u32(&shard->col_end, place, "col_end", shard->col_begin + 1,
                  table->dim, err))
        return -1;
    shard->kind = kind ? (enum shard_kind)shard_kinds_from_list(kind, '\0') : 0;
    if (place_has(place, "kind") && !shard->kind)
        return place_error(place, err,
                           "kind must be one of table, column, row, grid, "
                           "replicate");
    return 0;
}

static int read_shards(struct plan *plan, const struct json_place *root,
                       struct json_list *list, struct err *err)
{
    bool has_costs = false;

    if (place_long_list(list, root, err))
        return -1;
    plan->n_shards = list->n;
    plan->shards = ARENA_NEW(root->arena, struct shard, plan->n_shards);
    plan->shard_ms = ARENA_NEW(root->arena, double, plan->n_shards);
    for (size_t i = 0; i < plan->n_shards; i++) {
        struct json_place place;

        plan->shard_ms[i] = NAN;
        if (place_next(&place, list, root, err) ||
            read_shard(&plan->shards[i], &place, &plan->problem, err) ||
            plan_read_tier(plan, &plan->shards[i], &place, err) ||
            PLACE_FIELDS(&plan->shard_ms[i], &place, alone_field, err))
            return -1;
        has_costs |= !isnan(plan->shard_ms[i]);
    }
    if (!has_costs)
        plan->shard_ms = NULL;
    return 0;
}

/* Reads member `key`, an object with the times of step parts. Absent parts get
 * the time NAN. */
static int read_parts(double parts_ms[N_STEP_PARTS],
                      const struct json_place *place, const char *key,
                      struct err *err)
{
    struct json_place parts;

    for (size_t p = 0; p < N_STEP_PARTS; p++)
        parts_ms[p] = NAN;
    if (!place_has(place, key))
        return 0;
    if (place_object(&parts, place, key, err))
        return -1;
    return PLACE_FIELDS(parts_ms, &parts, step_part_fields, err);
}

/* Reads the text of the dense part and its predicted times. */
static int read_dense(struct plan *plan, const struct json_place *step,
                      struct err *err)
{
    struct problem *problem = &plan->problem;
    const char *text = NULL;
    struct json_place cost;

    if (PLACE_FIELDS(&text, step, dense_text_field, err))
        return -1;
    if (text &&
        dense_read(&problem->job.dense, text, strlen(text), problem->tables,
                   problem->n_tables, step->arena, err)) {
        const struct err why = *err;

        return place_error(step, err, "dense: %s", why.msg);
    }
    if (!place_has(step, "dense_cost"))
        return 0;
    if (place_object(&cost, step, "dense_cost", err))
        return -1;
    return PLACE_FIELDS(&plan->dense, &cost, dense_cost_fields, err);
}

static int read_step(struct plan *plan, const struct json_place *root,
                     struct err *err)
{
    struct job *job = &plan->problem.job;
    struct json_place place = {0};

    if (place_has(root, "step") &&
        (place_object(&place, root, "step", err) ||
         PLACE_FIELDS(job, &place, job_fields, err) ||
         read_reals(job->dense_ms, &place, "dense_ms", 2, JOB_MAX_DENSE_MS,
                    err) ||
         read_dense(plan, &place, err)))
        return -1;
    job->asks_host = place_has(&place, job_fields[OF_JOB_HOST].key);
    return read_parts(plan->exposed_ms, &place, "exposed_ms", err);
}

static int read_device(struct device_cost *device, enum memory_model *model,
                       const struct json_place *place, struct err *err)
{
    struct json_place bytes;

    device->compute_ms = device->bwd_comm_ms = NAN;
    device->fwd_comm_ms = device->total_ms = NAN;
    if (PLACE_FIELDS(device, place, device_cost_fields, err) ||
        read_parts(device->parts_ms, place, "phases_ms", err) ||
        plan_read_caches(device, place, err) ||
        place_object(&bytes, place, "memory_bytes", err))
        return -1;
    if (!place_has(&bytes, "io"))
        return PLACE_FIELDS(&device->memory, &bytes, memory_fields, err) ||
                       PLACE_FIELDS(&device->memory, &bytes, tier_memory_fields,
                                    err) ||
                       PLACE_FIELDS(&device->memory, &bytes, dense_memory_field,
                                    err)
                   ? -1
                   : 0;
    if (*model == MEMORY_FULL)
        *model = MEMORY_BATCH;
    return PLACE_FIELDS(&device->memory, &bytes, io_memory_fields, err);
}

static int read_devices(struct plan *plan, const struct json_place *root,
                        struct err *err)
{
    uint32_t n_devices = plan->problem.cluster.n_devices;
    const json_t *list;

    if (!place_has(root, "devices"))
        return isnan(plan->total_ms)
                   ? 0
                   : place_error(root, err,
                                 "total_ms is given, but devices is missing");
    if (place_list_of(&list, root, "devices", n_devices, GPUS, err))
        return -1;
    plan->devices = ARENA_NEW(root->arena, struct device_cost, n_devices);
    for (size_t r = 0; r < n_devices; r++) {
        struct json_place place;

        if (place_element(&place, root, "devices", list, r, err) ||
            read_device(&plan->devices[r], &plan->problem.memory_model, &place,
                        err))
            return -1;
    }
    return 0;
}

static int read_outside(struct cost_source *cost,
                        const struct json_place *place, struct err *err)
{
    const json_t *list = NULL;
    struct json_place item;
    size_t n, *i = &cost->n_outside;

    if (place_has(place, "outside") && place_list(&list, place, "outside", err))
        return -1;
    n = json_array_size(list);
    cost->outside = ARENA_NEW(place->arena, struct cost_outside, n);
    for (; *i < n; ++*i)
        if (place_element(&item, place, "outside", list, *i, err) ||
            PLACE_FIELDS(&cost->outside[*i], &item, cost_outside_fields, err))
            return -1;
    return 0;
}

/* Removes the host from the times of a plan before version 0.3, in which
 * total_ms and bound_ms were at least the time of the host. The total of an
 * old plan becomes that of its slowest GPU. */
static void remove_host(struct plan *plan, double host_ms)
{
    double slowest_ms = 0;

    if (!(host_ms > 0))
        return;
    plan->cost.host = HOST_ASSUMED;
    if (!plan->devices || !(plan->total_ms <= host_ms))
        return;
    for (uint32_t r = 0; r < plan->problem.cluster.n_devices; r++)
        slowest_ms = fmax(slowest_ms, plan->devices[r].total_ms);
    plan->total_ms = slowest_ms;
    if (plan->bound_ms > slowest_ms)
        plan->bound_ms = NAN;
}

/* Reads the description of the cost model. The member `basis` has three values.
 * The older flag `measured` covers two of them, and is ignored if `basis` is
 * there. */
static int read_cost_model(struct plan *plan, const struct json_place *root,
                           struct err *err)
{
    struct cost_source *cost = &plan->cost;
    struct json_place place;
    bool is_measured = false;
    double host_ms = 0;

    if (!place_has(root, "cost_model"))
        return 0;
    if (place_object(&place, root, "cost_model", err) ||
        PLACE_FIELDS(&is_measured, &place, measured_field, err))
        return -1;
    cost->basis = is_measured ? BASIS_MEASURED : BASIS_ANALYTIC;
    if (PLACE_FIELDS(cost, &place, cost_fields, err) ||
        PLACE_FIELDS(&host_ms, &place, old_host_field, err))
        return -1;
    remove_host(plan, host_ms);
    return read_outside(cost, &place, err);
}

static int read_wire(struct wire_regret *wire, const struct json_place *root,
                     struct err *err)
{
    struct json_place place;

    if (!place_has(root, "wire"))
        return 0;
    return place_object(&place, root, "wire", err) ||
                   PLACE_FIELDS(wire, &place, wire_fields, err) ||
                   read_reals(wire->regrets, &place, "regrets", N_WIRES, 1e9,
                              err)
               ? -1
               : 0;
}

static int read_groups(struct plan *plan, const struct json_place *root,
                       struct err *err)
{
    struct json_place place;

    if (!place_has(root, "groups"))
        return 0;
    return place_object(&place, root, "groups", err) ||
                   PLACE_FIELDS(&plan->problem.groups, &place, groups_fields,
                                err) ||
                   PLACE_FIELDS(&plan->sync, &place, sync_fields, err)
               ? -1
               : 0;
}

static int read_plan(struct plan *plan, const struct json_place *root,
                     struct json_list lists[PLAN_N_LISTS], struct err *err)
{
    if (read_version(root, err) ||
        read_cluster(&plan->problem.cluster, root, err) ||
        read_head(plan, root, err) || read_groups(plan, root, err) ||
        read_tables(&plan->problem, root, &lists[PLAN_TABLES], err) ||
        read_shards(plan, root, &lists[PLAN_SHARDS], err) ||
        read_devices(plan, root, err) || read_step(plan, root, err) ||
        read_cost_model(plan, root, err) || read_wire(&plan->wire, root, err))
        return -1;
    plan_fill_kinds(plan);
    problem_find_hot_rows(&plan->problem, root->arena);
    if (plan_check(plan, err))
        return err_prefix(err, "%s", root->source);
    plan_sort_shards(plan);
    return 0;
}

int plan_from_document(struct plan *plan, const json_t *root,
                       struct json_list lists[PLAN_N_LISTS], const char *source,
                       struct arena *arena, struct err *err)
{
    struct json_place place;
    int rc;

    *plan = (struct plan){
        .problem = {.source = arena_strdup(arena, source),
                    .kinds = SHARD_ALL_KINDS},
        .total_ms = NAN,
        .bound_ms = NAN,
    };
    lists[PLAN_TABLES].key = "tables";
    lists[PLAN_SHARDS].key = "shards";
    rc = place_root(&place, root, source, arena, err) ||
         read_plan(plan, &place, lists, err);
    for (size_t i = 0; i < PLAN_N_LISTS; i++)
        json_list_release(&lists[i]);
    return rc ? -1 : 0;
}

/* Each table and shard is parsed by itself, which takes less time and memory.
 * If that fails, the text is parsed as a whole, because only then the line of
 * the error is known. */
int plan_from_json(struct plan *plan, const char *text, size_t len,
                   const char *source, struct arena *arena, struct err *err)
{
    struct json_list lists[PLAN_N_LISTS] = {
        [PLAN_TABLES] = {.key = "tables"}, [PLAN_SHARDS] = {.key = "shards"}};
    json_t *root = NULL;
    int rc;

    rc = json_parse_but(&root, lists, PLAN_N_LISTS, text, len) ||
         plan_from_document(plan, root, lists, source, arena, err);
    json_decref(root);
    if (!rc)
        return 0;
    *err = (struct err){0};
    memset(lists, 0, sizeof(lists));
    rc = json_parse(&root, text, len, source, err) ||
         plan_from_document(plan, root, lists, source, arena, err);
    json_decref(root);
    return rc ? -1 : 0;
}

int plan_load(struct plan *plan, const char *path, struct arena *arena,
              struct err *err)
{
    const char *text;
    size_t len;

    if (file_read(&text, &len, path, arena, err))
        return -1;
    return plan_from_json(plan, text, len, file_source(path), arena, err);
}
