/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_PLACEMENT_H
#define NEUROSHARD_EXEC_PLACEMENT_H

#include "base/mem.h"
#include "base/parallel.h"
#include "core/plan.h"
#include "device/device.h"

/*
 * A plan laid out on the ranks of this process: which piece of which table
 * each rank holds, with its weights, and which pieces are looked up by one
 * fused call. A call has one batch, so a rank has one group of pieces for each
 * number of bags that a table has in a step: num_outputs bags a sample, over
 * all samples, or over the rank's own samples where the table is replicated.
 */

struct piece {
    const struct table *table;
    uint32_t table_idx;
    uint64_t table_seed; /* see values.h */
    bool replica;
    uint32_t rank;
    uint64_t row_begin, row_end; /* of the scaled rows; may be empty */
    uint64_t n_rows; /* held; 1 where the range is empty, never looked up */
    uint32_t col_begin, width;
    uint32_t group;     /* index into groups; NO_GROUP without outputs */
    uint32_t out_begin; /* first column in the group's output */
    void *d_weight;     /* [n_rows][width]; view into the rank's block */
    float *d_state;     /* [n_rows], row-wise Adagrad; else NULL */
    float *d_dense;     /* [n_rows][width] gradient, replicas; else NULL */
};
#define NO_GROUP UINT32_MAX

struct group {
    uint32_t rank;
    uint32_t n_outputs; /* bags a sample */
    bool replica;
    uint32_t sample_begin, n_samples; /* all, or a replica's own */
    uint32_t n_bags;                  /* n_samples * n_outputs */
    uint32_t *pieces;                 /* [n_pieces], indices, by table */
    uint32_t n_pieces;
    uint32_t out_dim; /* floats a bag */
    float *d_out;     /* [n_bags][out_dim]: outputs, then their gradients */
};

struct placement {
    const struct plan *plan;
    struct device *device; /* not owned, as the pool */
    struct pool *pool;
    uint64_t seed;
    double scale_rows;
    uint32_t n_ranks, batch;
    uint64_t *table_rows; /* [n_tables], scaled */
    struct piece *pieces; /* [n_pieces], by table */
    size_t n_pieces;
    size_t *table_pieces; /* [n_tables + 1]: first piece of a table */
    struct group *groups; /* [n_groups], by rank; replicas last */
    size_t n_groups;
    size_t *rank_groups;        /* [n_ranks + 1]: first group of a rank */
    enum optimizer *optimizers; /* [n_ranks] */
    void **d_blocks;            /* [n_ranks], owned: all pieces of a rank */
};

/* First sample of a rank: floor(rank * batch / R), rank <= R. */
uint32_t placement_sample(const struct placement *placement, uint32_t rank);

/* A row of the unscaled table -> of the scaled one; monotone, so that scaled
 * ranges tile as the plan's do. */
uint64_t placement_scale_row(const struct table *table, uint64_t row,
                             double scale_rows);

/* Look-ups of a batch that a piece with a group serves, if rows are used
 * evenly. */
double placement_lookups(const struct placement *placement,
                         const struct piece *piece);

/* Lays the plan out in the arena, without memory for weights. The plan must
 * have passed plan_check. ERR_INPUT names the table that cannot be executed. */
int placement_init(struct placement *placement, const struct plan *plan,
                   double scale_rows, uint64_t seed, struct arena *arena,
                   struct err *err) MUST_CHECK;

/* Bytes that an execution takes at its peak: `rows_bytes` of it shrink with
 * scale_rows, the rest does not. */
struct placement_need {
    double rows_bytes, batch_bytes;
};
void placement_need(struct placement_need *need,
                    const struct placement *placement);
/* ERR_DEVICE where it exceeds free_bytes; says what --scale-rows fits. */
int placement_check_memory(const struct placement *placement,
                           uint64_t free_bytes, struct err *err) MUST_CHECK;

/* Allocates weights, states, dense gradients (zero) and outputs on the device
 * and fills weights and states. */
int placement_load(struct placement *placement, struct device *device,
                   struct pool *pool, struct err *err) MUST_CHECK;
/* Frees what placement_load allocated; a zeroed placement is fine. */
void placement_release(struct placement *placement);

#endif
