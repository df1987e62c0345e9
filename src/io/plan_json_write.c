/* SPDX-License-Identifier: MIT */
#include "io/plan_json_write.h"
#include "base/file.h"
#include "base/file_write.h"
#include "base/hash.h"
#include "core/cluster.h"
#include "core/host.h"
#include "core/plan_check.h"
#include "io/plan_fields.h"
#include "io/plan_json.h"
#include "io/plan_tiers_json.h"

#include <string.h>

/*
 * Writer of plan files. jansson makes and prints the values, and this file lays
 * them out. Each member has its own line. In the lists of tables, shards and
 * devices, each element has its own line. So plans can be read, compared and
 * searched line by line. jansson keeps members in the order in which they were
 * set.
 */

/* Sets a member of an object. This cannot fail: texts are UTF-8, and allocation
 * failures abort (base/mem.h). */
static void set(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

static void append(json_t *list, json_t *value)
{
    json_array_append_new(list, value);
}

static json_t *from_list_u64(const uint64_t *list, size_t n)
{
    json_t *value = json_array();

    for (size_t i = 0; i < n; i++)
        append(value, json_whole(list[i]));
    return value;
}

static json_t *from_kinds(unsigned kinds)
{
    json_t *value = json_array();

    for (unsigned kind = 1; kind <= SHARD_ALL_KINDS; kind <<= 1)
        if (kinds & kind)
            append(value, json_string(shard_kind_name((enum shard_kind)kind)));
    return value;
}

/* Returns an object with the times of all devices in each phase. */
static json_t *from_busy(const struct cluster *cluster)
{
    json_t *value = json_object();

    for (unsigned p = 0; p < N_BUSY_PHASES; p++) {
        json_t *list = json_array();

        for (uint32_t r = 0; r < cluster->n_devices; r++)
            append(list, json_real(cluster->busy_ms[r][p]));
        set(value, busy_phase_names[p], list);
    }
    return value;
}

static json_t *from_reals(const double *list, size_t n)
{
    json_t *value = json_array();

    for (size_t i = 0; i < n; i++)
        append(value, json_real(list[i]));
    return value;
}

static json_t *from_cluster(const struct plan *plan)
{
    const struct cluster *cluster = &plan->problem.cluster;
    json_t *value = place_row(cluster, cluster_fields, OF_GPU);

    if (cluster->hosts_per_domain > 1)
        set(value, "pod_size", json_whole(cluster->hosts_per_domain));
    set(value, "memory_bytes",
        from_list_u64(cluster->memory_bytes, cluster->n_devices));
    set(value, "reserve_bytes",
        from_list_u64(cluster->reserve_bytes, cluster->n_devices));
    if (cluster->busy_ms)
        set(value, "busy_ms", from_busy(cluster));
    if (cluster->slowdown)
        set(value, "slowdown",
            from_reals(cluster->slowdown, cluster->n_devices));
    if (cluster->n_other_kinds)
        set(value, "other_kinds", json_whole(cluster->n_other_kinds));
    if (cluster->gpu)
        set(value, "gpu", json_string(cluster->gpu));
    if (cluster->nccl_bytes)
        set(value, "nccl_bytes", json_whole(cluster->nccl_bytes));
    if (cluster->host_bytes)
        set(value, "host_bytes", json_whole(cluster->host_bytes));
    if (cluster->intra_gbps > 0)
        set(value, "intra_gbps", json_real(cluster->intra_gbps));
    if (cluster->inter_gbps > 0)
        set(value, "inter_gbps", json_real(cluster->inter_gbps));
    return value;
}

static json_t *from_cost_source(const struct cost_source *cost)
{
    json_t *value;

    if (!cost->name)
        return json_null();
    value = place_row(cost, cost_fields, OF_BASIS);
    set(value, measured_field->key,
        json_boolean(cost->basis == BASIS_MEASURED));
    place_set_fields(value, cost, &cost_fields[OF_BASIS], 3);
    if (cost->lookup_error.frac > 0)
        place_set_fields(value, cost, &cost_fields[OF_LOOKUP_ERROR], 2);
    if (cost->exchange_error.frac > 0)
        place_set_fields(value, cost, &cost_fields[OF_EXCHANGE_ERROR], 2);
    if (cost->host != HOST_NONE)
        place_set_fields(value, cost, &cost_fields[OF_HOST], 1);
    if (cost->tier_error.frac > 0)
        place_set_fields(value, cost, &cost_fields[OF_TIER_ERROR], 2);
    if (cost->n_outside)
        set(value, "outside", cost_outside_to_json(cost));
    return value;
}

/* Builds the JSON object of a table. Constraints, bins and row_order are
 * written only if they differ from the default. The row seed is written only if
 * the table's rows are scattered by it. */
static json_t *from_table(const struct table *table)
{
    json_t *value = place_row(table, table_fields, OF_ROW_ORDER);

    if (table->row_order != ROW_ORDER_HASHED)
        place_set_fields(value, table, &table_fields[OF_ROW_ORDER], 1);
    if (table->row_order != ROW_ORDER_FREQUENCY)
        set(value, row_seed_field->key,
            json_string(HASH_TEXT(table->row_seed)));
    if (table->dedup < 1)
        place_set_fields(value, table, &table_fields[OF_DEDUP], 1);
    if (table->has_bins) {
        json_t *bins = json_array();

        for (unsigned k = 0; k < REUSE_BINS; k++)
            append(bins, json_real_or_null(table->bins[k]));
        set(value, "bins", bins);
    }
    if (table->kinds != SHARD_ALL_KINDS)
        set(value, "kinds", from_kinds(table->kinds));
    if (table->device >= 0)
        set(value, "device", json_integer(table->device));
    if (table->group)
        place_set_fields(value, table, &table_fields[OF_GROUP], 1);
    if (table->rows_over != ROWS_OVER_ANY)
        place_set_fields(value, table, &table_fields[OF_ROWS_OVER], 1);
    if (table->row_overhead_bytes > 0)
        place_set_fields(value, table, &table_fields[OF_ROW_OVERHEAD], 1);
    if (table->forward_factor != 1)
        place_set_fields(value, table, &table_fields[OF_FORWARD_FACTOR], 1);
    if (table->backward_factor != 1)
        place_set_fields(value, table, &table_fields[OF_BACKWARD_FACTOR], 1);
    if (table->min_width)
        place_set_fields(value, table, &table_fields[OF_TABLE_MIN_WIDTH], 1);
    return value;
}

/* --- layout --- */

#define END_OF_DOCUMENT "\n}\n"

/* Prints the key of the next member. */
static void print_key(struct buf *out, const char *key)
{
    buf_printf(out, "%s\n  \"%s\": ", out->len ? "," : "{", key);
}

/* Prints a list of n objects, each in a line of its own. Makes and prints one
 * object at a time, so that a long list takes no more memory than its text. */
static void print_objects(struct buf *out, size_t n, json_element_fn *element,
                          const void *ctx)
{
    for (size_t i = 0; i < n; i++) {
        buf_add(out, i ? ",\n    " : "[\n    ", 6);
        json_print(out, element(ctx, i));
    }
    if (n)
        buf_add(out, "\n  ]", 4);
    else
        buf_add(out, "[]", 2);
}

static json_t *known_element(const void *list, size_t i)
{
    return json_incref(json_array_get(list, i));
}

/* Prints the members of an object, which it decrefs, one line each. In a list
 * of objects, each element has a line of its own. */
static void print_members(struct buf *out, json_t *object)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        print_key(out, key);
        if (json_is_object(json_array_get(value, 0)))
            print_objects(out, json_array_size(value), known_element, value);
        else
            json_print(out, json_incref(value));
    }
    json_decref(object);
}

