/* SPDX-License-Identifier: MIT */

/*
 * Compares the lookups of the CPU with the speed of its memory:
 *
 *     bench_lookup [TABLE_GIB [THREADS]]
 *
 * One block of memory, much larger than the caches, holds the tables of every
 * width and is also the target of the plain read. Each round takes all
 * measurements in sequence, so a slowdown of the machine affects all of them.
 * Prints medians over the rounds.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/stats.h"
#include "device/device.h"
#include "device/lookup.h"
#include "device/stream.h"

#define N_ROUNDS 7
#define BATCH 4096
#define POOLING 20
/* Approximate bytes that the lookups of one measurement move. */
#define GATHER_BYTES ((uint64_t)256 << 20)

/* Includes widths that do not fill a vector. No cost model expects the time
 * that they take alone. */
static const uint32_t DIMS[] = {4, 8, 12, 16, 24, 32, 64, 128, 256};
#define N_DIMS (sizeof DIMS / sizeof DIMS[0])

/* Tables of one width, consecutive in the block. */
struct setting {
    uint32_t dim, n_tables;
    uint64_t n_lookups;
    struct lookup *lookup;
    struct lookup_table *tables;
    uint32_t *indices;
    uint64_t *offsets;
    float *out;
};

static struct err err;

static void check(int rc)
{
    if (rc) {
        fprintf(stderr, "bench_lookup: %s\n", err.msg);
        exit(1);
    }
}

static void *alloc(struct device *device, size_t n_bytes)
{
    void *ptr;

    check(device_alloc(device, &ptr, n_bytes, &err));
    return ptr;
}

static void setting_open(struct setting *setting, struct device *device,
                         float *block, uint64_t n_bytes, uint32_t dim,
                         double alpha, enum optimizer optimizer)
{
    uint64_t row_bytes = dim * sizeof(float), n_rows, n = 0;
    uint64_t a_table = (uint64_t)BATCH * POOLING;

    *setting = (struct setting){.dim = dim};
    setting->n_tables = (uint32_t)(GATHER_BYTES / (a_table * row_bytes));
    if (!setting->n_tables)
        setting->n_tables = 1;
    setting->n_lookups = a_table * setting->n_tables;
    n_rows = n_bytes / (row_bytes + sizeof(float)) / setting->n_tables;
    n_rows -= n_rows % 64;
    setting->tables = mem_alloc(setting->n_tables, sizeof *setting->tables);
    setting->indices =
        alloc(device, setting->n_lookups * sizeof *setting->indices);
    setting->offsets = alloc(device, ((size_t)setting->n_tables * BATCH + 1) *
                                         sizeof *setting->offsets);
    setting->out = alloc(device, (size_t)setting->n_tables * BATCH * row_bytes);
    for (uint32_t t = 0; t < setting->n_tables; t++) {
        struct stream stream = {.n_rows = n_rows,
                                .batch = BATCH,
                                .pooling_factor = POOLING,
                                .zipf_alpha = alpha,
                                .table_seed = t};
        float *weight = block + t * n_rows * (dim + 1);

        stream_fill(&stream, 1, n, setting->offsets + (size_t)t * BATCH,
                    setting->indices + n);
        n += a_table;
        setting->tables[t] = (struct lookup_table){
            .d_weight = weight,
            .d_state = weight + n_rows * dim,
            .n_rows = n_rows,
            .dim = dim,
            .out_begin = t * dim,
        };
    }
    check(lookup_open(&setting->lookup, device,
                      &(struct lookup_spec){.tables = setting->tables,
                                            .n_tables = setting->n_tables,
                                            .batch = BATCH,
                                            .max_lookups = setting->n_lookups,
                                            .optimizer = optimizer},
                      &err));
    check(device_fill(device, setting->out,
                      (uint64_t)setting->n_tables * BATCH * dim, PRECISION_FP32,
                      3, &err));
}

static void setting_close(struct setting *setting, struct device *device)
{
    lookup_close(setting->lookup);
    device_free(device, setting->indices);
    device_free(device, setting->offsets);
    device_free(device, setting->out);
    mem_free(setting->tables);
}

static double forward_ms(struct setting *setting)
{
    struct lookup_batch batch = {setting->indices, setting->offsets,
                                 setting->n_lookups, false};
    double start_ms = clock_ms();

    check(lookup_forward(setting->lookup, &batch, setting->out, &err));
    return clock_ms() - start_ms;
}

static double backward_ms(struct setting *setting)
{
    struct lookup_batch batch = {setting->indices, setting->offsets,
                                 setting->n_lookups, false};
    double start_ms = clock_ms();

    check(lookup_backward(setting->lookup, LOOKUP_BACKWARD, &batch,
                          setting->out, 1e-6f, &err));
    return clock_ms() - start_ms;
}

/* The obvious loop: one bag after the other, one column after the other. */
static void plain_bags(void *ctx, size_t task, unsigned thread)
{
    const struct setting *setting = ctx;
    size_t out_dim = (size_t)setting->n_tables * setting->dim;
    size_t t = task / (BATCH / 64), b = task % (BATCH / 64) * 64;

    (void)thread;
    for (size_t end = b + 64; b < end; b++) {
        const float *weight = setting->tables[t].d_weight;
        const uint64_t *bag = setting->offsets + t * BATCH + b;
        float *out = setting->out + b * out_dim + t * setting->dim;

        for (uint32_t c = 0; c < setting->dim; c++)
            out[c] = 0;
        for (uint64_t i = bag[0]; i < bag[1]; i++) {
            const float *row =
                weight + (size_t)setting->indices[i] * setting->dim;

            for (uint32_t c = 0; c < setting->dim; c++)
                out[c] += row[c];
        }
    }
}

