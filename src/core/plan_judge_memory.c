/* SPDX-License-Identifier: MIT */
#include "core/plan_judge.h"

#include "base/text.h"

#include <inttypes.h>

/* Memory of shards is counted from its definition, not by core/problem.c, which
 * has but look-ups, bags and outputs, and what each device has besides. */

static uint64_t saturating_mul(uint64_t a, uint64_t b)
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
    const bool is_own = dense == DENSE_AS_TABLE;
    uint64_t state = 0;

    if (is_own && (own == OPTIMIZER_ROWWISE_ADAGRAD ||
                   own == OPTIMIZER_PARTIAL_ROWWISE_ADAM ||
                   own == OPTIMIZER_PARTIAL_ROWWISE_LAMB))
        state = saturating_mul(rows, 4);
    if (is_own
            ? own == OPTIMIZER_ADAGRAD || own >= OPTIMIZER_PARTIAL_ROWWISE_ADAM
            : dense == DENSE_ADAGRAD)
        return saturating_add(state, weights);
    if (is_own ? own == OPTIMIZER_ADAM || own == OPTIMIZER_ADAMA ||
                     own == OPTIMIZER_LAMB
               : dense == DENSE_ADAM)
        return saturating_mul(weights, 2);
    return state;
}

static uint64_t whole_bytes(double bytes)
{
    bytes = ceil(bytes);
    return bytes < 0x1p64 ? (uint64_t)bytes : UINT64_MAX;
}

/* Of the batches that are on the device while a step runs; once it was one,
 * with the mean look-ups of rows. */
static void count_batches(struct memory_items *items,
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
    outputs = 2.0 * (shard->col_end - shard->col_begin) * /* with gradients */
              shard_output_vectors(&mean, shard) *
              precision_bytes(problem->tables[shard->table].comm_precision);
    if (problem->memory_model == MEMORY_BATCH)
        outputs += ids;
    else
        items->input =
            whole_bytes((n_copies[problem->job.pipeline] + is_bucketed) *
                        (ids + 4 * shard_bags(problem, shard)));
    items->outputs = whole_bytes(outputs);
    if (shard->kind == SHARD_REPLICATE) /* the dense fp32 gradient that its
                                           all-reduce carries */
        items->outputs = saturating_add(
            items->outputs,
            saturating_mul(shard->row_end - shard->row_begin,
                           4 * (uint64_t)(shard->col_end - shard->col_begin)));
}

static struct memory_items count_shard(const struct problem *problem,
                                       const struct shard *shard)
{
    const struct table *table = &problem->tables[shard->table];
    const uint64_t rows = shard->row_end - shard->row_begin;
    const uint64_t row_bytes = (uint64_t)(shard->col_end - shard->col_begin) *
                               precision_bytes(table->precision);
    struct memory_items items = {.weights = saturating_mul(rows, row_bytes)};

    if (problem->memory_model != MEMORY_WEIGHTS) {
        items.optimizer = optimizer_state(table,
                                          shard->kind == SHARD_REPLICATE
                                              ? problem->dense_optimizer
                                              : DENSE_AS_TABLE,
                                          rows, items.weights);
        count_batches(&items, problem, shard);
    }
    items.total = saturating_add(saturating_add(items.weights, items.optimizer),
                                 saturating_add(items.input, items.outputs));
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
        buf_printf(&parts, "%s%s %s", i ? ", " : "", memory_item_names[i],
                   text_from_bytes(need, (double)items->item[i]));
    rc = err_set(
        err, ERR_NO_PLAN,
        "device %u needs %s, %s more than it has: %s; the largest item is %s",
        r, text_from_bytes(need, (double)items->total),
        text_from_bytes(excess, (double)(items->total - have)), parts.data,
        memory_item_names[memory_largest(items)]);
    err->shortage = (struct shortage){.of = "device",
                                      .is_of_device = true,
                                      .device = r,
                                      .need_bytes = items->total,
                                      .have_bytes = have};
    buf_release(&parts);
    return rc;
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
    bool agrees = items->reserve == stored->reserve &&
                  items->nccl == stored->nccl &&
                  is_about(items->total, stored->total, 4 * n_pieces);
    struct buf parts = {0};
    int rc;

    for (unsigned i = 0; i < N_MEMORY_ITEMS; i++)
        agrees &= is_about(items->item[i], stored->item[i], n_pieces);
    if (agrees)
        return 0;
    for (unsigned i = 0; i < N_MEMORY_ITEMS; i++)
        buf_printf(&parts, "%s %" PRIu64 ", ", memory_item_names[i],
                   items->item[i]);
    rc = err_input(err,
                   "devices[%u].memory_bytes does not agree with its shards: "
                   "%stotal %" PRIu64,
                   r, parts.data, items->total);
    buf_release(&parts);
    return rc;
}

int judge_memory(const struct plan *plan, struct err *err)
{
    const struct problem *problem = &plan->problem;
    const struct cluster *cluster = &problem->cluster;
    const struct memory_items samples = sample_memory(problem);
    struct memory_items *items = mem_alloc(cluster->n_devices, sizeof(*items));
    uint64_t *n_pieces = mem_alloc(cluster->n_devices, sizeof(*n_pieces));
    int rc = 0;

    for (uint32_t r = 0; r < cluster->n_devices; r++) {
        items[r] = reserved_memory(cluster, r);
        memory_add(&items[r], samples);
        n_pieces[r] = 1; /* its samples, which are rounded too */
    }
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];

        memory_add(&items[shard->device], count_shard(problem, shard));
        n_pieces[shard->device]++;
    }
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
