/* SPDX-License-Identifier: MIT */
#include "base/mem.h"
#include "base/radix_sort.h"
#include "device/device_cpu.h"

#include <assert.h>

/* Rough number of rows that one task of a forward looks up. Large tasks are
 * better, because at the start of a task no rows have been prefetched yet. If a
 * thread would get fewer than TASKS_A_THREAD tasks, the tasks are made
 * smaller. */
#define ROWS_A_TASK 8192
#define TASKS_A_THREAD 8
/* Number of sorted lookups that one task of a backward handles. */
#define BLOCK_PAIRS LOOKUP_RUN_PART
/* Number of chunks per thread when all threads together sort one table. */
#define CHUNKS_A_THREAD 2
/* Largest number of bits of a row number by which one pass sorts. */
#define MAX_DIGIT 11

/*
 * Radix sort of the lookups of one table by row, from the least significant
 * digit. A digit has at most MAX_DIGIT bits, and all digits have the same
 * number of bits. Together they have just the bits that row numbers of this
 * table need.
 *
 * The lookups are divided into chunks. Each pass counts the digits of every
 * chunk, turns the counts into places and moves the pairs of row and bag to
 * their places. Places are ordered by digit, then by chunk, which keeps the
 * sort stable. The first pass reads the indices themselves and makes the pairs
 * by adding the bag to each. The result does not depend on the number of
 * threads or chunks.
 *
 * The sort shares only radix_places with radix_sort, for two reasons.
 * radix_sort runs on one thread. The cost databases hold times of this sort, so
 * a change of its speed needs new measurements.
 */
struct table_sort {
    const uint64_t *offsets; /* [batch + 1], the offsets of this table */
    uint32_t batch;
    uint32_t n_rows;
    size_t n; /* number of lookups; < 2^32 */
    /* output: [n][2], row and bag of each lookup, sorted by row, then by bag */
    uint32_t *pairs;
    uint32_t *scratch; /* [n][2], buffer for pairs between passes */
    uint32_t *counts;  /* [n_chunks][1 << MAX_DIGIT] */
    /* number of chunks, >= 1; threads work on them concurrently */
    size_t n_chunks;
    /* State of the current pass: */
    /* Input of the pass. In the first pass, `from` is the list of indices (the
     * low words of 64-bit indices). In later passes, it is the list of pairs of
     * row and bag. */
    const uint32_t *from;
    size_t step; /* words from one input row to the next: 1 or 2 */
    uint32_t *to;
    unsigned shift; /* 0 in the first pass */
    uint32_t mask;
};

static size_t chunk_begin(const struct table_sort *sort, size_t chunk)
{
    return sort->n * chunk / sort->n_chunks;
}

static void count_chunk(void *ctx, size_t chunk, unsigned thread)
{
    const struct table_sort *sort = ctx;
    uint32_t *counts = sort->counts + (chunk << MAX_DIGIT);
    const uint32_t *rows = sort->from;
    size_t step = sort->step;

    (void)thread;
    memset(counts, 0, (sort->mask + 1) * sizeof *counts);
    for (size_t i = chunk_begin(sort, chunk); i < chunk_begin(sort, chunk + 1);
         i++)
        counts[rows[i * step] >> sort->shift & sort->mask]++;
}

static inline void put(const struct table_sort *sort, uint32_t *places,
                       uint32_t row, uint32_t bag)
{
    uint32_t pair[2] = {row, bag};

    memcpy(sort->to + 2 * (size_t)places[row >> sort->shift & sort->mask]++,
           pair, sizeof pair);
}

/* Returns the bag of lookup i. Lookups and bags are both counted from the first
 * one of the table. */
static uint32_t bag_of(const struct table_sort *sort, size_t i)
{
    uint32_t begin = 0, end = sort->batch;

    while (end - begin > 1) {
        uint32_t middle = begin + (end - begin) / 2;

        if (sort->offsets[middle] - sort->offsets[0] <= i)
            begin = middle;
        else
            end = middle;
    }
    return begin;
}

