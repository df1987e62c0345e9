/* SPDX-License-Identifier: MIT */
#include "search/reshardable.h"

#include "core/reshard_rules.h"
#include "search/to_plan.h"

/* Lists the pieces in `before` as `standing`, without merging any. */
static void stand_as_they_are(struct current_plan *current, size_t n_tables,
                              struct arena *arena)
{
    size_t n = 0;

    for (size_t t = 0; t < n_tables; t++)
        n += current->before[t].n;
    current->shards = ARENA_NEW(arena, struct shard, n);
    current->n_shards = 0;
    for (size_t t = 0; t < n_tables; t++) {
        const struct table_pieces *before = &current->before[t];

        current->standing[t] = *before;
        current->standing[t].pieces = &current->shards[current->n_shards];
        for (size_t i = 0; i < before->n; i++) {
            struct shard *shard = &current->shards[current->n_shards++];

            *shard = before->pieces[i];
            shard->table = (uint32_t)t;
        }
    }
}

int reshardable_begin(struct current_plan *current, const struct plan *from,
                      const struct problem *problem, struct arena *arena,
                      struct err *err)
{
    const struct problem *before = &from->problem;
    const char *reason = reshard_bars_job(before, problem, current->before);

    if (reason)
        return err_input(err,
                         "the current plan has %zu tables on %u GPUs and the "
                         "new one %zu on %u: %s, which reshard cannot change",
                         before->n_tables, before->cluster.n_devices,
                         problem->n_tables, problem->cluster.n_devices, reason);
    for (size_t t = 0; t < problem->n_tables; t++) {
        const struct table *table = &problem->tables[t];

        reason = reshard_bars_table(current->before[t].table, table);
        if (reason)
            return err_input(err,
                             "table '%.80s' has %s than in the current plan, "
                             "which reshard cannot change",
                             table->name, reason);
    }
    stand_as_they_are(current, problem->n_tables, arena);
    current->keeps_cuts = true;
    return 0;
}

void reshardable_restrict(struct search_space *space, struct tuning *tuning)
{
    *tuning = *space->tuning;
    tuning->rebuilds = 0;
    for (unsigned mix = 0; mix < N_MOVE_MIXES; mix++)
        for (unsigned kind = 0; kind < N_CHANGE_KINDS; kind++)
            if (kind != CHANGE_MOVE && kind != CHANGE_SWAP)
                tuning->changes[mix][kind] = 0;
    space->tuning = tuning;
    for (uint32_t u = 0; u < space->n_units; u++) {
        struct unit *unit = &space->units[u];

        for (uint32_t k = 0; k < unit->n_tables; k++)
            unit->stays |=
                reshard_bars_pieces(&space->current->before[unit->tables[k]]) !=
                NULL;
    }
}

/* Returns whether a table has the same pieces in both plans, and on the same
 * devices if it stays. */
static bool is_kept(const struct table_pieces *before,
                    const struct table_pieces *after, bool stays)
{
    bool is_same = before->n == after->n;

    for (size_t i = 0; i < after->n && is_same; i++) {
        const struct shard *a = &before->pieces[i], *b = &after->pieces[i];

        is_same = a->kind == b->kind && a->row_begin == b->row_begin &&
                  a->row_end == b->row_end && a->col_begin == b->col_begin &&
                  a->col_end == b->col_end &&
                  (!stays || a->device == b->device);
    }
    return is_same;
}

int reshardable_check_nearest(const struct snapshot *nearest,
                              const struct search_space *space, struct err *err)
{
    const struct problem *problem = space->problem;
    struct plan plan = {.problem = *problem};
    struct arena arena = {0};
    struct table_pieces *pieces =
        ARENA_NEW(&arena, struct table_pieces, problem->n_tables);
    int rc = 0;

    snapshot_to_plan(nearest, space, &plan, &arena);
    table_pieces_find(pieces, problem->tables, problem->n_tables, &plan);
    for (uint32_t u = 0; u < space->n_units && !rc; u++)
        for (uint32_t k = 0; k < space->units[u].n_tables && !rc; k++) {
            const uint32_t t = space->units[u].tables[k];

            if (!is_kept(&space->current->standing[t], &pieces[t],
                         space->units[u].stays))
                rc = err_input(err,
                               "table '%.80s' cannot keep its pieces of the "
                               "current plan, because its kinds, pin, group "
                               "or the options exclude them, and reshard "
                               "cuts no table anew",
                               problem->tables[t].name);
        }
    arena_release(&arena);
    return rc;
}
