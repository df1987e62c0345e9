/* SPDX-License-Identifier: MIT */
#include "search/units.h"

#include "core/canonical.h"
#include "core/memory.h"
#include "core/target_rules.h"
#include "core/target_tiers.h"

#include <inttypes.h>

/* Sets the kinds, the pin and the device of a unit. The unit may be cut only as
 * the problem, the cost model and each of its tables allow. If a table of a
 * group is pinned to a device, the whole group is pinned to it. Returns
 * ERR_INPUT if two tables of one group are pinned to different devices, or if a
 * table is pinned to a device that does not exist. */
static int constrain_unit(const struct search_space *space, struct unit *unit,
                          struct err *err)
{
    const struct target_traits *target = problem_target(space->problem);
    const struct table *pinned = NULL;

    unit->first = &space->problem->tables[unit->tables[0]];
    unit->kinds = space->oracle->kinds;
    unit->widths_alike = unit->first->output == OUTPUT_SEQUENCE ||
                         target->widths == TARGET_WIDTHS_ALIKE;
    unit->keeps_apart = target->keeps_apart;
    unit->tiers = ALL_TIERS;
    unit->pin = -1;
    unit->device = space->n_devices < 2 ? 0 : NO_PIECE;
    for (uint32_t k = 0; k < unit->n_tables; k++) {
        const struct table *table = &space->problem->tables[unit->tables[k]];

        unit->kinds &= problem_kinds(space->problem, unit->tables[k]);
        unit->tiers &= problem_tiers(space->problem, unit->tables[k]);
        for (unsigned i = 0; i < N_SHARD_KINDS; i++)
            if (kind_changes_training(table, shard_traits[i].kind,
                                      space->problem->dense_optimizer))
                unit->changing |= shard_traits[i].kind;
        if (table->device < 0)
            continue;
        if (table->device >= space->n_devices)
            return err_set(err, ERR_INPUT,
                           "table '%s' is pinned to GPU %" PRId64
                           ", but there are %u GPUs",
                           table->name, table->device, space->n_devices);
        if (pinned && pinned->device != table->device)
            return err_set(
                err, ERR_INPUT,
                "group '%s' is pinned to two GPUs, by tables '%s' and '%s'",
                table->group, pinned->name, table->name);
        pinned = table;
        unit->pin = table->device;
        unit->device = (uint32_t)table->device;
    }
    return 0;
}

/* Merges the tables of each group into one unit. Units are numbered in the
 * canonical order of their first tables. So a permuted list has the same units,
 * and ties between unit numbers are broken in the same way. All units share one
 * array of members. The run time is O(n). In addition, the members of each
 * group are found by one more scan of the list. */
int space_collect(struct search_space *space, const struct problem *problem,
                  const struct oracle *oracle, struct arena *arena,
                  struct err *err)
{
    const uint32_t n_devices = problem->cluster.n_devices;
    const size_t n = problem->n_tables;
    uint64_t *room_bytes = ARENA_NEW(arena, uint64_t, n_devices);
    uint32_t *order = ARENA_NEW(arena, uint32_t, n);
    uint32_t *members = ARENA_NEW(arena, uint32_t, n);
    bool *taken = ARENA_NEW(arena, bool, n);

    *space = (struct search_space){.problem = problem,
                                   .oracle = oracle,
                                   .n_devices = n_devices,
                                   .room_bytes = room_bytes,
                                   .least_room_bytes = UINT64_MAX,
                                   .has_tiers = problem->cluster.host_bytes > 0,
                                   .tuning = &tuning_default,
                                   .arena = arena,
                                   .units = ARENA_NEW(arena, struct unit, n)};
    problem_room_bytes(problem, room_bytes);
    for (uint32_t r = 0; r < n_devices; r++) {
        space->all_room_bytes += (double)room_bytes[r];
        space->most_room_bytes = max_u64(space->most_room_bytes, room_bytes[r]);
        space->least_room_bytes =
            min_u64(space->least_room_bytes, room_bytes[r]);
    }
    tables_canonical_order(problem->tables, n, order);
    for (size_t i = 0; i < n; i++) {
        const char *group = problem->tables[order[i]].group;
        struct unit *unit = &space->units[space->n_units];

        if (taken[i])
            continue;
        unit->tables = members;
        for (size_t j = i; j < (group ? n : i + 1); j++)
            if (tables_share_group(problem, order[i], order[j])) {
                taken[j] = true;
                members[unit->n_tables++] = order[j];
            }
        members += unit->n_tables;
        space->n_units++;
        if (constrain_unit(space, unit, err))
            return -1;
    }
    return 0;
}
