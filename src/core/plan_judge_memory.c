/* SPDX-License-Identifier: MIT */
#include "core/plan_judge.h"

#include "base/mem.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>

/* Memory is counted from the definition, not by core/problem.c. */

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t mul_saturating(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Of what updates the shard: a dense parameter, as replicas are, knows no
 * rows. */
static uint64_t optimizer_state(const struct table *table,
                                enum dense_optimizer dense, uint64_t rows,
                                uint64_t weights)
{
    const enum optimizer own = table->optimizer;

    if (dense == DENSE_AS_TABLE && own == OPTIMIZER_ROWWISE_ADAGRAD)
        return mul_saturating(rows, 4);
    if (dense ? dense == DENSE_ADAGRAD : own == OPTIMIZER_ADAGRAD)
        return weights;
    if (dense ? dense == DENSE_ADAM : own == OPTIMIZER_ADAM)
        return mul_saturating(weights, 2);
    return 0;
}

/* Indices of 8 bytes, outputs and their gradients; a replica also has the
 * dense fp32 gradient that its all-reduce carries. */
static uint64_t batch_bytes(const struct problem *problem,
                            const struct table *table,
                            const struct shard *shard)
{
    uint64_t rows = shard->row_end - shard->row_begin;
    uint32_t width = shard->col_end - shard->col_begin;
    bool is_replica = shard->kind == SHARD_REPLICATE;
    double share = (double)rows / (double)table->num_embeddings;
    double samples =
        (double)problem->batch / (is_replica ? problem->cluster.n_devices : 1);
    double lookups = samples * table->pooling_factor * share;
    double vectors = table->output == OUTPUT_SEQUENCE
                         ? lookups
                         : samples * table->num_outputs;
    double bytes =
        ceil(8 * lookups +
             2 * vectors * width * precision_bytes(table->comm_precision));
    uint64_t io = bytes < 0x1p64 ? (uint64_t)bytes : UINT64_MAX;

    if (!is_replica)
        return io;
    return add_saturating(io, mul_saturating(rows, (uint64_t)width * 4));
}

static void count_shards(struct memory_items *devices, uint64_t *n_pieces,
                         const struct plan *plan)
{
    const struct problem *problem = &plan->problem;

    for (uint32_t r = 0; r < problem->cluster.n_devices; r++)
        devices[r].reserve = problem->cluster.reserve_bytes[r];
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        const struct table *table = &problem->tables[shard->table];
        struct memory_items *device = &devices[shard->device];
        uint64_t rows = shard->row_end - shard->row_begin;
        uint64_t row_bytes = (uint64_t)(shard->col_end - shard->col_begin) *
                             precision_bytes(table->precision);
        uint64_t weights = mul_saturating(rows, row_bytes);

        n_pieces[shard->device]++;
        device->weights = add_saturating(device->weights, weights);
        if (problem->memory_model == MEMORY_WEIGHTS)
            continue;
        device->optimizer = add_saturating(
            device->optimizer, optimizer_state(table,
                                               shard->kind == SHARD_REPLICATE
                                                   ? problem->dense_optimizer
                                                   : DENSE_AS_TABLE,
                                               rows, weights));
        device->io =
            add_saturating(device->io, batch_bytes(problem, table, shard));
    }
    for (uint32_t r = 0; r < problem->cluster.n_devices; r++)
        devices[r].total = add_saturating(
            add_saturating(devices[r].weights, devices[r].optimizer),
            add_saturating(devices[r].io, devices[r].reserve));
}

static int too_much_memory(const struct plan *plan, uint32_t r,
                           const struct memory_items *items, struct err *err)
{
    const uint64_t have = plan->problem.cluster.memory_bytes[r];
    char need[TEXT_BYTES_MAX], excess[TEXT_BYTES_MAX], part[4][TEXT_BYTES_MAX];

    return err_set(
        err, ERR_NO_PLAN,
        "device %u needs %s, %s more than it has: weights %s, optimizer %s, "
        "io %s, reserve %s; the largest item is %s",
        r, text_from_bytes(need, (double)items->total),
        text_from_bytes(excess, (double)(items->total - have)),
        text_from_bytes(part[0], (double)items->weights),
        text_from_bytes(part[1], (double)items->optimizer),
        text_from_bytes(part[2], (double)items->io),
        text_from_bytes(part[3], (double)items->reserve),
        memory_largest(items));
}

/* Who counts in floating point may round up a byte a piece, and past 2^53. */
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

    if (is_about(items->weights, stored->weights, n_pieces) &&
        is_about(items->optimizer, stored->optimizer, n_pieces) &&
        is_about(items->io, stored->io, n_pieces) &&
        items->reserve == stored->reserve &&
        is_about(items->total, stored->total, 4 * n_pieces))
        return 0;
    return err_set(err, ERR_INPUT,
                   "devices[%u].memory_bytes does not agree with its shards: "
                   "weights %" PRIu64 ", optimizer %" PRIu64 ", io %" PRIu64
                   ", reserve %" PRIu64 ", total %" PRIu64,
                   r, items->weights, items->optimizer, items->io,
                   items->reserve, items->total);
}

int judge_memory(const struct plan *plan, struct err *err)
{
    const struct cluster *cluster = &plan->problem.cluster;
    struct memory_items *items = mem_alloc(cluster->n_devices, sizeof(*items));
    uint64_t *n_pieces = mem_alloc(cluster->n_devices, sizeof(*n_pieces));
    int rc = 0;

    count_shards(items, n_pieces, plan);
    for (uint32_t r = 0; r < cluster->n_devices && !rc; r++)
        if (items[r].total > cluster->memory_bytes[r] &&
            items[r].total - cluster->memory_bytes[r] > n_pieces[r])
            rc = too_much_memory(plan, r, &items[r], err);
        else if (plan->devices)
            rc = check_stored_memory(plan, r, &items[r], n_pieces[r], err);
    mem_free(items);
    mem_free(n_pieces);
    return rc;
}
