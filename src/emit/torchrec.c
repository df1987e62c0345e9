/* SPDX-License-Identifier: MIT */
#include "emit/formats.h"

#include "base/text.h"

#include <inttypes.h>
#include <string.h>

/*
 * TorchRec's sharding plan, as ShardingPlan._serialize of TorchRec 1.x writes
 * it: {"plan": {module: {table: {sharding_type, compute_kernel, ranks,
 * shards}}}}, and beside it the ranks of a job and of its hosts. What TorchRec
 * cannot run is refused here rather than on the cluster: its row-wise code
 * finds the rank of a row by dividing it by the block size, so rows must be cut
 * into blocks of ceil(rows / ranks), block i on rank i, and ranks past the end
 * of the table hold a block of no rows. And it takes a rank's column pieces of
 * a table to be as wide as the first of them, so that unequal ones would reach
 * into other tables' weights.
 */

/* A table's entry while it is put together. */
struct entry {
    const struct cluster *cluster;
    const char *whole_type;   /* sharding type of a table that is not cut */
    struct buf ranks, shards; /* the lists' elements as JSON; owned */
};

static void add_shard(struct entry *entry, const struct shard *shard)
{
    const char *separator = entry->ranks.len ? ", " : "";

    buf_printf(&entry->ranks, "%s%u", separator, shard->device);
    buf_printf(&entry->shards,
               "%s{\"shard_offsets\": [%" PRIu64 ", %u], "
               "\"shard_sizes\": [%" PRIu64 ", %u], "
               "\"placement\": \"rank:%u/cuda:%u\"}",
               separator, shard->row_begin, shard->col_begin,
               shard->row_end - shard->row_begin,
               shard->col_end - shard->col_begin, shard->device,
               shard->device % entry->cluster->devices_per_host);
}

/* Rows of one range of columns in equal blocks over ranks first .. first + n,
 * the empty ones at the end of the table too; false where the pieces, by rows,
 * are not just those blocks that hold rows. */
static bool add_blocks(struct entry *entry, const struct table *table,
                       const struct shard *pieces, size_t n_pieces,
                       uint32_t first, uint32_t n)
{
    uint64_t n_rows = table->num_embeddings, block = (n_rows - 1) / n + 1;

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

/* Over all ranks, or over those of one host or NVLink domain. */
static int add_rows(struct entry *entry, const char **sharding_type,
                    const struct table *table, const struct shard *pieces,
                    size_t n, struct err *err)
{
    uint32_t n_ranks = entry->cluster->n_devices;
    uint32_t n_local = cluster_group(entry->cluster);

    *sharding_type = "row_wise";
    if ((table->rows_over != ROWS_OVER_HOST || n_local == n_ranks) &&
        add_blocks(entry, table, pieces, n, 0, n_ranks))
        return 0;
    *sharding_type = "table_row_wise";
    if (n_local == n_ranks)
        return err_set(err, ERR_INPUT,
                       "table '%s': TorchRec cuts rows only into equal blocks "
                       "in the order of the ranks, over all %u",
                       table->name, n_ranks);
    if (!add_blocks(entry, table, pieces, n,
                    pieces[0].device / n_local * n_local, n_local))
        return err_set(err, ERR_INPUT,
                       "table '%s': TorchRec cuts rows only into equal blocks "
                       "in the order of the ranks, over all %u or over the %u "
                       "of one %s",
                       table->name, n_ranks, n_local,
                       cluster_group_name(entry->cluster));
    return 0;
}

/* Column blocks, each cut by rows over the ranks of one host or domain. */
static int add_grid(struct entry *entry, const struct table *table,
                    const struct shard *pieces, size_t n, struct err *err)
{
    uint32_t n_local = cluster_group(entry->cluster);

    /* TorchRec 1.9.2 counts the rows of that state by hosts. */
    if (entry->cluster->hosts_per_domain > 1 &&
        table->optimizer == OPTIMIZER_ROWWISE_ADAGRAD)
        return err_set(err, ERR_INPUT,
                       "table '%s' is a grid over NVLink domains of several "
                       "hosts, for which TorchRec has no row-wise Adagrad",
                       table->name);
    for (size_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1;
             end < n && pieces[end].col_begin == pieces[begin].col_begin &&
             pieces[end].col_end == pieces[begin].col_end;)
            end++;
        if (!add_blocks(entry, table, &pieces[begin], end - begin,
                        pieces[begin].device / n_local * n_local, n_local))
            return err_set(err, ERR_INPUT,
                           "table '%s': TorchRec cuts a grid only into column "
                           "blocks, each in equal row blocks over the %u "
                           "ranks of one %s",
                           table->name, n_local,
                           cluster_group_name(entry->cluster));
    }
    return 0;
}

