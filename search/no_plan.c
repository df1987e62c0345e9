/* SPDX-License-Identifier: MIT */
#include "search/pack.h"

#include "search/remedy.h"

#include <inttypes.h>
#include <math.h>

struct shortage {
    const struct units *units;
    struct arena *arena;
    uint64_t largest_room;    /* of a device */
    struct memory_items need; /* of all tables, as little cut as may be */
    uint64_t room;            /* of all devices */
};

static bool fits(const struct shortage *shortage, uint64_t least_room,
                 uint32_t n_devices)
{
    const struct units *units = shortage->units;
    uint32_t n_given = units->problem->cluster.n_devices;
    struct arena_mark mark = arena_mark(shortage->arena);
    uint64_t *room = ARENA_NEW(shortage->arena, uint64_t, n_devices);
    struct packing packing;
    bool yes;

    for (uint32_t r = 0; r < n_devices; r++) {
        room[r] = r < n_given ? units->room_bytes[r] : shortage->largest_room;
        if (room[r] < least_room)
            room[r] = least_room;
    }
    yes = !pack(&packing, units, room, n_devices, shortage->arena);
    arena_rewind(shortage->arena, mark);
    return yes;
}

/* The least memory a device with which everything packs, as it is printed: a
 * packing with less room may be found where one with more is not. UINT64_MAX
 * where no device will be as large as that. */
static uint64_t least_memory(const struct shortage *shortage)
{
    const struct cluster *cluster = &shortage->units->problem->cluster;
    uint32_t n = cluster->n_devices;
    uint64_t high = shortage->need.total, low = high / n, reserve = 0;

    for (uint32_t r = 0; r < n; r++) {
        if (!cluster_is_even(cluster) && shortage->units->room_bytes[r] < low)
            low = shortage->units->room_bytes[r];
        if (cluster->reserve_bytes[r] > reserve)
            reserve = cluster->reserve_bytes[r];
    }
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;

        if (fits(shortage, middle, n))
            high = middle;
        else
            low = middle;
    }
    if (high >= REMEDY_TOO_LARGE || reserve >= REMEDY_TOO_LARGE)
        return UINT64_MAX;
    for (high = remedy_round_up(high + reserve);
         !fits(shortage, high - reserve, n) && high < REMEDY_TOO_LARGE;)
        high = remedy_round_up(high + high / REMEDY_SIZE_STEPS + 1);
    return high;
}

/* The least number of such devices, or 0 where none helps. */
static uint32_t least_devices(const struct shortage *shortage)
{
    const struct cluster *cluster = &shortage->units->problem->cluster;
    uint32_t low, n = cluster->n_devices, high = n;

    do {
        if (high >= n * REMEDY_MAX_GROWTH)
            return 0;
        low = high;
        high *= 2;
    } while (!fits(shortage, 0, high));
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (fits(shortage, 0, middle))
            high = middle;
        else
            low = middle;
    }
    high = cluster_whole_hosts(cluster, high);
    while (!fits(shortage, 0, high))
        high = cluster_whole_hosts(cluster, high + 1);
    return high;
}

static void measure(struct shortage *shortage)
{
    const struct units *units = shortage->units;

    for (uint32_t r = 0; r < units->problem->cluster.n_devices; r++) {
        shortage->room += units->room_bytes[r];
        if (units->room_bytes[r] > shortage->largest_room)
            shortage->largest_room = units->room_bytes[r];
    }
    for (uint32_t u = 0; u < units->n_units; u++) {
        const struct unit *unit = &units->units[u];
        struct memory_items more;

        units_memory(units, unit->first_item + unit->start_level, &more);
        for (uint32_t k = 0; k <= unit->start_level; k++)
            memory_add(&shortage->need, &more);
    }
}

/* What is short, as the first half of a sentence. */
static const char *describe(const struct shortage *shortage)
{
    const struct units *units = shortage->units;
    const struct cluster *cluster = &units->problem->cluster;
    struct memory_items items;
    struct packing packing;
    const char *room = remedy_size(shortage->largest_room, shortage->arena);
    uint32_t stuck;
    int64_t pin;

    if (!pack(&packing, units, units->room_bytes, cluster->n_devices,
              shortage->arena))
        return "the search found no place for every table";
    stuck = packing.stuck;
    pin = units->units[units->items[stuck].unit].device;
    units_memory(units, stuck, &items);
    if (items.total > shortage->largest_room)
        return arena_printf(
            shortage->arena, "%s '%s' takes %s and the largest device has %s",
            units->items[stuck].level ? "the narrowest column piece of table"
                                      : "table",
            units_name(units, stuck), remedy_items(&items, shortage->arena),
            room);
    if (pin >= 0)
        return arena_printf(
            shortage->arena,
            "table '%s' takes %s and is pinned to device "
            "%" PRId64 ", which has %s for all its tables",
            units_name(units, stuck), remedy_items(&items, shortage->arena),
            pin, remedy_size(units->room_bytes[pin], shortage->arena));
    if (shortage->need.total > shortage->room)
        return arena_printf(
            shortage->arena, "the tables take %s and %u device%s %s %s in all",
            remedy_items(&shortage->need, shortage->arena), cluster->n_devices,
            cluster->n_devices == 1 ? "" : "s",
            cluster->n_devices == 1 ? "has" : "have",
            remedy_size(shortage->room, shortage->arena));
    return arena_printf(shortage->arena,
                        "table '%s' takes %s and finds no room beside the "
                        "others, which fill most of %s in all",
                        units_name(units, stuck),
                        remedy_items(&items, shortage->arena),
                        remedy_size(shortage->room, shortage->arena));
}

int no_plan(const struct units *units, struct err *err)
{
    const struct cluster *cluster = &units->problem->cluster;
    struct shortage shortage = {.units = units};
    struct arena arena;
    const char *least = cluster_is_even(cluster) ? "" : "at least ";
    const char *what, *memory_text;
    uint32_t n_devices;
    uint64_t memory;

    arena_init(&arena);
    shortage.arena = &arena;
    measure(&shortage);
    what = describe(&shortage);
    memory = least_memory(&shortage);
    memory_text = remedy_size(memory, &arena);
    n_devices = least_devices(&shortage);
    if (memory >= REMEDY_TOO_LARGE)
        err_set(err, ERR_NO_PLAN,
                "no plan fits: %s, and no device will be as large as that",
                what);
    else if (n_devices)
        err_set(err, ERR_NO_PLAN,
                "no plan fits: %s; it would fit with %s%s a device, or with %u "
                "such devices",
                what, least, memory_text, n_devices);
    else
        err_set(err, ERR_NO_PLAN,
                "no plan fits: %s; it would fit with %s%s a device", what,
                least, memory_text);
    arena_release(&arena);
    return -1;
}
