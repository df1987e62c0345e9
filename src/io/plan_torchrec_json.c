/* SPDX-License-Identifier: MIT */
#include "io/plan_torchrec_json.h"

#include "base/text.h"
#include "io/cluster_fields.h"
#include "io/plan_printed.h"
#include "io/plan_torchrec_tiers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Kinds of sharding, in the order of PLANNER_KINDS. The names are those of
 * TorchRec's JSON. */
enum { KIND_DP, KIND_TW, KIND_CW, KIND_TWCW, KIND_RW, KIND_TWRW, KIND_GS };
static const char *const json_kinds[] = {
    "data_parallel", "table_wise",     "column_wise", "table_column_wise",
    "row_wise",      "table_row_wise", "grid_shard",  NULL};

/* True if a shard fits a kind of sharding. The kind determines whether a shard
 * may have only a part of its table's rows or columns. */
static bool is_of_kind(const struct shard *shard, const struct table *table,
                       int kind)
{
    const bool all_rows =
        !shard->row_begin && shard->row_end == table->num_embeddings;
    const bool all_columns = !shard->col_begin && shard->col_end == table->dim;

    return (all_rows || kind == KIND_RW || kind == KIND_TWRW ||
            kind == KIND_GS) &&
           (all_columns || kind == KIND_CW || kind == KIND_TWCW ||
            kind == KIND_GS);
}

/* Compares a shard's placement, such as "rank:3/cuda:3", with the rank that the
 * table's entry lists for the shard. */
static int check_placement(const struct torchrec_entry *entry, size_t i,
                           const json_t *shard, struct err *err)
{
    const char *placement =
        json_string_value(json_object_get(shard, "placement"));
    char *end;

    if (!placement || strncmp(placement, "rank:", 5) != 0 ||
        strtoull(placement + 5, &end, 10) == entry->ranks[i])
        return 0;
    return err_input(
        err, "table '%s' has shard %zu on '%s', but lists rank %u for it",
        entry->fqn, i, placement, entry->ranks[i]);
}

static int read_shards(struct torchrec_reader *reader,
                       const struct torchrec_entry *entry, json_t *shards,
                       int kind, struct err *err)
{
    const struct table *table = &reader->plan->problem.tables[entry->table];
    const json_int_t n_rows = (json_int_t)table->num_embeddings;
    json_int_t row, col, rows, cols;

    if (shards && json_array_size(shards) != entry->n_ranks)
        return err_input(err, "table '%s' has %zu ranks, but %zu shards",
                         entry->fqn, entry->n_ranks, json_array_size(shards));
    if (kind == KIND_TW && entry->n_ranks != 1)
        return err_input(err, "table '%s' is whole, but on %zu ranks",
                         entry->fqn, entry->n_ranks);
    for (size_t i = 0; i < entry->n_ranks; i++) {
        json_t *place = json_array_get(shards, i);
        struct shard shard = {0};

        if (json_unpack(place, "{s:[II], s:[II]}", "shard_offsets", &row, &col,
                        "shard_sizes", &rows, &cols) ||
            row < 0 || row > n_rows || rows < 0 || rows > n_rows - row ||
            col < 0 || col > table->dim || cols < 1 || cols > table->dim - col)
            return err_input(
                err,
                "table '%s': shard %zu of %zu is missing or not within %" PRIu64
                " rows and %u columns",
                entry->fqn, i, entry->n_ranks, table->num_embeddings,
                table->dim);
        shard.row_begin = (uint64_t)row;
        shard.row_end = (uint64_t)(row + rows);
        shard.col_begin = (uint32_t)col;
        shard.col_end = (uint32_t)(col + cols);
        if (rows && !is_of_kind(&shard, table, kind))
            return err_input(err,
                             "table '%s' is %s, but its shard %zu has %" PRIu64
                             " of %" PRIu64 " rows and %u of %u columns",
                             entry->fqn, json_kinds[kind], i, (uint64_t)rows,
                             table->num_embeddings, (uint32_t)cols, table->dim);
        if (check_placement(entry, i, place, err))
            return -1;
        torchrec_add_shard(reader, entry, i, shard);
    }
    return 0;
}

