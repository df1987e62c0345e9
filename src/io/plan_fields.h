/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_PLAN_FIELDS_H
#define NEUROSHARD_IO_PLAN_FIELDS_H

#include "base/json.h"
#include "core/plan.h"
#include "core/target_rules.h"
#include "io/cluster_fields.h"
#include "io/tables_reader.h"

/*
 * Tables of those members of a plan file that are numbers, texts, flags or
 * choices. Each entry gives the member's name and range. The order is that of
 * the file. Both the reader and the writer use the tables. Lists are not
 * included, and neither are members whose range depends on other members.
 */

#define PLAN_FORMAT_VERSION 1

/* Index in plan_fields at which each group of members begins. The reader reads
 * the whole table at once. The writer writes one group at a time. There are two
 * reasons: other members may stand between two groups, and some groups are
 * written only if they differ from the default. */
enum {
    OF_DENSE_OPTIMIZER = 6,
    OF_LAYOUT,
    OF_BUFFERS,
    OF_MIN_WIDTH,
    OF_TARGET,
    OF_SEARCH,
    OF_TOTAL = 16
};
#define PLAN(member) MEMBER_OF(struct plan, member)
static const struct place_field plan_fields[] = {
    {"version", PLAN(version), false, 0, 0, NULL},
    {"build", PLAN(build), false, 0, 0, NULL},
    {"inputs_hash", MEMBER_HASH, offsetof(struct plan, inputs_hash), false, 0,
     0, NULL},
    {"source", PLAN(problem.source), false, 0, 0, NULL},
    {"batch", PLAN(problem.batch), true, 1, PROBLEM_MAX_BATCH, NULL},
    {"memory_model", PLAN(problem.memory_model), false, 0, 0,
     memory_model_names},
    {"dense_optimizer", PLAN(problem.dense_optimizer), false, 0, 0,
     dense_optimizer_names},
    {"layout", PLAN(problem.layout), false, 0, 0, table_layout_names},
    {"buffers", PLAN(problem.buffers), false, 0, 0, buffer_rule_names},
    {"min_width", PLAN(problem.min_width), false, TABLE_COLUMN_STEP,
     TABLES_MAX_DIM, NULL},
    {"target", PLAN(problem.target), false, 0, 0, target_names},
    {"search", PLAN(search), false, 0, 0, NULL},
    {"stopped", PLAN(stopped), false, 0, 0, NULL},
    {"seed", PLAN(seed), false, 0, 0x1p64, NULL},
    {"n_evaluations", PLAN(n_evaluations), false, 0, 0x1p64, NULL},
    {"n_floored", PLAN(n_floored), false, 0, CLUSTER_MAX_GPUS, NULL},
    {"total_ms", PLAN(total_ms), false, 0, PLAN_MAX_MS, NULL},
    {"bound_ms", PLAN(bound_ms), false, 0, PLAN_MAX_MS, NULL},
};

enum {
    OF_ROW_ORDER = 11,
    OF_DEDUP,
    OF_GROUP,
    OF_ROWS_OVER,
    OF_ROW_OVERHEAD,
    OF_FORWARD_FACTOR,
    OF_BACKWARD_FACTOR,
    OF_TABLE_MIN_WIDTH
};
#define TABLE(member) MEMBER_OF(struct table, member)
static const struct place_field table_fields[] = {
    {"name", TABLE(name), true, 0, 0, NULL},
    {"num_embeddings", TABLE(num_embeddings), true, 1, 0x1p64, NULL},
    {"dim", TABLE(dim), true, 1, TABLES_MAX_DIM, NULL},
    {"pooling_factor", TABLE(pooling_factor), true, 0, TABLES_MAX_FACTOR, NULL},
    {"num_outputs", TABLE(num_outputs), false, 0, TABLES_MAX_FACTOR, NULL},
    {"output", TABLE(output), false, 0, 0, table_output_names},
    {"precision", TABLE(precision), false, 0, 0, precision_names},
    {"comm_precision", TABLE(comm_precision), false, 0, 0, precision_names},
    {"optimizer", TABLE(optimizer), false, 0, 0, optimizer_names},
    {"zipf_alpha", TABLE(zipf_alpha), false, 0, TABLE_MAX_ZIPF, NULL},
    {"skew_assumed", TABLE(skew_assumed), false, 0, 0, NULL},
    {"row_order", TABLE(row_order), false, 0, 0, row_order_names},
    {"dedup", TABLE(dedup), false, TABLE_MIN_DEDUP, 1, NULL},
    {"group", TABLE(group), false, 0, 0, NULL},
    {"rows_over", TABLE(rows_over), false, 0, 0, rows_over_names},
    {"row_overhead_bytes", TABLE(row_overhead_bytes), false, 0,
     TABLE_MAX_ROW_OVERHEAD, NULL},
    {"forward_factor", TABLE(forward_factor), false, TABLE_MIN_FACTOR,
     TABLE_MAX_FACTOR, NULL},
    {"backward_factor", TABLE(backward_factor), false, TABLE_MIN_FACTOR,
     TABLE_MAX_FACTOR, NULL},
    {"min_width", TABLE(min_width), false, 0, TABLES_MAX_DIM, NULL},
};

