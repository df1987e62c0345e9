/* SPDX-License-Identifier: MIT */
#include "search/units.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A cut into 1,024 pieces is the finest. */
#define MAX_HALVINGS 10
/* Items priced by one task of the pool. */
#define PRICE_CHUNK 64

static unsigned allowed_kinds(const struct units *units, uint32_t table)
{
    return units->problem->tables[table].kinds & units->problem->kinds &
           units->oracle->kinds;
}

/* How often a table's columns can be halved. */
static uint32_t n_halvings(const struct problem *problem,
                           const struct table *table)
{
    uint32_t min_width = table_min_width(problem, table), dim = table->dim;
    uint32_t n = 0;

    while (dim / 2 >= min_width && dim % (2 * TABLE_COLUMN_STEP) == 0 &&
           n < MAX_HALVINGS) {
        dim /= 2;
        n++;
    }
    return n;
}

static struct shard item_shard(const struct units *units, uint32_t item,
                               uint32_t table)
{
    struct shard shard = shard_whole(units->problem, table, 0);

    shard.col_end >>= units->items[item].level;
    if (units->items[item].level)
        shard.kind = SHARD_COLUMN;
    return shard;
}

/* Tables of one group become one unit, in canonical order of their first. */
static void collect_units(struct units *units, struct arena *arena)
{
    const struct problem *problem = units->problem;
    size_t n = problem->n_tables;
    uint32_t *order = ARENA_NEW(arena, uint32_t, n);
    uint32_t *members = ARENA_NEW(arena, uint32_t, n);
    bool *taken = ARENA_NEW(arena, bool, n);

    problem_canonical_order(problem, order);
    units->units = ARENA_NEW(arena, struct unit, n);
    for (size_t i = 0; i < n; i++) {
        const char *group = problem->tables[order[i]].group;
        struct unit *unit = &units->units[units->n_units];

        if (taken[i])
            continue;
        unit->tables = members;
        for (size_t j = i; j < (group ? n : i + 1); j++) {
            const char *other = problem->tables[order[j]].group;

            if (j != i && (!other || strcmp(other, group) != 0))
                continue;
            taken[j] = true;
            members[unit->n_tables++] = order[j];
        }
        members += unit->n_tables;
        units->n_units++;
    }
}

static int pin_unit(const struct units *units, struct unit *unit,
                    struct err *err)
{
    const struct table *tables = units->problem->tables;
    const struct table *pinned = NULL;

    unit->device = -1;
    for (uint32_t k = 0; k < unit->n_tables; k++) {
        const struct table *table = &tables[unit->tables[k]];

        if (table->device < 0)
            continue;
        if (table->device >= units->problem->cluster.n_devices)
            return err_set(
                err, ERR_INPUT,
                "table '%s' is pinned to device %" PRId64 ", and there are %u",
                table->name, table->device, units->problem->cluster.n_devices);
        if (pinned && pinned->device != table->device)
            return err_set(err, ERR_INPUT,
                           "group '%s' is pinned to two devices, by tables "
                           "'%s' and '%s'",
                           table->group, pinned->name, table->name);
        pinned = table;
        unit->device = table->device;
    }
    return 0;
}

/* Cuts only help where the pieces may go apart: a group or a pinned table is
 * not cut, unless it may not stand whole. */
static int level_unit(const struct units *units, struct unit *unit,
                      struct err *err)
{
    const struct table *table = &units->problem->tables[unit->tables[0]];
    unsigned kinds = SHARD_ALL_KINDS;

    for (uint32_t k = 0; k < unit->n_tables; k++)
        kinds &= allowed_kinds(units, unit->tables[k]);
    unit->n_levels = 1;
    if (!table->group && (kinds & SHARD_COLUMN)) {
        unit->n_levels += n_halvings(units->problem, table);
        unit->start_level = !(kinds & SHARD_TABLE);
        if (unit->device >= 0 && unit->n_levels > 1)
            unit->n_levels = unit->start_level + 1;
    }
    if ((kinds & SHARD_TABLE) ||
        (unit->start_level && unit->start_level < unit->n_levels))
        return 0;
    return err_set(err, ERR_USAGE,
                   "table '%s' can be neither placed whole nor cut by columns, "
                   "and this search makes table and column shards only",
                   table->name);
}

