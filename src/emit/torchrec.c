/* SPDX-License-Identifier: MIT */
#include "base/file.h"
#include "base/printable.h"
#include "core/cache_pools.h"
#include "core/target_rules.h"
#include "emit/formats.h"
#include "emit/torchrec_job.h"
#include "emit/torchrec_tiers.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/*
 * Writes TorchRec's sharding plan, as ShardingPlan._serialize of TorchRec 1.x
 * does: {"plan": {module: {table: {sharding_type, compute_kernel, ranks,
 * shards}}}}. The number of ranks of the job and of a host are added, and
 * cache_params of tables with a cache.
 *
 * Plans that TorchRec cannot run are refused (core/target_rules.h), so that
 * they do not fail on the cluster. Ranks past the end of a table that is cut by
 * rows hold a block without rows.
 */

/* Entry of a table in the JSON, while it is built. */
struct plan_entry {
    const struct plan *plan;
    const struct cluster *cluster;
    const struct table *table;
    const char *type; /* TorchRec's sharding type */
    json_t *ranks, *shards;
};

static void add_shard(const struct plan_entry *entry, const struct shard *shard)
{
    json_array_append_new(entry->ranks, json_integer(shard->device));
    json_array_append_new(
        entry->shards,
        json_pack(
            "{s:[I, I], s:[I, I], s:o}", "shard_offsets",
            (json_int_t)shard->row_begin, (json_int_t)shard->col_begin,
            "shard_sizes", (json_int_t)(shard->row_end - shard->row_begin),
            (json_int_t)(shard->col_end - shard->col_begin), "placement",
            json_sprintf("rank:%u/cuda:%u", shard->device,
                         shard->device % entry->cluster->devices_per_host)));
}

/* Adds n equal row blocks of one column range on ranks first .. first + n - 1.
 * Blocks past the end of the table are empty. Returns false if the pieces,
 * which are sorted by row, are not exactly the nonempty blocks. */
static bool add_blocks(const struct plan_entry *entry,
                       const struct shard *pieces, size_t n_pieces,
                       uint32_t first, uint32_t n)
{
    const uint64_t n_rows = entry->table->num_embeddings;
    const uint64_t block = (n_rows - 1) / n + 1;

    if (n_pieces != (n_rows - 1) / block + 1)
        return false;
    for (size_t i = 0; i < n_pieces; i++)
        if (pieces[i].row_begin != i * block || pieces[i].device != first + i)
            return false;
    for (uint32_t i = 0; i < n; i++) {
        struct shard shard = pieces[i < n_pieces ? i : n_pieces - 1];

        if (i >= n_pieces)
            shard.row_begin = shard.row_end;
        shard.device = first + i;
        add_shard(entry, &shard);
    }
    return true;
}

/* Adds the row blocks of one column range over the ranks of a host or NVLink
 * domain. */
static void add_local_blocks(struct plan_entry *entry,
                             const struct shard *pieces, size_t n)
{
    const uint32_t n_local = cluster_group(entry->cluster);
    const bool is_added = add_blocks(
        entry, pieces, n, pieces->device / n_local * n_local, n_local);

    assert(is_added); /* target_check_as has checked it */
    (void)is_added;
}

/* Adds a table that is cut into row blocks: one for each rank of the job, or
 * for each rank of one host or NVLink domain. */
static void add_rows(struct plan_entry *entry, const struct shard *pieces,
                     size_t n)
{
    const uint32_t n_ranks = entry->cluster->n_devices;

    entry->type = "row_wise";
    if ((entry->table->rows_over != ROWS_OVER_HOST ||
         cluster_group(entry->cluster) == n_ranks) &&
        add_blocks(entry, pieces, n, 0, n_ranks))
        return;
    entry->type = "table_row_wise";
    add_local_blocks(entry, pieces, n);
}

/* Adds a table with grid sharding: each column block is cut into row blocks,
 * one for each rank of one host or NVLink domain. */
static void add_grid(struct plan_entry *entry, const struct shard *pieces,
                     size_t n)
{
    entry->type = "grid_shard";
    for (size_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1;
             end < n && pieces[end].col_begin == pieces[begin].col_begin;)
            end++;
        add_local_blocks(entry, &pieces[begin], end - begin);
    }
}

/* Adds the pieces of a table to its entry. Sets the sharding type if the table
 * is cut. */
static void add_pieces(struct plan_entry *entry, const struct shard *pieces,
                       size_t n)
{
    const enum shard_kind kind = pieces[0].kind;

    assert(kind);
    if (kind == SHARD_ROW || kind == SHARD_GRID) {
        (kind == SHARD_ROW ? add_rows : add_grid)(entry, pieces, n);
        return;
    }
    if (kind != SHARD_TABLE)
        entry->type = kind == SHARD_COLUMN ? "column_wise" : "data_parallel";
    for (size_t i = 0; i < n; i++)
        add_shard(entry, &pieces[i]);
}

