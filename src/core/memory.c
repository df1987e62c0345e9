/* SPDX-License-Identifier: MIT */
#include "core/memory.h"

#include <math.h>

const char *const buffer_rule_names[] = {"copies", "traced", NULL};

/* Bytes per bag of an int32 offset and its int64 copy for FBGEMM. */
enum { OFFSET_BYTES = 4 + 8 };

/*
 * Bytes per lookup of FBGEMM when it has sorted the ids of the backward: the
 * linear ids, the sorted ones and their runs (int64); the positions, the sorted
 * ones, the lengths of runs and their sums (int32). Positions of sequences are
 * int64.
 */
enum { SORT_BYTES = 3 * 8 + 4 * 4, SORT_SEQUENCE_BYTES = SORT_BYTES + 2 * 4 };

/*
 * Bytes per lookup of a cached piece: LOCATION_BYTES for the slot of its row,
 * kept until the backward, and FILL_BYTES while the cache is filled. TorchRec
 * counts six copies of the ids for the latter.
 */
enum { LOCATION_BYTES = 4, FILL_BYTES = 6 * 8 };

/*
 * Number of batches that a pipeline of TorchRec 1.9.2 has on the device during
 * the backward pass of batch i:
 *
 *     delivered  in the order of the loader
 *     sent       in the order of the pieces, kept until batch i + 1 is waited
 *                for
 *     received   by the pieces
 *     looked_up  received batches with offsets
 *     ahead      batches whose outputs are exchanged already
 */
static const struct {
    double delivered, sent, received, looked_up, ahead;
} batches_kept[N_PIPELINES] = {
    [PIPELINE_NONE] = {1, 0, 1, 1, 0},
    [PIPELINE_SDD] = {3, 1, 2, 1, 0},
    [PIPELINE_PREFETCH] = {3, 1, 2, 1, 0},
    [PIPELINE_SEMISYNC] = {3, 1, 3, 2, 1},
};

/*
 * Number of copies of a batch by the rule BUFFERS_COPIES. It counts what the
 * allocator reserves. Source: the audit of TorchRec's train pipelines,
 * https://github.com/meta-pytorch/torchrec/pull/4067. A permuted batch has two
 * copies: the ids that are sent, and the ids that are received.
 */
static const struct {
    double delivered, permuted;
} copies_kept[N_PIPELINES] = {
    [PIPELINE_SDD] = {3, 4},
    [PIPELINE_NONE] = {1, 1},
    [PIPELINE_PREFETCH] = {4, 6},
    [PIPELINE_SEMISYNC] = {4, 6},
};

/* Returns the bytes of one copy of the ids and lengths. */
static double copy_bytes(const struct problem *problem,
                         const struct shard *shard)
{
    return PROBLEM_ID_BYTES * shard_lookups(problem, shard) +
           PROBLEM_LENGTH_BYTES * shard_bags(problem, shard);
}

/* Returns the bytes of a replica's gradient. The gradient is dense, because the
 * all-reduce transfers the gradients of all rows. */
static double gradient_bytes(const struct problem *problem,
                             const struct shard *replica)
{
    const enum precision precision =
        problem->layout == LAYOUT_FBGEMM
            ? problem->tables[replica->table].precision
            : PRECISION_FP32;

    return (double)precision_bytes(precision) *
           (double)(replica->row_end - replica->row_begin) *
           (replica->col_end - replica->col_begin);
}

static struct step_buffers shard_copies(const struct problem *problem,
                                        const struct shard *shard)
{
    struct step_buffers buffers = {
        .input = (copies_kept[problem->job.pipeline].permuted +
                  shard_cuts_rows(shard->kind)) *
                 copy_bytes(problem, shard),
        .outputs = 2 * shard_output_bytes(problem, shard)};

    if (shard_is_replica(shard->kind))
        buffers.outputs += gradient_bytes(problem, shard);
    return buffers;
}

/*
 * The sent copy of the outputs is freed before the backward pass sorts the ids,
 * so only the larger one counts. The outputs themselves are freed then, too,
 * and their gradients take their place. A reduce-scatter sends the outputs of
 * pooled row pieces without a copy.
 */
static struct step_buffers shard_traced(const struct problem *problem,
                                        const struct shard *shard)
{
    const enum pipeline pipeline = problem->job.pipeline;
    const bool is_sequence =
        problem->tables[shard->table].output == OUTPUT_SEQUENCE;
    const bool is_piece =
        shard_cuts_rows(shard->kind) || shard_cuts_columns(shard->kind);
    const double n_copies = batches_kept[pipeline].received +
                            is_piece * batches_kept[pipeline].sent;
    const double n_looked_up = batches_kept[pipeline].looked_up;
    const double copy = copy_bytes(problem, shard);
    const double offsets = OFFSET_BYTES * shard_bags(problem, shard);
    const double vectors = shard_output_bytes(problem, shard);
    const double sent =
        shard_cuts_rows(shard->kind) && !is_sequence ? 0 : vectors;
    const double sorted = (is_sequence ? SORT_SEQUENCE_BYTES : SORT_BYTES) *
                          shard_lookups(problem, shard);
    const double backward = batches_kept[pipeline].ahead * sent + sorted;

    if (shard_is_replica(shard->kind))
        return (struct step_buffers){n_looked_up * (copy + offsets),
                                     sorted +
                                         2 * gradient_bytes(problem, shard)};
    return (struct step_buffers){n_copies * copy + n_looked_up * offsets,
                                 vectors + (backward > sent ? backward : sent)};
}

