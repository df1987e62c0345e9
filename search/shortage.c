/* SPDX-License-Identifier: MIT */
#include "search/shortage.h"

#include <inttypes.h>
#include <math.h>

#include "search/build.h"
#include "search/remedy.h"

#define MAX_DEVICES 65536

struct question {
    const struct problem *problem;
    const struct oracle *oracle;
    struct arena arena;
    uint32_t roomiest; /* device; further ones are like it */
};

/* Whether it packs with devices of at least so much memory, so many of them,
 * and these kinds allowed to all tables besides their own. */
static bool fits(struct question *question, uint64_t least_memory,
                 uint32_t n_devices, unsigned more_kinds)
{
    struct arena *arena = &question->arena;
    struct arena_mark mark = arena_mark(arena);
    struct problem problem = *question->problem;
    struct cluster *cluster = &problem.cluster;
    const struct cluster *given = &question->problem->cluster;
    struct snapshot packed = {0};
    struct units units;
    struct parts parts;
    struct err ignored;
    uint32_t stuck;
    bool yes;

    cluster->n_devices = n_devices;
    if (given->host_size)
        cluster->devices_per_host =
            cluster_assumed_host(n_devices, given->host_size);
    else if (given->devices_per_host >= given->n_devices)
        cluster->devices_per_host = n_devices; /* one host holds all */
    cluster->memory_bytes = ARENA_NEW(arena, uint64_t, n_devices);
    cluster->reserve_bytes = ARENA_NEW(arena, uint64_t, n_devices);
    for (uint32_t r = 0; r < n_devices; r++) {
        uint32_t like = r < given->n_devices ? r : question->roomiest;

        cluster->memory_bytes[r] = given->memory_bytes[like];
        cluster->reserve_bytes[r] = given->reserve_bytes[like];
        cluster_raise_memory(cluster, r, least_memory);
    }
    problem.kinds |= more_kinds;
    problem.tables = ARENA_NEW(arena, struct table, problem.n_tables);
    for (size_t i = 0; i < problem.n_tables; i++) {
        problem.tables[i] = question->problem->tables[i];
        problem.tables[i].kinds |= more_kinds;
    }
    yes = !units_collect(&units, &problem, question->oracle, arena, &ignored) &&
          !parts_init_unpriced(&parts, &units, arena, &ignored) &&
          build_by_memory(&packed, &parts, &stuck);
    snapshot_release(&packed);
    arena_rewind(arena, mark);
    return yes;
}

/* The least memory with which all packs where no device has less, as it is
 * printed: a packing with less room may be found where one with more is not.
 * 0 where none does. */
static uint64_t least_memory(struct question *question)
{
    const struct cluster *cluster = &question->problem->cluster;
    uint32_t n = cluster->n_devices;
    uint64_t low = cluster->memory_bytes[0], high;

    for (uint32_t r = 1; r < n; r++)
        if (cluster->memory_bytes[r] < low)
            low = cluster->memory_bytes[r];
    high = low;
    do {
        if (high >= REMEDY_TOO_LARGE)
            return 0;
        low = high;
        high = 2 * high + 1;
    } while (!fits(question, high, n, 0));
    while (high - low > high / REMEDY_SIZE_STEPS + 1) {
        uint64_t middle = low + (high - low) / 2;

        if (fits(question, middle, n, 0))
            high = middle;
        else
            low = middle;
    }
    for (high = remedy_round_up(high); !fits(question, high, n, 0);)
        high = remedy_round_up(high + high / REMEDY_SIZE_STEPS + 1);
    return high;
}

/* The least number of such devices, in whole hosts if there are several; 0
 * where none helps. */
static uint32_t least_devices(struct question *question)
{
    const struct cluster *cluster = &question->problem->cluster;
    uint32_t n = cluster->n_devices;
    uint32_t step = cluster_group(cluster) < n && !cluster->host_size
                        ? cluster_group(cluster)
                        : 1;
    uint32_t low, high = n / step;

    do {
        low = high;
        high *= 2;
        if (high * step > MAX_DEVICES || high * step > n * REMEDY_MAX_GROWTH)
            return 0;
    } while (!fits(question, 0, high * step, 0));
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;

        if (fits(question, 0, middle * step, 0))
            high = middle;
        else
            low = middle;
    }
    high = cluster_whole_hosts(cluster, high * step);
    while (!fits(question, 0, high, 0))
        high = cluster_whole_hosts(cluster, high + 1);
    return high;
}

/* The one kind more with which it fits; 0 where none helps alone. */
static unsigned missing_kind(struct question *question)
{
    static const unsigned kinds[] = {SHARD_COLUMN, SHARD_ROW, SHARD_TABLE};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if ((question->oracle->kinds & kinds[i]) &&
            fits(question, 0, question->problem->cluster.n_devices, kinds[i]))
            return kinds[i];
    return 0;
}