/* Checks a table's name and number of rows. The name becomes a key of a torch
 * ModuleDict and part of parameter names. TorchRec indexes rows with 64-bit
 * numbers. */
static int check_table(const json_t *module, const struct table *table,
                       const char *name, struct err *err)
{
    if (!*name || strchr(name, '.') || table->name[0] == '.')
        return err_input(err,
                         "table '%s': TorchRec needs a table name without a "
                         "dot, after a module's name if there is one, not '%s'",
                         table->name, name);
    if (json_object_get(module, name))
        return err_input(err, "table '%s' is the second '%s' of its module",
                         table->name, name);
    if (table->num_embeddings <= INT64_MAX)
        return 0;
    return err_input(err, "table '%s' has more rows than TorchRec can count",
                     name);
}

/* Module that holds a table. A table name such as "sparse.ebc.t1", as
 * TorchRec's planner prints it, contains the module "sparse.ebc". A table name
 * without a dot belongs to the module that the options name. */
struct module {
    const struct emit_options *options;
    const char *name;
    size_t len; /* length of `name` */
};

static struct module module_of(const struct table *table,
                               const struct emit_options *options)
{
    const char *dot = strrchr(table->name, '.');
    const char *name = options->module ? options->module : EMIT_DEFAULT_MODULE;

    if (table->output == OUTPUT_SEQUENCE && options->sequence_module)
        name = options->sequence_module;
    return (struct module){options, dot ? table->name : name,
                           dot ? (size_t)(dot - table->name) : strlen(name)};
}

static bool is_same_module(struct module a, struct module b)
{
    return a.len == b.len && !memcmp(a.name, b.name, a.len);
}

/* Returns whether two pools, of tables in these modules, are one in
 * TorchRec. */
static bool becomes_one_pool(const struct cache_pool *a,
                             const struct cache_pool *b, struct module of_a,
                             struct module of_b)
{
    struct pool_key key = a->key;

    key.module = b->key.module;
    key.module_len = b->key.module_len;
    return is_same_module(of_a, of_b) && !pool_compare(&key, &b->key);
}

/* Refuses a plan with two caches on a GPU that differ only in their modules, if
 * the options give both modules one name. TorchRec makes one cache there. */
static int check_modules(const struct plan *plan,
                         const struct emit_options *options, struct err *err)
{
    const struct table *tables = plan->problem.tables;
    struct cache_pools pools;
    const struct shard **firsts; /* [pool] a shard of each */
    int rc = 0;

    cache_pools_init(&pools, plan);
    firsts = mem_alloc(pools.n, sizeof(*firsts));
    for (size_t i = plan->n_shards; i--;)
        if (plan->shards[i].tier == TIER_CACHED)
            firsts[pools.of_shard[i]] = &plan->shards[i];
    for (size_t p = 0; p < pools.n; p++)
        for (size_t q = p + 1;
             q < pools.n && firsts[q]->device == firsts[p]->device && !rc; q++)
            if (becomes_one_pool(&pools.pools[p], &pools.pools[q],
                                 module_of(&tables[firsts[p]->table], options),
                                 module_of(&tables[firsts[q]->table], options)))
                rc = err_input(
                    err,
                    "tables '%.80s' and '%.80s' have caches of their own on "
                    "GPU %u, but TorchRec has one cache for the module that "
                    "both are in: name another with --module or "
                    "--sequence-module",
                    tables[firsts[p]->table].name,
                    tables[firsts[q]->table].name, firsts[p]->device);
    mem_free(firsts);
    cache_pools_release(&pools);
    return rc;
}

/* Returns the name of a table within its module, with the prefix. */
static json_t *name_of(const struct table *table,
                       const struct emit_options *options)
{
    const char *dot = strrchr(table->name, '.');

    return json_sprintf("%s%s", options->prefix ? options->prefix : "",
                        dot ? dot + 1 : table->name);
}

/* Returns the JSON object with the tables of a table's module; NULL if the
 * module has no object yet. */
static json_t *tables_of(const json_t *modules, const struct table *table,
                         const struct emit_options *options)
{
    const struct module module = module_of(table, options);

    return json_object_getn(modules, module.name, module.len);
}

static bool is_in(const struct module *module, const struct table *table)
{
    return is_same_module(module_of(table, module->options), *module);
}

/* Returns the sharding type for tables that are not cut. In a step each type
 * has lookups and exchanges of its own. So if the plan cuts any pooled table by
 * columns, uncut tables get this type, too, with one piece each. */