static void scatter_chunk(void *ctx, size_t chunk, unsigned thread)
{
    const struct table_sort *sort = ctx;
    uint32_t *places = sort->counts + (chunk << MAX_DIGIT), bag;
    size_t i = chunk_begin(sort, chunk), end = chunk_begin(sort, chunk + 1);

    (void)thread;
    if (sort->shift) {
        for (; i < end; i++)
            put(sort, places, sort->from[2 * i], sort->from[2 * i + 1]);
        return;
    }
    if (i == end)
        return;
    for (bag = bag_of(sort, i); i < end; bag++) {
        size_t bag_end =
            min_u64(sort->offsets[bag + 1] - sort->offsets[0], end);

        for (; i < bag_end; i++)
            put(sort, places, sort->from[i * sort->step], bag);
    }
}

/* Sorts the lookups of one table. Uses the threads of a pool, or only the
 * calling thread if pool is NULL. */
static void sort_table(struct pool *pool, struct table_sort *sort)
{
    unsigned n_bits = 0, n_passes, digit_bits;

    while (n_bits < 32 && (sort->n_rows - 1) >> n_bits)
        n_bits++;
    n_passes = n_bits ? (n_bits + MAX_DIGIT - 1) / MAX_DIGIT : 1;
    digit_bits = (n_bits + n_passes - 1) / n_passes;
    sort->mask = (1u << digit_bits) - 1;
    for (unsigned k = 0; k < n_passes; k++) {
        /* This choice makes the last pass write to `pairs`. */
        sort->to = (n_passes - k) % 2 ? sort->pairs : sort->scratch;
        sort->shift = k * digit_bits;
        pool_run(pool, sort->n_chunks, count_chunk, sort);
        radix_places(sort->counts, sort->n_chunks, 1 << MAX_DIGIT,
                     sort->mask + 1);
        pool_run(pool, sort->n_chunks, scatter_chunk, sort);
        sort->from = sort->to;
        sort->step = 2;
    }
}

/* Work of a backward on one table: sorts the lookups by row, then updates the
 * rows. */
struct table_job {
    struct update_job update;
    struct table_sort sort;
};

/* Task of a backward. It handles the runs (lookups of one row) that start at
 * the sorted lookups [begin, end) of one table. */
struct block {
    const struct update_job *job;
    size_t begin, end;
};

struct lookup_cpu {
    struct lookup base;
    struct device_cpu *cpu; /* not owned */
    /* Partial sums of runs (struct update_job), in device memory. `pairs` and
     * `scratch` are in the same memory block. */
    float *partials;
    uint32_t *pairs, *scratch; /* [max_lookups][2] */
    uint32_t *counts;          /* owned; digit counts of all chunks */
    float *sums;               /* owned; [n_threads][max_dim] */
    /* owned; [max_lookups] places of the rows of a forward; NULL if no table
     * has places */
    uint32_t *places;
    struct table_job *jobs; /* owned; [n_tables] */
    struct block *blocks;   /* owned; [n_blocks], tasks of a backward */
    size_t n_blocks;
};

static struct lookup_cpu *lookup_cpu(struct lookup *lookup)
{
    return (struct lookup_cpu *)lookup;
}

void lookup_cpu_close(struct lookup *lookup)
{
    struct lookup_cpu *self = lookup_cpu(lookup);

    device_free(lookup->device, self->partials);
    mem_free(self->counts);
    mem_free(self->sums);
    mem_free(self->places);
    mem_free(self->jobs);
    mem_free(self->blocks);
    mem_free(self);
}

int lookup_cpu_open(struct lookup **out, const struct lookup *shape,
                    struct err *err)
{
    struct device_cpu *cpu = device_cpu(shape->device);
    size_t n_threads = pool_size(cpu->pool), n_pairs = shape->max_lookups;
    size_t n_partials =
        (n_pairs / LOOKUP_RUN_PART + shape->n_tables) * shape->max_dim;
    struct lookup_cpu *self;
    void *d_block;

    if (device_alloc(shape->device, &d_block,
                     n_partials * sizeof *self->partials +
                         4 * n_pairs * sizeof *self->pairs,
                     err))
        return -1;
    self = mem_alloc(1, sizeof *self);
    self->base = *shape;
    self->cpu = cpu;
    self->partials = d_block;
    self->pairs = (uint32_t *)d_block + n_partials;
    self->scratch = self->pairs + 2 * n_pairs;
    self->counts = mem_alloc(n_threads * CHUNKS_A_THREAD,
                             (1 << MAX_DIGIT) * sizeof *self->counts);
    self->sums = mem_alloc(n_threads * shape->max_dim, sizeof *self->sums);
    if (shape->has_places)
        self->places = mem_alloc(n_pairs, sizeof *self->places);
    self->jobs = mem_alloc(shape->n_tables, sizeof *self->jobs);
    self->blocks = mem_alloc(n_pairs / BLOCK_PAIRS + shape->n_tables,
                             sizeof *self->blocks);
    *out = &self->base;
    return 0;
}