/* The cache is filled before the outputs exist. If it is filled a batch ahead,
 * this is at any time of the step. */
struct step_buffers shard_buffers(const struct problem *problem,
                                  const struct shard *shard)
{
    const double lookups = shard_lookups(problem, shard);
    struct step_buffers buffers;

    if (problem->buffers == BUFFERS_COPIES)
        return shard_copies(problem, shard);
    buffers = shard_traced(problem, shard);
    if (shard->tier != TIER_CACHED)
        return buffers;
    if (problem->job.pipeline == PIPELINE_PREFETCH) {
        buffers.input += (2 * LOCATION_BYTES + FILL_BYTES) * lookups;
    } else {
        buffers.input += LOCATION_BYTES * lookups;
        buffers.outputs = fmax(buffers.outputs, FILL_BYTES * lookups);
    }
    return buffers;
}

/* The samples of a device are counted as if the device had a replica of each
 * table. The loader delivers all ids of these samples, and the device gets all
 * their outputs back. */
struct step_buffers sample_buffers(const struct problem *problem)
{
    const enum pipeline pipeline = problem->job.pipeline;
    const bool is_traced = problem->buffers == BUFFERS_TRACED;
    struct problem loaded = *problem;
    struct step_buffers buffers = {0, 0};

    if (loaded.job.dedup == DEDUP_IDS)
        loaded.job.dedup = DEDUP_NONE;
    for (size_t i = 0; i < problem->n_tables; i++) {
        struct shard replica = shard_whole(problem, (uint32_t)i, 0);

        replica.kind = SHARD_REPLICATE;
        buffers.input += copy_bytes(&loaded, &replica);
        buffers.outputs += shard_output_bytes(&loaded, &replica);
    }
    buffers.input *= is_traced ? batches_kept[pipeline].delivered +
                                     batches_kept[pipeline].sent
                               : copies_kept[pipeline].delivered;
    buffers.outputs *= is_traced ? 2 + batches_kept[pipeline].ahead : 2;
    return buffers;
}

/* Moves the weights and the optimizer's values per element of a piece to host
 * memory. Values per row and the row overhead stay on the device. */
static void move_to_host(struct memory_items *items, const struct table *table,
                         const struct shard *shard)
{
    const double rows = (double)(shard->row_end - shard->row_begin);
    const uint64_t overhead =
        bytes_from_double(rows * table->row_overhead_bytes);
    const uint64_t by_row =
        bytes_from_double(rows * optimizer_row_bytes(table->optimizer));

    items->host =
        saturating_add(items->weights - overhead, items->optimizer - by_row);
    items->weights = overhead;
    items->optimizer = by_row;
    if (shard->tier == TIER_CACHED)
        items->cache_state = bytes_from_double(CACHE_MAP_BYTES * rows);
    items->total =
        saturating_add(saturating_add(overhead, by_row), items->cache_state);
}

/* MEMORY_WEIGHTS counts rows x dim x bytes in every layout. MEMORY_BATCH uses
 * the mean lookups of rows, because plan files with this memory model have only
 * the mean. */
struct memory_items shard_memory(const struct problem *problem,
                                 const struct shard *shard)
{
    const struct table *table = &problem->tables[shard->table];
    struct memory_items items = cells_memory(
        table, optimizer_of_kind(table, shard->kind, problem->dense_optimizer),
        problem->layout, shard);
    struct problem mean = *problem;
    struct step_buffers buffers;

    if (problem->memory_model == MEMORY_WEIGHTS) {
        items.weights =
            bytes_from_double((double)(shard->row_end - shard->row_begin) *
                              (shard->col_end - shard->col_begin) *
                              precision_bytes(table->precision));
        items.optimizer = 0;
        items.total = items.weights;
        return items;
    }
    if (shard->tier != TIER_HBM)
        move_to_host(&items, table, shard);
    if (problem->memory_model == MEMORY_BATCH) {
        mean.hot = NULL;
        mean.buffers = BUFFERS_COPIES;
    }
    buffers = shard_buffers(&mean, shard);
    if (problem->memory_model == MEMORY_BATCH)
        buffers = (struct step_buffers){
            0,
            buffers.outputs + PROBLEM_ID_BYTES * shard_lookups(&mean, shard)};
    items.input = bytes_from_double(buffers.input);
    items.outputs = bytes_from_double(buffers.outputs);
    items.total =
        saturating_add(items.total, saturating_add(items.input, items.outputs));
    return items;
}

struct memory_items sample_memory(const struct problem *problem)
{
    const struct dense_memory dense = problem_dense_memory(problem);
    const struct step_buffers buffers = sample_buffers(problem);
    struct memory_items items = {0};

    if (problem->memory_model != MEMORY_FULL)
        return items;
    items.input = bytes_from_double(buffers.input);
    items.outputs = bytes_from_double(buffers.outputs);
    items.dense = dense_memory_total(&dense);
    items.total =
        saturating_add(saturating_add(items.input, items.outputs), items.dense);
    return items;
}

void problem_room_bytes(const struct problem *problem, uint64_t *room_bytes)
{
    const struct cluster *cluster = &problem->cluster;
    uint64_t of_samples = sample_memory(problem).total;

    for (uint32_t r = 0; r < cluster->n_devices; r++) {
        uint64_t memory = cluster->memory_bytes[r];
        uint64_t taken = saturating_add(cluster->reserve_bytes[r], of_samples);

        room_bytes[r] = memory > taken ? memory - taken : 0;
    }
}