static const char *find_whole_type(const struct plan *plan,
                                   const struct module *module)
{
    for (size_t i = 0; i < plan->n_shards; i++)
        if (plan->shards[i].kind == SHARD_COLUMN &&
            is_in(module, &plan->problem.tables[plan->shards[i].table]))
            return "column_wise";
    return "table_wise";
}

/* Adds the entry of a table to the table's module. */
static int add_table(json_t *module, struct plan_entry *entry,
                     const struct emit_options *options,
                     const struct shard *pieces, size_t n, struct err *err)
{
    const bool is_replicated = shard_is_replica(pieces[0].kind);
    json_t *name = name_of(entry->table, options), *object;
    int rc;

    entry->ranks = json_array();
    entry->shards = json_array();
    rc = check_table(module, entry->table, json_string_value(name), err);
    add_pieces(entry, pieces, n);
    object =
        json_pack("{s:s, s:s, s:o*, s:o, s:O*}", "sharding_type", entry->type,
                  "compute_kernel", torchrec_kernel(pieces), "cache_params",
                  torchrec_cache_params(entry->plan, pieces), "ranks",
                  entry->ranks, "shards", is_replicated ? NULL : entry->shards);
    json_object_set_new(module, json_string_value(name), object);
    json_decref(entry->shards);
    json_decref(name);
    return rc ? -1 : 0;
}

/* Returns the first table of a module with the given kind of output, or
 * NULL. */
static const struct table *find_output(const struct problem *problem,
                                       const struct module *module,
                                       enum table_output output)
{
    for (size_t i = 0; i < problem->n_tables; i++)
        if (problem->tables[i].output == output &&
            is_in(module, &problem->tables[i]))
            return &problem->tables[i];
    return NULL;
}

/* Adds all tables of a module. */
static int add_module(json_t *modules, const struct module *module,
                      const struct plan *plan, struct err *err)
{
    const struct problem *problem = &plan->problem;
    const struct table *pooled = find_output(problem, module, OUTPUT_POOLED);
    const struct table *sequence =
        find_output(problem, module, OUTPUT_SEQUENCE);
    const char *whole_type =
        pooled ? find_whole_type(plan, module) : "table_wise";
    json_t *tables = json_object();

    json_object_setn_new(modules, module->name, module->len, tables);
    if (pooled && sequence)
        return err_input(
            err,
            "table '%s' is pooled and '%s' is a sequence, which TorchRec keeps "
            "in two modules: name the second with --sequence-module",
            pooled->name, sequence->name);
    for (size_t begin = 0, end; begin < plan->n_shards; begin = end) {
        const struct shard *pieces = &plan->shards[begin];
        struct plan_entry entry = {.plan = plan,
                                   .cluster = &problem->cluster,
                                   .table = &problem->tables[pieces->table],
                                   .type = whole_type};

        end = emit_shards_end(plan, begin);
        if (is_in(module, entry.table) &&
            add_table(tables, &entry, module->options, pieces, end - begin,
                      err))
            return -1;
    }
    return 0;
}

/* Makes {module: {table: {sharding_type ...}}} in *out, which the caller
 * decrefs. *out is NULL after a failure. */
static int make_modules(json_t **out, const struct plan *plan,
                        const struct emit_options *given, struct err *err)
{
    static const enum table_output outputs[] = {OUTPUT_POOLED, OUTPUT_SEQUENCE};
    const struct problem *problem = &plan->problem;
    const bool is_ec = problem->target == TARGET_TORCHREC_EC;
    const char *const names[] = {given->module, given->sequence_module,
                                 given->prefix};
    struct emit_options own = *given, *options = &own;
    int rc = target_check_as(plan, is_ec ? TARGET_TORCHREC_EC : TARGET_TORCHREC,
                             err);

    if (is_ec && !own.sequence_module)
        own.sequence_module = EMIT_DEFAULT_SEQUENCE_MODULE;
    for (size_t i = 0; !rc && i < sizeof(names) / sizeof(*names); i++)
        if (names[i] && !text_is_printable(names[i]))
            rc = err_input(
                err, "the names of modules and the prefix must be printable");
    *out = json_object();
    for (size_t k = 0; k < sizeof(outputs) / sizeof(*outputs); k++)
        for (size_t i = 0; !rc && i < problem->n_tables; i++) {
            const struct table *table = &problem->tables[i];
            const struct module module = module_of(table, options);

            if (table->output == outputs[k] && !tables_of(*out, table, options))
                rc = add_module(*out, &module, plan, err);
        }
    if (rc) {
        json_decref(*out);
        *out = NULL;
    }
    return rc;
}