/* Returns the number of 32-bit words from one index to the next. Tables have
 * fewer than 2^32 rows, so it is enough to read the low words of 64-bit
 * indices. */
static size_t index_step(const struct lookup_batch *batch)
{
    return batch->wide ? 2 : 1;
}

struct forward {
    const struct lookup_cpu *self;
    const struct lookup_batch *batch;
    char *out;
};

/* Lookups of one table that has places. */
struct place_job {
    const struct forward *forward;
    const struct lookup_table *table;
    uint64_t first; /* first lookup of the table */
};

/* Stores the places of the rows of the lookups [begin, end), which are counted
 * from the first one of the table. */
static void place_lookups(void *ctx, uint64_t begin, uint64_t end,
                          unsigned thread)
{
    const struct place_job *job = ctx;
    const struct lookup_batch *batch = job->forward->batch;
    const uint32_t *indices = batch->d_indices;
    const size_t step = index_step(batch);

    (void)thread;
    for (uint64_t i = job->first + begin; i < job->first + end; i++)
        job->forward->self->places[i] = job->table->d_places[indices[i * step]];
}

/* Stores the places of the rows that tables with places look up. */
static void place_tables(const struct forward *forward)
{
    const struct lookup *base = &forward->self->base;
    const uint64_t *offsets = forward->batch->d_offsets;

    if (!base->has_places)
        return;
    assert(!offsets[0] && forward->batch->n_lookups <= base->max_lookups);
    for (uint32_t t = 0; t < base->n_tables; t++, offsets += base->batch) {
        struct place_job job = {forward, &base->tables[t], offsets[0]};

        if (job.table->d_places)
            pool_run_range(forward->self->cpu->pool,
                           offsets[base->batch] - offsets[0], ROWS_A_TASK,
                           place_lookups, &job);
    }
}

/* Looks up the bags [begin, end). Bags are counted over all tables. */
static void forward_bags(void *ctx, uint64_t begin, uint64_t end,
                         unsigned thread)
{
    const struct forward *forward = ctx;
    const struct lookup *base = &forward->self->base;
    size_t element_bytes = precision_bytes(base->output);
    struct cpu_bags bags = {.out_half = base->output == PRECISION_FP16,
                            .out_stride = base->out_dim * element_bytes};

    (void)thread;
    for (; begin < end; begin += bags.n_bags) {
        const struct lookup_table *table = &base->tables[begin / base->batch];
        uint64_t first = begin % base->batch;

        bags.ends = forward->batch->d_offsets + begin;
        bags.n_bags = (uint32_t)min_u64(base->batch - first, end - begin);
        bags.out = forward->out + first * bags.out_stride +
                   table->out_begin * element_bytes;
        if (table->d_places)
            forward->self->cpu->kernels->pool(table, forward->self->places, 1,
                                              bags);
        else
            forward->self->cpu->kernels->pool(table, forward->batch->d_indices,
                                              index_step(forward->batch), bags);
    }
}

int lookup_cpu_forward(struct lookup *lookup, const struct lookup_batch *batch,
                       void *out, struct err *err)
{
    struct lookup_cpu *self = lookup_cpu(lookup);
    struct pool *pool = self->cpu->pool;
    struct forward forward = {self, batch, out};
    uint64_t n_bags = (uint64_t)lookup->n_tables * lookup->batch;
    uint64_t n_tasks = max_u64(batch->n_lookups / ROWS_A_TASK + 1,
                               (uint64_t)pool_size(pool) * TASKS_A_THREAD);

    (void)err;
    place_tables(&forward);
    pool_run_range(pool, n_bags, n_bags / n_tasks + 1, forward_bags, &forward);
    return 0;
}

/* Prepares a backward: makes one job per table and the list of tasks. A large
 * table is sorted in chunks by all threads. If one thread sorted it alone, the
 * other threads would have to wait. */
