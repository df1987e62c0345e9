/* SPDX-License-Identifier: MIT */
#include "io/plan_json.h"

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "core/plan_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/*
 * jansson makes and prints the values; the layout is ours: a member a line, and
 * in the lists of tables, shards and devices an element a line, so that plans
 * can be read, compared and searched line by line. jansson keeps members in
 * the order in which they were set.
 */

/* Texts are UTF-8 and memory never fails (base/mem.h): nor does this. */
static void set(json_t *object, const char *key, json_t *value)
{
    json_object_set_new(object, key, value);
}

static void append(json_t *list, json_t *value)
{
    json_array_append_new(list, value);
}

/* The reader takes printable text only. */
static json_t *from_text(const char *text)
{
    struct arena scratch;
    json_t *value;

    if (!text)
        return json_null();
    arena_init(&scratch);
    value = json_string(text_shown(text, &scratch));
    arena_release(&scratch);
    return value;
}

/* JSON readers lose whole numbers beyond 2^63 - 1. */
static json_t *from_u64(uint64_t n)
{
    char digits[24];

    if (n <= INT64_MAX)
        return json_integer((json_int_t)n);
    snprintf(digits, sizeof(digits), "%" PRIu64, n);
    return json_string(digits);
}

static json_t *from_list_u64(const uint64_t *list, size_t n)
{
    json_t *value = json_array();

    for (size_t i = 0; i < n; i++)
        append(value, from_u64(list[i]));
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

static json_t *from_cluster(const struct cluster *cluster)
{
    json_t *value = json_object();

    set(value, "gpus", from_u64(cluster->n_devices));
    set(value, "gpus_per_host", from_u64(cluster->devices_per_host));
    if (cluster->hosts_per_domain > 1)
        set(value, "pod_size", from_u64(cluster->hosts_per_domain));
    set(value, "memory_bytes",
        from_list_u64(cluster->memory_bytes, cluster->n_devices));
    set(value, "reserve_bytes",
        from_list_u64(cluster->reserve_bytes, cluster->n_devices));
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
    value = json_object();
    set(value, "name", from_text(cost->name));
    set(value, "hash", from_text(cost->hash));
    set(value, "measured", json_boolean(cost->basis == BASIS_MEASURED));
    set(value, "basis", json_string(cost_basis_name(cost->basis)));
    set(value, "comm", from_text(cost->comm));
    set(value, "device", from_text(cost->device));
    return value;
}

/* Constraints and bins only where there are any. */
static json_t *from_table(const struct table *table)
{
    json_t *value = json_object();

    set(value, "name", from_text(table->name));
    set(value, "num_embeddings", from_u64(table->num_embeddings));
    set(value, "dim", from_u64(table->dim));
    set(value, "pooling_factor", json_real_or_null(table->pooling_factor));
    set(value, "num_outputs", json_real_or_null(table->num_outputs));
    set(value, "output",
        json_string(table->output == OUTPUT_SEQUENCE ? "sequence" : "pooled"));
    set(value, "precision", json_string(precision_name(table->precision)));
    set(value, "comm_precision",
        json_string(precision_name(table->comm_precision)));
    set(value, "optimizer", json_string(optimizer_name(table->optimizer)));
    set(value, "zipf_alpha", json_real_or_null(table->zipf_alpha));
    set(value, "skew_assumed", json_boolean(table->skew_assumed));
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
        set(value, "group", from_text(table->group));
    return value;
}

static json_t *from_shard(const struct shard *shard, const double *alone_ms)
{
    json_t *value = json_object();

    set(value, "table", from_u64(shard->table));
    set(value, "kind", json_string(shard_kind_name(shard->kind)));
    set(value, "row_begin", from_u64(shard->row_begin));
    set(value, "row_end", from_u64(shard->row_end));
    set(value, "col_begin", from_u64(shard->col_begin));
    set(value, "col_end", from_u64(shard->col_end));
    set(value, "device", from_u64(shard->device));
    if (alone_ms)
        set(value, "alone_ms", json_real_or_null(*alone_ms));
    return value;
}

static json_t *from_device(const struct device_cost *device)
{
    json_t *value = json_object(), *memory = json_object();

    set(memory, "weights", from_u64(device->memory.weights));
    set(memory, "optimizer", from_u64(device->memory.optimizer));
    set(memory, "io", from_u64(device->memory.io));
    set(memory, "reserve", from_u64(device->memory.reserve));
    set(memory, "total", from_u64(device->memory.total));
    set(value, "compute_ms", json_real_or_null(device->compute_ms));
    set(value, "fwd_comm_ms", json_real_or_null(device->fwd_comm_ms));
    set(value, "bwd_comm_ms", json_real_or_null(device->bwd_comm_ms));
    set(value, "total_ms", json_real_or_null(device->total_ms));
    set(value, "memory_bytes", memory);
    return value;
}

static int add_to_buf(const char *data, size_t len, void *buf)
{
    buf_add(buf, data, len);
    return 0;
}

/* Consumes value. */
static void print_value(struct buf *out, json_t *value)
{
    const size_t flags = JSON_ENCODE_ANY | JSON_REAL_PRECISION(17);

    json_dump_callback(value, add_to_buf, out, flags);
    json_decref(value);
}

static void print_member(struct buf *out, const char *key, json_t *value)
{
    buf_printf(out, "%s\n  \"%s\": ", out->len > 1 ? "," : "", key);
    print_value(out, value);
}

/* Around the elements of a list, which are printed a line each. */
static void open_list(struct buf *out, const char *key)
{
    buf_printf(out, ",\n  \"%s\": [", key);
}

static void print_element(struct buf *out, size_t idx, json_t *value)
{
    buf_printf(out, "%s\n    ", idx ? "," : "");
    print_value(out, value);
}

static void close_list(struct buf *out)
{
    buf_printf(out, "\n  ]");
}

/* A plan without replicas is the same under the default. */
static bool has_dense_optimizer(const struct plan *plan)
{
    if (plan->problem.dense_optimizer != DENSE_ADAM)
        return plan->problem.dense_optimizer != DENSE_AS_TABLE;
    for (size_t i = 0; i < plan->n_shards; i++)
        if (shard_is_replica(plan->shards[i].kind))
            return true;
    return false;
}

static void print_head(struct buf *out, const struct plan *plan)
{
    const struct problem *problem = &plan->problem;

    print_member(out, "neuroshard_plan", json_integer(1));
    print_member(out, "version", from_text(plan->version));
    print_member(out, "inputs_hash", from_text(plan->inputs_hash));
    print_member(out, "source", from_text(problem->source));
    print_member(out, "batch", from_u64(problem->batch));
    print_member(out, "memory_model",
                 json_string(problem->memory_model == MEMORY_WEIGHTS ? "weights"
                                                                     : "full"));
    if (has_dense_optimizer(plan))
        print_member(
            out, "dense_optimizer",
            json_string(dense_optimizer_name(problem->dense_optimizer)));
    print_member(out, "kinds", from_kinds(problem->kinds));
    if (problem_min_width(problem) > TABLE_COLUMN_STEP)
        print_member(out, "min_width", from_u64(problem->min_width));
    print_member(out, "cluster", from_cluster(&problem->cluster));
    print_member(out, "cost_model", from_cost_source(&plan->cost));
    print_member(out, "search", from_text(plan->search));
    print_member(out, "stopped", from_text(plan->stopped));
    print_member(out, "seed", from_u64(plan->seed));
    print_member(out, "n_evaluations", from_u64(plan->n_evaluations));
    print_member(out, "n_floored", from_u64(plan->n_floored));
}

static void print_plan(struct buf *out, const struct plan *plan)
{
    buf_add(out, "{", 1);
    print_head(out, plan);
    open_list(out, "tables");
    for (size_t i = 0; i < plan->problem.n_tables; i++)
        print_element(out, i, from_table(&plan->problem.tables[i]));
    close_list(out);
    open_list(out, "shards");
    for (size_t i = 0; i < plan->n_shards; i++)
        print_element(out, i,
                      from_shard(&plan->shards[i],
                                 plan->shard_ms ? &plan->shard_ms[i] : NULL));
    close_list(out);
    if (plan->devices) {
        open_list(out, "devices");
        for (size_t r = 0; r < plan->problem.cluster.n_devices; r++)
            print_element(out, r, from_device(&plan->devices[r]));
        close_list(out);
    }
    print_member(out, "total_ms",
                 json_real_or_null(plan->devices ? plan->total_ms : NAN));
    print_member(out, "bound_ms", json_real_or_null(plan->bound_ms));
    buf_add(out, "\n}\n", 3);
}

const char *plan_to_json(const struct plan *plan, struct arena *arena)
{
    struct buf out = {0};
    const char *text;

    print_plan(&out, plan);
    text = arena_strndup(arena, out.data, out.len);
    buf_release(&out);
    return text;
}

/* A file_check. */
static int check_text(const char *text, size_t len, const char *source,
                      struct arena *arena, struct err *err)
{
    struct plan plan;

    return plan_from_json(&plan, text, len, source, arena, err);
}

int plan_save(const struct plan *plan, const char *path, struct err *err)
{
    struct buf out = {0};
    int rc = -1;

    if (plan_check(plan, err))
        goto out;
    print_plan(&out, plan);
    if (file_write_checked(path, out.data, out.len, check_text, err))
        goto out;
    rc = 0;
out:
    buf_release(&out);
    return rc;
}