/* Adds the shards of a table if the plan does not list them. They are equal
 * blocks, as TorchRec makes them. */
static int add_blocks(struct torchrec_reader *reader,
                      struct torchrec_entry *entry, int kind, struct err *err)
{
    const struct cluster *cluster = &reader->plan->problem.cluster;
    const struct table *table = &reader->plan->problem.tables[entry->table];
    uint64_t n_blocks = 1; /* number of column blocks */

    if (kind == KIND_TW && entry->n_ranks != 1)
        return err_input(err, "table '%s' is whole, but on %zu ranks",
                         entry->fqn, entry->n_ranks);
    if (kind == KIND_CW || kind == KIND_TWCW)
        n_blocks = entry->n_ranks;
    if (kind == KIND_GS && !cluster->devices_per_host)
        return err_input(
            err,
            "table '%s' is cut in a grid over hosts; option '--gpus-per-host' "
            "is needed: how many ranks a host has",
            entry->fqn);
    if (kind == KIND_GS)
        n_blocks = entry->n_ranks / cluster->devices_per_host;
    if (!n_blocks || table->dim % n_blocks || entry->n_ranks % n_blocks)
        return err_input(err,
                         "table '%s' lists no shards, and its %u columns do "
                         "not divide evenly over %zu ranks",
                         entry->fqn, table->dim, entry->n_ranks);
    entry->n_rows = table->num_embeddings;
    entry->dim = table->dim;
    entry->width = table->dim / n_blocks;
    torchrec_add_pieces(reader, entry);
    return 0;
}

/* Returns the ranks of a JSON list. Returns NULL if the list is empty, or if
 * the value is not a list of ranks. */
static uint32_t *ranks_of(size_t *n, const json_t *list, struct arena *arena)
{
    uint32_t *ranks = ARENA_NEW(arena, uint32_t, json_array_size(list));

    for (*n = 0; *n < json_array_size(list); ++*n) {
        const json_t *rank = json_array_get(list, *n);

        if (!json_is_integer(rank) || json_integer_value(rank) < 0)
            return NULL;
        ranks[*n] =
            (uint32_t)min_u64((uint64_t)json_integer_value(rank), UINT32_MAX);
    }
    return *n ? ranks : NULL;
}

static int read_entry(struct torchrec_reader *reader, json_t *value,
                      const char *fqn, struct err *err)
{
    struct torchrec_entry entry = {.fqn = fqn};
    json_t *ranks, *shards = NULL, *cache = NULL;
    const char *type;
    int kind;

    if (json_unpack(value, "{s:s, s:s, s:o, s?o, s?o}", "sharding_type", &type,
                    "compute_kernel", &entry.kernel, "ranks", &ranks, "shards",
                    &shards, "cache_params", &cache) ||
        !(entry.ranks = ranks_of(&entry.n_ranks, ranks, reader->arena)))
        return err_input(
            err, "table '%s' has no sharding_type, compute_kernel and ranks",
            fqn);
    kind = text_choice(json_kinds, type);
    if (kind < 0)
        return err_input(err, "table '%s' has the sharding_type '%s', not %s",
                         fqn, type,
                         text_list(json_kinds, " or ", reader->arena));
    if (torchrec_check_entry(&entry, reader, err) ||
        torchrec_read_cache(&entry, reader, cache, err))
        return -1;
    torchrec_add_load_factor(reader, &entry);
    if (kind != KIND_DP)
        return shards || !reader->has_blocks
                   ? read_shards(reader, &entry, shards, kind, err)
                   : add_blocks(reader, &entry, kind, err);
    if (json_array_size(shards))
        return err_input(err, "table '%s' is %s, but has %zu shards", fqn, type,
                         json_array_size(shards));
    torchrec_add_replicas(reader, &entry);
    return 0;
}

/* Reads all tables of all modules. `lines` holds the line of each table, in the
 * order of the tables. If `lines` is NULL, each table has a member "line". */