static void plan_jobs(struct lookup_cpu *self, const struct lookup_batch *batch,
                      const char *grad, float learning_rate)
{
    const struct lookup *base = &self->base;
    size_t element_bytes = precision_bytes(base->output);
    unsigned n_threads = pool_size(self->cpu->pool);
    float *partials = self->partials;

    self->n_blocks = 0;
    for (uint32_t t = 0; t < base->n_tables; t++) {
        const struct lookup_table *table = &base->tables[t];
        const uint64_t *offsets = batch->d_offsets + (size_t)t * base->batch;
        size_t first = 2 * (offsets[0] - batch->d_offsets[0]);
        size_t n_pairs = offsets[base->batch] - offsets[0];
        bool is_large = n_pairs > batch->n_lookups / (4 * n_threads);

        self->jobs[t].update = (struct update_job){
            .step = {table, base->optimizer, learning_rate},
            .pairs = self->pairs + first,
            .n_pairs = n_pairs,
            .grad = grad + table->out_begin * element_bytes,
            .grad_stride = base->out_dim * element_bytes,
            .is_half_grad = base->output == PRECISION_FP16,
            .partials = partials,
        };
        self->jobs[t].sort = (struct table_sort){
            .offsets = offsets,
            .batch = base->batch,
            .n_rows = (uint32_t)table->n_rows,
            .n = n_pairs,
            .pairs = self->pairs + first,
            .scratch = self->scratch + first,
            .counts = self->counts,
            .n_chunks = is_large ? n_threads * CHUNKS_A_THREAD : 1,
            .from = (const uint32_t *)batch->d_indices +
                    offsets[0] * index_step(batch),
            .step = index_step(batch),
        };
        partials += (n_pairs / LOOKUP_RUN_PART + 1) * table->dim;
        for (size_t begin = 0; begin < n_pairs; begin += BLOCK_PAIRS)
            self->blocks[self->n_blocks++] =
                (struct block){&self->jobs[t].update, begin,
                               min_u64(n_pairs, begin + BLOCK_PAIRS)};
    }
}

static void sort_small_table(void *ctx, size_t table_idx, unsigned thread)
{
    const struct lookup_cpu *self = ctx;
    struct table_sort sort = self->jobs[table_idx].sort;

    sort.counts += (size_t)thread << MAX_DIGIT;
    if (sort.n_chunks == 1)
        sort_table(NULL, &sort);
}

static void sum_block(void *ctx, size_t task, unsigned thread)
{
    const struct lookup_cpu *self = ctx;
    const struct block *block = &self->blocks[task];

    (void)thread;
    self->cpu->kernels->sum_parts(block->job, block->begin, block->end);
}

static void update_block(void *ctx, size_t task, unsigned thread)
{
    const struct lookup_cpu *self = ctx;
    const struct block *block = &self->blocks[task];

    self->cpu->kernels->update(block->job, block->begin, block->end,
                               self->sums +
                                   (size_t)thread * self->base.max_dim);
}

int lookup_cpu_backward(struct lookup *lookup, unsigned phases,
                        const struct lookup_batch *batch, const void *grad,
                        float learning_rate, struct err *err)
{
    struct lookup_cpu *self = lookup_cpu(lookup);

    (void)err;
    plan_jobs(self, batch, grad, learning_rate);
    if (phases & LOOKUP_SORT) {
        for (uint32_t t = 0; t < lookup->n_tables; t++)
            if (self->jobs[t].sort.n_chunks > 1)
                sort_table(self->cpu->pool, &self->jobs[t].sort);
        pool_run(self->cpu->pool, lookup->n_tables, sort_small_table, self);
    }
    if (phases & LOOKUP_UPDATE) {
        pool_run(self->cpu->pool, self->n_blocks, sum_block, self);
        pool_run(self->cpu->pool, self->n_blocks, update_block, self);
    }
    return 0;
}

/* Number of rows that one task of lookup_apply_dense handles. */
#define DENSE_ROWS 4096

int lookup_cpu_apply_dense(struct device *device,
                           const struct lookup_table *table, float *dense,
                           float learning_rate, enum optimizer optimizer,
                           struct err *err)
{
    struct device_cpu *cpu = device_cpu(device);
    struct dense_job job = {{table, optimizer, learning_rate}, dense};

    (void)err;
    pool_run_range(cpu->pool, table->n_rows, DENSE_ROWS, cpu->kernels->apply,
                   &job);
    return 0;
}