/* Returns the memory of the dense part by item, and the bytes of DDP's
 * buckets. */
static json_t *from_dense_memory(const struct problem *problem)
{
    const struct dense_memory memory = problem_dense_memory(problem);
    struct dense_bucket buckets[DENSE_MAX_BUCKETS];
    const uint32_t n = dense_buckets(problem->job.dense, buckets);
    json_t *value = PLACE_ROW(&memory, dense_memory_fields);
    json_t *list = json_array();

    for (uint32_t i = 0; i < n; i++) {
        const uint64_t bytes = buckets[i].n_parameters * sizeof(float);

        append(list, json_integer((json_int_t)bytes));
    }
    set(value, "buckets", list);
    return value;
}

static void set_dense(json_t *step, const struct plan *plan)
{
    struct buf text = {0};

    dense_print(plan->problem.job.dense, &text);
    set(step, "dense", json_string(text.data));
    set(step, "dense_bytes", from_dense_memory(&plan->problem));
    if (dense_cost_ms(&plan->dense) > 0)
        set(step, "dense_cost", PLACE_ROW(&plan->dense, dense_cost_fields));
    buf_release(&text);
}

static json_t *from_step(const struct plan *plan)
{
    struct job job = plan->problem.job;
    json_t *value;

    job.n_chunks = job_n_chunks(&job);
    value = place_row(&job, job_fields, OF_JOB_DEDUP);
    if (job.dedup != DEDUP_NONE)
        place_set_fields(value, &job, &job_fields[OF_JOB_DEDUP], 1);
    if (job.asks_host)
        place_set_fields(value, &job, &job_fields[OF_JOB_HOST], 1);
    set(value, "dense_ms", json_pack("[ff]", job.dense_ms[0], job.dense_ms[1]));
    if (job.dense)
        set_dense(value, plan);
    if (plan_has_parts(plan))
        set(value, "exposed_ms", PLACE_ROW(plan->exposed_ms, step_part_fields));
    return value;
}