static int read_modules(struct torchrec_reader *reader, json_t *modules,
                        const size_t *lines, struct err *err)
{
    const char *module, *name;
    json_t *tables, *value;

    json_object_foreach(modules, module, tables)
    {
        if (!json_is_object(tables))
            return err_input(err, "%s:1: '%s' is not a module", reader->source,
                             module);
        json_object_foreach(tables, name, value)
        {
            const char *fqn =
                arena_printf(reader->arena, "%s.%s", module, name);
            const size_t line = lines ? *lines++
                                      : (size_t)json_integer_value(
                                            json_object_get(value, "line"));

            if (read_entry(reader, value, *module ? fqn : name, err))
                return err_prefix(err, "%s:%zu", reader->source, line);
        }
    }
    return 0;
}

/* Sets the number of devices from the highest rank in the plan, if the number
 * of devices is unknown. */
static void find_ranks(struct torchrec_reader *reader, json_t *modules)
{
    struct cluster *cluster = &reader->plan->problem.cluster;
    const char *module, *name;
    json_t *tables, *value, *rank;
    size_t i;

    if (cluster->n_devices)
        return;
    json_object_foreach(modules, module, tables)
    {
        json_object_foreach(tables, name, value)
        {
            json_array_foreach(json_object_get(value, "ranks"), i, rank)
            {
                const json_int_t r = json_integer_value(rank);

                if (r >= cluster->n_devices && r < CLUSTER_MAX_GPUS)
                    cluster->n_devices = (uint32_t)r + 1;
            }
        }
    }
    cluster->n_devices = cluster->n_devices ? cluster->n_devices : 1;
}

/* Reads {"plan": modules} or the modules alone. {"plan": modules} may also have
 * the members that `emit` adds. */
int torchrec_read_json(struct torchrec_reader *reader, const char *text,
                       size_t len, struct err *err)
{
    struct cluster *cluster = &reader->plan->problem.cluster;
    int n_ranks = 0, n_local = 0, n_hosts = 1;
    json_t *root = NULL, *modules = NULL;
    int rc = json_parse(&root, text, len, reader->source, err);

    reader->has_blocks = !rc && !json_object_get(root, "plan");
    modules = root;
    if (!rc && !reader->has_blocks &&
        (json_unpack(root, "{s?i, s?i, s?i, s:o !}", "world_size", &n_ranks,
                     "local_world_size", &n_local, "pod_size", &n_hosts, "plan",
                     &modules) ||
         !json_object_get(root, "world_size") !=
             !json_object_get(root, "local_world_size") ||
         (json_object_get(root, "world_size") &&
          (n_ranks < 1 || n_ranks > CLUSTER_MAX_GPUS || n_local < 1)) ||
         n_hosts < 1 || !json_is_object(modules)))
        rc = err_input(
            err,
            "%s:1: a TorchRec plan has the member plan, perhaps world_size and "
            "local_world_size together, perhaps pod_size, and no others",
            reader->source);
    if (n_ranks) {
        cluster->n_devices = (uint32_t)n_ranks;
        cluster->devices_per_host = (uint32_t)n_local;
        cluster->hosts_per_domain = (uint32_t)n_hosts;
    }
    if (!rc)
        find_ranks(reader, modules);
    rc = rc ||
         read_modules(reader, modules,
                      place_child_lines(text, len, reader->has_blocks ? 2 : 3,
                                        reader->arena),
                      err);
    json_decref(root);
    return rc ? -1 : 0;
}

int torchrec_read_printed(struct torchrec_reader *reader, const char *text,
                          size_t len, struct err *err)
{
    const char *doubt;
    json_t *modules;
    int rc;

    if (plan_printed_read(&modules, &doubt, text, len, reader->source,
                          reader->arena, err))
        return -1;
    if (doubt && reader->options->warn)
        reader->options->warn(reader->options->warn_ctx, doubt);
    find_ranks(reader, modules);
    rc = read_modules(reader, modules, NULL, err);
    json_decref(modules);
    return rc;
}
