/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_LOOKUP_CASE_H
#define NEUROSHARD_TESTS_LOOKUP_CASE_H

/*
 * Cases for the lookup tests: a few tables with random weights and lookups. All
 * data are in host memory, so that any implementation and the reference can run
 * on copies of them. Each case can be made in several modes.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "device/fp16.h"
#include "device/lookup.h"

#define CASE_MAX_TABLES 72
/* Largest number of rows for which a table gets memory for all rows. A larger
 * table has memory only for the rows that are looked up. */
#define CASE_MAX_ROWS 10000000

struct case_table {
    uint64_t n_rows;
    uint32_t dim;
    double pooling; /* mean; bags have 0 to twice as many lookups */
    enum precision precision;
    uint64_t n_hot; /* number of rows that are looked up; 0: all */
};

struct case_mode {
    const char *name;
    enum optimizer optimizer;
    enum precision output; /* precision of outputs and gradients */
    bool wide;             /* true: 64-bit indices */
    /* lookups in front of the batch's first, which belong to other batches */
    uint32_t n_before;
};

/* Most tests use the first mode. */
static const struct case_mode MODES[] = {
    {"sgd", OPTIMIZER_SGD, PRECISION_FP32, false, 0},
    {"adagrad", OPTIMIZER_ROWWISE_ADAGRAD, PRECISION_FP32, false, 0},
    {"sgd, fp16 outputs, wide", OPTIMIZER_SGD, PRECISION_FP16, true, 0},
    {"adagrad, fp16 outputs", OPTIMIZER_ROWWISE_ADAGRAD, PRECISION_FP16, false,
     3},
    {"adagrad, wide", OPTIMIZER_ROWWISE_ADAGRAD, PRECISION_FP32, true, 7},
};
#define N_MODES (sizeof MODES / sizeof MODES[0])

struct lookup_case {
    const char *name;
    uint32_t batch;
    struct case_table tables[CASE_MAX_TABLES]; /* terminated by n_rows 0 */
};

static const struct lookup_case CASES[] = {
    {"one narrow table", 100, {{1000, 4, 5, PRECISION_FP32, 0}}},
    {"all widths of a line",
     70,
     {{500, 8, 3, PRECISION_FP32, 0},
      {500, 12, 3, PRECISION_FP32, 0},
      {500, 16, 3, PRECISION_FP32, 0},
      {500, 20, 3, PRECISION_FP32, 0},
      {500, 28, 3, PRECISION_FP32, 0},
      {500, 36, 3, PRECISION_FP32, 0},
      {500, 60, 3, PRECISION_FP32, 0}}},
    {"wide tables",
     40,
     {{300, 64, 9, PRECISION_FP32, 0},
      {300, 128, 9, PRECISION_FP32, 0},
      {300, 256, 9, PRECISION_FP32, 0},
      {300, 260, 9, PRECISION_FP32, 0},
      {300, 508, 9, PRECISION_FP32, 0},
      {300, 512, 9, PRECISION_FP32, 0},
      {300, 1024, 2, PRECISION_FP32, 0}}},
    {"fp16",
     50,
     {{400, 4, 4, PRECISION_FP16, 0},
      {400, 12, 4, PRECISION_FP16, 0},
      {400, 36, 4, PRECISION_FP16, 0},
      {400, 128, 4, PRECISION_FP16, 0},
      {400, 132, 4, PRECISION_FP32, 0},
      {400, 520, 4, PRECISION_FP16, 0}}},
    {"pooling 0 beside one row",
     64,
     {{10, 16, 0, PRECISION_FP32, 0},
      {1, 16, 3, PRECISION_FP32, 0},
      {1, 32, 0, PRECISION_FP16, 0},
      {2, 4, 0.3, PRECISION_FP32, 0}}},
    {"runs of thousands",
     1500,
     {{70000, 16, 6, PRECISION_FP32, 5},
      {3, 20, 4, PRECISION_FP32, 0},
      {5000, 48, 2, PRECISION_FP16, 40}}},
    {"many rows",
     3000,
     {{2100000, 4, 20, PRECISION_FP32, 0}, {70000, 8, 3, PRECISION_FP32, 0}}},
    {"one sample", 1, {{50, 24, 40, PRECISION_FP32, 0}}},
};
#define N_CASES (sizeof CASES / sizeof CASES[0])

