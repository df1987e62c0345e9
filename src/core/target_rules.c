/* SPDX-License-Identifier: MIT */
#include "core/target_rules.h"

#include "base/ranked.h"
#include "core/cluster.h"
#include "core/target_tiers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define WHOLE_WIDTH_KINDS (SHARD_TABLE | SHARD_ROW | SHARD_REPLICATE)

/* --- properties of problems under a target --- */

/* Returns the first sequence table with more than one lookup per sample, or
 * NULL. */
static const struct table *find_long_sequence(const struct problem *problem)
{
    for (size_t t = 0; t < problem->n_tables; t++)
        if (problem->tables[t].output == OUTPUT_SEQUENCE &&
            problem->tables[t].pooling_factor > 1)
            return &problem->tables[t];
    return NULL;
}

unsigned problem_kinds(const struct problem *problem, size_t idx)
{
    const struct target_traits *target = problem_target(problem);
    const struct table *table = &problem->tables[idx];
    unsigned kinds =
        table->kinds & problem->kinds & target->kinds[table->output];

    if (target->most_width && table->dim > target->most_width)
        kinds &= ~(unsigned)WHOLE_WIDTH_KINDS;
    if (target->rows[table->output] == TARGET_ROWS_HOST &&
        problem->cluster.hosts_per_domain > 1 &&
        table->optimizer == OPTIMIZER_ROWWISE_ADAGRAD)
        kinds &= ~(unsigned)SHARD_GRID; /* see check_grid */
    if (!(target->replica_optimizers & 1u << table->optimizer) ||
        (target->sequences_bar_replicas && (kinds & SHARD_REPLICATE) &&
         find_long_sequence(problem)))
        kinds &= ~(unsigned)SHARD_REPLICATE;
    return kinds;
}

enum target_rows target_rows_of(const struct problem *problem,
                                const struct table *table)
{
    return problem_target(problem)->rows[table->output];
}

void target_adopt(struct problem *problem)
{
    for (size_t t = 0; t < problem->n_tables; t++)
        if (target_rows_of(problem, &problem->tables[t]) == TARGET_ROWS_DEALT)
            problem->tables[t].row_order = ROW_ORDER_UNIFORM;
}

static uint32_t width_of(const struct shard *shard)
{
    return shard->col_end - shard->col_begin;
}

static int compare_devices(const void *left, const void *right)
{
    const struct shard *a = left, *b = right;

    return ranked_compare((const uint64_t[]){a->device, a->col_begin},
                          (const uint64_t[]){b->device, b->col_begin}, 2);
}

void target_deal(const struct problem *problem, struct shard *shards, size_t n)
{
    const struct table *table = &problem->tables[shards->table];
    const uint64_t n_ranges = table->dim / width_of(shards);
    const uint64_t n_blocks = n / n_ranges;

    if (target_rows_of(problem, table) != TARGET_ROWS_DEALT ||
        !(shard_cuts_rows(shards->kind) || shard_cuts_columns(shards->kind)) ||
        !n_blocks)
        return;
    qsort(shards, n, sizeof(*shards), compare_devices);
    for (size_t i = 0; i < n; i++) {
        const uint64_t block = i % n_blocks;
        const uint64_t n_rows = table->num_embeddings / n_blocks;
        const uint64_t n_more = table->num_embeddings % n_blocks;
        const uint32_t width = width_of(&shards[i]);

        shards[i].col_begin = (uint32_t)(i / n_blocks) * width;
        shards[i].col_end = shards[i].col_begin + width;
        shards[i].row_begin = block * n_rows + min_u64(block, n_more);
        shards[i].row_end = shards[i].row_begin + n_rows + (block < n_more);
    }
}

/* --- rules about tables --- */

/* Prints the names of the values in a mask, as in "fp32 and fp16". */
static void print_names(unsigned mask, const char *const *names,
                        const char *last, struct buf *out)
{
    unsigned left = 0;

    for (unsigned i = 0; names[i]; i++)
        left += mask >> i & 1;
    for (unsigned i = 0; names[i]; i++)
        if (mask >> i & 1)
            buf_printf(out, "%s%s", names[i],
                       --left > 1 ? ", "
                       : left     ? last
                                  : "");
}

static int check_precision(const struct target_traits *target,
                           const struct table *table, struct err *err)
{
    struct buf names = {0};
    int rc;

    if (target->precisions >> table->precision & 1)
        return 0;
    print_names(target->precisions, precision_names, " and ", &names);
    rc = err_input(err, "table '%.80s' is %s, but %s's tables are %s",
                   table->name, precision_names[table->precision],
                   target->framework, names.data);
    buf_release(&names);
    return rc;
}

