/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_PLACEMENT_H
#define NEUROSHARD_EXEC_PLACEMENT_H

#include "base/parallel.h"
#include "core/plan.h"
#include "device/comm.h"

/*
 * Placement: a plan laid out on its ranks. It lists the pieces of tables that
 * each rank holds, and the groups of pieces that one fused call looks up.
 *
 * All pieces of a fused call have the same number of bags and the same output
 * precision. So a rank has one group for each combination of
 *
 *   - bags of a table in a step: num_outputs per sample, over all samples, or
 *     over the rank's own samples if the table is replicated
 *   - precision in which the exchange carries the table's outputs
 *
 * The layout covers all ranks. Device memory is allocated only for the ranks of
 * this process (`here`): one rank if each rank is a process, else all ranks.
 * Their outputs and dense gradients stay in memory. Their weights and optimizer
 * states need not fit together. They are loaded in turns; a turn is as many
 * ranks as fit.
 */

struct piece {
    const struct table *table;
    uint32_t table_idx;
    uint64_t table_seed; /* seed of its weights, states and gradients */
    bool replica;
    uint32_t rank;
    uint64_t row_begin, row_end; /* range of scaled rows; may be empty */
    /* Number of rows held. 1 if the range is empty; that row is never looked
     * up. */
    uint64_t n_rows;
    uint32_t col_begin, width;
    struct group *group; /* NULL if the table has no outputs */
    uint32_t out_begin;  /* first of its columns in the group's output */
    void *d_weight;      /* [n_rows][width]; NULL if its turn is not loaded */
    float *d_state;      /* [n_rows] row-wise Adagrad state; else NULL */
    float *d_dense;      /* [n_rows][width] gradient of a replica; else NULL */
};

/* Ranks begin .. end - 1. */
struct rank_range {
    uint32_t begin, end;
};

struct group {
    uint32_t rank;
    uint32_t n_outputs; /* bags per sample */
    bool replica;
    /* Precision of outputs and their gradients, as the exchange carries them;
     * fp32 for replicas. */
    enum precision precision;
    /* Ranks that own the samples: all ranks, or for a replica its own rank. */
    struct rank_range owners;
    /* The group covers part `part` of n_parts of each owner's samples
     * (placement_part). */
    uint32_t part, n_parts;
    uint32_t n_samples;
    /* n_samples * n_outputs, or 1 if all samples are one bag */
    uint32_t n_bags;
    struct piece **pieces; /* [n_pieces], ordered by table */
    uint32_t n_pieces;
    uint32_t out_dim; /* elements per bag */
    /* [n_bags][out_dim]: outputs, later their gradients. NULL if the rank is in
     * another process. */
    void *d_out;
};

static inline size_t group_bag_bytes(const struct group *group)
{
    return (size_t)group->out_dim * precision_bytes(group->precision);
}

struct placement {
    const struct plan *plan;
    struct comm *comm;     /* not owned */
    struct device *device; /* device of `comm` */
    struct pool *pool;     /* owned; threads for work on the host */
    uint64_t seed;
    double scale_rows;
    uint32_t n_ranks;
    /* Samples per step; sessions instead if the job de-duplicates them. */
    uint32_t batch;
    /* Chunks of a forward, >= 1; 1 unless the caller sets it. */
    uint32_t n_chunks;
    struct rank_range here;
    uint64_t *table_rows; /* [n_tables]: scaled number of rows */
    struct piece *pieces; /* [n_pieces], ordered by table */
    size_t n_pieces;
    struct piece **table_pieces; /* [n_tables + 1]: first piece of each table */
    /* [n_groups], by rank; a rank's replicas last */
    struct group *groups;
    size_t n_groups;
    struct group **rank_groups; /* [n_ranks + 1]: first group of each rank */
    struct rank_range *turns;   /* [n_turns]: ranges that divide `here` */
    uint32_t n_turns;
    uint32_t loaded;  /* turn whose weights are in memory; or NO_TURN */
    void **d_buffers; /* [n_ranks], owned: outputs and dense gradients */
    void **d_weights; /* [n_ranks], owned: weights and states */
};
#define NO_TURN UINT32_MAX