/* Fills the entry and names its sharding type. */
static int add_table(struct entry *entry, const char **sharding_type,
                     const struct table *table, const struct shard *pieces,
                     size_t n, struct err *err)
{
    switch (pieces[0].kind) {
    case SHARD_TABLE:
        *sharding_type = entry->whole_type;
        break;
    case SHARD_COLUMN:
        *sharding_type = "column_wise";
        break;
    case SHARD_REPLICATE:
        *sharding_type = "data_parallel";
        break;
    case SHARD_ROW:
        return add_rows(entry, sharding_type, table, pieces, n, err);
    case SHARD_GRID:
        *sharding_type = "grid_shard";
        return add_grid(entry, table, pieces, n, err);
    default:
        return err_set(err, ERR_INPUT, "table '%s' has shards of no kind",
                       table->name);
    }
    for (size_t i = 0; i < n; i++)
        add_shard(entry, &pieces[i]);
    return 0;
}

/* TorchRec keeps tables in a ModuleDict of torch's, by their names, which are
 * parts of the names of parameters. */
static int check_name(const struct table *table, const char *prefix,
                      struct err *err)
{
    if (!strchr(prefix, '.') && !strchr(table->name, '.'))
        return 0;
    return err_set(err, ERR_INPUT,
                   "table '%s%s' has a dot in its name, which TorchRec cannot "
                   "give to a table",
                   prefix, table->name);
}

/* An EmbeddingCollection knows no cuts that are tied to a host. */
static int check_sequence(const struct table *table, const char *sharding_type,
                          struct err *err)
{
    if (table->output != OUTPUT_SEQUENCE ||
        (strcmp(sharding_type, "table_row_wise") &&
         strcmp(sharding_type, "grid_shard")))
        return 0;
    return err_set(err, ERR_INPUT,
                   "table '%s' is a sequence, which TorchRec cuts by columns "
                   "or by rows over all ranks, not as %s",
                   table->name, sharding_type);
}

/* FBGEMM reads four columns at a time, of replicas too. */
static int check_widths(const struct table *table, const struct shard *pieces,
                        size_t n, uint32_t n_ranks, struct err *err)
{
    uint32_t *widths = mem_alloc(n_ranks, sizeof(*widths)); /* 0: none yet */
    int rc = 0;

    for (size_t i = 0; !rc && i < n; i++) {
        uint32_t rank = pieces[i].device;
        uint32_t width = pieces[i].col_end - pieces[i].col_begin;

        if (width % TABLE_COLUMN_STEP)
            rc = err_set(err, ERR_INPUT,
                         "table '%s' has %u columns, but TorchRec's kernels "
                         "take multiples of %u",
                         table->name, width, TABLE_COLUMN_STEP);
        else if (widths[rank] && widths[rank] != width)
            rc = err_set(err, ERR_INPUT,
                         "table '%s' has pieces of %u and of %u columns on "
                         "rank %u, but TorchRec takes those of one rank to be "
                         "of one width",
                         table->name, widths[rank], width, rank);
        widths[rank] = width;
    }
    mem_free(widths);
    return rc;
}

/* A sharding type has look-ups and exchanges of its own in each step: where
 * pooled tables are cut by columns, whole ones go with them as one column piece
 * each. */
static const char *find_whole_type(const struct plan *plan,
                                   enum table_output output)
{
    const struct table *tables = plan->problem.tables;

    for (size_t i = 0; i < plan->n_shards; i++)
        if (output == OUTPUT_POOLED && plan->shards[i].kind == SHARD_COLUMN &&
            tables[plan->shards[i].table].output == output)
            return "column_wise";
    return "table_wise";
}

/* The tables of one kind of output, which stand in one module. */
struct module {
    const struct plan *plan;
    const char *name, *prefix;
    enum table_output output;
};

/* One line: "name": {...}. */
static int print_table(const struct module *module, const char *whole_type,
                       size_t begin, size_t end, struct buf *out,
                       struct err *err)
{
    const struct plan *plan = module->plan;
    const struct shard *pieces = plan->shards + begin;
    const struct table *table = &plan->problem.tables[pieces[0].table];
    bool is_replicated = shard_is_replica(pieces[0].kind);
    struct entry entry = {.cluster = &plan->problem.cluster,
                          .whole_type = whole_type};
    const char *sharding_type = NULL;
    int rc = -1;

    if (check_name(table, module->prefix, err) ||
        check_widths(table, pieces, end - begin, entry.cluster->n_devices,
                     err) ||
        add_table(&entry, &sharding_type, table, pieces, end - begin, err) ||
        check_sequence(table, sharding_type, err))
        goto out;
    emit_json_string(out, module->prefix, table->name);
    buf_printf(out,
               ": {\"sharding_type\": \"%s\", \"compute_kernel\": \"%s\", "
               "\"ranks\": [%s]",
               sharding_type, is_replicated ? "dense" : "fused",
               entry.ranks.data);
    if (!is_replicated)
        buf_printf(out, ", \"shards\": [%s]", entry.shards.data);
    buf_add(out, "}", 1);
    rc = 0;
out:
    buf_release(&entry.ranks);
    buf_release(&entry.shards);
    return rc;
}

