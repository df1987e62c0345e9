/* SPDX-License-Identifier: MIT */
#include "costmodel/formulas/comm_tiers.h"

#include "base/hash.h"
#include "core/cache_pools.h"
#include "core/cache_share.h"
#include "core/cache_use.h"
#include "core/memory.h"
#include "core/target_rules.h"
#include "core/target_tiers.h"

#include <math.h>
#include <string.h>

/* Knots of the curves that the lanes hold: every eighth level, all windows and
 * the end (core/cache_model.h). */
#define LEVEL_STEP 8
#define N_LEVELS (CACHE_LEVELS / LEVEL_STEP)
#define N_KNOTS (N_LEVELS + REACH_WINDOWS + 1)

static unsigned knot_at(unsigned k)
{
    return k < N_LEVELS ? k * LEVEL_STEP : CACHE_LEVELS + k - N_LEVELS;
}

/* Lanes of a pool. */
enum {
    POOL_ROWS,                         /* rows in the cache, at each knot */
    POOL_BYTES = POOL_ROWS + N_KNOTS,  /* missed bytes, at each knot */
    POOL_WIDTHS = POOL_BYTES + N_KNOTS /* pieces of each class of widths */
};

struct comm_tiers {
    double link_gbps, cache_id_ns;
    /* true: a piece shares its pool only with pieces of its width, so POOL_ROWS
     * counts bytes of slots */
    bool separates_widths;
    double most_room_bytes; /* usable memory of the largest device */
    uint32_t state_bytes;   /* bytes of the state of a slot */
    unsigned dropped;       /* differences that pools ignore */
    uint32_t n_pools, pool_lanes;
    struct pool_key pools[TIERS_MAX_POOLS];
    struct cache_widths widths;
    const struct table_use *uses; /* [n_tables] */
};

static double bytes_ms(double bytes, double gbps)
{
    return bytes / (gbps * 1e6);
}

double tiers_link_gbps(const struct gpu_spec *spec,
                       const struct cluster *cluster)
{
    const double share = spec->host_memory_gbps / cluster->devices_per_host;

    return spec->host_memory_gbps > 0 ? fmin(spec->host_gbps, share)
                                      : spec->host_gbps;
}

/* --- price of a device --- */

/* Returns the bytes of a slot of a pool, by the widest class with pieces. */
static double slot_bytes(const struct comm_tiers *tiers, unsigned pool,
                         const double *lanes)
{
    const struct pool_key *key = &tiers->pools[pool];
    uint32_t class = tiers->widths.n;

    if (tiers->separates_widths)
        return 1;
    while (class > 1 && !(lanes[POOL_WIDTHS + class - 1] > 0.5))
        class --;
    return (double)pool_row_bytes(key, tiers->widths.widths[class - 1]) +
           tiers->state_bytes;
}

/* Returns the bytes that the caches of a device miss per batch. */
static double missed_bytes(const struct comm_tiers *tiers, const double *lanes)
{
    const double room = lanes[ORACLE_TIER_ROOM] > 0 ? lanes[ORACLE_TIER_ROOM]
                                                    : tiers->most_room_bytes;
    struct cache_demand demands[TIERS_MAX_POOLS] = {{0}};
    double slots[TIERS_MAX_POOLS], free_bytes, sum = 0;
    size_t n = 0;

    if (lanes[ORACLE_TIER_KNOWN] > 0.5)
        return lanes[ORACLE_TIER_MISSED];
    for (unsigned p = 0; p < tiers->n_pools; p++) {
        const double *pool = lanes + N_ORACLE_TIERS + p * tiers->pool_lanes;

        if (pool[POOL_ROWS + N_KNOTS - 1] > 0.5)
            demands[n++] =
                (struct cache_demand){pool + POOL_ROWS, pool + POOL_BYTES,
                                      slot_bytes(tiers, p, pool)};
    }
    free_bytes = max_of(room - lanes[ORACLE_TIER_USED], 0);
    if (n == 1)
        return cache_missed_bytes(demands, N_KNOTS,
                                  free_bytes / demands[0].slot_bytes);
    cache_share(demands, n, N_KNOTS, free_bytes, slots);
    for (size_t i = 0; i < n; i++)
        sum += cache_missed_bytes(&demands[i], N_KNOTS, slots[i]);
    return sum;
}