static json_t *from_groups(const struct plan *plan)
{
    const struct sharding_groups *groups = &plan->problem.groups;
    json_t *value = place_row(groups, groups_fields, OF_GROUP_DOMAIN);

    if (groups->hosts_per_domain > 1)
        place_set_fields(value, groups, &groups_fields[OF_GROUP_DOMAIN], 1);
    set(value, "node_group_size",
        json_integer(cluster_group(&plan->problem.cluster)));
    if (groups->sync_every)
        place_set_fields(value, groups, &groups_fields[OF_SYNC_EVERY], 1);
    if (plan->sync.ms > 0)
        PLACE_SET_FIELDS(value, &plan->sync, sync_fields);
    return value;
}

static json_t *from_head(const struct plan *plan)
{
    const struct problem *problem = &plan->problem;
    json_t *root = json_object();

    set(root, "neuroshard_plan", json_integer(PLAN_FORMAT_VERSION));
    place_set_fields(root, plan, plan_fields, OF_DENSE_OPTIMIZER);
    if (!plan->build) /* the plan is from a version before 0.2.0 */
        json_object_del(root, "build");
    if (problem->dense_optimizer != DENSE_AS_TABLE)
        place_set_fields(root, plan, &plan_fields[OF_DENSE_OPTIMIZER], 1);
    if (problem->layout != LAYOUT_PLAIN)
        place_set_fields(root, plan, &plan_fields[OF_LAYOUT], 1);
    if (problem->buffers != BUFFERS_COPIES)
        place_set_fields(root, plan, &plan_fields[OF_BUFFERS], 1);
    set(root, "kinds", from_kinds(problem->kinds));
    if (problem_min_width(problem) > TABLE_COLUMN_STEP)
        place_set_fields(root, plan, &plan_fields[OF_MIN_WIDTH], 1);
    if (target_is_named(problem->target))
        place_set_fields(root, plan, &plan_fields[OF_TARGET], 1);
    set(root, "cluster", from_cluster(plan));
    if (problem_n_groups(problem) > 1)
        set(root, "groups", from_groups(plan));
    set(root, "cost_model", from_cost_source(&plan->cost));
    if (plan_has_parts(plan) || !job_is_default(&problem->job))
        set(root, "step", from_step(plan));
    place_set_fields(root, plan, &plan_fields[OF_SEARCH], OF_TOTAL - OF_SEARCH);
    return root;
}

static json_t *from_wire(const struct wire_regret *wire)
{
    json_t *value = place_row(wire, wire_fields, OF_BREAK_EVEN);
    json_t *regrets = json_array();

    for (unsigned k = 0; k < N_WIRES; k++)
        append(regrets, json_real(wire->regrets[k]));
    set(value, "regrets", regrets);
    if (wire->break_even_gbps > 0)
        place_set_fields(value, wire, &wire_fields[OF_BREAK_EVEN], 2);
    return value;
}

/* Sets the times that follow from total_ms and the host. They are for users of
 * the file; a reader computes them anew. */
static void set_step_times(json_t *root, const struct plan *plan)
{
    const struct time_range host = plan_host(plan), step = plan_step(plan);

    if (host.ms > 0) {
        set(root, "host_ms", json_real(host.ms));
        set(root, "host_range_ms",
            json_pack("[ff]", host.least_ms, host.most_ms));
    }
    set(root, "step_ms", json_real(step.ms));
    set(root, "step_range_ms", json_pack("[ff]", step.least_ms, step.most_ms));
    set(root, "samples_per_second",
        json_real_or_null(1000 * (double)problem_all_samples(&plan->problem) /
                          step.ms));
}

/* Returns table i of the plan `ctx`. It has the type json_element_fn. */
static json_t *table_element(const void *ctx, size_t i)
{
    const struct plan *plan = ctx;

    json_t *value = from_table(&plan->problem.tables[i]);

    if (plan->problem.cluster.host_bytes)
        plan_set_table_tiers(value, &plan->problem.tables[i]);
    return value;
}

/* Returns shard i of the plan `ctx`. It has the type json_element_fn. */
static json_t *shard_element(const void *ctx, size_t i)
{
    const struct plan *plan = ctx;
    json_t *value = shard_to_json(&plan->shards[i]);

    if (plan->shards[i].tier == TIER_CACHED)
        PLACE_SET_FIELDS(value, &plan->load_factors[plan->shards[i].table],
                         load_factor_field);
    if (plan->shard_ms)
        PLACE_SET_FIELDS(value, &plan->shard_ms[i], alone_field);
    return value;
}

