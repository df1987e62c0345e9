/* SPDX-License-Identifier: MIT */
#include "core/problem.h"

#include "base/hash.h"
#include "base/ranked.h"
#include "core/cluster.h"
#include "core/rank_law.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void job_describe(const struct job *job, struct buf *out)
{
    buf_printf(out, "pipeline %s", pipeline_names[job->pipeline]);
    if (job_n_chunks(job) > 1)
        buf_printf(out, ", %u chunks", job_n_chunks(job));
    if (job_dense_ms(job) > 0)
        buf_printf(out, ", dense part %g + %g ms", job->dense_ms[0],
                   job->dense_ms[1]);
    else if (job->dense)
        buf_printf(out, ", dense part by its layers");
    else
        buf_printf(out, ", dense part not known");
    if (job->dedup != DEDUP_NONE)
        buf_printf(out, ", %s de-duplicated", dedup_names[job->dedup]);
}

uint64_t bytes_from_double(double bytes)
{
    if (!(bytes > 0))
        return 0;
    return bytes >= 0x1p64 ? UINT64_MAX : (uint64_t)ceil(bytes);
}

const char *const dedup_names[] = {"none", "ids", "sessions", NULL};

/* kept_samples returns the share of a table's samples that de-duplication
 * keeps, and kept_ids returns the share of the ids of the kept samples. */
static double kept_samples(const struct problem *problem,
                           const struct table *table)
{
    return problem->job.dedup == DEDUP_SESSIONS ? table->dedup : 1;
}

static double kept_ids(const struct problem *problem, const struct table *table)
{
    return problem->job.dedup == DEDUP_IDS && table->output == OUTPUT_SEQUENCE
               ? table->dedup
               : 1;
}

/* Returns the number of samples per step for which the shard's device looks up
 * rows. */
static double shard_samples(const struct problem *problem,
                            const struct shard *shard)
{
    double batch = (double)problem->batch *
                   kept_samples(problem, &problem->tables[shard->table]);

    if (shard_is_replica(shard->kind))
        return batch / problem->cluster.n_devices;
    return batch;
}

/* Returns the lookups of a table for `batch` samples, before ids are
 * de-duplicated. */
static double batch_lookups(const struct problem *problem,
                            const struct table *table, double batch)
{
    return table->pooling_factor * batch * kept_samples(problem, table);
}

void problem_find_hot_rows(struct problem *problem, struct arena *arena)
{
    struct hot_rows *hot = ARENA_NEW(arena, struct hot_rows, problem->n_tables);
    struct hot_store *store = hot_store_new(arena);

    for (size_t t = 0; t < problem->n_tables; t++) {
        const struct table *table = &problem->tables[t];

        hot_rows_init(&hot[t], table,
                      batch_lookups(problem, table, (double)problem->batch),
                      kept_ids(problem, table), store, arena);
    }
    problem->hot = hot;
}

/* Returns the number of rows of the shard divided by the number of rows of the
 * table. */
static double row_share(const struct problem *problem,
                        const struct shard *shard)
{
    return (double)(shard->row_end - shard->row_begin) /
           (double)problem->tables[shard->table].num_embeddings;
}

double shard_lookups(const struct problem *problem, const struct shard *shard)
{
    const struct table *table = &problem->tables[shard->table];
    const double all = shard_samples(problem, shard) * table->pooling_factor *
                       kept_ids(problem, table);
    const double share = row_share(problem, shard);

    if (!problem->hot || share >= 1)
        return all * share;
    return all * hot_rows_share(&problem->hot[shard->table], shard->row_begin,
                                shard->row_end);
}

struct table_use problem_use(const struct problem *problem, size_t t,
                             double batch)
{
    const struct table *table = &problem->tables[t];
    const double n_lookups = batch_lookups(problem, table, batch);
    const double kept = kept_ids(problem, table);
    struct table_use use = {0};

    use.n_unique = table_reuse(table, n_lookups, use.bins);
    table_use_keep(&use, table, n_lookups, kept);
    return use;
}

/* All inputs that problem_use reads from a table, as a key. Tables with equal
 * keys have equal reuse. */
