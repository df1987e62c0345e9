/* SPDX-License-Identifier: MIT */
#include "search/carry_over.h"

#include "base/ranked.h"
#include "core/cluster.h"
#include "core/target_rules.h"
#include "search/evaluator.h"
#include "search/moves.h"
#include "search/to_plan.h"

#include <math.h>

/* --- pieces that keep their devices --- */

/*
 * Adds the blocks of sharding `cut` on the devices that hold them in the old
 * plan. Returns false if the pieces of the old plan are not these blocks. Two
 * cases differ:
 *
 *    If the oracle ties blocks to ranks, the blocks must stand on the devices
 * of all hosts or of one host, in order. They then grow with their table.
 *
 *    If the oracle does not tie blocks to ranks, their rows and columns must be
 *    those of the pieces of the old plan.
 */
static bool as_cut(struct snapshot *out, const struct search_space *space,
                   const struct sharding *cut, const struct table_pieces *old)
{
    const uint32_t n_devices = space->n_devices;
    const bool any = space->oracle->row_cut == ROW_CUT_ANY;
    const bool is_dealt =
        target_rows_of(space->problem, old->table) == TARGET_ROWS_DEALT;
    const uint32_t apart =
        cut->fills_host ? cluster_group(&space->problem->cluster) : n_devices;
    uint32_t n = 0, first = 0;

    for (uint32_t i = 0; i < cut->n_pieces; i++) {
        struct change piece = sharding_piece(space, cut, i);
        const struct piece_type *type = &space->types[piece.type];
        const struct shard *then = &old->pieces[n];
        struct shard now;

        if (!type->is_empty && n++ == old->n)
            return false;
        if (!piece.block)
            first = then->device;
        type_place_block(&now, type, piece.range, piece.block);
        piece.device = any ? then->device : first + piece.block;
        if (!type->is_empty &&
            (now.col_begin != then->col_begin || now.col_end != then->col_end ||
             piece.device != then->device ||
             (is_dealt ? false
              : any    ? now.row_begin != then->row_begin ||
                          now.row_end != then->row_end
                    : first % apart || first < type->first_device ||
                          then->device >= n_devices ||
                          (!cut->fills_host && old->n_devices != n_devices))))
            return false;
        if (piece.device >= n_devices)
            piece.device = NO_PIECE;
        *snapshot_next(out) = piece;
    }
    return n == old->n;
}

/* Adds the pieces of the unit on the devices that hold them in the old plan. A
 * piece whose device no longer exists gets device NO_PIECE, which means open.
 * Returns false if the unit can no longer be cut as in the old plan; *out may
 * have got some pieces even then. If the number of devices has changed,
 * replicas are not kept, because additional copies would be migration. */
static bool as_placed(struct snapshot *out, const struct search_space *space,
                      uint32_t unit, const struct table_pieces *old)
{
    const struct unit *entry = &space->units[unit];
    const enum shard_kind kind = old->n ? old->pieces[0].kind : SHARD_TABLE;
    const bool is_replica = shard_is_replica(kind);
    const uint32_t before = out->n;

    for (uint32_t i = 0; shard_cuts_rows(kind) && i < entry->n_shardings; i++) {
        if (entry->shardings[i].kind == SHARDING_ROWS &&
            as_cut(out, space, &entry->shardings[i], old))
            return true;
        out->n = before;
    }
    if (shard_cuts_rows(kind) ||
        (is_replica && old->n_devices != space->n_devices))
        return false;
    for (uint32_t i = 0; i < old->n; i++) {
        const struct shard *piece = &old->pieces[i];
        struct change now = {.range = i};

        now.type = is_replica
                       ? entry->replica
                       : space_type_of_width(space, unit,
                                             piece->col_end - piece->col_begin,
                                             piece->tier);
        if (now.type == NO_TYPE)
            return false;
        now.device =
            piece->device < space->n_devices ? piece->device : NO_PIECE;
        *snapshot_next(out) = now;
    }
    return old->n > 0;
}

