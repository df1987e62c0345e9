/* SPDX-License-Identifier: MIT */
#include "core/memory_check.h"

#include "base/text.h"
#include "core/cluster.h"
#include "core/memory.h"
#include "core/tier_check.h"

#include <inttypes.h>
#include <math.h>

/* The memory of shards is counted from its definition (core/memory.h),
 * without the code of core/memory.c. Only two inputs are computed elsewhere:
 * the lookups, bags and vectors of a shard, and the memory that a device uses
 * in addition to its shards. */

static uint64_t saturating_mul(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Returns the bytes of optimizer state of a shard. full_bytes is the size of a
 * state with one value per element. Replicas are dense parameters, and the
 * state of dense parameters has no row-wise values. */
static uint64_t optimizer_state(const struct table *table,
                                enum dense_optimizer dense, uint64_t rows,
                                uint64_t full_bytes)
{
    const enum optimizer own = table->optimizer;
    const bool is_own = dense == DENSE_AS_TABLE;
    uint64_t state = 0;

    if (is_own && (own == OPTIMIZER_ROWWISE_ADAGRAD ||
                   own == OPTIMIZER_PARTIAL_ROWWISE_ADAM ||
                   own == OPTIMIZER_PARTIAL_ROWWISE_LAMB))
        state = saturating_mul(rows, 4);
    if (is_own
            ? own == OPTIMIZER_ADAGRAD || own >= OPTIMIZER_PARTIAL_ROWWISE_ADAM
            : dense == DENSE_ADAGRAD)
        return saturating_add(state, full_bytes);
    if (is_own ? own == OPTIMIZER_ADAM || own == OPTIMIZER_ADAMA ||
                     own == OPTIMIZER_LAMB
               : dense == DENSE_ADAM)
        return saturating_mul(full_bytes, 2);
    return state;
}

static uint64_t whole_bytes(double bytes)
{
    bytes = ceil(bytes);
    return bytes < 0x1p64 ? (uint64_t)bytes : UINT64_MAX;
}

/* Returns the bytes of a replica's gradient. */
static uint64_t replica_gradient(const struct problem *problem,
                                 const struct shard *shard)
{
    const uint64_t element =
        problem->layout == LAYOUT_PLAIN
            ? 4
            : precision_bytes(problem->tables[shard->table].precision);

    return saturating_mul(shard->row_end - shard->row_begin,
                          element *
                              (uint64_t)(shard->col_end - shard->col_begin));
}

/* Adds the buffers of a step by the rule BUFFERS_COPIES. If the memory model is
 * MEMORY_BATCH, counts only one batch, as if all rows of a table had equally
 * many lookups. */
static void count_copies(struct memory_items *items,
                         const struct problem *problem,
                         const struct shard *shard)
{
    const bool is_bucketed =
        shard->kind == SHARD_ROW || shard->kind == SHARD_GRID;
    const double n_copies[] = {[PIPELINE_SDD] = 4,
                               [PIPELINE_NONE] = 1,
                               [PIPELINE_PREFETCH] = 6,
                               [PIPELINE_SEMISYNC] = 6};
    struct problem mean = *problem;
    double outputs, ids;

    if (problem->memory_model == MEMORY_BATCH)
        mean.hot = NULL;
    ids = 8 * shard_lookups(&mean, shard);
    /* factor 2: outputs and their gradients */
    outputs = 2.0 * (shard->col_end - shard->col_begin) *
              shard_output_vectors(&mean, shard) *
              precision_bytes(problem->tables[shard->table].comm_precision);
    if (problem->memory_model == MEMORY_BATCH)
        outputs += ids;
    else
        items->input =
            whole_bytes((n_copies[problem->job.pipeline] + is_bucketed) *
                        (ids + 4 * shard_bags(problem, shard)));
    items->outputs = whole_bytes(outputs);
    if (shard->kind == SHARD_REPLICATE)
        items->outputs =
            saturating_add(items->outputs, replica_gradient(problem, shard));
}

/* Adds the buffers of a step by the rule BUFFERS_TRACED, as the larger sum of
 * two moments: the exchange of the outputs, and the end of the sort of ids. */
static void count_traced(struct memory_items *items,
                         const struct problem *problem,
                         const struct shard *shard)
{
    const enum pipeline pipeline = problem->job.pipeline;
    const bool is_ahead = pipeline == PIPELINE_SEMISYNC;
    const bool by_rows = shard->kind == SHARD_ROW || shard->kind == SHARD_GRID;
    const bool by_columns =
        shard->kind == SHARD_COLUMN || shard->kind == SHARD_GRID;
    const double ids = shard_lookups(problem, shard);
    const double bags = shard_bags(problem, shard);
    const double out =
        (double)(shard->col_end - shard->col_begin) *
        precision_bytes(problem->tables[shard->table].comm_precision) *
        shard_output_vectors(problem, shard);
    const bool is_sequence =
        problem->tables[shard->table].output == OUTPUT_SEQUENCE;
    const bool is_reduced = by_rows && !is_sequence;
    const double sort = is_sequence ? 48 * ids : 40 * ids;
    const double at_exchange = is_reduced ? out : 2 * out;
    const double at_sort = (is_ahead && !is_reduced ? 2 * out : out) + sort;
    double batches = pipeline == PIPELINE_NONE ? 1 : is_ahead ? 3 : 2;

    if (shard->kind == SHARD_REPLICATE) {
        items->input = whole_bytes((1 + is_ahead) * (8 * ids + 16 * bags));
        items->outputs =
            whole_bytes(sort + 2.0 * (double)replica_gradient(problem, shard));
        return;
    }
    if (pipeline != PIPELINE_NONE && (by_rows || by_columns))
        batches++;
    items->input = whole_bytes(batches * (8 * ids + 4 * bags) +
                               (1 + is_ahead) * 12 * bags);
    items->outputs = whole_bytes(fmax(at_exchange, at_sort));
}

/* Leaves of a piece in host memory only the values per row on the device, and
 * adds what its cache takes without the slots. */
static void count_on_host(struct memory_items *items,
                          const struct problem *problem,
                          const struct shard *shard)
{
    const struct table *table = &problem->tables[shard->table];
    const uint64_t rows = shard->row_end - shard->row_begin;
    const double ids = shard_lookups(problem, shard);
    const uint64_t all = saturating_add(items->weights, items->optimizer);
    const bool is_by_row = table->optimizer == OPTIMIZER_ROWWISE_ADAGRAD ||
                           table->optimizer == OPTIMIZER_PARTIAL_ROWWISE_ADAM ||
                           table->optimizer == OPTIMIZER_PARTIAL_ROWWISE_LAMB;

    items->weights = whole_bytes((double)rows * table->row_overhead_bytes);
    items->optimizer = is_by_row ? saturating_mul(rows, 4) : 0;
    items->host = all - items->weights - items->optimizer;
    if (shard->tier != TIER_CACHED)
        return;
    items->cache_state = saturating_mul(rows, 4);
    if (problem->buffers != BUFFERS_TRACED)
        return;
    if (problem->job.pipeline == PIPELINE_PREFETCH) {
        items->input += whole_bytes((8 + 48) * ids);
    } else {
        items->input += whole_bytes(4 * ids);
        if (items->outputs < whole_bytes(48 * ids))
            items->outputs = whole_bytes(48 * ids);
    }
}

static struct memory_items count_shard(const struct problem *problem,
                                       const struct shard *shard)
{
    const struct table *table = &problem->tables[shard->table];
    const uint64_t rows = shard->row_end - shard->row_begin;
    const uint64_t width = shard->col_end - shard->col_begin;
    const uint64_t plain =
        saturating_mul(rows, width * precision_bytes(table->precision));
    const bool is_fbgemm =
        problem->layout == LAYOUT_FBGEMM && shard->kind != SHARD_REPLICATE;
    struct memory_items items = {.weights = plain};

    if (problem->memory_model != MEMORY_WEIGHTS) {
        if (is_fbgemm && table->precision == PRECISION_INT8)
            items.weights = saturating_mul(rows, width + 8);
        items.weights = saturating_add(
            items.weights,
            whole_bytes((double)rows * table->row_overhead_bytes));
        items.optimizer = optimizer_state(
            table,
            shard->kind == SHARD_REPLICATE ? problem->dense_optimizer
                                           : DENSE_AS_TABLE,
            rows, is_fbgemm ? saturating_mul(rows, 4 * width) : plain);
        if (problem->memory_model == MEMORY_FULL &&
            problem->buffers == BUFFERS_TRACED)
            count_traced(&items, problem, shard);
        else
            count_copies(&items, problem, shard);
    }
    if (shard->tier != TIER_HBM)
        count_on_host(&items, problem, shard);
    items.total = saturating_add(saturating_add(items.weights, items.optimizer),
                                 saturating_add(items.input, items.outputs));
    items.total = saturating_add(items.total, items.cache_state);
    return items;
}

static int too_much_memory(const struct plan *plan, uint32_t r,
                           const struct memory_items *items, struct err *err)
{
    const uint64_t have = plan->problem.cluster.memory_bytes[r];
    char need[TEXT_BYTES_MAX], excess[TEXT_BYTES_MAX];
    struct buf parts = {0};
    int rc;

    for (unsigned i = 0; i < N_MEMORY_ITEMS; i++)
        if (!memory_item_is_optional[i] || items->item[i])
            buf_printf(&parts, "%s%s %s", i ? ", " : "", memory_item_names[i],
                       text_from_bytes(need, (double)items->item[i]));
    rc = err_set(
        err, ERR_NO_PLAN,
        "GPU %u needs %s, %s more than it has: %s; the largest item is %s", r,
        text_from_bytes(need, (double)items->total),
        text_from_bytes(excess, (double)(items->total - have)), parts.data,
        memory_item_names[memory_largest(items)]);
    err->shortage = (struct shortage){.subject = "device",
                                      .is_of_device = true,
                                      .device = r,
                                      .need_bytes = items->total,
                                      .have_bytes = have};
    buf_release(&parts);
    return rc;
}

/* Returns true if the byte counts a and b are equal except for rounding. A
 * count that is computed in floating point may be rounded up by one byte per
 * piece, and it is inexact above 2^53. */
static bool is_about(uint64_t a, uint64_t b, uint64_t n_pieces)
{
    uint64_t difference = a > b ? a - b : b - a;

    return difference <= n_pieces + (a >> 50);
}

static int check_stored_memory(const struct plan *plan, uint32_t r,
                               const struct memory_items *items,
                               uint64_t n_pieces, struct err *err)
{
    const struct memory_items *stored = &plan->devices[r].memory;
    bool agrees = items->reserve == stored->reserve &&
                  items->nccl == stored->nccl &&
                  is_about(items->host, stored->host, n_pieces) &&
                  is_about(items->total, stored->total, 4 * n_pieces);
    struct buf parts = {0};
    int rc;

    for (unsigned i = 0; i < N_MEMORY_ITEMS; i++)
        agrees &= is_about(items->item[i], stored->item[i], n_pieces);
    if (agrees)
        return 0;
    for (unsigned i = 0; i < N_MEMORY_ITEMS; i++)
        if (!memory_item_is_optional[i] || items->item[i])
            buf_printf(&parts, "%s %" PRIu64 ", ", memory_item_names[i],
                       items->item[i]);
    if (items->host || stored->host)
        buf_printf(&parts, "host %" PRIu64 ", ", items->host);
    rc = err_input(err,
                   "devices[%u].memory_bytes does not agree with its shards: "
                   "%stotal %" PRIu64,
                   r, parts.data, items->total);
    buf_release(&parts);
    return rc;
}

int memory_check(const struct plan *plan, const struct shard *const *pieces,
                 struct err *err)
{
    const struct problem *problem = &plan->problem;
    const struct cluster *cluster = &problem->cluster;
    const struct memory_items samples = sample_memory(problem);
    struct memory_items *items = mem_alloc(cluster->n_devices, sizeof(*items));
    uint64_t *n_pieces = mem_alloc(cluster->n_devices, sizeof(*n_pieces));
    int rc;

    for (uint32_t r = 0; r < cluster->n_devices; r++) {
        items[r] = reserved_memory(cluster, r);
        memory_add(&items[r], samples);
        /* begins at 1, because the memory of the device's samples is rounded
         * like the memory of a piece */
        n_pieces[r] = 1;
    }
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];

        memory_add(&items[shard->device], count_shard(problem, shard));
        n_pieces[shard->device]++;
    }
    rc = tier_check_caches(plan, pieces, items, err);
    for (uint32_t r = 0; r < cluster->n_devices && !rc; r++)
        if (items[r].total > cluster->memory_bytes[r] &&
            items[r].total - cluster->memory_bytes[r] > n_pieces[r])
            rc = too_much_memory(plan, r, &items[r], err);
        else if (plan->devices)
            rc = check_stored_memory(plan, r, &items[r], n_pieces[r], err);
    if (!rc)
        rc = tier_check_hosts(plan, items, err);
    mem_free(items);
    mem_free(n_pieces);
    return rc;
}