struct use_key {
    uint64_t n_rows;
    double alpha, n_lookups, kept, bins[REUSE_BINS];
};

static struct use_key use_key(const struct problem *problem, size_t t,
                              double batch)
{
    const struct table *table = &problem->tables[t];
    struct use_key key = {.n_rows = table->num_embeddings,
                          .n_lookups = batch_lookups(problem, table, batch),
                          .kept = kept_ids(problem, table)};

    if (table->has_bins)
        memcpy(key.bins, table->bins, sizeof(key.bins));
    else
        key.alpha = table->zipf_alpha;
    return key;
}

/* Sorts the tables by the hash of their keys, so that tables with equal keys
 * are neighbours. Returns the hash of all keys in the order of the tables. */
static uint64_t sort_by_key(const struct problem *problem, double batch,
                            struct ranked *order)
{
    uint64_t all = problem->n_tables;

    for (uint32_t t = 0; t < problem->n_tables; t++) {
        const struct use_key key = use_key(problem, t, batch);
        const uint64_t hash = hash_bytes(&key, sizeof(key), 0);

        order[t] = (struct ranked){(double)(hash >> 11), t};
        all = hash_bytes(&hash, sizeof(hash), all);
    }
    ranked_sort(order, problem->n_tables);
    return all;
}

/* Fills use[n_tables]. Returns the number of tables that were computed. */
static size_t compute_uses(const struct problem *problem, double batch,
                           const struct ranked *order, struct table_use *use)
{
    struct use_key before = {0};
    size_t n_computed = 0;

    for (size_t i = 0; i < problem->n_tables; i++) {
        const uint32_t t = order[i].idx;
        const struct use_key key = use_key(problem, t, batch);
        const bool is_known = i && !memcmp(&key, &before, sizeof(key));

        use[t] =
            is_known ? use[order[i - 1].idx] : problem_use(problem, t, batch);
        n_computed += !is_known;
        before = key;
    }
    return n_computed;
}

const struct table_use *problem_use_all(const struct problem *problem,
                                        double batch, struct arena *arena)
{
    const size_t n = problem->n_tables;
    struct hot_store *store = problem->hot ? problem->hot->store : NULL;
    struct ranked *order = mem_alloc(n, sizeof(*order));
    const uint64_t key = sort_by_key(problem, batch, order);
    const struct table_use *found = store ? hot_store_uses(store, key) : NULL;
    struct table_use *use;
    size_t n_computed;

    if (!found) {
        use = store ? mem_alloc(n, sizeof(*use))
                    : ARENA_NEW(arena, struct table_use, n);
        n_computed = compute_uses(problem, batch, order, use);
        found = use;
        if (store) {
            found = hot_store_keep(store, key, use, n, n_computed);
            mem_free(use);
        }
    }
    mem_free(order);
    return found;
}

struct table_use shard_use(const struct problem *problem,
                           const struct shard *shard, double batch,
                           const struct table_use *whole)
{
    const struct table *table = &problem->tables[shard->table];
    const double share = row_share(problem, shard);
    struct table_use use = *whole;

    if (problem->hot && share < 1)
        return hot_rows_use(&problem->hot[shard->table],
                            batch_lookups(problem, table, batch),
                            shard->row_begin, shard->row_end, whole);
    use.n_unique *= share;
    return use;
}

double shard_bags(const struct problem *problem, const struct shard *shard)
{
    return shard_samples(problem, shard) *
           problem->tables[shard->table].num_outputs;
}

double shard_output_vectors(const struct problem *problem,
                            const struct shard *shard)
{
    const struct table *table = &problem->tables[shard->table];

    return table->output == OUTPUT_SEQUENCE ? shard_lookups(problem, shard)
                                            : shard_bags(problem, shard);
}

double shard_output_bytes(const struct problem *problem,
                          const struct shard *shard)
{
    return shard_output_vectors(problem, shard) *
           (shard->col_end - shard->col_begin) *
           precision_bytes(problem->tables[shard->table].comm_precision);
}

