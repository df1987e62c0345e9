/* SPDX-License-Identifier: MIT */
#include "search/planner_offload.h"

#include "base/ranked.h"
#include "core/cache_pools.h"
#include "core/cache_use.h"
#include "core/load_factors.h"
#include "core/memory.h"
#include "core/target_tiers.h"

#include <math.h>

#define HBM_GIB_S 897.0
#define LINK_GIB_S 32.0
/* TorchRec divides the bandwidths of tables in host memory by this. */
#define HOST_PENALTY 10.0
/* TorchRec's default load factor. It is halved up to MOST_HALVINGS times until
 * the tables fit. */
#define DEFAULT_FACTOR 0.2
#define MOST_HALVINGS 12
/* Number of budgets that scale-up tries, as many as TorchRec's proposer; it
 * draws them, and this rule takes equal steps. */
#define N_BUDGETS 16
/* Load factor from which scale-up keeps a table in GPU memory. */
#define FULL_FACTOR 0.9999

struct offload {
    struct placing *placing; /* not owned */
    uint64_t *host_free;     /* [hosts]: bytes left for tables */
    struct offload_table {
        enum tier tier;
        double factor; /* load factor that the rule plans with, if cached */
        uint64_t bytes, host_bytes; /* of the whole table */
        uint32_t device;            /* where the table was placed */
        bool is_by_rows;            /* row blocks on all devices */
    } * tables;                     /* [n_tables] */
};

static double row_bytes(const struct table *table)
{
    return (double)table->dim * precision_bytes(table->precision);
}

/* Returns the time of a whole table by TorchRec's bandwidths. Only ratios of
 * these times matter. */
static double time_of(const struct offload *offload, uint32_t t)
{
    const struct problem *problem = offload->placing->problem;
    const struct offload_table *own = &offload->tables[t];
    double gib_s = HBM_GIB_S;

    if (own->tier == TIER_HOST)
        gib_s = LINK_GIB_S / HOST_PENALTY;
    if (own->tier == TIER_CACHED)
        gib_s = (own->factor * HBM_GIB_S + (1 - own->factor) * LINK_GIB_S) /
                HOST_PENALTY;
    return cache_lookups(problem, t) * row_bytes(&problem->tables[t]) / gib_s;
}

/* Sets the tier of a table, or another one if the table may not have this one,
 * and the bytes that the whole table takes. */
static void set_tier(struct offload *offload, uint32_t t, enum tier tier,
                     double factor)
{
    const struct problem *problem = offload->placing->problem;
    const struct table *table = &problem->tables[t];
    const unsigned may = problem_tiers(problem, t);
    struct offload_table *own = &offload->tables[t];
    struct shard whole = shard_whole(problem, t, 0);
    struct memory_items items;

    if (!(may & 1u << tier))
        tier = may & 1u << TIER_HBM ? TIER_HBM : TIER_HOST;
    if (!(may & 1u << tier))
        tier = TIER_CACHED;
    whole.tier = tier;
    items = shard_memory(problem, &whole);
    own->tier = tier;
    own->factor = factor;
    own->bytes = items.total;
    own->host_bytes = items.host;
    if (tier == TIER_CACHED)
        own->bytes = saturating_add(
            own->bytes,
            bytes_from_double(
                (double)pool_slots(table->num_embeddings, factor) *
                (row_bytes(table) + (double)pool_state_bytes(problem))));
}

/* Returns the GPU with the least time among those that have room for the
 * table, or n_devices. */
static uint32_t choose_device(const struct offload *offload, uint32_t t)
{
    const struct placing *placing = offload->placing;
    const uint32_t per_host = placing->problem->cluster.devices_per_host;
    const struct offload_table *own = &offload->tables[t];
    uint32_t best = placing->n_devices;

    for (uint32_t r = 0; r < placing->n_devices; r++)
        if (own->bytes <= placing->devices[r].free_bytes &&
            own->host_bytes <= offload->host_free[r / per_host] &&
            (best == placing->n_devices ||
             placing->devices[r].load < placing->devices[best].load))
            best = r;
    return best;
}

/* Takes the memory of the row blocks of a table from all devices. Returns
 * whether they have room for them. */
