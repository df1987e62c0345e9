/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_LOOKUP_CUDA_CUH
#define NEUROSHARD_DEVICE_LOOKUP_CUDA_CUH

#include "device/cuda_private.cuh"
#include "device/lookup_classes.h"

/*
 * Code shared by the forward and backward of lookups on a GPU. A backward has
 * these steps:
 *
 *   1. Every lookup becomes a pair: a key, which is its row counted over all
 *      tables, and its bag counted over all tables.
 *   2. The pairs are sorted by key. The sort is stable, so the lookups of a row
 *      stay in bag order.
 *   3. The second and later pieces of long runs are summed (LOOKUP_RUN_PIECE).
 *   4. Each run is summed and its row updated.
 *
 * Keys have 32 bits if all tables together have fewer than 2^32 rows, else 64.
 * The low 32 bits of a key are enough to distinguish the rows of one table, so
 * kernels that read keys read only the low 32 bits.
 */

/* Description of a table for kernels. */
struct cuda_table {
    char *d_weight;
    float *d_state;
    uint64_t first_row; /* number of rows of all earlier tables */
    uint32_t dim, out_begin;
    /* number of lanes that update a row; each lane has one quad of columns */
    uint32_t group_lanes;
    uint32_t is_half; /* weights are fp16, else fp32 */
};

struct lookup_cuda {
    struct lookup base;
    struct device_cuda *cuda;      /* not owned */
    struct lookup_classes classes; /* how a forward launch is divided */
    void *d_block; /* owned; device memory that holds all arrays below */
    struct lookup_slice *d_slices;
    struct cuda_table *d_tables; /* [n_tables] */
    unsigned key_bits;           /* number of low bits in which keys differ */
    uint32_t max_group_lanes;
    struct device_pairs pairs; /* sorted lookups, room for max_lookups */
    /* Partial sums of runs, [max_lookups / LOOKUP_RUN_PIECE +
     * n_tables][max_dim]; the function partial_of gives the place of each
     * sum. */
    float *d_partials;
};

static inline struct lookup_cuda *lookup_cuda_of(struct lookup *lookup)
{
    return (struct lookup_cuda *)lookup;
}

static inline struct cuda_table cuda_table_of(const struct lookup_table *table,
                                              uint64_t first_row)
{
    struct cuda_table out = {};

    out.d_weight = (char *)table->d_weight;
    out.d_state = table->d_state;
    out.first_row = first_row;
    out.dim = table->dim;
    out.out_begin = table->out_begin;
    out.group_lanes = 1;
    while (out.group_lanes < 32 && out.group_lanes * 4 < table->dim)
        out.group_lanes *= 2;
    out.is_half = table->precision == PRECISION_FP16;
    return out;
}

/* Returns the bytes of shared memory that a block of n_threads threads needs
 * for the sums of rows that have more columns than 4 per lane of their group:
 * one quad per thread and slice of 128 columns. */
static inline size_t lookup_room_bytes(uint32_t max_dim, unsigned n_threads)
{
    return ((size_t)max_dim + 127) / 128 * n_threads * sizeof(float4);
}
/* LOOKUP_UPDATE_THREADS: threads of a block. LOOKUP_CUDA_MAX_DIM: the largest
 * dim for which the sums of a row fit the shared memory of every GPU. */
#define LOOKUP_UPDATE_THREADS 128
#define LOOKUP_CUDA_MAX_DIM 3072

#endif
