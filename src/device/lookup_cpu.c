/* SPDX-License-Identifier: MIT */
#include "base/mem.h"
#include "device/device_cpu.h"
#include "device/lookup_kernels.h"
#include "device/lookup_sort.h"

#include <stdbool.h>
#include <string.h>

/* A forward task looks up about so many rows, or fewer where each thread would
 * not get TASKS_A_THREAD: each starts with nothing fetched ahead. */
#define ROWS_A_TASK 8192
#define TASKS_A_THREAD 8
/* Sorted look-ups of one task of the backward. */
#define BLOCK_PAIRS LOOKUP_RUN_PART
/* Chunks for each thread when all sort one table together. */
#define CHUNKS_A_THREAD 2

struct lookup_cpu {
    struct lookup base;
    struct device_cpu *cpu; /* not owned */
    const struct lookup_kernels *kernels;
    struct lookup_table *tables; /* owned */
    uint32_t *pairs, *scratch;   /* device memory, [max_lookups][2] */
    float *partials;             /* device memory, see lookup_kernels.h */
    uint32_t *counts;            /* owned; for all chunks of a sort */
    float *sums;                 /* owned; [n_threads][max_dim] */
    struct update_job *jobs;     /* owned; [n_tables] */
    size_t *first_block;         /* owned; [n_tables + 1] */
};

static struct lookup_cpu *lookup_cpu(struct lookup *lookup)
{
    return (struct lookup_cpu *)lookup;
}

static const struct lookup_kernels *const kernels[] = {
    [CPU_PORTABLE] = &LOOKUP_PORTABLE,
    [CPU_AVX2] = &LOOKUP_AVX2,
    [CPU_AVX512] = &LOOKUP_AVX512,
};

void lookup_cpu_close(struct lookup *lookup)
{
    struct lookup_cpu *self = lookup_cpu(lookup);

    device_free(lookup->device, self->pairs);
    device_free(lookup->device, self->scratch);
    device_free(lookup->device, self->partials);
    mem_free(self->counts);
    mem_free(self->sums);
    mem_free(self->jobs);
    mem_free(self->first_block);
    mem_free(self->tables);
    mem_free(self);
}

static int alloc_scratch(struct lookup_cpu *self, struct err *err)
{
    const struct lookup *base = &self->base;
    size_t n_pairs = base->max_lookups;
    size_t n_partials = n_pairs / LOOKUP_RUN_PART + base->n_tables;
    void *blocks[3] = {NULL, NULL, NULL};
    size_t n_bytes[3] = {
        2 * n_pairs * sizeof *self->pairs,
        2 * n_pairs * sizeof *self->scratch,
        n_partials * base->max_dim * sizeof *self->partials,
    };
    int rc = 0;

    for (int i = 0; i < 3 && !rc; i++)
        rc = device_alloc(base->device, &blocks[i], n_bytes[i], err);
    self->pairs = blocks[0];
    self->scratch = blocks[1];
    self->partials = blocks[2];
    return rc;
}

int lookup_cpu_open(struct lookup **out, const struct lookup *shape,
                    struct err *err)
{
    struct lookup_cpu *self = mem_alloc(1, sizeof *self);
    uint32_t n_tables = shape->n_tables;
    unsigned n_threads;

    self->base = *shape;
    self->cpu = device_cpu(shape->device);
    self->kernels = kernels[self->cpu->isa];
    n_threads = pool_size(self->cpu->pool);
    self->tables = mem_alloc(n_tables, sizeof *self->tables);
    if (n_tables)
        memcpy(self->tables, shape->tables, n_tables * sizeof *self->tables);
    self->base.tables = self->tables;
    self->counts = mem_alloc((size_t)n_threads * CHUNKS_A_THREAD,
                             LOOKUP_SORT_COUNTS * sizeof *self->counts);
    self->sums =
        mem_alloc((size_t)n_threads * shape->max_dim, sizeof *self->sums);
    self->jobs = mem_alloc(n_tables, sizeof *self->jobs);
    self->first_block = mem_alloc(n_tables + 1, sizeof *self->first_block);
    if (alloc_scratch(self, err)) {
        lookup_cpu_close(&self->base);
        return -1;
    }
    *out = &self->base;
    return 0;
}

/* Rows are fewer than 2^32: of wide indices the low words do. */
static size_t index_step(const struct lookup_batch *batch)
{
    return batch->wide ? 2 : 1;
}

struct forward {
    const struct lookup_cpu *self;
    const struct lookup_batch *batch;
    char *out;
    uint32_t bags_a_task, tasks_a_table;
};