/* Checks a table of a target that has no options by table. */
static int check_plain(const struct target_traits *target,
                       const struct table *table, const struct table *first,
                       struct err *err)
{
    if (table->optimizer != first->optimizer)
        return err_input(err,
                         "tables '%.80s' and '%.80s' have optimizers %s and "
                         "%s, but %s has one for all",
                         first->name, table->name,
                         optimizer_names[first->optimizer],
                         optimizer_names[table->optimizer], target->framework);
    if (table->output == OUTPUT_SEQUENCE || table->num_outputs != 1)
        return err_input(err,
                         "table '%.80s' does not give one pooled vector a "
                         "sample, as %s's tables do",
                         table->name, target->framework);
    return 0;
}

static int check_table(const struct target_traits *target,
                       const struct table *table, const struct table *first,
                       struct err *err)
{
    if (target->is_plain && check_plain(target, table, first, err))
        return -1;
    if (!(target->optimizers >> table->optimizer & 1))
        return err_input(
            err, "table '%.80s' has the optimizer %s, which %s does not have",
            table->name, optimizer_names[table->optimizer], target->framework);
    if (target->column_step && table->dim % target->column_step)
        return err_input(err,
                         "table '%.80s' has %u columns, but %s's kernels "
                         "take multiples of %u",
                         table->name, table->dim, target->framework,
                         target->column_step);
    return check_precision(target, table, err);
}

/* Returns the first sequence table of the module of this sequence table. */
static const struct table *first_sequence(const struct problem *problem,
                                          const struct table *table)
{
    const struct table *first = problem->tables;

    while (first->output != OUTPUT_SEQUENCE ||
           !tables_share_module(first, table))
        first++;
    return first;
}

static int check_tables_as(const struct problem *problem,
                           const struct target_traits *target, struct err *err)
{
    for (size_t t = 0; t < problem->n_tables; t++) {
        const struct table *table = &problem->tables[t], *first;

        if (check_table(target, table, &problem->tables[0], err))
            return -1;
        if (!target->sequences_alike || table->output != OUTPUT_SEQUENCE)
            continue;
        first = first_sequence(problem, table);
        if (first->dim != table->dim)
            return err_input(err,
                             "tables '%.80s' and '%.80s' have %u and %u "
                             "columns, but the sequence tables of a %s module "
                             "must have one width",
                             first->name, table->name, first->dim, table->dim,
                             target->framework);
    }
    return 0;
}

int target_check_tables(const struct problem *problem, struct err *err)
{
    return check_tables_as(problem, problem_target(problem), err);
}

/* --- rules about pieces --- */

/* The pieces of one table, sorted by shard_compare: by column, then by row. */
struct pieces {
    const struct problem *problem;
    const struct target_traits *target;
    const struct table *table;
    const struct shard *list; /* [n] */
    size_t n;
};

static int check_kind(const struct pieces *pieces, struct err *err)
{
    static const char *const outputs[] = {"pooled", "sequence"};
    const unsigned kinds = pieces->target->kinds[pieces->table->output];
    const enum shard_kind kind = pieces->list->kind;
    const char *names[N_SHARD_KINDS + 1] = {NULL};
    struct buf list = {0};
    int rc;

    if (kinds & kind)
        return 0;
    for (unsigned k = 0; k < N_SHARD_KINDS; k++)
        names[k] = shard_traits[k].name;
    print_names(kinds, names, " or ", &list);
    rc = err_input(err,
                   "table '%.80s' has shards of kind '%s', but the target %s "
                   "takes %s for %s tables",
                   pieces->table->name, shard_kind_name(kind),
                   pieces->target->name, kinds ? list.data : "none",
                   outputs[pieces->table->output]);
    buf_release(&list);
    return rc;
}

static int check_replica(const struct pieces *pieces, struct err *err)
{
    const struct target_traits *target = pieces->target;
    const struct table *table = pieces->table, *sequence = NULL;

    if (!shard_is_replica(pieces->list->kind))
        return 0;
    if (!(target->replica_optimizers >> table->optimizer & 1))
        return err_input(err,
                         "table '%.80s' is replicated and has the optimizer "
                         "%s, which %s has for cut and whole tables only",
                         table->name, optimizer_names[table->optimizer],
                         target->framework);
    if (target->sequences_bar_replicas)
        sequence = find_long_sequence(pieces->problem);
    if (sequence)
        return err_input(err,
                         "table '%.80s' is replicated, but %s has no replicas "
                         "if a sequence table, '%.80s', has more than one "
                         "lookup per sample",
                         table->name, target->framework, sequence->name);
    return 0;
}

