/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_LOOKUP_CUDA_CUH
#define NEUROSHARD_DEVICE_LOOKUP_CUDA_CUH

#include "device/cuda_private.cuh"
#include "device/lookup_classes.h"

/*
 * Code shared by the lookups on a GPU. Steps of a backward:
 *
 *   1. Every lookup becomes a pair: a key, which is its row counted over all
 *      tables, and its bag counted over all tables.
 *   2. The pairs are sorted by key. The sort is stable, so the lookups of a row
 *      stay in bag order.
 *   3. The later pieces of long runs are summed.
 *   4. Each run is summed and its row updated.
 *
 * Keys have 32 bits if all tables together have fewer than 2^32 rows, else 64.
 * Within a table the low 32 bits distinguish the rows, so kernels that read
 * keys read only those bits.
 */

/* A table as kernels see it. */
struct cuda_table {
    char *d_weight;
    float *d_state;
    uint64_t first_row; /* rows of all tables before it */
    uint32_t dim, out_begin;
    uint32_t group_lanes; /* lanes that update a row, a quad of columns each */
    uint32_t is_half;     /* fp16 weights, else fp32 */
};

struct lookup_cuda {
    struct lookup base;
    struct device_cuda *cuda;      /* not owned */
    struct lookup_classes classes; /* classes of the forward */
    void *d_block;                 /* owned; holds all arrays below */
    struct lookup_slice *d_slices;
    struct cuda_table *d_tables; /* [n_tables] */
    unsigned key_bits;           /* key bits that differ */
    uint32_t max_group_lanes;
    struct device_pairs pairs; /* for max_lookups lookups */
    /* Places for partial sums, [max_lookups / LOOKUP_RUN_PIECE +
     * n_tables][max_dim]; see partial_of. */
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

/* Returns the shared memory in bytes that holds the sums of rows wider than
 * their groups, for a block of n_threads: one quad per thread and slice of 128
 * columns. */
static inline size_t lookup_room_bytes(uint32_t max_dim, unsigned n_threads)
{
    return ((size_t)max_dim + 127) / 128 * n_threads * sizeof(float4);
}
/* Threads of a block, and the widest dim whose sums fit the shared memory of
 * every GPU. */
#define LOOKUP_UPDATE_THREADS 128
#define LOOKUP_CUDA_MAX_DIM 3072

#endif
