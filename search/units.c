/* SPDX-License-Identifier: MIT */
#include "search/units.h"

#include <inttypes.h>
#include <string.h>

/* Tables of one group become one unit, in canonical order of their first: a
 * permuted list has the same units, and ties that are broken by their numbers
 * are broken alike. All units share one array of members. O(n) but for groups,
 * each of which looks for its members once. */
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

/* A group is where any of its tables is pinned to; two that are pinned
 * elsewhere than each other cannot be kept together. */
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

int units_collect(struct units *units, const struct problem *problem,
                  const struct oracle *oracle, struct arena *arena,
                  struct err *err)
{
    *units = (struct units){.problem = problem, .oracle = oracle};
    collect_units(units, arena);
    for (uint32_t u = 0; u < units->n_units; u++)
        if (pin_unit(units, &units->units[u], err))
            return -1;
    units->room_bytes = ARENA_NEW(arena, uint64_t, problem->cluster.n_devices);
    for (uint32_t r = 0; r < problem->cluster.n_devices; r++) {
        units->room_bytes[r] = cluster_room_bytes(&problem->cluster, r);
        if (units->room_bytes[r] > units->most_room_bytes)
            units->most_room_bytes = units->room_bytes[r];
    }
    return 0;
}