/* Checks the widths of the pieces, and how many a device holds. */
static int check_widths(const struct pieces *pieces, struct err *err)
{
    const struct target_traits *target = pieces->target;
    const char *name = pieces->table->name;
    const uint32_t first = width_of(pieces->list);
    uint32_t *widths = /* [device] width of its last piece; 0: none yet */
        mem_alloc(pieces->problem->cluster.n_devices, sizeof(*widths));
    int rc = 0;

    for (size_t i = 0; !rc && i < pieces->n; i++) {
        const uint32_t device = pieces->list[i].device;
        const uint32_t width = width_of(&pieces->list[i]);

        if (target->most_width && width > target->most_width)
            rc = err_input(err,
                           "table '%.80s' has a piece of %u columns, but %s's "
                           "kernels take at most %u",
                           name, width, target->framework, target->most_width);
        else if (target->keeps_apart && widths[device])
            rc = err_input(err,
                           "table '%.80s' has two pieces on GPU %u, but %s "
                           "lists a table once for each GPU",
                           name, device, target->framework);
        else if (target->widths == TARGET_WIDTHS_ALIKE && width != first)
            rc = err_input(err,
                           "table '%.80s' has pieces of %u and of %u columns, "
                           "but %s cuts columns evenly",
                           name, first, width, target->framework);
        else if (target->widths == TARGET_WIDTHS_ALIKE_ON_GPU &&
                 widths[device] && widths[device] != width)
            rc = err_input(err,
                           "table '%.80s' has pieces of %u and of %u columns "
                           "on rank %u, but %s needs equal widths on a rank",
                           name, widths[device], width, device,
                           target->framework);
        widths[device] = width;
    }
    mem_free(widths);
    return rc;
}

/* Returns whether n pieces are the blocks of a row cut over the n_devices
 * devices from `first` on. */
static bool is_over(const struct pieces *pieces, const struct shard *list,
                    size_t n, uint32_t first, uint32_t n_devices)
{
    const uint64_t last = pieces->table->num_embeddings - 1;
    const uint64_t block = last / n_devices + 1;

    if (n != last / block + 1)
        return false;
    for (size_t i = 0; i < n; i++)
        if (list[i].row_begin != i * block || list[i].device != first + i)
            return false;
    return true;
}

/* Checks row blocks that are tied to ranks. */
static int check_rows(const struct pieces *pieces, struct err *err)
{
    const struct cluster *cluster = &pieces->problem->cluster;
    const uint32_t n = cluster->n_devices, n_local = cluster_group(cluster);
    const uint32_t first = pieces->list->device / n_local * n_local;
    const bool takes_hosts =
        pieces->target->rows[pieces->table->output] == TARGET_ROWS_HOST;

    if (is_over(pieces, pieces->list, pieces->n, 0, n) ||
        (takes_hosts &&
         is_over(pieces, pieces->list, pieces->n, first, n_local)))
        return 0;
    if (!takes_hosts || n_local == n)
        return err_input(err,
                         "table '%.80s': %s cuts %s only into equal blocks in "
                         "the order of the ranks, over all %u ranks",
                         pieces->table->name, pieces->target->framework,
                         pieces->table->output == OUTPUT_SEQUENCE
                             ? "the rows of a sequence"
                             : "rows",
                         n);
    return err_input(
        err,
        "table '%.80s': %s cuts rows only into equal blocks in the order of "
        "the ranks, over all %u ranks or over the %u of one %s",
        pieces->table->name, pieces->target->framework, n, n_local,
        cluster_group_name(cluster));
}

/* Checks a grid: each column range is cut over the devices of one group. */
static int check_grid(const struct pieces *pieces, struct err *err)
{
    const struct cluster *cluster = &pieces->problem->cluster;
    const uint32_t n_local = cluster_group(cluster);
    const struct shard *list = pieces->list;

    /* TorchRec 1.9.2 counts the rows of the row-wise Adagrad state by hosts, so
     * it cannot count them by domains. */
    if (cluster->hosts_per_domain > 1 &&
        pieces->table->optimizer == OPTIMIZER_ROWWISE_ADAGRAD)
        return err_input(err,
                         "table '%.80s' is a grid over NVLink domains of "
                         "several hosts, for which %s has no row-wise Adagrad",
                         pieces->table->name, pieces->target->framework);
    for (size_t begin = 0, end; begin < pieces->n; begin = end) {
        for (end = begin + 1; end < pieces->n &&
                              list[end].col_begin == list[begin].col_begin &&
                              list[end].col_end == list[begin].col_end;)
            end++;
        if (!is_over(pieces, &list[begin], end - begin,
                     list[begin].device / n_local * n_local, n_local))
            return err_input(err,
                             "table '%.80s': %s cuts a grid only into column "
                             "blocks, each in equal row blocks over the %u "
                             "ranks of one %s",
                             pieces->table->name, pieces->target->framework,
                             n_local, cluster_group_name(cluster));
    }
    return 0;
}

