/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_LOOKUP_CUDA_CUH
#define NEUROSHARD_DEVICE_LOOKUP_CUDA_CUH

#include "device/cuda_private.cuh"
#include "device/lookup_classes.h"

/*
 * What the parts of look-ups on a GPU share.
 *
 * Backward: every look-up becomes a pair of a key, its row counted over all
 * tables, and its bag, counted over all tables; the pairs are sorted by key,
 * which is stable, so that a row's look-ups stay in bag order; pieces of long
 * runs are summed, then each run is added up and its row updated. Keys have
 * 32 bits where all rows of all tables are fewer than 2^32, else 64. Within a
 * table the low 32 bits tell rows apart, so the kernels that read keys look at
 * those only.
 */

/* A table as kernels see it. */
struct cuda_table {
    char *d_weight;
    float *d_state;
    uint64_t first_row; /* rows of all tables before */
    uint32_t dim, out_begin;
    uint32_t group_lanes; /* that update a row: a quad of columns each */
    uint32_t is_half;     /* fp16 weights, else fp32 */
};

struct lookup_cuda {
    struct lookup base;
    struct device_cuda *cuda;      /* not owned */
    struct lookup_classes classes; /* of the forward */
    void *d_block;                 /* owned; all that follows lies there */
    struct lookup_slice *d_slices;
    struct cuda_table *d_tables; /* [n_tables] */
    unsigned key_bits;           /* that differ */
    uint32_t max_group_lanes;
    struct device_pairs pairs; /* of max_lookups look-ups, as are: */
    float *d_partials; /* [n_lookups / LOOKUP_RUN_PIECE + n_tables][max_dim] */
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

/* Room for the sums of a row that is wider than its group; of a block of
 * n_threads, a quad for each slice of 128 columns and thread. */
static inline size_t lookup_room_bytes(uint32_t max_dim, unsigned n_threads)
{
    return ((size_t)max_dim + 127) / 128 * n_threads * sizeof(float4);
}
/* The widest rows, so that this room is there on every GPU. */
#define LOOKUP_UPDATE_THREADS 128
#define LOOKUP_CUDA_MAX_DIM 3072

#endif
