/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_PLACEMENT_H
#define NEUROSHARD_EXEC_PLACEMENT_H

#include "base/parallel.h"
#include "core/plan.h"
#include "device/comm.h"
#include "exec/row_cache.h"

/*
 * Placement: a plan prepared for execution on the ranks of the job. It lists
 * the pieces of tables that each rank holds, and the groups of pieces that one
 * fused call looks up.
 *
 * All pieces of a fused call have the same number of bags and the same output
 * precision. So a rank has one group for each combination of
 *
 *   - number of bags of a table in a step: num_outputs per sample, over all
 *     samples, or over the rank's own samples if the table is replicated
 *   - precision in which the exchange carries the table's outputs
 *
 * Each piece of a table with sequence output is a group of its own, because its
 * number of vectors differs from that of other pieces (exec/sequences.h).
 *
 * If the job has several sharding groups (core/sharding_groups.h), each of them
 * holds a copy of all tables. Ranks are numbered group by group: GPU r of group
 * g has rank g x n + r, where n is the number of GPUs of a group. With the
 * strided layout this differs from the rank in the job. A group looks up the
 * samples of its own ranks only.
 *
 * The placement describes all ranks. Device memory is allocated only for the
 * ranks of this process (`here`): one rank if each rank is a process, otherwise
 * all ranks. Outputs and dense gradients of these ranks stay in memory. Weights
 * and optimizer states of these ranks need not fit into memory together. They
 * are loaded in turns; a turn consists of as many ranks as fit.
 */

struct piece {
    const struct table *table;
    uint32_t table_idx;
    uint64_t table_seed; /* seed of the table's weights, states and gradients */
    bool replica;
    uint32_t rank, copy; /* its rank, and the copy of the tables on that rank */
    /* range of rows of the scaled table; may be empty */
    uint64_t row_begin, row_end;
    /* Number of rows in memory. A piece with an empty range of rows has one row
     * in memory, which is never looked up. */
    uint64_t n_rows;
    uint32_t col_begin, width;
    /* group that looks the piece up; NULL if the table has no outputs */
    struct group *group;
    /* the piece's first column in the output of its group */
    uint32_t out_begin;
    /* [n_rows][width]; NULL while the turn of the piece's rank is not loaded.
     * If the piece is cached, newer values of some rows are in its cache
     * (rank_caches_write_back). */
    void *d_weight;
    enum tier tier;
    /* cache that the piece shares with others; NULL if it is not cached */
    struct pool_cache *cache;
    /* number of the piece's first row among the rows of the cache's pieces */
    uint64_t cache_row;
    /* [n_rows] places of the rows in host memory or in the cache, as in struct
     * lookup_table; NULL if the piece is not cached or not loaded */
    uint32_t *d_places;
    /* [n_rows] state of row-wise Adagrad; NULL with other optimizers */
    float *d_state;
    /* [n_rows][width] dense gradient of a replica; NULL for other pieces */
    float *d_dense;
};

/* Sums over the batches that a cache has processed since they were set to 0. */
struct cache_counts {
    uint64_t n_batches;
    uint64_t n_rows;      /* different rows that the batches use */
    uint64_t n_misses;    /* rows that were not in the cache */
    uint64_t n_conflicts; /* missing rows that found no slot */
    /* Bytes that cross the link to the host: missing rows that are read, and
     * rows that are written back. All rows are trained, so each row is written
     * back when it leaves its slot. A row without a slot is read and
     * written. */
    uint64_t n_bytes;
};

/* Cache of the pieces of one pool of a rank (core/cache_pools.h). */
struct pool_cache {
    uint32_t rank;
    const char *name; /* name of the pool (pool_print) */
    double load_factor;
    uint32_t slot_width; /* in columns */
    size_t slot_bytes;
    uint64_t n_slots;
    struct piece **pieces; /* [n_pieces], in the order of placement->pieces */
    uint32_t n_pieces;
    uint64_t n_rows;      /* of all pieces */
    struct row_cache lru; /* open while the rank is loaded */
    char *d_slots;        /* [n_slots][slot_bytes], behind all d_weight */
    /* rows of the current batch, with repeats; owned */
    uint64_t *rows;
    size_t n_collected, room;
    struct cache_counts counts;
};

/* Range of ranks: begin .. end - 1. */
struct rank_range {
    uint32_t begin, end;
};

struct group {
    uint32_t rank;
    /* Bags per sample. Each bag of a sequence gives several vectors. */
    uint32_t n_outputs;
    bool replica;
    /* [batch + 1], in the arena, if the output is a sequence: number of vectors
     * that the group gives the samples before a sample. NULL if the output is
     * pooled. */
    const uint64_t *vectors;
    /* Precision in which the exchange carries the outputs and their gradients;
     * fp32 for replicas, which have no exchange. */
    enum precision precision;
    /* Ranks that own the samples: all ranks of the sharding group, or for a
     * replica only the rank that holds it. */
    struct rank_range owners;
    /* The group covers only part `part` of n_parts of each owner's samples (see
     * placement_part). */
    uint32_t part, n_parts;
    uint32_t n_samples;
    /* Number of bags per piece that a lookup sums: n_samples * n_outputs, or 1
     * if all samples form one bag. For a sequence, each vector is a bag of one
     * lookup. */
    uint32_t n_bags;
    /* [n_pieces] pieces of the group, ordered by table */
    struct piece **pieces;
    uint32_t n_pieces;
    uint32_t out_dim; /* elements of the output per bag, over all pieces */
    /* [n_bags][out_dim]: outputs, which their gradients overwrite later. NULL
     * if the rank is in another process. */
    void *d_out;
};