static void add_tiers_ms(const struct comm_oracle *oracle, const double *sums,
                         struct comm_added *added)
{
    const struct comm_tiers *tiers = oracle->tiers;
    const double *lanes = sums + oracle->base.tier_lane;

    added->forward_ms += lanes[ORACLE_TIER_FORWARD];
    added->backward_ms += lanes[ORACLE_TIER_BACKWARD];
    if (lanes[ORACLE_TIER_IDS] > 1e-12)
        added->cache_ms +=
            lanes[ORACLE_TIER_IDS] +
            bytes_ms(2 * missed_bytes(tiers, lanes), tiers->link_gbps);
}

static void tiers_compute(const struct oracle *base, const double *sums,
                          size_t n, double *compute_ms)
{
    const struct comm_oracle *oracle = (const void *)base;

    oracle->unbusy.compute(base, sums, n, compute_ms);
    for (size_t i = 0; i < n; i++)
        compute_ms[i] =
            comm_compute_ms(oracle, sums + i * base->width, compute_ms[i]);
}

/* --- vectors --- */

/* Returns the key of the lanes that a pool uses. */
static struct pool_key lane_key(const struct comm_tiers *tiers,
                                struct pool_key key)
{
    key.width = 0;
    if (tiers->dropped > 0)
        key.optimizer = 0;
    if (tiers->dropped > 1)
        key.type = 0;
    if (tiers->dropped > 2)
        key.module_len = 0;
    if (tiers->dropped > 3)
        key.output = 0;
    return key;
}

static unsigned find_pool(const struct comm_tiers *tiers, struct pool_key key)
{
    unsigned p = 0;

    key = lane_key(tiers, key);
    while (p < tiers->n_pools && pool_compare(&tiers->pools[p], &key) != 0)
        p++;
    return p;
}

/* Fills the lanes of the pool of a cached piece. */
static void embed_cached(const struct comm_oracle *oracle,
                         const struct shard *shard, double *lanes)
{
    const struct problem *problem = oracle->base.problem;
    const struct comm_tiers *tiers = oracle->tiers;
    const struct table *table = &problem->tables[shard->table];
    const struct cache_curve *curve = &oracle->base.curves[shard->table];
    const struct pool_key key = shard_pool(problem, shard);
    const uint32_t width = shard->col_end - shard->col_begin;
    const double row_bytes = (double)pool_row_bytes(&key, width);
    const double row_frac = (double)(shard->row_end - shard->row_begin) /
                            (double)table->num_embeddings;
    const double unit =
        tiers->separates_widths ? row_bytes + tiers->state_bytes : 1;
    const unsigned p = find_pool(tiers, key);

    lanes[ORACLE_TIER_IDS] =
        1e-6 * tiers->cache_id_ns * shard_lookups(problem, shard);
    if (p == tiers->n_pools)
        return;
    lanes += N_ORACLE_TIERS + p * tiers->pool_lanes;
    for (unsigned k = 0; k < N_KNOTS; k++) {
        lanes[POOL_ROWS + k] = unit * row_frac * curve->rows[knot_at(k)];
        lanes[POOL_BYTES + k] =
            row_bytes * row_frac * curve->misses[knot_at(k)];
    }
    lanes[POOL_WIDTHS + cache_widths_class(&tiers->widths, width)] = 1;
}