bool snapshot_from_plan(struct snapshot *out, const struct search_space *space,
                        const struct plan *plan)
{
    const struct problem *problem = space->problem;
    struct table_pieces *by_table =
        mem_alloc(problem->n_tables, sizeof(*by_table));
    bool is_fine = true;

    out->n = 0;
    table_pieces_find(by_table, problem->tables, problem->n_tables, plan);
    for (uint32_t u = 0; is_fine && u < space->n_units; u++)
        is_fine =
            as_placed(out, space, u, &by_table[space->units[u].tables[0]]);
    mem_free(by_table);
    return is_fine && snapshot_join(out, space);
}

/* --- pieces that need a new device --- */

/* Places an open piece on a device. If `open` is NULL, it places the whole unit
 * in one of its shardings instead. Takes the choice that exceeds the limits
 * least, and the cheapest one if several exceed them equally. Returns false if
 * nothing was placed: an open piece stays open if every device already holds
 * other pieces of its rows. */
static bool place(struct evaluator *evaluator, uint32_t unit,
                  const struct change *open)
{
    const struct search_space *space = evaluator->assignment.space;
    struct candidate *candidate = &evaluator->candidate;
    const uint32_t n = open ? space->n_devices : space->units[unit].n_shardings;

    evaluator_seek(evaluator, INFINITY, INFINITY);
    for (uint32_t way = 0; way < n; way++) {
        struct rng rng;

        candidate_clear(candidate);
        rng_init(&rng, way, 0);
        if (open) {
            candidate_add(candidate, *open);
            candidate->changes.pieces->device = way;
        } else {
            const struct sharding *sharding =
                &space->units[unit].shardings[way];

            rebuild(candidate, &evaluator->assignment, &sharding, 1, &rng);
        }
        evaluator_note(evaluator, evaluator_price(evaluator));
    }
    return evaluator_make(evaluator);
}

/* --- all units --- */

/* Adds all pieces that keep their devices first. Then places all other pieces,
 * beginning with those of the most expensive units. If an open piece finds no
 * device, its unit is placed anew. */
void carry_over(struct snapshot *out, const struct search_space *space)
{
    struct ranked *order = mem_alloc(space->n_units, sizeof(*order));
    struct snapshot open = {0}, unit = {0};
    struct evaluator evaluator;

    evaluator_init(&evaluator, space);
    evaluator.assignment.is_partial = true;
    out->n = 0;
    for (uint32_t u = 0; u < space->n_units; u++) {
        order[u] = (struct ranked){-space->units[u].shardings[0].load_ms, u};
        unit.n = 0;
        if (space->units[u].pin >= 0 ||
            !as_placed(&unit, space, u,
                       &space->current->standing[space->units[u].tables[0]]))
            continue;
        for (uint32_t i = 0; i < unit.n; i++)
            *snapshot_next(unit.pieces[i].device == NO_PIECE ? &open : out) =
                unit.pieces[i];
    }
    snapshot_load(out, &evaluator.assignment);
    ranked_sort(order, space->n_units);
    for (uint32_t i = 0; i < space->n_units; i++) {
        uint32_t u = order[i].idx;
        bool is_placed = true;

        for (uint32_t k = 0; k < open.n && is_placed; k++)
            if (space->types[open.pieces[k].type].unit == u)
                is_placed = place(&evaluator, u, &open.pieces[k]);
        if (!is_placed || evaluator.assignment.first_of[u] == NO_PIECE)
            (void)place(&evaluator, u, NULL);
    }
    snapshot_save(out, &evaluator.assignment);
    snapshot_release(&open);
    snapshot_release(&unit);
    evaluator_release(&evaluator);
    mem_free(order);
}

void current_keep_nearest(struct current_plan *current,
                          const struct snapshot *nearest,
                          const struct search_space *space, struct arena *arena)
{
    uint32_t *begins = ARENA_NEW(arena, uint32_t, space->n_units + 1);
    uint32_t *next = ARENA_NEW(arena, uint32_t, space->n_units);

    for (uint32_t i = 0; i < nearest->n; i++)
        begins[space->types[nearest->pieces[i].type].unit + 1]++;
    for (uint32_t u = 0; u < space->n_units; u++) {
        begins[u + 1] += begins[u];
        next[u] = begins[u];
    }
    current->nearest = ARENA_NEW(arena, struct change, nearest->n);
    for (uint32_t i = nearest->n; i-- > 0;)
        current->nearest[next[space->types[nearest->pieces[i].type].unit]++] =
            nearest->pieces[i];
    current->nearest_of = begins;
}
