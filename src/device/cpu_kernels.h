/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_CPU_KERNELS_H
#define NEUROSHARD_DEVICE_CPU_KERNELS_H

#include "device/lookup.h"
#include "device/stream_math.h"

/*
 * Inner loops of the CPU body. They are compiled once for each instruction set.
 * Every version gives the same bits: SIMD lanes are columns, rows are added in
 * order, and products are rounded before they are added.
 */

/* Row of pair i in `pairs`, a list of lookups sorted by row. Each lookup is a
 * pair of two words: its row, then its bag. */
#define PAIR_ROW(pairs, i) ((pairs)[2 * (i)])

/* Consecutive bags whose rows are to be summed. The ids of bag b are those from
 * number ends[b] up to, but without, number ends[b + 1]. The sum of bag b is
 * stored at out + b * out_stride, as fp16 if out_half. If is_added, the sum is
 * added to the floats that are already there. */
struct cpu_bags {
    const uint64_t *ends;
    uint32_t n_bags;
    int out_half, is_added;
    char *out;         /* address of the first bag's sum */
    size_t out_stride; /* bytes from one bag to the next */
};

/* Arguments of the optimizer step for rows of one table. */
struct row_step {
    const struct lookup_table *table;
    enum optimizer optimizer;
    float learning_rate;
};

/* Arguments of the backward of one table. */
struct update_job {
    struct row_step step;
    const uint32_t *pairs; /* [n_pairs] lookups, sorted by row, then by bag */
    size_t n_pairs;
    const char *grad;   /* address of the first bag's gradient */
    size_t grad_stride; /* bytes from one bag to the next */
    int is_half_grad;   /* true: `grad` is fp16; false: fp32 */
    /* sums of later parts of runs, [n_pairs / LOOKUP_RUN_PART + 1][dim] */
    float *partials;
};

/* Arguments of lookup_apply_dense. */
struct dense_job {
    struct row_step step;
    float *dense;
};

struct cpu_kernels {
    /* Looks up and sums some bags of one table. index_step is the number of
     * 32-bit words from one index to the next: 1 for 32-bit indices, 2 for
     * 64-bit indices. Only the low words of 64-bit indices are read. */
    void (*pool)(const struct lookup_table *table, const uint32_t *indices,
                 size_t index_step, struct cpu_bags bags);
    /*
     * Sums the second and later parts of long runs (see LOOKUP_RUN_PART). The
     * call sums the parts that start in [begin, end), where begin is a multiple
     * of LOOKUP_RUN_PART. The sum of the part that starts at pair i is stored
     * in partials[i / LOOKUP_RUN_PART]. Two sums never share a place, because
     * the later parts of one table start at least LOOKUP_RUN_PART pairs apart.
     */
    void (*sum_parts)(const struct update_job *job, size_t begin, size_t end);
    /* Updates the rows of all runs that start in [begin, end). Before,
     * `sum_parts` must have summed the later parts of all runs. `sum`: scratch
     * memory of dim floats. */
    void (*update)(const struct update_job *job, size_t begin, size_t end,
                   float *sum);
    /* Applies the struct dense_job `job` to the rows [begin, end). The function
     * has the type of a callback of pool_run_range. */
    void (*apply)(void *job, uint64_t begin, uint64_t end, unsigned thread);
    /* Stores rows[k] = stream_row(batch, begin + k) for all k < n. It computes
     * many rows at the same time. */
    void (*stream_rows)(const struct stream_batch *batch, uint32_t begin,
                        uint32_t n, uint32_t *rows);
};

extern const struct cpu_kernels CPU_KERNELS_PORTABLE, CPU_KERNELS_AVX2,
    CPU_KERNELS_AVX512;
/* Returns the kernels for the best instruction set of this CPU, which is
 * cpu_isa_best(). */
const struct cpu_kernels *cpu_kernels_best(void);

#endif