static bool take_rows(struct offload *offload, uint32_t t)
{
    struct placing *placing = offload->placing;
    const struct problem *problem = placing->problem;
    const uint32_t n = placing->n_devices;
    const double share =
        offload->tables[t].factor *
        (row_bytes(&problem->tables[t]) + (double)pool_state_bytes(problem));

    for (uint32_t r = 0; r < n; r++) {
        struct filling *device = &placing->devices[r];
        uint64_t *host =
            &offload->host_free[r / problem->cluster.devices_per_host];
        struct shard block = rival_piece(problem, t, SHARD_ROW, r, n, r);
        struct memory_items items;
        uint64_t bytes;

        block.tier = TIER_CACHED;
        items = shard_memory(problem, &block);
        bytes = saturating_add(
            items.total, bytes_from_double(share * (double)(block.row_end -
                                                            block.row_begin)));
        if (bytes > device->free_bytes || items.host > *host)
            return false;
        device->free_bytes -= bytes;
        *host -= items.host;
    }
    return true;
}

/* Places all tables. Returns whether all of them found room. */
static bool place_all(struct offload *offload)
{
    struct placing *placing = offload->placing;
    const struct cluster *cluster = &placing->problem->cluster;
    uint32_t n = 0;

    placing->plan->n_evaluations++;
    placing_begin(placing);
    for (uint32_t h = 0; h * cluster->devices_per_host < placing->n_devices;
         h++)
        offload->host_free[h] = cluster->host_bytes;
    for (uint32_t t = 0; t < placing->n_tables; t++) {
        if (!offload->tables[t].is_by_rows)
            placing->order[n++] = (struct ranked){-time_of(offload, t), t};
        else if (!take_rows(offload, t))
            return false;
    }
    ranked_sort(placing->order, n);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t t = placing->order[i].idx;
        const uint32_t r = choose_device(offload, t);
        struct offload_table *own = &offload->tables[t];

        if (r == placing->n_devices)
            return false;
        own->device = r;
        placing->devices[r].load += -placing->order[i].key;
        placing->devices[r].free_bytes -= own->bytes;
        offload->host_free[r / cluster->devices_per_host] -= own->host_bytes;
    }
    return true;
}

/* Adds a shard to the plan. */
static void add_shard(struct offload *offload, struct shard shard)
{
    shard.tier = offload->tables[shard.table].tier;
    offload->placing->plan->shards[offload->placing->plan->n_shards++] = shard;
}

/* Writes the current assignment into the plan. */
static void write_shards(struct offload *offload)
{
    const struct placing *placing = offload->placing;
    const uint32_t n = placing->n_devices;
    size_t n_shards = 0;

    for (uint32_t t = 0; t < placing->n_tables; t++)
        n_shards += offload->tables[t].is_by_rows ? n : 1;
    placing->plan->n_shards = 0;
    placing->plan->shards = ARENA_NEW(placing->arena, struct shard, n_shards);
    for (uint32_t t = 0; t < placing->n_tables; t++) {
        if (!offload->tables[t].is_by_rows)
            add_shard(offload, shard_whole(placing->problem, t,
                                           offload->tables[t].device));
        for (uint32_t r = 0; offload->tables[t].is_by_rows && r < n; r++)
            add_shard(offload,
                      rival_piece(placing->problem, t, SHARD_ROW, r, n, r));
    }
}

static int init(struct offload *offload, struct placing *placing,
                struct err *err)
{
    const struct problem *problem = placing->problem;

    *offload = (struct offload){
        .placing = placing,
        .host_free = ARENA_NEW(&placing->scratch, uint64_t, placing->n_devices),
        .tables = ARENA_NEW(&placing->scratch, struct offload_table,
                            placing->n_tables)};
    if (!problem->cluster.host_bytes)
        return err_set(err, ERR_NO_PLAN,
                       "no plan was found: no host memory is for tables");
    if (!placing->inputs->oracle->prices_tiers)
        return err_set(err, ERR_NO_PLAN,
                       "no plan was found: cost model '%s' cannot price tables "
                       "in host memory",
                       placing->inputs->oracle->cost.name);
    for (uint32_t t = 0; t < placing->n_tables; t++)
        if (!(placing_kinds(placing, t) & SHARD_TABLE))
            return err_set(err, ERR_NO_PLAN,
                           "no plan was found: table '%s' may not be placed "
                           "whole, as the rules for tables in host memory do",
                           problem->tables[t].name);
    return 0;
}