static double plain_ms(struct setting *setting, struct pool *pool)
{
    double start_ms = clock_ms();

    pool_run(pool, (size_t)setting->n_tables * (BATCH / 64), plain_bags,
             setting);
    return clock_ms() - start_ms;
}

struct read {
    const uint64_t *words;
    uint64_t sums[64]; /* keeps the compiler from removing the reads */
};

#define READ_WORDS ((size_t)1 << 18)

static void read_piece(void *ctx, size_t task, unsigned thread)
{
    struct read *read = ctx;
    const uint64_t *words = read->words + task * READ_WORDS;
    uint64_t sum = 0;

    for (size_t i = 0; i < READ_WORDS; i++)
        sum += words[i];
    read->sums[thread % 64] += sum;
}

static double read_ms(const float *block, uint64_t n_bytes, struct pool *pool)
{
    struct read read = {(const uint64_t *)(const void *)block, {0}};
    double start_ms = clock_ms();

    pool_run(pool, (size_t)(n_bytes / sizeof(uint64_t) / READ_WORDS),
             read_piece, &read);
    return clock_ms() - start_ms;
}

static void bench_forward(struct device *device, struct pool *pool,
                          float *block, uint64_t n_bytes)
{
    struct setting settings[N_DIMS];
    double forward[N_DIMS][N_ROUNDS], plain[N_DIMS][N_ROUNDS];
    double read[N_ROUNDS], read_gbps;
    uint64_t read_bytes = GATHER_BYTES * 2;

    for (size_t d = 0; d < N_DIMS; d++)
        setting_open(&settings[d], device, block, n_bytes, DIMS[d], 0,
                     OPTIMIZER_SGD);
    if (read_bytes > n_bytes)
        read_bytes = n_bytes;
    for (int round = 0; round < N_ROUNDS; round++) {
        read[round] = read_ms(block, read_bytes, pool);
        for (size_t d = 0; d < N_DIMS; d++) {
            forward[d][round] = forward_ms(&settings[d]);
            plain[d][round] = plain_ms(&settings[d], pool);
        }
    }
    read_gbps = (double)read_bytes / stats_median(read, N_ROUNDS) / 1e6;
    printf("plain read of the same memory: %.1f GB/s\n\n", read_gbps);
    printf("forward, uniform rows, pooling %d, batch %d\n", POOLING, BATCH);
    printf("  dim   GB/s  ns/row  of read  plain loop GB/s  speed-up\n");
    for (size_t d = 0; d < N_DIMS; d++) {
        double n = (double)settings[d].n_lookups;
        double bytes = n * DIMS[d] * sizeof(float);
        double ms = stats_median(forward[d], N_ROUNDS);
        double naive_ms = stats_median(plain[d], N_ROUNDS);

        printf("  %3u  %5.1f  %6.2f    %4.0f%%            %5.1f     %4.2fx\n",
               DIMS[d], bytes / ms / 1e6, ms * 1e6 / n,
               100 * bytes / ms / 1e6 / read_gbps, bytes / naive_ms / 1e6,
               naive_ms / ms);
        setting_close(&settings[d], device);
    }
}

static void bench_backward(struct device *device, float *block,
                           uint64_t n_bytes)
{
    static const double ALPHAS[] = {0, 1.05};
    static const enum optimizer OPTIMIZERS[] = {OPTIMIZER_SGD,
                                                OPTIMIZER_ROWWISE_ADAGRAD};

    printf("\nbackward, million look-ups a second (ns each)\n");
    printf("  dim  zipf  sgd             rowwise_adagrad\n");
    for (size_t d = 0; d < N_DIMS; d++)
        for (int a = 0; a < 2; a++) {
            printf("  %3u  %4.2f", DIMS[d], ALPHAS[a]);
            for (int o = 0; o < 2; o++) {
                struct setting setting;
                double ms[N_ROUNDS], median;

                setting_open(&setting, device, block, n_bytes, DIMS[d],
                             ALPHAS[a], OPTIMIZERS[o]);
                for (int round = 0; round < N_ROUNDS; round++)
                    ms[round] = backward_ms(&setting);
                median = stats_median(ms, N_ROUNDS);
                printf("  %6.1f (%5.1f)",
                       (double)setting.n_lookups / median / 1e3,
                       median * 1e6 / (double)setting.n_lookups);
                setting_close(&setting, device);
            }
            printf("\n");
        }
}

int main(int argc, char **argv)
{
    double gib = argc > 1 ? strtod(argv[1], NULL) : 2;
    unsigned n_threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 2;
    uint64_t n_bytes = (uint64_t)(gib * (1 << 30));
    struct device *device;
    struct pool *pool;
    float *block;

    check(device_open(&device, DEVICE_CPU, 0, n_threads, &err));
    pool = pool_open(n_threads);
    block = alloc(device, n_bytes);
    check(device_fill(device, block, n_bytes / sizeof(float), PRECISION_FP32, 1,
                      &err));
    printf("%s, %s, %u threads, table of %.1f GiB, medians of %d\n",
           device->facts.name, device->facts.isa, device->facts.n_threads, gib,
           N_ROUNDS);
    bench_forward(device, pool, block, n_bytes);
    bench_backward(device, block, n_bytes);
    device_free(device, block);
    pool_close(pool);
    device_close(device);
    return 0;
}