static int print_module(const struct module *module, struct buf *out,
                        struct err *err)
{
    const struct plan *plan = module->plan;
    const char *whole_type = find_whole_type(plan, module->output);
    const char *separator = "";

    buf_add(out, "  ", 2);
    emit_json_string(out, "", module->name);
    buf_add(out, ": {", 3);
    for (size_t begin = 0, end; begin < plan->n_shards; begin = end) {
        end = emit_shards_end(plan, begin);
        if (plan->problem.tables[plan->shards[begin].table].output !=
            module->output)
            continue;
        buf_printf(out, "%s\n    ", separator);
        separator = ",";
        if (print_table(module, whole_type, begin, end, out, err))
            return -1;
    }
    buf_printf(out, "\n  }");
    return 0;
}

/* The first table with that output, or NULL. */
static const struct table *find_output(const struct problem *problem,
                                       enum table_output output)
{
    for (size_t i = 0; i < problem->n_tables; i++)
        if (problem->tables[i].output == output)
            return &problem->tables[i];
    return NULL;
}

/* An EmbeddingCollection gives its features one width, and takes all pieces
 * of all tables that it cuts by columns to be as wide as the first. */
static int check_sequences(const struct plan *plan, struct err *err)
{
    const struct table *tables = plan->problem.tables;
    const struct table *first = find_output(&plan->problem, OUTPUT_SEQUENCE);
    const struct shard *piece = NULL;

    for (size_t i = 0; first && i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        const struct table *table = &tables[shard->table];
        uint32_t width = shard->col_end - shard->col_begin;

        if (table->output != OUTPUT_SEQUENCE)
            continue;
        if (table->dim != first->dim)
            return err_set(err, ERR_INPUT,
                           "tables '%s' and '%s' have %u and %u columns, but "
                           "the sequence tables of a TorchRec module must "
                           "have one width",
                           first->name, table->name, first->dim, table->dim);
        if (shard->kind != SHARD_COLUMN)
            continue;
        if (piece && piece->col_end - piece->col_begin != width)
            return err_set(err, ERR_INPUT,
                           "table '%s' has a piece of %u columns and '%s' one "
                           "of %u, but the column pieces of a TorchRec "
                           "module's sequence tables must have one width",
                           tables[piece->table].name,
                           piece->col_end - piece->col_begin, table->name,
                           width);
        piece = shard;
    }
    return 0;
}

static int print_plan(const struct plan *plan,
                      const struct emit_options *options, struct buf *out,
                      struct err *err)
{
    const struct table *pooled = find_output(&plan->problem, OUTPUT_POOLED);
    const struct table *sequence = find_output(&plan->problem, OUTPUT_SEQUENCE);
    const char *name = options->module ? options->module : EMIT_DEFAULT_MODULE;
    const char *prefix = options->prefix ? options->prefix : "";
    const struct module pooled_module = {plan, name, prefix, OUTPUT_POOLED};
    const struct module sequence_module = {
        plan, options->sequence_module ? options->sequence_module : name,
        prefix, OUTPUT_SEQUENCE};
    const struct cluster *cluster = &plan->problem.cluster;

    if (pooled && sequence && !strcmp(name, sequence_module.name))
        return err_set(err, ERR_INPUT,
                       "table '%s' is pooled and '%s' is a sequence, which "
                       "TorchRec keeps in two modules: name the second with "
                       "--sequence-module",
                       pooled->name, sequence->name);
    if (!text_is_printable(name) || !text_is_printable(sequence_module.name) ||
        !text_is_printable(prefix))
        return err_set(err, ERR_INPUT,
                       "the names of modules and the prefix must be printable");
    if (check_sequences(plan, err))
        return -1;
    buf_printf(out, "{\"world_size\": %u, \"local_world_size\": %u, ",
               cluster->n_devices, cluster->devices_per_host);
    if (cluster->hosts_per_domain > 1)
        buf_printf(out, "\"pod_size\": %u, ", cluster->hosts_per_domain);
    buf_printf(out, "\"plan\": {\n");
    if (pooled && print_module(&pooled_module, out, err))
        return -1;
    if (pooled && sequence)
        buf_printf(out, ",\n");
    if (sequence && print_module(&sequence_module, out, err))
        return -1;
    buf_printf(out, "\n}}\n");
    return 0;
}

const struct emitter emit_torchrec = {print_plan, emit_check_json};
