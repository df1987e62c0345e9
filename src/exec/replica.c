/* SPDX-License-Identifier: MIT */
#include "exec/replica.h"

#include <string.h>

#define REDUCE_FLOATS 4096 /* of a task */
#define SCAN_ROWS 4096     /* of a task */

static const struct piece *piece_of(const struct replica *replica, uint32_t i)
{
    return &replica->placement->pieces[replica->group->pieces[i]];
}

static int open_scatter(struct replica *replica, uint64_t max_lookups,
                        struct err *err)
{
    const struct group *group = replica->group;
    struct lookup_table *tables = mem_alloc(group->n_pieces, sizeof(*tables));
    int rc;

    for (uint32_t i = 0; i < group->n_pieces; i++) {
        const struct piece *piece = piece_of(replica, i);

        tables[i] = (struct lookup_table){
            .d_weight = piece->d_dense,
            .n_rows = piece->n_rows,
            .dim = piece->width,
            .out_begin = piece->out_begin,
            .precision = PRECISION_FP32,
        };
    }
    rc = lookup_open(&replica->scatter, replica->placement->device, tables,
                     group->n_pieces, group->n_bags, max_lookups, OPTIMIZER_SGD,
                     err);
    mem_free(tables);
    return rc;
}

static int open_apply(struct replica *replica, struct err *err)
{
    for (uint32_t i = 0; i < replica->group->n_pieces; i++) {
        const struct piece *piece = piece_of(replica, i);
        struct lookup_table table = {
            .d_weight = piece->d_weight,
            .d_state = piece->d_state,
            .n_rows = piece->n_rows,
            .dim = piece->width,
            .precision = piece->table->precision,
        };

        if (lookup_open(&replica->apply[i], replica->placement->device, &table,
                        1, (uint32_t)piece->n_rows, piece->n_rows,
                        piece->table->optimizer, err))
            return -1;
    }
    return 0;
}

int replica_open(struct replica *replica, const struct placement *placement,
                 const struct group *group, uint64_t max_lookups,
                 struct err *err)
{
    uint64_t n_rows = 0;

    *replica = (struct replica){
        .placement = placement,
        .group = group,
        .apply = mem_alloc(group->n_pieces, sizeof(struct lookup *)),
    };
    for (uint32_t i = 0; i < group->n_pieces; i++)
        if (piece_of(replica, i)->n_rows > n_rows)
            n_rows = piece_of(replica, i)->n_rows;
    replica->offsets = mem_alloc((size_t)n_rows + 1, sizeof(uint64_t));
    replica->rows = mem_alloc((size_t)n_rows, sizeof(uint32_t));
    replica->touched = mem_alloc((size_t)n_rows, sizeof(uint8_t));
    if ((group->n_bags && open_scatter(replica, max_lookups, err)) ||
        open_apply(replica, err)) {
        replica_close(replica);
        return -1;
    }
    return 0;
}

void replica_close(struct replica *replica)
{
    for (uint32_t i = 0; replica->apply && i < replica->group->n_pieces; i++)
        lookup_close(replica->apply[i]);
    lookup_close(replica->scatter);
    mem_free(replica->apply);
    mem_free(replica->offsets);
    mem_free(replica->rows);
    mem_free(replica->touched);
    *replica = (struct replica){0};
}

int replica_scatter(struct replica *replica, const struct lookup_batch *batch,
                    const float *d_grad, struct err *err)
{
    if (!replica->scatter)
        return 0;
    return lookup_backward(replica->scatter, batch, d_grad, -1.0F, err);
}

struct scan {
    const struct piece *piece;
    struct replica *replica;
    uint64_t *counts; /* [n_tasks]: touched rows, then those before a task */
};

static uint64_t scan_end(const struct scan *scan, size_t task)
{
    uint64_t end = (uint64_t)(task + 1) * SCAN_ROWS;

    return end < scan->piece->n_rows ? end : scan->piece->n_rows;
}

static void count_rows(void *ctx, size_t task, unsigned thread)
{
    const struct scan *scan = ctx;
    uint32_t width = scan->piece->width;
    uint64_t n = 0;

    (void)thread;
    for (uint64_t row = (uint64_t)task * SCAN_ROWS; row < scan_end(scan, task);
         row++) {
        const float *gradient = scan->piece->d_dense + row * width;
        uint32_t bits = 0;

        /* All of the row: an early exit would not vectorize. */
        for (uint32_t j = 0; j < width; j++) {
            uint32_t word;

            memcpy(&word, gradient + j, sizeof(word));
            bits |= word << 1; /* minus zero is zero */
        }
        scan->replica->touched[row] = bits != 0;
        n += bits != 0;
    }
    scan->counts[task] = n;
}