static uint64_t item_bytes(const struct units *units, uint32_t item)
{
    const struct unit *unit = &units->units[units->items[item].unit];
    uint64_t bytes = 0;

    for (uint32_t k = 0; k < unit->n_tables; k++) {
        struct shard shard = item_shard(units, item, unit->tables[k]);

        bytes =
            saturating_add(bytes, shard_memory(units->problem, &shard).total);
    }
    return bytes;
}

static void fill_items(struct units *units, struct arena *arena)
{
    uint32_t n = 0;

    for (uint32_t u = 0; u < units->n_units; u++) {
        units->units[u].first_item = n;
        n += units->units[u].n_levels;
    }
    units->n_items = n;
    units->items = ARENA_NEW(arena, struct item, n);
    for (uint32_t u = 0, i = 0; u < units->n_units; u++)
        for (uint32_t level = 0; level < units->units[u].n_levels; level++) {
            units->items[i].unit = u;
            units->items[i].level = level;
            units->items[i].bytes = item_bytes(units, i);
            i++;
        }
}

static void fill_room(struct units *units, struct arena *arena)
{
    const struct cluster *cluster = &units->problem->cluster;

    units->room_bytes = ARENA_NEW(arena, uint64_t, cluster->n_devices);
    for (uint32_t r = 0; r < cluster->n_devices; r++) {
        units->room_bytes[r] = cluster_room_bytes(cluster, r);
        if (units->room_bytes[r] > units->most_room_bytes)
            units->most_room_bytes = units->room_bytes[r];
    }
}

static void fill_outputs(struct units *units)
{
    const struct problem *problem = units->problem;

    for (uint32_t i = 0; i < units->n_items; i++) {
        const struct unit *unit = &units->units[units->items[i].unit];

        for (uint32_t k = 0; k < unit->n_tables; k++) {
            struct shard shard = item_shard(units, i, unit->tables[k]);

            units->items[i].output += shard_output_vectors(problem, &shard) *
                                      shard.col_end / (double)problem->batch;
        }
        if (!units->items[i].level)
            units->mean_output += units->items[i].output;
    }
    units->mean_output /= problem->cluster.n_devices;
}

/* Embeds and prices the items of one chunk. */
static void price_chunk(void *ctx, size_t task, unsigned thread)
{
    const struct units *units = ctx;
    const struct oracle *oracle = units->oracle;
    size_t begin = task * PRICE_CHUNK, end = begin + PRICE_CHUNK;
    double *part = mem_alloc(oracle->width, sizeof(*part));

    (void)thread;
    if (end > units->n_items)
        end = units->n_items;
    for (size_t i = begin; i < end; i++) {
        struct item *item = &units->items[i];
        const struct unit *unit = &units->units[item->unit];
        double *vector = units->vectors + i * oracle->width;

        for (uint32_t k = 0; k < unit->n_tables; k++) {
            struct shard shard =
                item_shard(units, (uint32_t)i, unit->tables[k]);

            oracle->ops->embed(oracle, &shard, 1, part);
            for (uint32_t w = 0; w < oracle->width; w++)
                vector[w] += part[w];
        }
        oracle->ops->compute(oracle, vector, 1, &item->single_ms);
    }
    mem_free(part);
}

struct ranked_item {
    const struct item *item;
    uint32_t idx;
};

/* Dearest first; of equal ones the later table, then the larger piece. */
static int compare_items(const void *left, const void *right)
{
    const struct ranked_item *a = left, *b = right;

    if (a->item->single_ms != b->item->single_ms)
        return a->item->single_ms > b->item->single_ms ? -1 : 1;
    if (a->item->unit != b->item->unit)
        return a->item->unit > b->item->unit ? -1 : 1;
    return (a->idx > b->idx) - (a->idx < b->idx);
}

static void rank_items(struct units *units)
{
    struct ranked_item *ranked = mem_alloc(units->n_items, sizeof(*ranked));

    for (uint32_t i = 0; i < units->n_items; i++)
        ranked[i] = (struct ranked_item){&units->items[i], i};
    qsort(ranked, units->n_items, sizeof(*ranked), compare_items);
    for (uint32_t i = 0; i < units->n_items; i++)
        units->items[ranked[i].idx].rank = i;
    mem_free(ranked);
}