static struct memory_items whole_memory(const struct parts *parts,
                                        uint32_t unit)
{
    const struct unit *of = parts->of[unit].unit;
    struct memory_items sum = {0}, items;

    for (uint32_t k = 0; k < of->n_tables; k++) {
        struct shard shard = shard_whole(parts->problem, of->tables[k], 0);

        shard_memory(&items, parts->problem, &shard);
        memory_add(&sum, &items);
    }
    return sum;
}

/* The least room that a device must have for some form of the unit. */
static uint64_t least_piece(const struct parts *parts, uint32_t unit)
{
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < forms_count(parts, unit); i++) {
        uint64_t peak =
            forms_figures(parts, unit, forms_get(parts, unit, i)).peak_bytes;

        if (peak < least)
            least = peak;
    }
    return least;
}

/* What is short, as the first half of a sentence. */
static const char *describe(struct question *question,
                            const struct parts *parts, uint32_t stuck)
{
    const struct units *units = parts->units;
    const struct unit *unit = parts->of[stuck].unit;
    uint32_t n = question->problem->cluster.n_devices;
    const char *name = question->problem->tables[unit->tables[0]].name;
    struct memory_items mine = whole_memory(parts, stuck), all = {0};
    uint64_t room = 0, largest = 0, piece = least_piece(parts, stuck);

    for (uint32_t r = 0; r < n; r++) {
        room += units->room_bytes[r];
        if (units->room_bytes[r] > largest)
            largest = units->room_bytes[r];
    }
    for (uint32_t u = 0; u < parts->n_units; u++) {
        struct memory_items more = whole_memory(parts, u);

        memory_add(&all, &more);
    }
    if (piece > largest)
        return arena_printf(
            &question->arena,
            "table '%s' takes %s, cut as small as may be %s a piece, and the "
            "largest device has %s",
            name, remedy_items(&mine, &question->arena),
            remedy_size(piece, &question->arena),
            remedy_size(largest, &question->arena));
    if (all.total > room)
        return arena_printf(&question->arena,
                            "the tables take %s and %u device%s %s in all, so "
                            "that table '%s' cannot be placed",
                            remedy_items(&all, &question->arena), n,
                            n == 1 ? " has" : "s have",
                            remedy_size(room, &question->arena), name);
    if (unit->device >= 0)
        return arena_printf(
            &question->arena,
            "table '%s' takes %s and is pinned to device "
            "%" PRId64 ", which has %s for all its tables",
            name, remedy_items(&mine, &question->arena), unit->device,
            remedy_size(units->room_bytes[unit->device], &question->arena));
    return arena_printf(&question->arena,
                        "table '%s' takes %s and finds no room beside the "
                        "others, which fill most of %s in all",
                        name, remedy_items(&mine, &question->arena),
                        remedy_size(room, &question->arena));
}

int shortage_report(const struct problem *problem, const struct oracle *oracle,
                    const struct parts *parts, uint32_t stuck, struct err *err)
{
    struct question question = {.problem = problem, .oracle = oracle};
    const bool is_even = cluster_is_even(&problem->cluster);
    const char *what, *remedy = "";
    uint32_t n_devices;
    uint64_t memory;
    unsigned kind;

    arena_init(&question.arena);
    for (uint32_t r = 1; r < problem->cluster.n_devices; r++)
        if (parts->units->room_bytes[r] >
            parts->units->room_bytes[question.roomiest])
            question.roomiest = r;
    what = describe(&question, parts, stuck);
    memory = least_memory(&question);
    n_devices = least_devices(&question);
    kind = missing_kind(&question);
    if (memory)
        remedy = arena_printf(&question.arena, "%s%s a device",
                              is_even ? "" : "at least ",
                              remedy_size(memory, &question.arena));
    if (n_devices)
        remedy = arena_printf(&question.arena, "%s%s%u %s", remedy,
                              *remedy ? ", or with " : "", n_devices,
                              is_even ? "such devices"
                                      : "devices, the new ones as roomy as the "
                                        "roomiest");
    if (kind)
        remedy = arena_printf(&question.arena, "%s%s%s%s allowed", remedy,
                              *remedy ? ", or with " : "",
                              kind == SHARD_TABLE
                                  ? "whole"
                                  : shard_kind_name((enum shard_kind)kind),
                              kind == SHARD_TABLE ? " tables" : " cuts");
    if (*remedy)
        err_set(err, ERR_NO_PLAN, "no plan fits: %s; it would fit with %s",
                what, remedy);
    else
        err_set(err, ERR_NO_PLAN,
                "no plan fits: %s; no larger, more or otherwise cut devices "
                "were found that would do",
                what);
    arena_release(&question.arena);
    return -1;
}