static void embed_shard(const struct comm_oracle *oracle,
                        const struct shard *shard, double *lanes)
{
    const struct problem *problem = oracle->base.problem;
    const struct comm_tiers *tiers = oracle->tiers;
    const struct table *table = &problem->tables[shard->table];
    const struct memory_items memory = shard_memory(problem, shard);
    const double rows = (double)(shard->row_end - shard->row_begin);
    const double width = shard->col_end - shard->col_begin;
    double row_bytes = width * precision_bytes(table->precision);
    struct table_use use;
    double host_ms, state_bytes;

    memset(lanes, 0,
           (N_ORACLE_TIERS + tiers->n_pools * tiers->pool_lanes) *
               sizeof(*lanes));
    lanes[ORACLE_TIER_USED] = (double)memory.total;
    if (shard->tier == TIER_HBM)
        return;
    if (table->precision == PRECISION_INT8 && problem->layout == LAYOUT_FBGEMM)
        row_bytes += LAYOUT_INT8_BYTES;
    /* host memory is that of the weights and of the values per element */
    state_bytes = (double)memory.host / rows - row_bytes;
    if (state_bytes > 0.5) {
        use = shard_use(problem, shard, (double)problem->batch,
                        &tiers->uses[shard->table]);
        lanes[ORACLE_TIER_BACKWARD] =
            bytes_ms(2 * use.n_unique * state_bytes, tiers->link_gbps);
    }
    if (shard->tier == TIER_CACHED) {
        embed_cached(oracle, shard, lanes);
        return;
    }
    host_ms = bytes_ms(TIERS_FOLDED * shard_lookups(problem, shard) * row_bytes,
                       tiers->link_gbps);
    lanes[ORACLE_TIER_FORWARD] = host_ms;
    lanes[ORACLE_TIER_BACKWARD] += host_ms;
}

static void tiers_embed(const struct oracle *base, const struct shard *shards,
                        size_t n, double *out)
{
    const struct comm_oracle *oracle = (const void *)base;

    oracle->untiered.embed(base, shards, n, out);
    for (size_t i = 0; i < n; i++)
        embed_shard(oracle, &shards[i],
                    out + i * base->width + base->tier_lane);
}

static void embed_tier(const struct oracle *base, const struct shard *shard,
                       double *vector)
{
    embed_shard((const struct comm_oracle *)(const void *)base, shard,
                vector + base->tier_lane);
}

/* --- setting up --- */

/* Adds the lanes of a key. Returns false if there are too many. */
static bool add_key(struct comm_tiers *tiers, struct pool_key key)
{
    if (find_pool(tiers, key) < tiers->n_pools)
        return true;
    if (tiers->n_pools == TIERS_MAX_POOLS)
        return false;
    tiers->pools[tiers->n_pools++] = lane_key(tiers, key);
    return true;
}

/* Adds the lanes of all pools that pieces of a table may be in. */
static bool add_table(struct comm_tiers *tiers, const struct problem *problem,
                      uint32_t t)
{
    const struct cluster *cluster = &problem->cluster;
    const struct table *table = &problem->tables[t];
    const unsigned kinds =
        tier_kinds(table, TIER_CACHED, problem_kinds(problem, t));
    const bool has_groups = cluster_group(cluster) < cluster->n_devices;
    struct shard shard = shard_whole(problem, t, 0);
    struct pool_key key;

    for (unsigned k = 0; k < N_SHARD_KINDS; k++) {
        shard.kind = shard_traits[k].kind;
        if (!(kinds & shard.kind) || shard_is_replica(shard.kind))
            continue;
        key = shard_pool(problem, &shard);
        if (shard.kind == SHARD_ROW)
            key.type = TORCHREC_ROW_WISE;
        if (!add_key(tiers, key))
            return false;
        key.type = TORCHREC_TABLE_ROW_WISE;
        if (shard.kind == SHARD_ROW && has_groups && !add_key(tiers, key))
            return false;
    }
    return true;
}

/* Finds the pools that tables may be in, and joins pools until there are few
 * enough. With dropped = 4 only precisions differ. */
static void find_pools(struct comm_tiers *tiers, const struct problem *problem)
{
    bool is_done = false;

    for (tiers->dropped = 0; !is_done; tiers->dropped++) {
        is_done = true;
        tiers->n_pools = 0;
        for (uint32_t t = 0; t < problem->n_tables && is_done; t++)
            if (problem_tiers(problem, t) & 1u << TIER_CACHED)
                is_done = add_table(tiers, problem, t);
    }
    tiers->dropped--;
}

/* Adds the widths of cached tables, and of their column pieces down to an
 * eighth. */
