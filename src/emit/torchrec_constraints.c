/* SPDX-License-Identifier: MIT */
#include "emit/formats.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/*
 * ParameterConstraints for TorchRec's own planner, by table: {"sharding_types":
 * [...], "compute_kernels": [...], "pooling_factors": [...], "min_partition":
 * W, "num_poolings": [...]}, the last two where they are no defaults. They have
 * no ranks, so the planner places what this plan has cut; what is whole it may
 * cut itself, so that it has more than one proposal to choose from. Its greedy
 * proposer, which moves each table on to its slowest type, ends at the plan's.
 */

/* So many times the same number. */
static json_t *list_of(double x, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_real(x));
    return list;
}

/* Ranges of columns that the plan cuts a table into. */
static uint32_t n_column_ranges(const struct plan *plan, uint32_t table)
{
    uint32_t n = 0;

    for (size_t i = 0; i < plan->n_shards; i++)
        n += plan->shards[i].table == table && !plan->shards[i].row_begin;
    assert(n);
    return n;
}

static json_t *constraints_of(const struct plan *plan, uint32_t t,
                              const json_t *entry)
{
    const struct table *table = &plan->problem.tables[t];
    const char *type =
        json_string_value(json_object_get(entry, "sharding_type"));
    const size_t n_features = (size_t)fmax(1, round(table->num_outputs));
    const double n_poolings =
        table->num_outputs > 0 ? table->num_outputs / (double)n_features : 1;
    const uint32_t n_ranges = n_column_ranges(plan, t);
    const bool is_column_wise = !strcmp(type, "column_wise");
    const bool is_whole =
        !strcmp(type, "table_wise") || (is_column_wise && n_ranges == 1);
    json_t *constraints = json_pack(
        "{s:[s, s*], s:[O], s:o}", "sharding_types",
        is_whole ? "table_wise" : type,
        is_whole && table->kinds & SHARD_COLUMN ? "column_wise" : NULL,
        "compute_kernels", json_object_get(entry, "compute_kernel"),
        "pooling_factors",
        list_of(table->pooling_factor / n_poolings / (double)n_features,
                n_features));

    /* TorchRec's planner makes all ranges but the last one equal. */
    if ((is_column_wise && !is_whole) || !strcmp(type, "grid_shard"))
        json_object_set_new(
            constraints, "min_partition",
            json_integer(
                ((table->dim - 1) / (n_ranges * TABLE_COLUMN_STEP) + 1) *
                TABLE_COLUMN_STEP));
    if (n_poolings != 1)
        json_object_set_new(constraints, "num_poolings",
                            list_of(n_poolings, n_features));
    return constraints;
}

static int print_constraints(const struct plan *plan,
                             const struct emit_options *options,
                             struct buf *out, struct err *err)
{
    const struct emit_options names = {.module = "pooled",
                                       .sequence_module = "sequence",
                                       .prefix = options->prefix};
    json_t *modules = NULL, *root = json_object();
    int rc = emit_torchrec_modules(&modules, plan, &names, err);

    for (uint32_t i = 0; !rc && i < plan->problem.n_tables; i++) {
        const struct table *table = &plan->problem.tables[i];
        json_t *name = emit_torchrec_name(table, &names);
        const char *key = json_string_value(name);

        if (json_object_get(root, key))
            rc = err_input(err,
                           "table '%s' is not the first '%s', and constraints "
                           "know no modules",
                           table->name, key);
        else
            json_object_set_new(
                root, key,
                constraints_of(
                    plan, i,
                    json_object_get(
                        emit_torchrec_tables(modules, table, &names), key)));
        json_decref(name);
    }
    if (!rc) {
        buf_printf(out, "{");
        emit_members(out, root, ",\n ");
        buf_printf(out, "}\n");
    }
    json_decref(modules);
    json_decref(root);
    return rc;
}

const struct emitter emit_torchrec_constraints = {print_constraints,
                                                  emit_check_json};