int units_collect(struct units *units, const struct problem *problem,
                  const struct oracle *oracle, struct arena *arena,
                  struct err *err)
{
    memset(units, 0, sizeof(*units));
    units->problem = problem;
    units->oracle = oracle;
    collect_units(units, arena);
    for (uint32_t u = 0; u < units->n_units; u++)
        if (pin_unit(units, &units->units[u], err))
            return -1;
    fill_room(units, arena);
    return 0;
}

int units_init(struct units *units, const struct problem *problem,
               const struct oracle *oracle, struct pool *pool,
               struct arena *arena, struct err *err)
{
    double *nothing;

    if (units_collect(units, problem, oracle, arena, err))
        return -1;
    for (uint32_t u = 0; u < units->n_units; u++)
        if (level_unit(units, &units->units[u], err))
            return -1;
    fill_items(units, arena);
    fill_outputs(units);
    units->vectors =
        ARENA_NEW(arena, double, (size_t)units->n_items * oracle->width);
    pool_run(pool, (units->n_items + PRICE_CHUNK - 1) / PRICE_CHUNK,
             price_chunk, units);
    nothing = ARENA_NEW(arena, double, oracle->width);
    oracle->ops->compute(oracle, nothing, 1, &units->empty_ms);
    for (uint32_t i = 0; i < units->n_items; i++)
        if (!isfinite(units->items[i].single_ms))
            return err_set(err, ERR_INPUT,
                           "cost model '%s' gives no finite cost for table "
                           "'%s'",
                           oracle->name, units_name(units, i));
    rank_items(units);
    return 0;
}

int units_init_whole(struct units *units, const struct problem *problem,
                     const struct oracle *oracle, struct arena *arena,
                     struct err *err)
{
    if (units_collect(units, problem, oracle, arena, err))
        return -1;
    for (uint32_t u = 0; u < units->n_units; u++) {
        struct unit *unit = &units->units[u];

        unit->n_levels = 1;
        for (uint32_t k = 0; k < unit->n_tables; k++)
            if (!(allowed_kinds(units, unit->tables[k]) & SHARD_TABLE))
                return err_set(
                    err, ERR_NO_PLAN,
                    "table '%s' may not be placed whole, and the baselines cut "
                    "nothing",
                    problem->tables[unit->tables[k]].name);
    }
    fill_items(units, arena);
    fill_outputs(units);
    return 0;
}

int units_can_halve(const struct units *units, uint32_t item)
{
    return units->items[item].level + 1 <
           units->units[units->items[item].unit].n_levels;
}

int units_may_hold(const struct units *units, uint32_t item, uint32_t device)
{
    int64_t pin = units->units[units->items[item].unit].device;

    return pin < 0 || pin == device;
}

const char *units_name(const struct units *units, uint32_t item)
{
    const struct unit *unit = &units->units[units->items[item].unit];

    return units->problem->tables[unit->tables[0]].name;
}

void units_to_plan(const struct units *units, const uint32_t *pieces,
                   const uint32_t *devices, size_t n, struct plan *plan,
                   struct arena *arena)
{
    uint32_t *next_col = mem_alloc(units->n_units, sizeof(*next_col));
    size_t n_shards = 0;

    for (size_t i = 0; i < n; i++)
        n_shards += units->units[units->items[pieces[i]].unit].n_tables;
    plan->shards = ARENA_NEW(arena, struct shard, n_shards);
    plan->n_shards = 0;
    plan->shard_ms = NULL; /* of other shards */
    for (size_t i = 0; i < n; i++) {
        uint32_t u = units->items[pieces[i]].unit;

        for (uint32_t k = 0; k < units->units[u].n_tables; k++) {
            struct shard shard =
                item_shard(units, pieces[i], units->units[u].tables[k]);

            shard.device = devices[i];
            if (shard.kind == SHARD_COLUMN) {
                shard.col_begin = next_col[u];
                shard.col_end += next_col[u];
                next_col[u] = shard.col_end;
            }
            plan->shards[plan->n_shards++] = shard;
        }
    }
    mem_free(next_col);
    plan_sort_shards(plan);
}