static json_t *from_device(const struct plan *plan, size_t r)
{
    const struct device_cost *device = &plan->devices[r];
    json_t *value = PLACE_ROW(device, device_cost_fields), *bytes;

    if (!isnan(device->parts_ms[0]))
        set(value, "phases_ms", PLACE_ROW(device->parts_ms, step_part_fields));
    bytes = PLACE_ROW(&device->memory, memory_fields);
    if (plan->problem.job.dense)
        PLACE_SET_FIELDS(bytes, &device->memory, dense_memory_field);
    if (plan->problem.cluster.host_bytes)
        PLACE_SET_FIELDS(bytes, &device->memory, tier_memory_fields);
    set(value, "memory_bytes", bytes);
    plan_set_caches(value, device);
    return value;
}

/* Returns the members behind the tables and shards. */
static json_t *from_tail(const struct plan *plan)
{
    json_t *root = json_object(), *list;

    if (plan->devices) {
        list = json_array();
        for (size_t r = 0; r < plan->problem.cluster.n_devices; r++)
            append(list, from_device(plan, r));
        set(root, "devices", list);
    }
    if (plan->wire.assumed_gbps > 0)
        set(root, "wire", from_wire(&plan->wire));
    place_set_fields(root, plan, &plan_fields[OF_TOTAL], 2);
    if (!plan->devices)
        set(root, "total_ms", json_null());
    if (plan_is_priced(plan))
        set_step_times(root, plan);
    return root;
}

json_t *plan_document(const struct plan *plan)
{
    json_t *root = from_head(plan), *tables = json_array(),
           *shards = json_array();

    for (size_t i = 0; i < plan->problem.n_tables; i++)
        append(tables, table_element(plan, i));
    set(root, "tables", tables);
    for (size_t i = 0; i < plan->n_shards; i++)
        append(shards, shard_element(plan, i));
    set(root, "shards", shards);
    json_object_update_new(root, from_tail(plan));
    return root;
}

/* Prints the text of plan_document. */
static void print_plan(struct buf *out, const struct plan *plan)
{
    print_members(out, from_head(plan));
    print_key(out, "tables");
    print_objects(out, plan->problem.n_tables, table_element, plan);
    print_key(out, "shards");
    print_objects(out, plan->n_shards, shard_element, plan);
    print_members(out, from_tail(plan));
    buf_add(out, END_OF_DOCUMENT, sizeof(END_OF_DOCUMENT) - 1);
}

/* Moves a text into the arena. */
static const char *keep_text(struct buf *out, struct arena *arena)
{
    const char *text = arena_strndup(arena, out->data, out->len);

    buf_release(out);
    return text;
}

const char *plan_to_json(const struct plan *plan, struct arena *arena)
{
    struct buf out = {0};

    print_plan(&out, plan);
    return keep_text(&out, arena);
}

const char *plan_document_text(json_t *root, struct arena *arena)
{
    struct buf out = {0};

    print_members(&out, root);
    buf_add(&out, END_OF_DOCUMENT, sizeof(END_OF_DOCUMENT) - 1);
    return keep_text(&out, arena);
}

/* Checks that the reader accepts what the writer prints: the same values,
 * before they become text. */
static int check_read(const struct plan *plan, const char *source,
                      struct err *err)
{
    struct json_list lists[PLAN_N_LISTS] = {
        [PLAN_TABLES] = {.make = table_element,
                         .ctx = plan,
                         .n_apart = plan->problem.n_tables},
        [PLAN_SHARDS] = {
            .make = shard_element, .ctx = plan, .n_apart = plan->n_shards}};
    json_t *root = from_head(plan);
    struct arena scratch = {0};
    struct plan again;
    int rc;

    set(root, "tables", json_array());
    set(root, "shards", json_array());
    json_object_update_new(root, from_tail(plan));
    rc = plan_from_document(&again, root, lists, source, &scratch, err);
    json_decref(root);
    arena_release(&scratch);
    return rc ? err_prefix(err,
                           "'%s' was not written, as it could not be read back",
                           source)
              : 0;
}

int plan_save(const struct plan *plan, const char *path, struct err *err)
{
    struct buf out = {0};
    int rc;

    if (plan_check(plan, err) || check_read(plan, path, err))
        return -1;
    print_plan(&out, plan);
    rc = file_write_checked(path, out.data, out.len, NULL, err);
    buf_release(&out);
    return rc;
}
