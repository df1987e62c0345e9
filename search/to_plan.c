/* SPDX-License-Identifier: MIT */
#include "search/to_plan.h"

#include "base/ranked.h"
#include "core/target_rules.h"

#include <stdlib.h>
#include <string.h>

/* --- columns --- */

/* Returns the number of columns that the piece of the old plan has in the range
 * from `begin` to `end` - 1. */
static uint32_t common_columns(const struct shard *old, uint32_t begin,
                               uint32_t end)
{
    begin = old->col_begin > begin ? old->col_begin : begin;
    end = old->col_end < end ? old->col_end : end;
    return begin < end ? end - begin : 0;
}

/* Returns the index of one of the n remaining pieces: the piece that gets the
 * columns from `col` on. The regret of a piece is a difference. It is the
 * number of columns that its device could keep if the piece came later, less
 * the number that the device keeps if the piece comes now. The piece with the
 * least regret is chosen. Ties go to the piece that keeps the most columns now,
 * then to the widest piece, then to the lowest device. */
static uint32_t choose_next(const struct table_pieces *before,
                            const struct search_space *space,
                            const struct change *pieces, uint32_t n,
                            uint32_t col)
{
    uint64_t least[4];
    uint32_t best = 0;

    for (uint32_t p = 0; p < n; p++) {
        const uint32_t width = space->types[pieces[p].type].width;
        uint32_t here = 0, most = 0;

        for (size_t i = 0; i < before->n; i++) {
            const struct shard *old = &before->pieces[i];

            if (old->device != pieces[p].device)
                continue;
            here += common_columns(old, col, col + width);
            most += common_columns(old, col, UINT32_MAX);
        }
        most = most < width ? most : width;
        const uint64_t keys[] = {most - here, UINT32_MAX - here,
                                 UINT32_MAX - width, pieces[p].device};
        if (p == 0 || ranked_compare(keys, least, 4) < 0) {
            memcpy(least, keys, sizeof(keys));
            best = p;
        }
    }
    return best;
}

/* Returns the index of the piece with the least range. */
static uint32_t first_range(const struct change *pieces, uint32_t n)
{
    uint32_t best = 0;

    for (uint32_t p = 1; p < n; p++)
        if (pieces[p].range < pieces[best].range)
            best = p;
    return best;
}

void current_order(const struct search_space *space, uint32_t table,
                   struct change *pieces, uint32_t n)
{
    const struct table_pieces *before = &space->current->before[table];
    const bool keeps_cuts = space->current->keeps_cuts;
    uint32_t col = 0;

    if (!before->table)
        return;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t p = i + (keeps_cuts ? first_range(pieces + i, n - i)
                                     : choose_next(before, space, pieces + i,
                                                   n - i, col));
        struct change next = pieces[p];

        pieces[p] = pieces[i];
        pieces[i] = next;
        col += space->types[next.type].width;
    }
}

/* --- shards --- */

/* A piece and its sort keys. The first key is the unit of the piece. */
#define N_KEYS 5
struct placed_piece {
    uint64_t keys[N_KEYS];
    struct change piece;
};

static int compare_placed(const void *left, const void *right)
{
    return ranked_compare(left, right, N_KEYS);
}

/* Sorts pieces by unit. Within a unit, the widest pieces come first, and the
 * pieces of one column range are neighbours. If by_device is set, pieces are
 * sorted by device within a unit, so that pieces on one device are
 * neighbours. */
static void sort_pieces(struct change *pieces, uint32_t n,
                        const struct search_space *space, bool by_device)
{
    struct placed_piece *placed = mem_alloc(n, sizeof(*placed));

    for (uint32_t i = 0; i < n; i++) {
        const struct change it = pieces[i];
        const uint32_t width = space->types[it.type].width;

        placed[i] = (struct placed_piece){
            {space->types[it.type].unit, by_device ? it.device : ~width,
             it.range, it.block, by_device ? it.type : it.device},
            it};
    }
    qsort(placed, n, sizeof(*placed), compare_placed);
    for (uint32_t i = 0; i < n; i++)
        pieces[i] = placed[i].piece;
    mem_free(placed);
}

/* An assignment stores the widths of pieces but not their columns. Only this
 * function assigns column numbers. */
void pieces_to_shards(struct shard *shards, const struct search_space *space,
                      uint32_t table, const struct change *pieces, uint32_t n)
{
    uint32_t col = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct piece_type *type = &space->types[pieces[i].type];
        struct shard *shard = &shards[i];

        *shard = shard_whole(space->problem, table, pieces[i].device);
        shard->kind = type->kind;
        shard->tier = type->tier;
        if (shard_cuts_rows(shard->kind))
            type_place_block(shard, type, pieces[i].range, pieces[i].block);
        if (shard->kind == SHARD_COLUMN) {
            shard->col_begin = col;
            shard->col_end = col += type->width;
        }
    }
}

/* Writes the shards of all pieces to the plan. The tables of a group are placed
 * as one piece, but each table of the group gets its own shard. */
void snapshot_to_plan(const struct snapshot *snapshot,
                      const struct search_space *space, struct plan *plan,
                      struct arena *arena)
{
    struct snapshot sorted = {0};
    size_t n = 0;

    for (uint32_t i = 0; i < snapshot->n; i++)
        if (!space->types[snapshot->pieces[i].type].is_empty)
            *snapshot_next(&sorted) = snapshot->pieces[i];
    sort_pieces(sorted.pieces, sorted.n, space, false);
    for (uint32_t i = 0; i < sorted.n; i++)
        n += space->units[space->types[sorted.pieces[i].type].unit].n_tables;
    plan->shards = ARENA_NEW(arena, struct shard, n);
    plan->n_shards = 0;
    for (uint32_t begin = 0, end; begin < sorted.n; begin = end) {
        struct change *pieces = sorted.pieces + begin;
        const uint32_t u = space->types[pieces->type].unit;
        const struct unit *unit = &space->units[u];

        for (end = begin;
             end < sorted.n && space->types[sorted.pieces[end].type].unit == u;
             end++)
            continue;
        if (space->current && space->types[pieces->type].kind == SHARD_COLUMN)
            current_order(space, unit->tables[0], pieces, end - begin);
        for (uint32_t k = 0; k < unit->n_tables; k++) {
            pieces_to_shards(plan->shards + plan->n_shards, space,
                             unit->tables[k], pieces, end - begin);
            target_deal(space->problem, plan->shards + plan->n_shards,
                        end - begin);
            plan->n_shards += end - begin;
        }
    }
    plan->shard_ms = NULL; /* the old costs belonged to other shards */
    plan_sort_shards(plan);
    snapshot_release(&sorted);
}

/* Merges pieces of one unit on one device. Pieces are sorted by unit and device
 * first, so pieces to merge are neighbours. */
bool snapshot_join(struct snapshot *snapshot, const struct search_space *space)
{
    const uint32_t n = snapshot->n;
    bool is_fine = true;

    sort_pieces(snapshot->pieces, n, space, true);
    snapshot->n = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct change next = snapshot->pieces[i];
        struct change *last =
            snapshot->n ? &snapshot->pieces[snapshot->n - 1] : NULL;
        uint32_t type = NO_TYPE;

        if (last && last->device == next.device &&
            space->types[last->type].unit == space->types[next.type].unit &&
            space_width_steps(space, last->type)) {
            type = space_joined_type(space, last->type, next.type);
            is_fine = is_fine && type != NO_TYPE;
        }
        if (type == NO_TYPE)
            snapshot->pieces[snapshot->n++] = next;
        else
            last->type = type;
    }
    return is_fine;
}