/* Returns the first sample of a rank: floor(rank * batch / R), rank <= R. */
uint32_t placement_sample(const struct placement *placement, uint32_t rank);

/* Returns the first sample of part `part` of n_parts of a rank's samples. */
uint32_t placement_part_sample(const struct placement *placement, uint32_t rank,
                               uint32_t part, uint32_t n_parts);
/* Returns a copy of the group that covers only part `part` of n_parts of its
 * samples. Its d_out points to the outputs of this part, at the place where the
 * all-to-all of the part expects them. */
struct group placement_part(const struct placement *placement,
                            const struct group *group, uint32_t part,
                            uint32_t n_parts);

/* Maps a row of the unscaled table to a row of the scaled table. The map is
 * monotone, so the scaled row ranges tile the table as the plan's ranges do. */
uint64_t placement_scale_row(const struct table *table, uint64_t row,
                             double scale_rows);

/* Returns the expected number of lookups of a batch that a piece serves,
 * according to the plan's problem. The piece must have a group. For scaled
 * tables it assumes that all rows are used evenly. */
double placement_lookups(const struct placement *placement,
                         const struct piece *piece);

/* Lays the plan out in the arena; allocates no device memory. The plan must
 * have passed plan_check, and comm must have as many ranks as the plan.
 * ERR_INPUT names a table that cannot be executed. */
int placement_init(struct placement *placement, const struct plan *plan,
                   struct comm *comm, double scale_rows, uint64_t seed,
                   struct arena *arena, struct err *err) MUST_CHECK;
/* Frees all memory that is not in the arena; a zeroed placement is fine. */
void placement_release(struct placement *placement);

/* Peak memory in bytes that an execution takes in this process if each rank has
 * a turn of its own. rows_bytes shrinks with scale_rows; batch_bytes does not.
 */
struct placement_need {
    double rows_bytes, batch_bytes;
    /* Part of rows_bytes: weights and states of the largest rank. */
    double weight_bytes;
};
void placement_need(struct placement_need *need,
                    const struct placement *placement);
/* Divides the ranks of this process into turns that fit free_bytes; one turn if
 * all ranks fit together. ERR_DEVICE if one rank alone does not fit; the
 * message names a --scale-rows that fits. */
int placement_cut_turns(struct placement *placement, uint64_t free_bytes,
                        struct err *err) MUST_CHECK;

/* Returns the bytes of a rank's weights and states. No weights may be loaded
 * yet. */
size_t placement_weight_bytes(const struct placement *placement, uint32_t rank);
/* Allocates outputs and dense gradients of the ranks of this process, and
 * zeroes the gradients. */
int placement_open(struct placement *placement, struct err *err) MUST_CHECK;
/* Loads the weights and states of a turn, with their initial values. Does
 * nothing if the turn is loaded already, so updated values stay. */
int placement_load(struct placement *placement, uint32_t turn,
                   struct err *err) MUST_CHECK;

/* Numbers that the host computes chunk by chunk, to upload them. */
struct made {
    /* Writes items [begin, end) of the current chunk to `out`. Several threads
     * call it at once, on different items. */
    void (*make)(void *made, uint64_t begin, uint64_t end, unsigned thread);
    const void *ctx;
    size_t item_bytes;
    /* Index of the chunk's first item; set by placement_upload. */
    uint64_t first;
    /* [items of a chunk][item_bytes]; placement_upload allocates and frees it.
     */
    char *out;
};
/* Computes n items and uploads them to d_at. */
int placement_upload(const struct placement *placement, void *d_at, uint64_t n,
                     struct made *made, struct err *err) MUST_CHECK;

#endif
