/* SPDX-License-Identifier: MIT */
/*
 * The baselines that the published work compares with. The four greedy ones
 * take tables by one figure, largest first, each to the device where the sum
 * of that figure is least and its memory allows it. They look at no cost
 * model.
 */
#include "search/search.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/text.h"
#include "search/units.h"

static double figure_dim(const struct table *table)
{
    return table->dim;
}

static double figure_lookup(const struct table *table)
{
    return table->dim * table->pooling_factor;
}

static double figure_size(const struct table *table)
{
    return (double)table->num_embeddings * table->dim *
           precision_bytes(table->precision);
}

static double figure_size_lookup(const struct table *table)
{
    return figure_lookup(table) * log10((double)table->num_embeddings);
}

struct entry {
    uint32_t item;
    double figure;
    uint64_t bytes;
    uint32_t first_table; /* its place in the input */
};

/* Largest figure, then largest size, then last in the input. */
static int compare_entries(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;

    if (a->figure != b->figure)
        return a->figure > b->figure ? -1 : 1;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return (a->first_table < b->first_table) -
           (a->first_table > b->first_table);
}

static int no_room(const struct units *units, uint32_t item,
                   const uint64_t *used, struct err *err)
{
    uint32_t n_devices = units->problem->cluster.n_devices;
    char need[TEXT_BYTES_MAX], most[TEXT_BYTES_MAX];
    uint64_t left = 0;

    for (uint32_t r = 0; r < n_devices; r++)
        if (units->room_bytes[r] - used[r] > left)
            left = units->room_bytes[r] - used[r];
    return err_set(
        err, ERR_NO_PLAN,
        "no plan was found: table '%s' takes %s and no device that it may "
        "stand on has that left (the emptiest has %s)",
        units_name(units, item),
        text_from_bytes(need, (double)units->items[item].bytes),
        text_from_bytes(most, (double)left));
}

static bool has_room(const struct units *units, uint32_t item,
                     const uint64_t *used, uint32_t r)
{
    return units_may_hold(units, item, r) &&
           units->items[item].bytes <= units->room_bytes[r] - used[r];
}

/* Where a table goes: the device with the least sum; ties to less memory, then
 * to the lower index. */
static uint32_t least_loaded(const struct units *units, uint32_t item,
                             const double *sums, const uint64_t *used)
{
    uint32_t n_devices = units->problem->cluster.n_devices, best = n_devices;

    for (uint32_t r = 0; r < n_devices; r++)
        if (has_room(units, item, used, r) &&
            (best == n_devices || sums[r] < sums[best] ||
             (sums[r] == sums[best] && used[r] < used[best])))
            best = r;
    return best;
}

static struct entry *sorted_entries(const struct units *units,
                                    const struct baseline *by,
                                    struct arena *arena)
{
    struct entry *entries = ARENA_NEW(arena, struct entry, units->n_items);

    for (uint32_t i = 0; i < units->n_items; i++) {
        const struct unit *unit = &units->units[i];

        entries[i].item = i;
        entries[i].bytes = units->items[i].bytes;
        entries[i].first_table = unit->tables[0];
        for (uint32_t k = 0; k < unit->n_tables; k++)
            entries[i].figure +=
                by->figure(&units->problem->tables[unit->tables[k]]);
    }
    qsort(entries, units->n_items, sizeof(*entries), compare_entries);
    return entries;
}

static int place_greedy(uint32_t *pieces, uint32_t *placement,
                        const struct units *units, const struct baseline *by,
                        struct arena *arena, struct err *err)
{
    uint32_t n_devices = units->problem->cluster.n_devices;
    uint64_t *used = ARENA_NEW(arena, uint64_t, n_devices);
    double *sums = ARENA_NEW(arena, double, n_devices);
    struct entry *entries = sorted_entries(units, by, arena);

    for (uint32_t i = 0; i < units->n_items; i++) {
        uint32_t item = entries[i].item;
        uint32_t r = least_loaded(units, item, sums, used);

        if (r == n_devices)
            return no_room(units, item, used, err);
        sums[r] += entries[i].figure;
        used[r] += units->items[item].bytes;
        pieces[i] = item;
        placement[i] = r;
    }
    return 0;
}

/* Each table to any device with room, all alike; published without memory. */
static int place_random(uint32_t *pieces, uint32_t *placement,
                        const struct units *units, uint64_t seed,
                        struct arena *arena, struct err *err)
{
    uint32_t n_devices = units->problem->cluster.n_devices;
    uint64_t *used = ARENA_NEW(arena, uint64_t, n_devices);
    uint32_t *roomy = ARENA_NEW(arena, uint32_t, n_devices);
    struct rng rng;

    rng_init(&rng, seed, 0);
    for (uint32_t i = 0; i < units->n_items; i++) {
        uint32_t n_roomy = 0;

        for (uint32_t r = 0; r < n_devices; r++)
            if (has_room(units, i, used, r))
                roomy[n_roomy++] = r;
        if (!n_roomy)
            return no_room(units, i, used, err);
        pieces[i] = i;
        placement[i] = roomy[rng_below(&rng, n_roomy)];
        used[placement[i]] += units->items[i].bytes;
    }
    return 0;
}

int search_baseline(struct plan *plan, const struct oracle *oracle,
                    const struct baseline *by, uint64_t seed,
                    struct arena *arena, struct err *err)
{
    double start_ms = clock_ms();
    uint32_t *pieces, *placement;
    struct arena scratch;
    struct units units;
    int rc = -1;

    arena_init(&scratch);
    if (units_init_whole(&units, &plan->problem, oracle, &scratch, err))
        goto out;
    pieces = ARENA_NEW(&scratch, uint32_t, units.n_items);
    placement = ARENA_NEW(&scratch, uint32_t, units.n_items);
    if (by->figure
            ? place_greedy(pieces, placement, &units, by, &scratch, err)
            : place_random(pieces, placement, &units, seed, &scratch, err))
        goto out;
    units_to_plan(&units, pieces, placement, units.n_items, plan, arena);
    plan->search = arena_printf(arena, "baseline:%s", by->name);
    plan->stopped = "done";
    plan->seed = seed;
    plan->n_evaluations = 0;
    plan->search_ms = clock_ms() - start_ms;
    rc = 0;
out:
    arena_release(&scratch);
    return rc;
}

const struct baseline *search_baselines(void)
{
    static const struct baseline baselines[] = {
        {"random", NULL},
        {"dim", figure_dim},
        {"lookup", figure_lookup},
        {"size", figure_size},
        {"size-lookup", figure_size_lookup},
        {NULL, NULL},
    };

    return baselines;
}
