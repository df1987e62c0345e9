/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_CPU_KERNELS_H
#define NEUROSHARD_DEVICE_CPU_KERNELS_H

#include "device/lookup.h"
#include "device/stream_math.h"

/*
 * Inner loops of the CPU body, compiled once for each instruction set. All of
 * them give the same bits: SIMD lanes are columns, rows are added in order, and
 * products are rounded before they are added.
 */

/* Row of pair i. `pairs` holds lookups sorted by row, as words row, bag, row,
 * bag and so on. */
#define PAIR_ROW(pairs, i) ((pairs)[2 * (i)])

/* Consecutive bags whose rows are to be summed. Bag b has the rows ends[b] ..
 * ends[b + 1]. Its sum goes to out + b * out_stride, as fp16 if out_half. If
 * is_added, it is added to the floats that are already there. */
struct cpu_bags {
    const uint64_t *ends;
    uint32_t n_bags;
    int out_half, is_added;
    char *out;         /* first bag's first column */
    size_t out_stride; /* bytes from one bag to the next */
};

/* Optimizer step for rows of one table. */
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

/* Arguments of lookup_apply_dense. */
struct dense_job {
    struct row_step step;
    float *dense;
};

struct cpu_kernels {
    /* Forward of some bags of one table. index_step is the number of 32-bit
     * words from one index to the next: 1, or 2 for 64-bit indices, of which
     * only the low words are read. */
    void (*pool)(const struct lookup_table *table, const uint32_t *indices,
                 size_t index_step, struct cpu_bags bags);
    /*
     * Sums those later parts of long runs (see LOOKUP_RUN_PART) that start in
     * [begin, end), where begin is a multiple of LOOKUP_RUN_PART. Parts of one
     * table start at least LOOKUP_RUN_PART pairs apart, so the sum of the part
     * that starts at pair i is stored in partials[i / LOOKUP_RUN_PART].
     */
    void (*sum_parts)(const struct update_job *job, size_t begin, size_t end);
    /* Updates the rows of all runs that start in [begin, end). sum_parts must
     * have summed the parts before. `sum`: scratch of dim floats. */
    void (*update)(const struct update_job *job, size_t begin, size_t end,
                   float *sum);
    /* Applies a struct dense_job to the rows [begin, end). Its type is that of
     * a callback of pool_run_range. */
    void (*apply)(void *job, uint64_t begin, uint64_t end, unsigned thread);
    /* Stores rows[k] = stream_row(batch, begin + k) for k < n, computing many
     * rows at a time. */
    void (*stream_rows)(const struct stream_batch *batch, uint32_t begin,
                        uint32_t n, uint32_t *rows);
};

extern const struct cpu_kernels CPU_KERNELS_PORTABLE, CPU_KERNELS_AVX2,
    CPU_KERNELS_AVX512;
/* Returns the kernels for the instruction set cpu_isa_best(). */
const struct cpu_kernels *cpu_kernels_best(void);

#endif