static void forward_task(void *ctx, size_t task, unsigned thread)
{
    const struct forward *forward = ctx;
    const struct lookup *base = &forward->self->base;
    size_t t = task / forward->tasks_a_table;
    uint32_t begin =
        (uint32_t)(task % forward->tasks_a_table) * forward->bags_a_task;
    struct pool_job job = {
        .table = &base->tables[t],
        .indices = forward->batch->d_indices,
        .index_step = index_step(forward->batch),
        .offsets = forward->batch->d_offsets + t * base->batch + begin,
        .n_bags = base->batch - begin,
        .out_stride = base->out_dim * precision_bytes(base->output),
        .is_half_output = base->output == PRECISION_FP16,
    };

    (void)thread;
    if (job.n_bags > forward->bags_a_task)
        job.n_bags = forward->bags_a_task;
    job.out = forward->out + begin * job.out_stride +
              job.table->out_begin * precision_bytes(base->output);
    forward->self->kernels->pool(&job);
}

static uint32_t bags_a_task(const struct lookup *lookup,
                            const struct lookup_batch *batch,
                            unsigned n_threads)
{
    uint64_t n_bags = (uint64_t)lookup->n_tables * lookup->batch;
    uint64_t n_tasks = batch->n_lookups / ROWS_A_TASK + 1;

    if (n_tasks < (uint64_t)n_threads * TASKS_A_THREAD)
        n_tasks = (uint64_t)n_threads * TASKS_A_THREAD;
    n_bags = n_bags / n_tasks + 1;
    return n_bags < lookup->batch ? (uint32_t)n_bags : lookup->batch;
}

int lookup_cpu_forward(struct lookup *lookup, const struct lookup_batch *batch,
                       void *out, struct err *err)
{
    struct lookup_cpu *self = lookup_cpu(lookup);
    struct forward forward = {.self = self, .batch = batch, .out = out};

    (void)err;
    if (!lookup->batch)
        return 0;
    forward.bags_a_task =
        bags_a_task(lookup, batch, pool_size(self->cpu->pool));
    forward.tasks_a_table =
        (lookup->batch + forward.bags_a_task - 1) / forward.bags_a_task;
    pool_run(self->cpu->pool, (size_t)lookup->n_tables * forward.tasks_a_table,
             forward_task, &forward);
    return 0;
}

/* One backward: the parts of all phases. */
struct backward {
    struct lookup_cpu *self;
    const struct lookup_batch *batch;
    uint64_t large; /* a table of more look-ups is sorted by all threads */
};

static struct lookup_sort sort_of(const struct backward *backward,
                                  uint32_t table_idx)
{
    struct lookup_cpu *self = backward->self;
    const struct lookup *base = &self->base;
    const uint64_t *offsets =
        backward->batch->d_offsets + (size_t)table_idx * base->batch;
    size_t first = 2 * (offsets[0] - backward->batch->d_offsets[0]);
    struct lookup_sort sort = {
        .indices = backward->batch->d_indices,
        .index_step = index_step(backward->batch),
        .offsets = offsets,
        .batch = base->batch,
        .n_rows = (uint32_t)base->tables[table_idx].n_rows,
        .pairs = self->pairs + first,
        .scratch = self->scratch + first,
        .counts = self->counts,
        .n_chunks = 1,
    };

    return sort;
}

static bool is_large(const struct backward *backward, size_t table_idx)
{
    return backward->self->jobs[table_idx].n_pairs > backward->large;
}

static void sort_small_table(void *ctx, size_t table_idx, unsigned thread)
{
    const struct backward *backward = ctx;
    struct lookup_sort sort = sort_of(backward, (uint32_t)table_idx);

    sort.counts += (size_t)thread * LOOKUP_SORT_COUNTS;
    if (!is_large(backward, table_idx))
        lookup_sort(NULL, &sort);
}

/* Tables that would keep one thread busy while the others wait are sorted by
 * all threads together, one after the other; the rest, one thread each. */
static void sort_tables(const struct backward *backward)
{
    struct lookup_cpu *self = backward->self;
    struct pool *pool = self->cpu->pool;
    struct backward copy = *backward;

    for (uint32_t t = 0; t < self->base.n_tables; t++) {
        struct lookup_sort sort = sort_of(backward, t);

        sort.n_chunks = (size_t)pool_size(pool) * CHUNKS_A_THREAD;
        if (is_large(backward, t))
            lookup_sort(pool, &sort);
    }
    pool_run(pool, self->base.n_tables, sort_small_table, &copy);
}

