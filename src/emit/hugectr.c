/* SPDX-License-Identifier: MIT */
#include "core/target_rules.h"
#include "emit/formats.h"

#include <inttypes.h>
#include <string.h>

/*
 * Writes the arguments of HugeCTR's EmbeddingCollectionConfig.shard, as a
 * Python module:
 *
 *   shard_matrix               for each GPU, the tables of which it has a piece
 *   shard_strategy             "mp": tables on some GPUs, as a name or as
 *                              (name, number of column pieces); "dp": replicas
 *   compression_strategy_dict  Reduction for pooled tables, Unique for
 *                              sequences, which HugeCTR concatenates
 *   comm_strategy              of the collection
 *
 * HugeCTR has no other way to say which GPU holds which columns or rows: they
 * follow from the order of the GPUs (target_deal). target_check_as checks that
 * the plan agrees.
 */

static void print_name(struct buf *out, const struct table *table)
{
    json_print(out, json_string(table->name));
}

/* Adds a name to a list that begins with an opening bracket. */
static void add_name(struct buf *list, const struct table *table)
{
    buf_printf(list, "%s", list->len ? ", " : "");
    print_name(list, table);
}

static void print_matrix(const struct plan *plan, struct buf *out)
{
    const uint32_t n_devices = plan->problem.cluster.n_devices;
    struct buf *rows = mem_alloc(n_devices, sizeof(*rows));

    for (size_t i = 0; i < plan->n_shards; i++)
        add_name(&rows[plan->shards[i].device],
                 &plan->problem.tables[plan->shards[i].table]);
    buf_printf(out, "shard_matrix = [\n");
    for (uint32_t r = 0; r < n_devices; r++) {
        buf_printf(out, "    [%s],  # GPU %" PRIu32 "\n",
                   rows[r].len ? rows[r].data : "", r);
        buf_release(&rows[r]);
    }
    buf_printf(out, "]\n");
    mem_free(rows);
}

/* Prints one line for a list of tables, if there is any. */
static void print_list(struct buf *out, const char *begin, struct buf *list,
                       const char *end)
{
    if (list->len)
        buf_printf(out, "    %s[%s]%s,\n", begin, list->data, end);
    buf_release(list);
}

/* Prints the placement of each table, and the compression of those that are not
 * replicated. */
static void print_strategies(const struct plan *plan, struct buf *out)
{
    struct buf model = {0}, data = {0}, compressed[2] = {{0}};

    for (size_t begin = 0, end; begin < plan->n_shards; begin = end) {
        const struct shard *first = &plan->shards[begin];
        const struct table *table = &plan->problem.tables[first->table];
        const uint32_t n_ranges =
            table->dim / (first->col_end - first->col_begin);

        end = emit_shards_end(plan, begin);
        if (shard_is_replica(first->kind)) {
            add_name(&data, table);
            continue;
        }
        add_name(&compressed[table->output], table);
        if (n_ranges == 1) {
            add_name(&model, table);
            continue;
        }
        buf_printf(&model, "%s(", model.len ? ", " : "");
        print_name(&model, table);
        buf_printf(&model, ", %" PRIu32 ")", n_ranges);
    }
    buf_printf(out, "shard_strategy = [\n");
    print_list(out, "(\"mp\", ", &model, ")");
    print_list(out, "(\"dp\", ", &data, ")");
    buf_printf(out, "]\ncompression_strategy_dict = {\n");
    print_list(out, "hugectr.CompressionStrategy.Reduction: ",
               &compressed[OUTPUT_POOLED], "");
    print_list(out, "hugectr.CompressionStrategy.Unique: ",
               &compressed[OUTPUT_SEQUENCE], "");
    buf_printf(out, "}\n");
}

/* Prints comments on differences between the plan and HugeCTR. */
static void print_notes(const struct plan *plan, bool is_hierarchical,
                        struct buf *out)
{
    const struct problem *problem = &plan->problem;
    size_t n_rowwise = 0, n_sequences = 0;

    for (size_t t = 0; t < problem->n_tables; t++) {
        n_rowwise += problem->tables[t].optimizer == OPTIMIZER_ROWWISE_ADAGRAD;
        n_sequences += problem->tables[t].output == OUTPUT_SEQUENCE;
    }
    if (n_rowwise)
        buf_printf(
            out,
            "# HugeCTR has no row-wise Adagrad: the state of its AdaGrad "
            "is as large as the\n# weights. Plan %zu tables with the "
            "optimizer adagrad to count it.\n",
            n_rowwise);
    if (is_hierarchical)
        buf_printf(out, "# HugeCTR refuses hierarchical exchanges if two GPUs "
                        "of a host lack peer access.\n");
    if (is_hierarchical && n_sequences)
        buf_printf(
            out, "# The tables of Unique, %zu, are exchanged as in Uniform.\n",
            n_sequences);
}

static int print_module(const struct plan *plan,
                        const struct emit_options *options, struct buf *out,
                        struct err *err)
{
    const struct cluster *cluster = &plan->problem.cluster;
    const bool is_hierarchical =
        options->comm && !strcmp(options->comm, "hierarchical");

    if (emit_one_group(&plan->problem, "HugeCTR", err) ||
        target_check_as(plan, TARGET_HUGECTR, err))
        return -1;
    if (is_hierarchical && cluster->n_devices % cluster->devices_per_host)
        return err_input(err,
                         "hierarchical exchanges need hosts of equal size, but "
                         "%u GPUs are not whole hosts of %u",
                         cluster->n_devices, cluster->devices_per_host);
    buf_printf(out,
               "# %zu tables on %" PRIu32 " GPUs, %" PRIu32
               " a host, global batch %" PRIu64 ", inputs %s\n",
               plan->problem.n_tables, cluster->n_devices,
               cluster->devices_per_host, plan->problem.batch,
               plan->inputs_hash ? plan->inputs_hash : "unknown");
    print_notes(plan, is_hierarchical, out);
    buf_printf(out,
               "#\n"
               "#     config = hugectr.EmbeddingCollectionConfig(\n"
               "#         use_exclusive_keys=True, "
               "comm_strategy=comm_strategy)\n"
               "#     config.embedding_lookup(...)\n"
               "#     config.shard(\n"
               "#         shard_matrix=shard_matrix,\n"
               "#         shard_strategy=shard_strategy,\n"
               "#         compression_strategy=compression_strategy_dict)\n"
               "import hugectr\n\n");
    print_matrix(plan, out);
    print_strategies(plan, out);
    buf_printf(out, "comm_strategy = hugectr.CommunicationStrategy.%s\n",
               is_hierarchical ? "Hierarchical" : "Uniform");
    return 0;
}

const struct emitter emit_hugectr = {print_module, NULL};