const char *const memory_model_names[] = {"full", "weights", "batch", NULL};
const char *const memory_item_names[] = {"weights",     "optimizer", "cache",
                                         "cache_state", "input",     "outputs",
                                         "dense",       "nccl",      "reserve"};
const bool memory_item_is_optional[N_MEMORY_ITEMS] = {
    false, false, true, true, false, false, true, false, false};
const char *const dense_optimizer_names[] = {"table", "sgd", "adagrad", "adam",
                                             NULL};

static const enum optimizer dense_updates[] = {
    [DENSE_AS_TABLE] = OPTIMIZER_ADAM,
    [DENSE_SGD] = OPTIMIZER_SGD,
    [DENSE_ADAGRAD] = OPTIMIZER_ADAGRAD,
    [DENSE_ADAM] = OPTIMIZER_ADAM,
};

enum optimizer optimizer_of_kind(const struct table *table,
                                 enum shard_kind kind,
                                 enum dense_optimizer dense)
{
    return shard_is_replica(kind) && dense != DENSE_AS_TABLE
               ? dense_updates[dense]
               : table->optimizer;
}

enum optimizer problem_dense_optimizer(const struct problem *problem)
{
    return dense_updates[problem->dense_optimizer];
}

bool kind_changes_training(const struct table *table, enum shard_kind kind,
                           enum dense_optimizer dense)
{
    static const bool is_by_row[N_OPTIMIZERS] = {
        [OPTIMIZER_ROWWISE_ADAGRAD] = true,
        [OPTIMIZER_LAMB] = true,
        [OPTIMIZER_PARTIAL_ROWWISE_ADAM] = true,
        [OPTIMIZER_PARTIAL_ROWWISE_LAMB] = true,
    };

    if (shard_is_replica(kind))
        return optimizer_of_kind(table, kind, dense) != table->optimizer;
    return shard_cuts_columns(kind) && is_by_row[table->optimizer];
}

bool shard_changes_training(const struct problem *problem,
                            const struct shard *shard)
{
    return kind_changes_training(&problem->tables[shard->table], shard->kind,
                                 problem->dense_optimizer);
}

const char *const groups_layout_names[] = {"contiguous", "strided", NULL};

const char *const table_layout_names[] = {"plain", "fbgemm", NULL};

/* Number of state values of each optimizer, per weight element and per row. */
static const struct {
    double elements, rows;
} states[N_OPTIMIZERS] = {
    [OPTIMIZER_ROWWISE_ADAGRAD] = {0, 1},
    [OPTIMIZER_ADAGRAD] = {1, 0},
    [OPTIMIZER_ADAM] = {2, 0},
    [OPTIMIZER_ADAMA] = {2, 0},
    [OPTIMIZER_LAMB] = {2, 0},
    [OPTIMIZER_PARTIAL_ROWWISE_ADAM] = {1, 1},
    [OPTIMIZER_PARTIAL_ROWWISE_LAMB] = {1, 1},
};

double optimizer_row_bytes(enum optimizer optimizer)
{
    return 4 * states[optimizer].rows;
}

struct memory_items cells_memory(const struct table *table,
                                 enum optimizer optimizer,
                                 enum table_layout layout,
                                 const struct shard *cells)
{
    const bool is_fbgemm =
        layout == LAYOUT_FBGEMM && !shard_is_replica(cells->kind);
    const double rows = (double)(cells->row_end - cells->row_begin);
    const double elements = rows * (cells->col_end - cells->col_begin);
    const double weight_bytes = elements * precision_bytes(table->precision);
    const double offset_bytes =
        is_fbgemm && table->precision == PRECISION_INT8 ? LAYOUT_INT8_BYTES : 0;
    struct memory_items items = {
        .weights = bytes_from_double(
            weight_bytes + rows * (offset_bytes + table->row_overhead_bytes)),
        .optimizer =
            bytes_from_double(states[optimizer].elements *
                                  (is_fbgemm ? 4 * elements : weight_bytes) +
                              states[optimizer].rows * 4 * rows)};

    items.total = saturating_add(items.weights, items.optimizer);
    return items;
}