/* The table that block `block` of all tables' blocks belongs to. */
static size_t table_of_block(const struct lookup_cpu *self, size_t block)
{
    size_t begin = 0, end = self->base.n_tables;

    while (end - begin > 1) {
        size_t middle = begin + (end - begin) / 2;

        if (self->first_block[middle] <= block)
            begin = middle;
        else
            end = middle;
    }
    return begin;
}

struct block {
    const struct update_job *job;
    size_t begin, end;
};

static struct block block_of(const struct lookup_cpu *self, size_t block)
{
    size_t t = table_of_block(self, block);
    struct block out = {.job = &self->jobs[t]};

    out.begin = (block - self->first_block[t]) * BLOCK_PAIRS;
    out.end = out.begin + BLOCK_PAIRS;
    if (out.end > out.job->n_pairs)
        out.end = out.job->n_pairs;
    return out;
}

static void sum_block(void *ctx, size_t task, unsigned thread)
{
    const struct lookup_cpu *self = ctx;
    struct block block = block_of(self, task);

    (void)thread;
    self->kernels->sum_parts(block.job, block.begin, block.end);
}

static void update_block(void *ctx, size_t task, unsigned thread)
{
    const struct lookup_cpu *self = ctx;
    struct block block = block_of(self, task);

    self->kernels->update(block.job, block.begin, block.end,
                          self->sums + (size_t)thread * self->base.max_dim);
}

static void plan_jobs(struct lookup_cpu *self, const struct lookup_batch *batch,
                      const char *grad, float learning_rate)
{
    const struct lookup *base = &self->base;
    size_t element_bytes = precision_bytes(base->output);
    size_t n_blocks = 0;
    float *partials = self->partials;

    for (uint32_t t = 0; t < base->n_tables; t++) {
        const struct lookup_table *table = &base->tables[t];
        const uint64_t *offsets = batch->d_offsets + (size_t)t * base->batch;
        struct update_job *job = &self->jobs[t];

        *job = (struct update_job){
            .step = {table, base->optimizer, learning_rate},
            .pairs = self->pairs + 2 * (offsets[0] - batch->d_offsets[0]),
            .n_pairs = offsets[base->batch] - offsets[0],
            .grad = grad + table->out_begin * element_bytes,
            .grad_stride = base->out_dim * element_bytes,
            .is_half_grad = base->output == PRECISION_FP16,
            .partials = partials,
        };
        partials += (job->n_pairs / LOOKUP_RUN_PART + 1) * table->dim;
        self->first_block[t] = n_blocks;
        n_blocks += (job->n_pairs + BLOCK_PAIRS - 1) / BLOCK_PAIRS;
    }
    self->first_block[base->n_tables] = n_blocks;
}

int lookup_cpu_backward(struct lookup *lookup, unsigned phases,
                        const struct lookup_batch *batch, const void *grad,
                        float learning_rate, struct err *err)
{
    struct lookup_cpu *self = lookup_cpu(lookup);
    struct pool *pool = self->cpu->pool;
    struct backward backward = {self, batch, 0};
    size_t n_blocks;

    (void)err;
    backward.large = batch->n_lookups / (4 * pool_size(pool));
    plan_jobs(self, batch, grad, learning_rate);
    n_blocks = self->first_block[lookup->n_tables];
    if (phases & LOOKUP_SORT)
        sort_tables(&backward);
    if (phases & LOOKUP_UPDATE) {
        pool_run(pool, n_blocks, sum_block, self);
        pool_run(pool, n_blocks, update_block, self);
    }
    return 0;
}

/* Rows of one task of a dense step. */
#define DENSE_ROWS 4096

struct dense {
    struct row_step step;
    const struct lookup_kernels *kernels;
    float *dense;
};

static void apply_rows(void *ctx, uint64_t begin, uint64_t end, unsigned thread)
{
    const struct dense *dense = ctx;

    (void)thread;
    dense->kernels->apply(&dense->step, dense->dense, (uint32_t)begin,
                          (uint32_t)end);
}

int lookup_cpu_apply_dense(struct device *device,
                           const struct lookup_table *table, float *dense,
                           float learning_rate, enum optimizer optimizer,
                           struct err *err)
{
    struct device_cpu *cpu = device_cpu(device);
    struct dense all = {
        .step = {table, optimizer, learning_rate},
        .kernels = kernels[cpu->isa],
        .dense = dense,
    };

    (void)err;
    pool_run_range(cpu->pool, table->n_rows, DENSE_ROWS, apply_rows, &all);
    return 0;
}
