/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_CPU_KERNELS_H
#define NEUROSHARD_DEVICE_CPU_KERNELS_H

#include "device/lookup.h"
#include "device/stream_math.h"

/*
 * The inner loops of the CPU body, once for each instruction set. All give
 * the same bits: SIMD lanes are columns, rows are added in order, and products
 * are rounded before they are added.
 */

/* Look-ups sorted by row: row and bag of one take turns. */
#define PAIR_ROW(pairs, i) ((pairs)[2 * (i)])

/* Consecutive bags of rows to be summed: bag b has the rows ends[b] ..
 * ends[b + 1] and its sum goes to out + b * out_stride, as fp16 where
 * out_half; where is_added, it is added to the floats there. */
struct bags {
    const uint64_t *ends;
    uint32_t n_bags;
    int out_half, is_added;
    char *out;         /* first bag's first column */
    size_t out_stride; /* bytes */
};

/* The optimizer's step on rows of one table. */
struct row_step {
    const struct lookup_table *table;
    enum optimizer optimizer;
    float learning_rate;
};

/* Backward of one table. */
struct update_job {
    struct row_step step;
    const uint32_t *pairs; /* [n_pairs], by row, then by bag */
    size_t n_pairs;
    const char *grad;   /* first bag's first column */
    size_t grad_stride; /* bytes from one bag to the next */
    int is_half_grad;   /* fp16, else fp32 */
    float *partials;    /* [n_pairs / LOOKUP_RUN_PART + 1][dim] */
};

/* As lookup_apply_dense. */
struct dense_job {
    struct row_step step;
    float *dense;
};

struct cpu_kernels {
    /* Forward of some bags of one table. Of wide indices the low words: from
     * one to the next are index_step words, 1 or 2. */
    void (*pool)(const struct lookup_table *table, const uint32_t *indices,
                 size_t index_step, struct bags bags);
    /*
     * Sums the later parts of long runs (see LOOKUP_RUN_PART) that start in
     * [begin, end), begin a multiple of LOOKUP_RUN_PART. Parts of one table
     * start at least that far apart, so that the one that starts at pair i may
     * be kept in partials[i / LOOKUP_RUN_PART].
     */
    void (*sum_parts)(const struct update_job *job, size_t begin, size_t end);
    /* Applies all runs that start in [begin, end), parts being summed; `sum`
     * is room for dim floats. */
    void (*update)(const struct update_job *job, size_t begin, size_t end,
                   float *sum);
    /* Applies a struct dense_job to the rows [begin, end): for
     * pool_run_range. */
    void (*apply)(void *job, uint64_t begin, uint64_t end, unsigned thread);
    /* rows[0 .. n) = stream_row(batch, begin ...), many at a time. */
    void (*stream_rows)(const struct stream_batch *batch, uint32_t begin,
                        uint32_t n, uint32_t *rows);
};

extern const struct cpu_kernels CPU_KERNELS_PORTABLE, CPU_KERNELS_AVX2,
    CPU_KERNELS_AVX512;
/* Those of cpu_isa_best. */
const struct cpu_kernels *cpu_kernels_best(void);

#endif