/* Returns the bytes of one output, which is a bag or a vector of a sequence. */
static inline size_t group_bag_bytes(const struct group *group)
{
    return (size_t)group->out_dim * precision_bytes(group->precision);
}

/* Returns the number of bags in which the ids of a piece of the group come. */
static inline size_t group_input_bags(const struct group *group)
{
    return (size_t)group->n_samples * group->n_outputs;
}

static inline bool piece_has_row(const struct piece *piece, uint64_t row)
{
    return row >= piece->row_begin && row < piece->row_end;
}

struct placement {
    const struct plan *plan;
    struct comm *comm;     /* communication between the ranks; not owned */
    struct device *device; /* device that belongs to `comm` */
    struct pool *pool;     /* threads for work on the host; owned */
    uint64_t seed;
    double scale_rows;
    uint32_t n_ranks;
    uint32_t n_copies; /* copies of the tables: sharding groups of the job */
    /* Samples per step of all ranks. If the job de-duplicates sessions, it is
     * the number of unique sessions. */
    uint32_t batch;
    /* Number of chunks into which a forward is divided, >= 1. It is 1 unless
     * the caller sets it. */
    uint32_t n_chunks;
    struct rank_range here;
    /* [R]: dense gradients of all replicas of a rank, one after the other in
     * the order of tables, with zeros in between. They have n_dense floats on
     * each rank. NULL for ranks of other processes. */
    float **d_dense;
    uint64_t n_dense;
    uint64_t *table_rows; /* [n_tables]: number of rows of each scaled table */
    /* [n_pieces] all pieces, ordered by table, and within a table by copy. All
     * copies of a table have equal pieces, in the same order. */
    struct piece *pieces;
    size_t n_pieces;
    struct piece **table_pieces; /* [n_tables + 1]: first piece of each table */
    struct pool_cache *caches;   /* [n_caches], sorted by rank and pool */
    size_t n_caches;
    /* [n_groups], sorted by rank; the groups of replicas are the last groups of
     * each rank */
    struct group *groups;
    size_t n_groups;
    struct group **rank_groups; /* [n_ranks + 1]: first group of each rank */
    /* [n_turns]: ranges of ranks into which `here` is divided */
    struct rank_range *turns;
    uint32_t n_turns;
    /* turn whose weights are in memory; NO_TURN if no turn is loaded */
    uint32_t loaded;
    /* [n_ranks], owned: memory of outputs and dense gradients */
    void **d_buffers;
    void **d_weights; /* [n_ranks], owned: memory of weights and states */
};
#define NO_TURN UINT32_MAX

/* Returns the first sample that a rank owns: floor(rank * batch / R), rank <=
 * R. */
uint32_t placement_sample(const struct placement *placement, uint32_t rank);

/* Returns the number of samples per step of one sharding group. */
uint32_t placement_copy_samples(const struct placement *placement);
/* Returns the copy of the tables that a rank holds a part of. */
uint32_t placement_copy_of(const struct placement *placement, uint32_t rank);
/* Returns the ranks that hold a copy of the tables. */
struct rank_range placement_copy_ranks(const struct placement *placement,
                                       uint32_t copy);
/* Pieces of one copy of a table: begin .. end - 1. */
struct piece_range {
    struct piece *begin, *end;
};
struct piece_range placement_copy_pieces(const struct placement *placement,
                                         size_t table_idx, uint32_t copy);
/* Returns whether a group looks up samples of a rank. */
static inline bool group_serves(const struct group *group, uint32_t rank)
{
    return rank >= group->owners.begin && rank < group->owners.end;
}

/* Returns the first sample of part `part` if a rank's samples are divided into
 * n_parts parts. */
uint32_t placement_part_sample(const struct placement *placement, uint32_t rank,
                               uint32_t part, uint32_t n_parts);
/* Returns a copy of the group that covers only part `part` of n_parts of the
 * group's samples. The copy's d_out points to the outputs of this part. They
 * are at the place where the all-to-all of the part expects them. */
struct group placement_part(const struct placement *placement,
                            const struct group *group, uint32_t part,
                            uint32_t n_parts);

/* Returns the number of outputs of a group that belong to a rank's own samples:
 * bags, or vectors of a sequence. The rank must be one of the group's owners.
 */
uint64_t placement_outputs(const struct placement *placement,
                           const struct group *group, uint32_t rank);
/* Returns whether each rank sends and looks up an id of the table only once in
 * a batch: the job de-duplicates ids, and the table's output is a sequence. */
bool placement_drops_repeats(const struct placement *placement,
                             size_t table_idx);

/* Maps a row of the unscaled table to a row of the scaled table. The map is
 * monotone: if row ranges tile the unscaled table, the mapped ranges tile the
 * scaled table. */
uint64_t placement_scale_row(const struct table *table, uint64_t row,
                             double scale_rows);

/* Returns the expected number of lookups per batch that a piece serves,
 * according to the plan's problem. The piece must belong to a group. For scaled
 * tables the function assumes that lookups are uniform over the rows. The
 * number is exact for a sequence. */
double placement_lookups(const struct placement *placement,
                         const struct piece *piece);

/* Prepares the placement of a plan in the arena; allocates no device memory.
 * The plan must have passed plan_check, and comm must have as many ranks as the
 * job of the plan (problem_all_devices). If tables have sequence output, call
 * sequences_count next. ERR_INPUT names a table that cannot be executed. */
int placement_init(struct placement *placement, const struct plan *plan,
                   struct comm *comm, double scale_rows, uint64_t seed,
                   struct arena *arena, struct err *err) MUST_CHECK;

#endif