/* The row seed of a table is written as text, because numbers of JSON hold only
 * 53 bits. */
static const struct place_field row_seed_field[] = {
    {"row_seed", MEMBER_HASH, 0, false, 0, 0, NULL}};

enum { OF_JOB_DEDUP = 2, OF_JOB_HOST };
#define JOB(member) MEMBER_OF(struct job, member)
static const struct place_field job_fields[] = {
    {"pipeline", JOB(pipeline), true, 0, 0, pipeline_names},
    {"chunks", JOB(n_chunks), true, 1, JOB_MAX_CHUNKS, NULL},
    {"dedup", JOB(dedup), false, 0, 0, dedup_names},
    {"host_ms", JOB(host_ms), false, 0, JOB_MAX_DENSE_MS, NULL},
};

/* Text and predicted times of the dense part. */
static const struct place_field dense_text_field[] = {
    {"dense", MEMBER_TEXT, 0, false, 0, 0, NULL}};
#define DENSE_COST(member) MEMBER_OF(struct dense_cost, member)
static const struct place_field dense_cost_fields[] = {
    {"forward_ms", DENSE_COST(forward_ms), true, 0, JOB_MAX_DENSE_MS, NULL},
    {"backward_ms", DENSE_COST(backward_ms), true, 0, JOB_MAX_DENSE_MS, NULL},
    {"update_ms", DENSE_COST(update_ms), true, 0, JOB_MAX_DENSE_MS, NULL},
    {"reduce_ms", DENSE_COST(reduce_ms), true, 0, JOB_MAX_DENSE_MS, NULL},
    {"exposed_ms", DENSE_COST(exposed_ms), true, 0, JOB_MAX_DENSE_MS, NULL},
    {"error_frac", DENSE_COST(error_frac), false, 0, 1e6, NULL},
    {"is_measured", DENSE_COST(is_measured), false, 0, 0, NULL},
};

/* Memory of the dense part. It is written for other programs, and not read. */
#define DENSE_MEMORY(member) MEMBER_OF(struct dense_memory, member)
static const struct place_field dense_memory_fields[] = {
    {"weights", DENSE_MEMORY(weights), true, 0, 0x1p64, NULL},
    {"masters", DENSE_MEMORY(masters), true, 0, 0x1p64, NULL},
    {"gradients", DENSE_MEMORY(gradients), true, 0, 0x1p64, NULL},
    {"optimizer", DENSE_MEMORY(optimizer), true, 0, 0x1p64, NULL},
    {"activations", DENSE_MEMORY(activations), true, 0, 0x1p64, NULL},
};

#define MEMORY(member) MEMBER_OF(struct memory_items, member)
static const struct place_field memory_fields[] = {
    {"weights", MEMORY(weights), true, 0, 0x1p64, NULL},
    {"optimizer", MEMORY(optimizer), true, 0, 0x1p64, NULL},
    {"input", MEMORY(input), true, 0, 0x1p64, NULL},
    {"outputs", MEMORY(outputs), true, 0, 0x1p64, NULL},
    {"nccl", MEMORY(nccl), true, 0, 0x1p64, NULL},
    {"reserve", MEMORY(reserve), true, 0, 0x1p64, NULL},
    {"total", MEMORY(total), true, 0, 0x1p64, NULL},
};
/* Written only if the plan has a dense part. */
static const struct place_field dense_memory_field[] = {
    {"dense", MEMORY(dense), false, 0, 0x1p64, NULL}};
/* Written only if the cluster has host memory for tables. */
static const struct place_field tier_memory_fields[] = {
    {"cache", MEMORY(cache), false, 0, 0x1p64, NULL},
    {"cache_state", MEMORY(cache_state), false, 0, 0x1p64, NULL},
    {"host", MEMORY(host), false, 0, 0x1p64, NULL},
};
/* Member of a shard that is cached. */
static const struct place_field load_factor_field[] = {
    {"load_factor", MEMBER_REAL, 0, false, 0, 1, NULL}};