struct dense_memory problem_dense_memory(const struct problem *problem)
{
    if (!problem->job.dense || problem->memory_model != MEMORY_FULL)
        return (struct dense_memory){0};
    return dense_memory(
        problem->job.dense,
        ceil((double)problem->batch / problem->cluster.n_devices),
        states[problem_dense_optimizer(problem)].elements);
}

struct memory_items reserved_memory(const struct cluster *cluster,
                                    uint32_t device)
{
    uint64_t all = cluster->reserve_bytes[device];
    uint64_t nccl = cluster->nccl_bytes < all ? cluster->nccl_bytes : all;

    return (struct memory_items){
        .nccl = nccl, .reserve = all - nccl, .total = all};
}

void memory_add(struct memory_items *items, struct memory_items more)
{
    for (unsigned i = 0; i < N_MEMORY_ITEMS; i++)
        items->item[i] = saturating_add(items->item[i], more.item[i]);
    items->total = saturating_add(items->total, more.total);
    items->host = saturating_add(items->host, more.host);
}

unsigned memory_largest(const struct memory_items *items)
{
    unsigned largest = 0;

    for (unsigned i = 1; i < N_MEMORY_ITEMS; i++)
        if (items->item[i] > items->item[largest])
            largest = i;
    return largest;
}

/*
 * Returns how well the shard matches a cut of the rows over n devices:
 *
 *     3  the shard is block i and is on device i, where i is the number of the
 *        device modulo n
 *     2  the shard has as many rows as a block, ceil(rows / n)
 *     1  the shard has as many rows as the last, shorter block
 *     0  the shard does not match
 */
static int row_sign(const struct problem *problem, const struct shard *shard,
                    uint32_t n)
{
    const uint64_t rows = problem->tables[shard->table].num_embeddings;
    const uint64_t n_rows = shard->row_end - shard->row_begin;
    const uint64_t left = rows - shard->row_begin;
    const uint64_t block = (rows - 1) / n + 1;

    if (n_rows == (left < block ? left : block) &&
        shard->row_begin % block == 0 &&
        shard->row_begin / block == shard->device % n)
        return 3;
    return n_rows == block ? 2 : n_rows == rows % block;
}

uint32_t shard_row_ranks(const struct problem *problem,
                         const struct shard *shard)
{
    const uint32_t n_all = problem->cluster.n_devices;
    const uint32_t n_group = cluster_group(&problem->cluster);
    const enum rows_over over =
        shard_traits[shard_kind_idx(shard->kind)].is_within_group
            ? ROWS_OVER_HOST
            : problem->tables[shard->table].rows_over;
    const int by_all =
        over == ROWS_OVER_HOST ? 0 : row_sign(problem, shard, n_all);
    const int by_group =
        over == ROWS_OVER_ALL ? 0 : row_sign(problem, shard, n_group);

    if (by_all && by_all >= by_group)
        return n_all;
    return by_group ? n_group : 0;
}

uint32_t table_least_width(const struct problem *problem,
                           const struct table *table)
{
    const uint32_t asked = table->min_width > problem->min_width
                               ? table->min_width
                               : problem->min_width;
    const uint32_t n_steps =
        (asked + TABLE_COLUMN_STEP - 1) / TABLE_COLUMN_STEP;

    return (n_steps ? n_steps : 1) * TABLE_COLUMN_STEP;
}

uint32_t table_min_width(const struct problem *problem,
                         const struct table *table)
{
    uint32_t min_width = table_least_width(problem, table);
    uint32_t half = table->dim / 2;

    if (table->output != OUTPUT_SEQUENCE)
        return min_width;
    return half < min_width || half % TABLE_COLUMN_STEP ? table->dim : half;
}

bool tables_share_group(const struct problem *problem, uint32_t a, uint32_t b)
{
    const char *group = problem->tables[a].group;
    const char *other = problem->tables[b].group;

    return a == b || (group && other && !strcmp(group, other));
}

struct shard shard_whole(const struct problem *problem, uint32_t table,
                         uint32_t device)
{
    return (struct shard){
        .table = table,
        .kind = SHARD_TABLE,
        .row_end = problem->tables[table].num_embeddings,
        .col_end = problem->tables[table].dim,
        .device = device,
    };
}