static void find_widths(struct comm_tiers *tiers, const struct problem *problem)
{
    for (uint32_t cut = 8; cut; cut /= 2)
        for (uint32_t t = 0; t < problem->n_tables; t++)
            if ((problem_tiers(problem, t) & 1u << TIER_CACHED) &&
                problem->tables[t].dim % (cut * TABLE_COLUMN_STEP) == 0)
                cache_widths_add(&tiers->widths, problem->tables[t].dim / cut);
    for (uint32_t t = 0; t < problem->n_tables; t++)
        if (problem_tiers(problem, t) & 1u << TIER_CACHED)
            cache_widths_add(&tiers->widths, problem->tables[t].dim);
}

/* Fills the room of devices in the sums of empty devices, if they differ. */
static void set_rooms(struct comm_oracle *oracle, struct comm_tiers *tiers,
                      uint32_t width_before, struct arena *arena)
{
    const uint32_t n = oracle->base.problem->cluster.n_devices;
    const uint32_t width = oracle->base.width;
    const double *before = oracle->base.busy_sums;
    uint64_t *rooms = mem_alloc(n, sizeof(*rooms));
    bool are_even = true;
    double *sums;

    problem_room_bytes(oracle->base.problem, rooms);
    for (uint32_t r = 0; r < n; r++) {
        tiers->most_room_bytes = fmax(tiers->most_room_bytes, (double)rooms[r]);
        are_even &= rooms[r] == rooms[0];
    }
    if (before || !are_even) {
        sums = ARENA_NEW(arena, double, (size_t)n *width);
        for (uint32_t r = 0; r < n; r++) {
            if (before)
                memcpy(sums + r * (size_t)width,
                       before + r * (size_t)width_before,
                       width_before * sizeof(*sums));
            sums[r * (size_t)width + oracle->base.tier_lane +
                 ORACLE_TIER_ROOM] = fmax((double)rooms[r], 1);
        }
        oracle->base.busy_sums = sums;
    }
    mem_free(rooms);
}

int comm_oracle_add_tiers(struct comm_oracle *oracle,
                          const struct gpu_spec *spec, struct arena *arena,
                          struct err *err)
{
    const struct problem *problem = oracle->base.problem;
    const uint32_t width_before = oracle->base.width;
    struct comm_tiers *tiers;
    double constants[3];

    if (!problem->cluster.host_bytes)
        return 0;
    if (!(spec->host_gbps > 0) || !(spec->cache_id_ns > 0))
        return err_input(err,
                         "GPU '%s' has no figures host_gbps and cache_id_ns, "
                         "which the price of tables in host memory needs",
                         spec->name);
    tiers = ARENA_NEW(arena, struct comm_tiers, 1);
    tiers->link_gbps = tiers_link_gbps(spec, &problem->cluster);
    tiers->cache_id_ns = spec->cache_id_ns;
    tiers->state_bytes = (uint32_t)pool_state_bytes(problem);
    tiers->separates_widths = problem->job.pipeline == PIPELINE_PREFETCH;
    tiers->uses = problem_use_all(problem, (double)problem->batch, arena);
    find_pools(tiers, problem);
    find_widths(tiers, problem);
    tiers->pool_lanes = POOL_WIDTHS + (tiers->widths.n ? tiers->widths.n : 1);
    oracle->tiers = tiers;
    oracle->add_tiers_ms = add_tiers_ms;
    oracle->untiered = oracle->ops;
    oracle->ops.embed = tiers_embed;
    oracle->ops.embed_tier = embed_tier;
    if (!oracle->busy_at)
        oracle->ops.compute = tiers_compute;
    oracle->base.prices_tiers = true;
    oracle->base.link_gbps = tiers->link_gbps;
    oracle->base.curves = cache_curves(problem, arena);
    oracle->base.tier_lane = width_before;
    oracle->base.width += N_ORACLE_TIERS + tiers->n_pools * tiers->pool_lanes;
    set_rooms(oracle, tiers, width_before, arena);
    constants[0] = tiers->link_gbps;
    constants[1] = tiers->cache_id_ns;
    constants[2] = TIERS_FOLDED;
    oracle->base.cost.hash = arena_strdup(
        arena,
        HASH_TEXT(hash_bytes(constants, sizeof(constants),
                             hash_bytes(oracle->base.cost.hash,
                                        strlen(oracle->base.cost.hash), 0))));
    return 0;
}