/* Ends a rule: writes the shards and chooses the load factors. */
static int end(struct offload *offload, bool is_placed, struct err *err)
{
    const struct placing *placing = offload->placing;
    struct plan *plan = placing->plan;

    if (!is_placed)
        return err_set(err, ERR_NO_PLAN,
                       "no plan was found: the rule '%s' has none that fits "
                       "the GPUs and their hosts",
                       placing->self->name);
    if (!plan->n_shards)
        write_shards(offload);
    plan_sort_shards(plan);
    plan_derive_kinds(plan);
    plan_choose_factors(plan, placing->inputs->oracle->curves, placing->arena);
    return 0;
}

/* --- the largest tables --- */

/* Puts the first n tables of the order into the tier, and the others into GPU
 * memory. Returns whether all tables fit. */
static bool try_first(struct offload *offload, const struct ranked *order,
                      uint32_t n, enum tier tier, double factor)
{
    for (uint32_t i = 0; i < offload->placing->n_tables; i++)
        set_tier(offload, order[i].idx, i < n ? tier : TIER_HBM, factor);
    return place_all(offload);
}

/* Puts as few of the largest tables into the tier as fit, found by bisection.
 * Cached tables have the default load factor, or the first halving with which
 * all tables would fit. */
static int offload_largest(struct placing *placing, enum tier tier,
                           struct err *err)
{
    const uint32_t n = placing->n_tables;
    struct ranked *order = ARENA_NEW(&placing->scratch, struct ranked, n);
    struct offload offload;
    double factor = DEFAULT_FACTOR;
    uint32_t low = 0, high = n;

    if (init(&offload, placing, err))
        return -1;
    for (uint32_t t = 0; t < n; t++) {
        const struct table *table = &placing->problem->tables[t];

        order[t] = (struct ranked){
            -(double)table->num_embeddings * row_bytes(table), t};
    }
    ranked_sort(order, n);
    for (int i = 0; !try_first(&offload, order, n, tier, factor); i++) {
        if (tier != TIER_CACHED || i == MOST_HALVINGS)
            return end(&offload, false, err);
        factor /= 2;
    }
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;

        if (try_first(&offload, order, middle, tier, factor))
            high = middle;
        else
            low = middle + 1;
    }
    return end(&offload, try_first(&offload, order, high, tier, factor), err);
}

int rival_host_large(struct placing *placing, struct err *err)
{
    return offload_largest(placing, TIER_HOST, err);
}

int rival_cache_large(struct placing *placing, struct err *err)
{
    return offload_largest(placing, TIER_CACHED, err);
}

/* --- all tables --- */

/* Returns whether a cached table may be cut into row blocks on all devices. */
static bool may_be_by_rows(const struct placing *placing, uint32_t t)
{
    const struct table *table = &placing->problem->tables[t];
    const uint64_t n = placing->n_devices, last_row = table->num_embeddings - 1;
    const unsigned kinds =
        tier_kinds(table, TIER_CACHED, placing_kinds(placing, t));

    return n > 1 && kinds & SHARD_ROW && table->rows_over != ROWS_OVER_HOST &&
           (n - 1) * (last_row / n + 1) <= last_row;
}

/* Caches all tables, with the default load factor or the first halving that
 * fits. */
static int cache_all(struct placing *placing, bool is_by_rows, struct err *err)
{
    struct offload offload;
    double factor = DEFAULT_FACTOR;
    bool is_placed = false;

    if (init(&offload, placing, err))
        return -1;
    for (int i = 0; !is_placed && i <= MOST_HALVINGS; i++, factor /= 2) {
        for (uint32_t t = 0; t < placing->n_tables; t++) {
            struct offload_table *own = &offload.tables[t];

            set_tier(&offload, t, TIER_CACHED, factor);
            own->is_by_rows = is_by_rows && own->tier == TIER_CACHED &&
                              may_be_by_rows(placing, t);
        }
        is_placed = place_all(&offload);
    }
    return end(&offload, is_placed, err);
}