/* Checks that the devices of a table hold the pieces that the target deals to
 * them. */
static int check_dealt(const struct pieces *pieces, struct err *err)
{
    const char *name = pieces->table->name;
    const uint32_t n_ranges = pieces->table->dim / width_of(pieces->list);
    struct problem problem = *pieces->problem;
    struct shard *dealt;
    int rc = 0;

    if (pieces->n % n_ranges)
        return err_input(err,
                         "table '%.80s' has %u column pieces on %zu GPUs, but "
                         "%s gives each of them equally many GPUs",
                         name, n_ranges, pieces->n, pieces->target->framework);
    problem.target = pieces->target->target;
    dealt = mem_alloc(2 * pieces->n, sizeof(*dealt));
    memcpy(dealt, pieces->list, pieces->n * sizeof(*dealt));
    target_deal(&problem, dealt, pieces->n);
    memcpy(dealt + pieces->n, pieces->list, pieces->n * sizeof(*dealt));
    qsort(dealt + pieces->n, pieces->n, sizeof(*dealt), compare_devices);
    for (size_t i = 0; i < pieces->n && !rc; i++) {
        const struct shard *want = &dealt[i], *have = &dealt[pieces->n + i];

        if (want->row_begin != have->row_begin ||
            want->row_end != have->row_end ||
            want->col_begin != have->col_begin)
            rc = err_input(err,
                           "table '%.80s': GPU %u holds rows %" PRIu64
                           " to %" PRIu64
                           " from column %u on, but %s deals it rows %" PRIu64
                           " to %" PRIu64 " from column %u on",
                           name, have->device, have->row_begin, have->row_end,
                           have->col_begin, pieces->target->framework,
                           want->row_begin, want->row_end, want->col_begin);
    }
    mem_free(dealt);
    return rc;
}

static int check_pieces(const struct pieces *pieces, struct err *err)
{
    const enum shard_kind kind = pieces->list->kind;
    const enum target_rows rows = pieces->target->rows[pieces->table->output];
    const bool is_cut = shard_cuts_rows(kind) || shard_cuts_columns(kind);

    if (target_check_tier(pieces->problem, pieces->target->target, pieces->list,
                          err) ||
        check_kind(pieces, err) || check_replica(pieces, err) ||
        check_widths(pieces, err))
        return -1;
    if (rows == TARGET_ROWS_DEALT && is_cut)
        return check_dealt(pieces, err);
    if (rows == TARGET_ROWS_ANY || !shard_cuts_rows(kind))
        return 0;
    return shard_cuts_columns(kind) ? check_grid(pieces, err)
                                    : check_rows(pieces, err);
}

/* Checks that the column pieces of a module's sequence tables have one
 * width. */
static int check_sequences(const struct plan *plan,
                           const struct target_traits *target, struct err *err)
{
    const struct problem *problem = &plan->problem;
    const struct shard **firsts = /* [table] its module's first column piece */
        mem_alloc(problem->n_tables, sizeof(struct shard *));
    int rc = 0;

    for (size_t i = 0; i < plan->n_shards && !rc; i++) {
        const struct shard *shard = &plan->shards[i], **first;
        const struct table *table = &problem->tables[shard->table];

        if (table->output != OUTPUT_SEQUENCE || shard->kind != SHARD_COLUMN)
            continue;
        first = &firsts[first_sequence(problem, table) - problem->tables];
        if (*first && width_of(*first) != width_of(shard))
            rc = err_input(err,
                           "table '%.80s' has a piece of %u columns and "
                           "'%.80s' one of %u, but the column pieces of a %s "
                           "module's sequence tables must have one width",
                           problem->tables[(*first)->table].name,
                           width_of(*first), table->name, width_of(shard),
                           target->framework);
        *first = shard;
    }
    mem_free(firsts);
    return rc;
}

int target_check_as(const struct plan *plan, enum target name, struct err *err)
{
    const struct problem *problem = &plan->problem;
    const struct target_traits *target = &target_traits[name];

    if (name == TARGET_ANY)
        return 0;
    if (check_tables_as(problem, target, err) ||
        (target->sequences_alike && check_sequences(plan, target, err)))
        return -1;
    for (size_t begin = 0, end; begin < plan->n_shards; begin = end) {
        const struct shard *first = &plan->shards[begin];
        struct pieces pieces = {problem, target, &problem->tables[first->table],
                                first, 0};

        while (begin + pieces.n < plan->n_shards &&
               first[pieces.n].table == first->table)
            pieces.n++;
        end = begin + pieces.n;
        if (check_pieces(&pieces, err))
            return -1;
    }
    return 0;
}

int target_check(const struct plan *plan, struct err *err)
{
    return target_check_as(plan, plan->problem.target, err);
}
