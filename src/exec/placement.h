/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_PLACEMENT_H
#define NEUROSHARD_EXEC_PLACEMENT_H

#include "base/parallel.h"
#include "core/plan.h"
#include "device/comm.h"

/*
 * A plan laid out on its ranks: which piece of which table each of them holds,
 * and which pieces are looked up by one fused call. A call has one batch and
 * one precision of outputs, so a rank has one group of pieces for each number
 * of bags that a table has in a step (num_outputs bags a sample, over all
 * samples, or over the rank's own samples where the table is replicated) and
 * each precision that the exchange carries.
 *
 * The layout is of all ranks; memory is only of those that are here: one rank
 * where each rank is a process, else all. Of these, weights and states need
 * not fit the device together: they come in turns, a turn being as many ranks
 * as do fit. Outputs and dense gradients stay.
 */

struct piece {
    const struct table *table;
    uint32_t table_idx;
    uint64_t table_seed; /* of the table's weights, states and gradients */
    bool replica;
    uint32_t rank;
    uint64_t row_begin, row_end; /* of the scaled rows; may be empty */
    uint64_t n_rows; /* held; 1 where the range is empty, never looked up */
    uint32_t col_begin, width;
    struct group *group; /* NULL without outputs */
    uint32_t out_begin;  /* first column in the group's output */
    void *d_weight;      /* [n_rows][width]; NULL while it is not its turn */
    float *d_state;      /* [n_rows], row-wise Adagrad; else NULL */
    float *d_dense;      /* [n_rows][width] gradient, replicas; else NULL */
};

/* Ranks begin .. end - 1. */
struct rank_range {
    uint32_t begin, end;
};

struct group {
    uint32_t rank;
    uint32_t n_outputs; /* bags a sample */
    bool replica;
    enum precision precision; /* of outputs and their gradients: what the
                                 exchange carries; fp32 for replicas */
    struct rank_range owners; /* of the samples: all ranks, or a replica's own;
                                 of what each has */
    uint32_t part, n_parts;   /* this one of so many parts (placement_part) */
    uint32_t n_samples;
    uint32_t n_bags;       /* n_samples * n_outputs; or 1, all of them */
    struct piece **pieces; /* [n_pieces], by table */
    uint32_t n_pieces;
    uint32_t out_dim; /* elements a bag */
    void *d_out;      /* [n_bags][out_dim]: outputs, then their gradients; NULL
                         where the rank is elsewhere */
};

static inline size_t group_bag_bytes(const struct group *group)
{
    return (size_t)group->out_dim * precision_bytes(group->precision);
}

struct placement {
    const struct plan *plan;
    struct comm *comm;     /* not owned */
    struct device *device; /* the comm's */
    struct pool *pool;     /* owned; for work of the host */
    uint64_t seed;
    double scale_rows;
    uint32_t n_ranks;
    uint32_t batch; /* samples, or where the job de-duplicates them sessions */
    uint32_t n_chunks; /* of a forward, >= 1; 1 unless set */
    struct rank_range here;
    uint64_t *table_rows; /* [n_tables], scaled */
    struct piece *pieces; /* [n_pieces], by table */
    size_t n_pieces;
    struct piece **table_pieces; /* [n_tables + 1]: first piece of a table */
    struct group *groups;        /* [n_groups], by rank; replicas last */
    size_t n_groups;
    struct group **rank_groups; /* [n_ranks + 1]: first group of a rank */
    struct rank_range *turns;   /* [n_turns], over `here` */
    uint32_t n_turns;
    uint32_t loaded;  /* turn whose weights are there; NO_TURN */
    void **d_buffers; /* [n_ranks], owned: outputs and dense gradients */
    void **d_weights; /* [n_ranks], owned: weights and states */
};
#define NO_TURN UINT32_MAX

/* First sample of a rank: floor(rank * batch / R), rank <= R. */
uint32_t placement_sample(const struct placement *placement, uint32_t rank);

/* The first of part `part` of n_parts of its samples. */
uint32_t placement_part_sample(const struct placement *placement, uint32_t rank,
                               uint32_t part, uint32_t n_parts);
/* Of the samples of a group one of n_parts parts, with its outputs where the
 * all-to-all of a part expects them. */
struct group placement_part(const struct placement *placement,
                            const struct group *group, uint32_t part,
                            uint32_t n_parts);

/* A row of the unscaled table -> of the scaled one; monotone, so that scaled
 * ranges tile as the plan's do. */
uint64_t placement_scale_row(const struct table *table, uint64_t row,
                             double scale_rows);

/* Look-ups of a batch that a piece with a group serves, as its plan's problem
 * has it; of scaled rows as if all were used evenly. */
double placement_lookups(const struct placement *placement,
                         const struct piece *piece);

/* Lays the plan out in the arena, without device memory. The plan must have
 * passed plan_check; comm is of as many ranks as it has. ERR_INPUT names the
 * table that cannot be executed. */
int placement_init(struct placement *placement, const struct plan *plan,
                   struct comm *comm, double scale_rows, uint64_t seed,
                   struct arena *arena, struct err *err) MUST_CHECK;
/* Frees all that is not in the arena; a zeroed placement is fine. */
void placement_release(struct placement *placement);

/* Bytes that an execution takes here at its peak, when each rank has a turn
 * of its own: `rows_bytes` of it shrink with scale_rows, the rest does not. */
struct placement_need {
    double rows_bytes, batch_bytes;
    double weight_bytes; /* of rows_bytes: the largest rank's weights */
};
void placement_need(struct placement_need *need,
                    const struct placement *placement);
/* Cuts the ranks that are here into turns that fit free_bytes; one is enough
 * where all fit together. ERR_DEVICE where one rank does not fit; says what
 * --scale-rows does. */
int placement_cut_turns(struct placement *placement, uint64_t free_bytes,
                        struct err *err) MUST_CHECK;

/* Bytes of the weights and states of a rank; before any are loaded. */
size_t placement_weight_bytes(const struct placement *placement, uint32_t rank);
/* Allocates outputs and dense gradients (zero) of the ranks that are here. */
int placement_open(struct placement *placement, struct err *err) MUST_CHECK;
/* Has the weights and states of a turn in memory: with their initial values,
 * unless they are of the turn that is there already, which stay as they are.
 */
int placement_load(struct placement *placement, uint32_t turn,
                   struct err *err) MUST_CHECK;

/* Numbers that the host makes, chunk by chunk. */
struct made {
    /* Items [begin, end) of the chunk to out, by several threads. */
    void (*make)(void *made, uint64_t begin, uint64_t end, unsigned thread);
    const void *ctx;
    size_t item_bytes;
    uint64_t first; /* out: item with which the chunk begins */
    char *out;      /* [of the chunk][item_bytes]; placement_upload's */
};
/* Makes n items and uploads them. */
int placement_upload(const struct placement *placement, void *d_at, uint64_t n,
                     struct made *made, struct err *err) MUST_CHECK;

#endif