int rival_cache_all(struct placing *placing, struct err *err)
{
    return cache_all(placing, false, err);
}

int rival_cache_rows(struct placing *placing, struct err *err)
{
    for (uint32_t t = 0; t < placing->n_tables; t++)
        if (may_be_by_rows(placing, t))
            return cache_all(placing, true, err);
    return err_set(err, ERR_NO_PLAN,
                   "no plan was found: no cached table may be cut by rows");
}

/* --- scale-up --- */

/* Returns the weight of a table in the division of a budget: its different rows
 * of a batch, times the area under its miss ratio as a function of the load
 * factor. */
static double budget_weight(const struct cache_curve *curve)
{
    const double *rows = curve->rows, *misses = curve->misses;
    double area = 0;

    for (unsigned k = 0; k + 1 < CACHE_KNOTS; k++)
        area += (rows[k + 1] - rows[k]) * (misses[k + 1] + misses[k]) / 2;
    return area / fmax(1, rows[CACHE_KNOTS - 1]);
}

/* Divides a budget of slots, in bytes, among all tables in proportion to their
 * weights. A table gets no more than all its rows take; the rest goes to the
 * others. Tables that hold all their rows are in GPU memory. */
static void divide_budget(struct offload *offload, const double *weights,
                          double *factors, double budget)
{
    const struct placing *placing = offload->placing;
    const struct problem *problem = placing->problem;
    bool is_clipped = true;

    for (uint32_t t = 0; t < placing->n_tables; t++)
        factors[t] = CACHE_MIN_LOAD_FACTOR;
    while (is_clipped) {
        double sum = 0, left = budget;

        is_clipped = false;
        for (uint32_t t = 0; t < placing->n_tables; t++)
            sum += factors[t] < 1 ? weights[t] : 0;
        for (uint32_t t = 0; t < placing->n_tables; t++) {
            const struct table *table = &problem->tables[t];
            const double whole =
                (double)table->num_embeddings *
                (row_bytes(table) + (double)pool_state_bytes(problem));

            if (factors[t] >= 1)
                continue;
            factors[t] = fmax(CACHE_MIN_LOAD_FACTOR,
                              sum > 0 ? left * weights[t] / sum / whole : 0);
            if (factors[t] >= 1) {
                factors[t] = 1;
                budget -= whole;
                is_clipped = true;
            }
        }
    }
    for (uint32_t t = 0; t < placing->n_tables; t++)
        set_tier(offload, t, factors[t] > FULL_FACTOR ? TIER_HBM : TIER_CACHED,
                 factors[t]);
}

/* Returns the bytes of GPU memory that all tables leave if they are cached with
 * the least load factor. */
static double largest_budget(struct offload *offload)
{
    const struct placing *placing = offload->placing;
    double bytes = 0;

    for (uint32_t r = 0; r < placing->n_devices; r++)
        bytes += (double)placing->room_bytes[r];
    for (uint32_t t = 0; t < placing->n_tables; t++) {
        set_tier(offload, t, TIER_CACHED, CACHE_MIN_LOAD_FACTOR);
        bytes -= (double)offload->tables[t].bytes;
    }
    return fmax(bytes, 0);
}

int rival_scale_up(struct placing *placing, struct err *err)
{
    const uint32_t n = placing->n_tables;
    double *weights = ARENA_NEW(&placing->scratch, double, n);
    double *factors = ARENA_NEW(&placing->scratch, double, n);
    struct offload offload;
    bool is_placed = false;
    double budget;

    if (init(&offload, placing, err))
        return -1;
    for (uint32_t t = 0; t < n; t++)
        weights[t] = budget_weight(&placing->inputs->oracle->curves[t]);
    budget = largest_budget(&offload);
    for (int i = N_BUDGETS; i >= 0; i--) {
        divide_budget(&offload, weights, factors, budget * i / N_BUDGETS);
        if (!place_all(&offload))
            continue;
        is_placed = true;
        if (placing_is_best(placing))
            write_shards(&offload);
    }
    return end(&offload, is_placed, err);
}