struct case_data {
    struct lookup_table tables[CASE_MAX_TABLES];
    uint32_t n_tables, batch, out_dim;
    struct lookup_batch lookups;
    struct lookup_spec spec; /* describes the tables above */
    uint32_t *indices;
    uint64_t *wide_indices;
    uint64_t *offsets;
    float *grad;         /* [batch][out_dim]; in mode fp16, rounded to fp16 */
    uint16_t *half_grad; /* grad in fp16 */
};

/* Returns the number of rows that have memory. */
static uint64_t case_rows(const struct lookup_table *table)
{
    return table->n_rows < CASE_MAX_ROWS ? table->n_rows : 1000;
}

__attribute__((unused)) static const void *
case_grad(const struct case_data *data)
{
    if (data->spec.output == PRECISION_FP16)
        return data->half_grad;
    return data->grad;
}

__attribute__((unused)) static size_t
case_out_bytes(const struct case_data *data)
{
    return (size_t)data->batch * data->out_dim *
           precision_bytes(data->spec.output);
}

static float case_value(struct rng *rng)
{
    return (float)(rng_uniform(rng) - 0.5);
}

static size_t weight_bytes(const struct lookup_table *table)
{
    return case_rows(table) * table->dim * precision_bytes(table->precision);
}

static void case_weights(struct lookup_table *table, struct rng *rng)
{
    uint64_t n = case_rows(table) * table->dim;

    table->d_weight = mem_alloc(weight_bytes(table), 1);
    table->d_state = mem_alloc(case_rows(table), sizeof(float));
    for (uint64_t i = 0; i < n; i++) {
        float value = case_value(rng);

        if (table->precision == PRECISION_FP16)
            ((uint16_t *)table->d_weight)[i] = fp16_from_float(value);
        else
            ((float *)table->d_weight)[i] = value;
    }
    for (uint64_t i = 0; i < case_rows(table); i++)
        table->d_state[i] = (float)rng_uniform(rng);
}

__attribute__((unused)) static struct case_data
case_open(const struct lookup_case *lookup_case, const struct case_mode *mode,
          uint64_t seed)
{
    struct case_data data = {.batch = lookup_case->batch};
    uint64_t n = mode->n_before, n_bags = 0, max = n;
    size_t n_grads;
    struct rng rng;

    rng_init(&rng, seed, 0);
    while (data.n_tables < CASE_MAX_TABLES &&
           lookup_case->tables[data.n_tables].n_rows) {
        const struct case_table *in = &lookup_case->tables[data.n_tables];
        struct lookup_table *table = &data.tables[data.n_tables++];

        table->n_rows = in->n_rows;
        table->dim = in->dim;
        table->precision = in->precision;
        table->out_begin = data.out_dim;
        data.out_dim += in->dim;
        case_weights(table, &rng);
        max += (uint64_t)((2 * in->pooling + 1) * data.batch);
    }
    data.indices = mem_alloc(max, sizeof *data.indices);
    data.wide_indices = mem_alloc(max, sizeof *data.wide_indices);
    data.offsets =
        mem_alloc((size_t)data.n_tables * data.batch + 1, sizeof(uint64_t));
    memset(data.indices, 0xff, n * sizeof *data.indices);
    memset(data.wide_indices, 0xff, n * sizeof *data.wide_indices);
    data.offsets[0] = n;
    for (uint32_t t = 0; t < data.n_tables; t++)
        for (uint32_t b = 0; b < data.batch; b++) {
            const struct case_table *in = &lookup_case->tables[t];
            uint64_t size =
                (uint64_t)(2 * in->pooling * rng_uniform(&rng) + 0.5);

            for (uint64_t i = 0; i < size; i++, n++) {
                data.wide_indices[n] =
                    rng_below(&rng, in->n_hot ? in->n_hot : in->n_rows);
                data.indices[n] = (uint32_t)data.wide_indices[n];
            }
            data.offsets[++n_bags] = n;
        }
    n_grads = (size_t)data.batch * data.out_dim;
    data.grad = mem_alloc(n_grads, sizeof *data.grad);
    data.half_grad = mem_alloc(n_grads, sizeof *data.half_grad);
    for (size_t i = 0; i < n_grads; i++) {
        data.grad[i] = case_value(&rng);
        data.half_grad[i] = fp16_from_float(data.grad[i]);
        if (mode->output == PRECISION_FP16)
            data.grad[i] = fp16_to_float(data.half_grad[i]);
    }
    data.lookups = (struct lookup_batch){
        .d_indices = mode->wide ? (void *)data.wide_indices : data.indices,
        .d_offsets = data.offsets,
        .n_lookups = n - mode->n_before,
        .wide = mode->wide,
    };
    data.spec = (struct lookup_spec){
        .n_tables = data.n_tables,
        .batch = data.batch,
        .max_lookups = n - mode->n_before,
        .optimizer = mode->optimizer,
        .output = mode->output,
    };
    return data;
}

