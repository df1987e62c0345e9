/* SPDX-License-Identifier: MIT */
#include "search/pack.h"

#include <inttypes.h>
#include <math.h>

#include "base/text.h"

/* More GPUs than this many times those there are, nobody buys. */
#define MAX_GROWTH 64
/* Nor a GPU of an exbibyte. */
#define TOO_LARGE ((uint64_t)1 << 60)
/* Sizes are raised by one part in so many. */
#define SIZE_STEPS 1024

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

/* Up to the next size that prints in three digits, so that who types what was
 * printed has enough. */
static uint64_t round_up(uint64_t bytes)
{
    double unit = 1, step;

    while ((double)bytes >= 1024 * unit)
        unit *= 1024;
    step = (double)bytes >= 100 * unit  ? unit
           : (double)bytes >= 10 * unit ? unit / 10
                                        : unit / 100;
    return (uint64_t)round(ceil((double)bytes / step) * step);
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
    if (high >= TOO_LARGE || reserve >= TOO_LARGE)
        return UINT64_MAX;
    for (high = round_up(high + reserve);
         !fits(shortage, high - reserve, n) && high < TOO_LARGE;)
        high = round_up(high + high / SIZE_STEPS + 1);
    return high;
}

/* The least number of such devices, or 0 where none helps. */
static uint32_t least_devices(const struct shortage *shortage)
{
    uint32_t n = shortage->units->problem->cluster.n_devices;
    uint32_t low, high = n;

    do {
        if (high >= n * MAX_GROWTH)
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

static const char *size_text(const struct shortage *shortage, uint64_t bytes)
{
    char buf[TEXT_BYTES_MAX];

    return arena_strdup(shortage->arena, text_from_bytes(buf, (double)bytes));
}

static const char *items_text(const struct shortage *shortage,
                              const struct memory_items *items)
{
    return arena_printf(
        shortage->arena, "%s (weights %s, optimizer %s, io %s)",
        size_text(shortage, items->total), size_text(shortage, items->weights),
        size_text(shortage, items->optimizer), size_text(shortage, items->io));
}

/* What is short, as the first half of a sentence. */
static const char *describe(const struct shortage *shortage)
{
    const struct units *units = shortage->units;
    const struct cluster *cluster = &units->problem->cluster;
    struct memory_items items;
    struct packing packing;
    const char *room = size_text(shortage, shortage->largest_room);
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
            units_name(units, stuck), items_text(shortage, &items), room);
    if (pin >= 0)
        return arena_printf(shortage->arena,
                            "table '%s' takes %s and is pinned to device "
                            "%" PRId64 ", which has %s for all its tables",
                            units_name(units, stuck),
                            items_text(shortage, &items), pin,
                            size_text(shortage, units->room_bytes[pin]));
    if (shortage->need.total > shortage->room)
        return arena_printf(
            shortage->arena, "the tables take %s and %u device%s %s %s in all",
            items_text(shortage, &shortage->need), cluster->n_devices,
            cluster->n_devices == 1 ? "" : "s",
            cluster->n_devices == 1 ? "has" : "have",
            size_text(shortage, shortage->room));
    return arena_printf(shortage->arena,
                        "table '%s' takes %s and finds no room beside the "
                        "others, which fill most of %s in all",
                        units_name(units, stuck), items_text(shortage, &items),
                        size_text(shortage, shortage->room));
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
    memory_text = size_text(&shortage, memory);
    n_devices = least_devices(&shortage);
    if (memory >= TOO_LARGE)
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