/* Memory of a device in plans with a member "io". These plans count memory as
 * MEMORY_BATCH does, but they name the memory model "full". */
static const struct place_field io_memory_fields[] = {
    {"weights", MEMORY(weights), true, 0, 0x1p64, NULL},
    {"optimizer", MEMORY(optimizer), true, 0, 0x1p64, NULL},
    {"io", MEMORY(outputs), true, 0, 0x1p64, NULL},
    {"reserve", MEMORY(reserve), true, 0, 0x1p64, NULL},
    {"total", MEMORY(total), true, 0, 0x1p64, NULL},
};

/* The member "alone_ms" of a shard. */
static const struct place_field alone_field[] = {
    {"alone_ms", MEMBER_REAL, 0, false, 0, PLAN_MAX_MS, NULL}};

static const struct place_field measured_field[] = {
    {"measured", MEMBER_BOOL, 0, false, 0, 0, NULL}};
/* Indices in cost_fields. Each of the two errors has two members, NAME_frac and
 * NAME_of. The writer writes the two members only if NAME_frac is not 0. */
enum {
    OF_BASIS = 2,
    OF_LOOKUP_ERROR = 5,
    OF_EXCHANGE_ERROR = 7,
    OF_HOST = 9,
    OF_TIER_ERROR
};
#define SOURCE(member) MEMBER_OF(struct cost_source, member)
static const struct place_field cost_fields[] = {
    {"name", SOURCE(name), true, 0, 0, NULL},
    {"hash", MEMBER_HASH, offsetof(struct cost_source, hash), false, 0, 0,
     NULL},
    {"basis", SOURCE(basis), false, 0, 0, cost_basis_names},
    {"comm", SOURCE(comm), false, 0, 0, NULL},
    {"device", SOURCE(device), false, 0, 0, NULL},
    {"lookup_error_frac", SOURCE(lookup_error.frac), false, 0, 1e6, NULL},
    {"lookup_error_of", SOURCE(lookup_error.ground), false, 0, 0, NULL},
    {"exchange_error_frac", SOURCE(exchange_error.frac), false, 0, 1e6, NULL},
    {"exchange_error_of", SOURCE(exchange_error.ground), false, 0, 0, NULL},
    {"host", SOURCE(host), false, 0, 0, host_basis_names},
    {"tier_error_frac", SOURCE(tier_error.frac), false, 0, 1e6, NULL},
    {"tier_error_of", SOURCE(tier_error.ground), false, 0, 0, NULL},
};
/* Loss of the plan if the wire is slower than assumed. The last two members are
 * written only if they are not 0. */
enum { OF_BREAK_EVEN = 2 };
#define WIRE(member) MEMBER_OF(struct wire_regret, member)
static const struct place_field wire_fields[] = {
    {"assumed_gbps", WIRE(assumed_gbps), true, CLUSTER_MIN_GBPS, 1e9, NULL},
    {"is_inter", WIRE(is_inter), true, 0, 0, NULL},
    {"break_even_gbps", WIRE(break_even_gbps), false, 0, 1e9, NULL},
    {"gain_frac", WIRE(gain_frac), false, 0, 1e9, NULL},
};
/* Sharding groups. node_group_size is DMPCollection's argument: it is written
 * for other programs, and not read. The last two members are written only if
 * the plan has costs. */
enum { OF_GROUP_DOMAIN = 3, OF_SYNC_EVERY };
#define GROUPS(member) MEMBER_OF(struct sharding_groups, member)
static const struct place_field groups_fields[] = {
    {"count", GROUPS(count), true, 2, CLUSTER_MAX_GPUS, NULL},
    {"layout", GROUPS(layout), true, 0, 0, groups_layout_names},
    {"gpus_per_host", GROUPS(devices_per_host), true, 1, CLUSTER_MAX_GPUS,
     NULL},
    {"pod_size", GROUPS(hosts_per_domain), false, 1, CLUSTER_MAX_GPUS, NULL},
    {"sync_every", GROUPS(sync_every), false, 1, GROUPS_MAX_SYNC_EVERY, NULL},
};
#define SYNC(member) MEMBER_OF(struct sync_cost, member)
static const struct place_field sync_fields[] = {
    {"sync_bytes", SYNC(bytes), false, 0, 1e18, NULL},
    {"sync_ms", SYNC(ms), false, 0, PLAN_MAX_MS, NULL},
};
/* Time of the host in the cost model of plans before version 0.3. total_ms of
 * these plans is at least this time. */
static const struct place_field old_host_field[] = {
    {"host_ms", MEMBER_REAL, 0, false, 0, JOB_MAX_DENSE_MS, NULL}};

#endif