static void list_rows(void *ctx, size_t task, unsigned thread)
{
    const struct scan *scan = ctx;
    struct replica *replica = scan->replica;
    uint64_t n = scan->counts[task];

    (void)thread;
    for (uint64_t row = (uint64_t)task * SCAN_ROWS; row < scan_end(scan, task);
         row++) {
        replica->offsets[row] = n;
        if (replica->touched[row])
            replica->rows[n++] = (uint32_t)row;
    }
}

static void zero_rows(void *ctx, size_t task, unsigned thread)
{
    const struct scan *scan = ctx;
    uint32_t width = scan->piece->width;

    (void)thread;
    for (uint64_t row = (uint64_t)task * SCAN_ROWS; row < scan_end(scan, task);
         row++)
        if (scan->replica->touched[row])
            memset(scan->piece->d_dense + row * width, 0,
                   width * sizeof(float));
}

static int apply_piece(struct replica *replica, uint32_t i, struct scan *scan,
                       size_t n_tasks, float learning_rate, struct err *err)
{
    const struct piece *piece = piece_of(replica, i);
    struct pool *pool = replica->placement->pool;
    struct lookup_batch batch = {
        .d_indices = replica->rows,
        .d_offsets = replica->offsets,
    };

    pool_run(pool, n_tasks, count_rows, scan);
    for (size_t task = 0; task < n_tasks; task++) {
        uint64_t count = scan->counts[task];

        scan->counts[task] = batch.n_lookups;
        batch.n_lookups += count;
    }
    pool_run(pool, n_tasks, list_rows, scan);
    replica->offsets[piece->n_rows] = batch.n_lookups;
    if (lookup_backward(replica->apply[i], &batch, piece->d_dense,
                        learning_rate, err))
        return -1;
    pool_run(pool, n_tasks, zero_rows, scan);
    return 0;
}

int replica_apply(struct replica *replica, float learning_rate, struct err *err)
{
    for (uint32_t i = 0; i < replica->group->n_pieces; i++) {
        const struct piece *piece = piece_of(replica, i);
        size_t n_tasks = (size_t)((piece->n_rows - 1) / SCAN_ROWS + 1);
        struct scan scan = {
            .piece = piece,
            .replica = replica,
            .counts = mem_alloc(n_tasks, sizeof(uint64_t)),
        };
        int rc = apply_piece(replica, i, &scan, n_tasks, learning_rate, err);

        mem_free(scan.counts);
        if (rc)
            return -1;
    }
    return 0;
}

struct reduction {
    const struct piece *replicas; /* [n_ranks] */
    uint32_t n_ranks;
};

static void reduce_part(void *ctx, size_t task, unsigned thread)
{
    const struct reduction *reduction = ctx;
    const struct piece *first = reduction->replicas;
    uint64_t total = first->n_rows * first->width;
    uint64_t begin = (uint64_t)task * REDUCE_FLOATS;
    size_t n =
        total - begin < REDUCE_FLOATS ? (size_t)(total - begin) : REDUCE_FLOATS;
    float sum[REDUCE_FLOATS];

    (void)thread;
    memcpy(sum, first->d_dense + begin, n * sizeof(float));
    for (uint32_t r = 1; r < reduction->n_ranks; r++) {
        const float *part = reduction->replicas[r].d_dense + begin;

        for (size_t i = 0; i < n; i++)
            sum[i] += part[i];
    }
    for (uint32_t r = 0; r < reduction->n_ranks; r++)
        memcpy(reduction->replicas[r].d_dense + begin, sum, n * sizeof(float));
}

void replica_allreduce(const struct placement *placement)
{
    const struct piece *pieces = placement->pieces;
    size_t n_tables = placement->plan->problem.n_tables;

    for (size_t t = 0; t < n_tables; t++) {
        size_t first = placement->table_pieces[t];
        struct reduction reduction = {pieces + first, placement->n_ranks};
        uint64_t n;

        if (!pieces[first].replica || pieces[first].group == NO_GROUP)
            continue;
        n = pieces[first].n_rows * pieces[first].width;
        pool_run(placement->pool, (size_t)((n - 1) / REDUCE_FLOATS + 1),
                 reduce_part, &reduction);
    }
}