/* Number of lookups of each row of a table. The numbers lie around the sizes of
 * pieces and parts of runs; some are larger than in any real batch. */
static const uint32_t RUNS[] = {
    1,    2,    31,   32,   33,    63,    64,    65,     1023,   1024,
    1025, 2047, 2048, 2049, 2080,  2081,  4095,  4096,   4097,   4128,
    0,    6143, 6144, 6145, 30000, 65535, 65536, 65537,  437000, 1000000,
    1,    32,   1,    2049, 31,    7,     0,     131072, 131073, 3,
};
#define N_RUNS (sizeof RUNS / sizeof RUNS[0])
#define RUNS_BATCH 4096

/*
 * Returns one table whose row r is looked up min(RUNS[r], longest) times, in
 * random order. Its weights and states are zero, so that one SGD step at rate 1
 * leaves the negative sums of the rows' gradients.
 */
__attribute__((unused)) static struct case_data
case_open_runs(uint32_t dim, uint32_t longest, const struct case_mode *mode,
               uint64_t seed)
{
    struct lookup_case empty = {
        "runs", RUNS_BATCH, {{N_RUNS, dim, 0, PRECISION_FP32, 0}}};
    struct case_data data = case_open(&empty, mode, seed);
    uint64_t n = 0, end = data.offsets[0];
    struct rng rng;

    rng_init(&rng, seed, 7);
    for (size_t r = 0; r < N_RUNS; r++)
        n += RUNS[r] < longest ? RUNS[r] : longest;
    mem_free(data.indices);
    mem_free(data.wide_indices);
    data.indices = mem_alloc(end + n, sizeof *data.indices);
    data.wide_indices = mem_alloc(end + n, sizeof *data.wide_indices);
    for (size_t r = 0; r < N_RUNS; r++)
        for (uint32_t k = 0; k < RUNS[r] && k < longest; k++)
            data.indices[end++] = (uint32_t)r;
    for (uint64_t i = n; i > 1; i--) {
        uint32_t *at = data.indices + data.offsets[0], last = at[i - 1];
        uint64_t other = rng_below(&rng, i);

        at[i - 1] = at[other];
        at[other] = last;
    }
    for (uint64_t i = 0; i < end; i++)
        data.wide_indices[i] = data.indices[i];
    for (uint32_t b = 1; b <= RUNS_BATCH; b++)
        data.offsets[b] = data.offsets[0] + n * b / RUNS_BATCH;
    data.lookups.d_indices =
        mode->wide ? (void *)data.wide_indices : data.indices;
    data.lookups.n_lookups = data.spec.max_lookups = n;
    memset(data.tables[0].d_weight, 0, weight_bytes(&data.tables[0]));
    memset(data.tables[0].d_state, 0, N_RUNS * sizeof(float));
    return data;
}

__attribute__((unused)) static void case_close(struct case_data *data)
{
    for (uint32_t t = 0; t < data->n_tables; t++) {
        mem_free(data->tables[t].d_weight);
        mem_free(data->tables[t].d_state);
    }
    mem_free(data->indices);
    mem_free(data->wide_indices);
    mem_free(data->half_grad);
    mem_free(data->offsets);
    mem_free(data->grad);
}

/* Implementations to test: values of NEUROSHARD_ISA. */
static const char *const ISAS[] = {"avx512", "avx2", "portable"};
static const unsigned THREADS[] = {1, 2, 5};

__attribute__((unused)) static struct device *open_isa(const char *isa,
                                                       unsigned n_threads)
{
    struct device *device;
    struct err err = {0};

    setenv("NEUROSHARD_ISA", isa, 1);
    if (device_open(&device, DEVICE_CPU, 0, n_threads, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    return device;
}

#endif
