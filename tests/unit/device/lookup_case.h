/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_LOOKUP_CASE_H
#define NEUROSHARD_TESTS_LOOKUP_CASE_H

/*
 * Cases for the lookup tests: a few tables, random weights and look-ups, all
 * in host memory, so that any body and the reference can run on copies of it.
 */

#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/rng.h"
#include "device/fp16.h"
#include "device/lookup.h"

#define CASE_MAX_TABLES 8

struct case_table {
    uint64_t n_rows;
    uint32_t dim;
    double pooling; /* mean; bags vary from 0 to twice that */
    enum precision precision;
    uint64_t n_hot; /* only these rows are looked up; 0: all */
};

struct lookup_case {
    const char *name;
    uint32_t batch;
    struct case_table tables[CASE_MAX_TABLES]; /* ends at n_rows 0 */
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
    uint32_t *indices;
    uint64_t *offsets;
    float *grad; /* [batch][out_dim] */
};

static float case_value(struct rng *rng)
{
    return (float)(rng_uniform(rng) - 0.5);
}

static size_t weight_bytes(const struct lookup_table *table)
{
    return table->n_rows * table->dim * precision_bytes(table->precision);
}

static void case_weights(struct lookup_table *table, struct rng *rng)
{
    uint64_t n = table->n_rows * table->dim;

    table->d_weight = mem_alloc(weight_bytes(table), 1);
    table->d_state = mem_alloc(table->n_rows, sizeof(float));
    for (uint64_t i = 0; i < n; i++) {
        float value = case_value(rng);

        if (table->precision == PRECISION_FP16)
            ((uint16_t *)table->d_weight)[i] = fp16_from_float(value);
        else
            ((float *)table->d_weight)[i] = value;
    }
    for (uint64_t i = 0; i < table->n_rows; i++)
        table->d_state[i] = (float)rng_uniform(rng);
}

__attribute__((unused)) static struct case_data
case_open(const struct lookup_case *lookup_case, uint64_t seed)
{
    struct case_data data = {.batch = lookup_case->batch};
    uint64_t n = 0, n_bags = 0, max = 0;
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
    data.offsets =
        mem_alloc((size_t)data.n_tables * data.batch + 1, sizeof(uint64_t));
    for (uint32_t t = 0; t < data.n_tables; t++)
        for (uint32_t b = 0; b < data.batch; b++) {
            const struct case_table *in = &lookup_case->tables[t];
            uint64_t size =
                (uint64_t)(2 * in->pooling * rng_uniform(&rng) + 0.5);

            for (uint64_t i = 0; i < size; i++)
                data.indices[n++] = (uint32_t)rng_below(
                    &rng, in->n_hot ? in->n_hot : in->n_rows);
            data.offsets[++n_bags] = n;
        }
    data.grad = mem_alloc((size_t)data.batch * data.out_dim, sizeof(float));
    for (size_t i = 0; i < (size_t)data.batch * data.out_dim; i++)
        data.grad[i] = case_value(&rng);
    data.lookups = (struct lookup_batch){data.indices, data.offsets, n};
    return data;
}

__attribute__((unused)) static void case_close(struct case_data *data)
{
    for (uint32_t t = 0; t < data->n_tables; t++) {
        mem_free(data->tables[t].d_weight);
        mem_free(data->tables[t].d_state);
    }
    mem_free(data->indices);
    mem_free(data->offsets);
    mem_free(data->grad);
}

/* The bodies to try: what NEUROSHARD_ISA may say. */
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