/* Prints an object's members, one per line. */
static void print_members(struct buf *out, json_t *object, const char *between)
{
    const char *key, *separator = "";
    json_t *value;

    json_object_foreach(object, key, value)
    {
        buf_printf(out, "%s", separator);
        json_print(out, json_string(key));
        buf_printf(out, ": ");
        json_print(out, json_incref(value));
        separator = between;
    }
}

/* Prints a plan with one line per table. */
static int print_plan(const struct plan *plan,
                      const struct emit_options *options, struct buf *out,
                      struct err *err)
{
    const char *name, *separator = "";
    json_t *modules = NULL, *tables;

    if (torchrec_check_groups(&plan->problem, err) ||
        check_modules(plan, options, err) ||
        make_modules(&modules, plan, options, err))
        return -1;
    buf_printf(out, "{");
    torchrec_print_job(&plan->problem, out);
    buf_printf(out, "\"plan\": {");
    json_object_foreach(modules, name, tables)
    {
        buf_printf(out, "%s\n  ", separator);
        json_print(out, json_string(name));
        buf_printf(out, ": {\n    ");
        print_members(out, tables, ",\n    ");
        buf_printf(out, "\n  }");
        separator = ",";
    }
    buf_printf(out, "\n}}\n");
    json_decref(modules);
    return 0;
}

const struct emitter emit_torchrec = {print_plan, emit_check_json};

/* --- constraints for TorchRec's own planner --- */

/*
 * Constraints (ParameterConstraints) for TorchRec's own planner, by table:
 * {"sharding_types": [...], "compute_kernels": [...], "pooling_factors": [...],
 * "min_partition": W, "num_poolings": [...], "cache_params": {...}}. The last
 * three are present only if they differ from the defaults. cache_params has a
 * member "stats" if the table list has reach.
 *
 * Constraints contain no ranks: TorchRec's planner places the tables that this
 * plan cuts. It may also cut the other tables, so that it has several proposals
 * to choose from. Its greedy proposer moves each table on to its slowest type
 * and so ends at the types of this plan.
 */

/* Returns a list of n equal numbers. */
static json_t *list_of(double x, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_real(x));
    return list;
}

/* Returns the number of column ranges into which the plan cuts a table. */
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
    json_t *cache = json_object_get(entry, "cache_params");
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

    /* TorchRec's planner makes all column ranges except the last equally
     * wide. */
    if ((is_column_wise && !is_whole) || !strcmp(type, "grid_shard"))
        json_object_set_new(
            constraints, "min_partition",
            json_integer(
                ((table->dim - 1) / (n_ranges * TABLE_COLUMN_STEP) + 1) *
                TABLE_COLUMN_STEP));
    if (n_poolings != 1)
        json_object_set_new(constraints, "num_poolings",
                            list_of(n_poolings, n_features));
    if (cache) {
        json_object_set(constraints, "cache_params", cache);
        json_object_set_new(cache, "stats", torchrec_cache_stats(table));
    }
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
    int rc = emit_one_group(&plan->problem, "TorchRec's planner", err) ||
             make_modules(&modules, plan, &names, err);

    for (uint32_t i = 0; !rc && i < plan->problem.n_tables; i++) {
        const struct table *table = &plan->problem.tables[i];
        json_t *name = name_of(table, &names);
        const char *key = json_string_value(name);

        if (json_object_get(root, key))
            rc = err_input(err,
                           "table '%s' is the second '%s', and constraints do "
                           "not distinguish modules",
                           table->name, key);
        else
            json_object_set_new(
                root, key,
                constraints_of(
                    plan, i,
                    json_object_get(tables_of(modules, table, &names), key)));
        json_decref(name);
    }
    if (!rc) {
        buf_printf(out, "{");
        print_members(out, root, ",\n ");
        buf_printf(out, "}\n");
    }
    json_decref(modules);
    json_decref(root);
    return rc ? -1 : 0;
}

const struct emitter emit_torchrec_constraints = {print_constraints,
                                                  emit_check_json};

/* --- the loader of a plan --- */

/*
 * Python module that loads a plan, because TorchRec can write plans but not
 * read them. It also makes checks that TorchRec omits: the plan is for a job of
 * this shape, plan and model have the same modules and tables with the same
 * sizes, and the pieces of a table on one rank have one width.
 */
FILE_TEXT(torchrec_loader_py, "src/python/neuroshard/_loader.py");

static int print_loader(const struct plan *plan,
                        const struct emit_options *options, struct buf *out,
                        struct err *err)
{
    (void)plan;
    (void)options;
    (void)err;
    buf_printf(out, "%s", torchrec_loader_py);
    return 0;
}

const struct emitter emit_torchrec_loader = {print_loader, NULL};
