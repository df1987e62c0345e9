/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_CACHE_POOLS_H
#define NEUROSHARD_CORE_CACHE_POOLS_H

#include "core/plan.h"
#include "core/torchrec_type.h"

/*
 * Pools: the caches of rows that the cached pieces of a device share
 * (TIER_CACHED).
 *
 * TorchRec puts the cached pieces of a device into one operator of FBGEMM, with
 * one cache, if they agree in module, sharding type, precision, optimizer and,
 * with the pipeline that fills caches a batch ahead, in width. Pooled tables
 * and sequence tables are in modules of their own. Whole pooled tables are
 * column-wise tables of one piece if any pooled table of the plan is cut by
 * columns, so both are of one pool.
 *
 * Slots of a pool. N_t are the rows of the whole table t, f_t is its load
 * factor, and the sums are over the pieces of the pool:
 *
 *     load factor   sum f_t N_t / sum N_t
 *     sets          ceil( floor(rows of the pieces x load factor) / 32 ), >= 1
 *     slots         32 x sets, each as wide as the widest piece
 *
 * A slot takes its row and the state of the slot (row number, time of use). If
 * the cache is filled a batch ahead, the state has a lock, too.
 */

#define CACHE_SET_SLOTS 32
enum { CACHE_STATE_BYTES = 16, CACHE_LOCK_BYTES = 4 };
/* Least load factor that a cached table may have. */
#define CACHE_MIN_LOAD_FACTOR 1e-9
/* Largest load factor that a plan chooses. TorchRec's planner accepts only
 * factors below 1 (1.9.2, planner/planners.py). Plans with 1 can be read. */
#define CACHE_MAX_LOAD_FACTOR (1 - 1e-9)

/* Properties that all pieces of a pool have in common. */
struct pool_key {
    const char *module; /* the first module_len bytes of a table's name */
    size_t module_len;  /* 0: the module of the tables without a dot */
    enum table_output output;
    enum torchrec_type type; /* never TORCHREC_TABLE_WISE for pooled tables */
    enum precision precision;
    enum optimizer optimizer;
    uint32_t width; /* width of the pieces if it separates pools, or 0 */
};

/* Returns the key of the pool of a cached shard, whose kind is set. The key
 * refers to the name of the shard's table. */
struct pool_key shard_pool(const struct problem *problem,
                           const struct shard *shard);
/* Compares two keys, for sorting. */
int pool_compare(const struct pool_key *a, const struct pool_key *b);
/* Prints the key, such as "pooled/row_wise/fp32/rowwise_adagrad". The module of
 * tables with a dot in their names precedes it, and a width that separates
 * pools follows it, each with another '/'. */
void pool_print(const struct pool_key *key, struct buf *out);

/* Returns the slots of a pool whose pieces have n_rows rows. */
uint64_t pool_slots(uint64_t n_rows, double load_factor);
/* pool_row_bytes returns the bytes of the row in a slot of `width` columns.
 * pool_state_bytes returns the bytes of the state of a slot. */
uint64_t pool_row_bytes(const struct pool_key *key, uint32_t width);
uint64_t pool_state_bytes(const struct problem *problem);

/* Pool of a device. */
struct cache_pool {
    struct pool_key key;
    uint32_t device;
    uint32_t n_pieces;
    uint64_t n_rows;     /* rows of the pieces */
    uint32_t slot_width; /* in columns */
    double load_factor;
    uint64_t n_slots;
};

/* All pools of a plan. */
struct cache_pools {
    struct cache_pool *pools; /* [n], sorted by device and key; owned */
    size_t n;
    /* [n_shards]: index of the pool of each shard, or SIZE_MAX for a shard that
     * is not cached; owned */
    size_t *of_shard;
};

/* Computes the pools of a plan whose shards have their kinds. Shards may be in
 * any order. Without plan->load_factors, or with a factor of 0, a pool has one
 * set. Takes O(n_shards log n_shards) time. */
void cache_pools_init(struct cache_pools *pools, const struct plan *plan);
void cache_pools_release(struct cache_pools *pools);
/* Returns whether any shard of the plan is cached. */
bool plan_has_caches(const struct plan *plan);
/* Adds the memory of the slots of a pool to the items. */
void pool_add_memory(const struct problem *problem,
                     const struct cache_pool *pool, struct memory_items *items);

#endif
