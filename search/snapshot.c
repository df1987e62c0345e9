/* SPDX-License-Identifier: MIT */
#include "search/snapshot.h"

#include "search/homes.h"
#include "search/join.h"

#include <stdlib.h>
#include <string.h>

void snapshot_release(struct snapshot *snapshot)
{
    mem_free(snapshot->pieces);
    *snapshot = (struct snapshot){0};
}

static void reserve(struct snapshot *snapshot, uint32_t n)
{
    if (snapshot->capacity >= n)
        return;
    snapshot->capacity = n + n / 2 + 8;
    snapshot->pieces = mem_grow(snapshot->pieces, snapshot->capacity,
                                sizeof(*snapshot->pieces));
}

void snapshot_add(struct snapshot *snapshot, struct change piece)
{
    reserve(snapshot, snapshot->n + 1);
    snapshot->pieces[snapshot->n++] = piece;
}

void snapshot_copy(struct snapshot *to, const struct snapshot *from)
{
    reserve(to, from->n);
    if (from->n)
        memcpy(to->pieces, from->pieces, from->n * sizeof(*to->pieces));
    to->n = from->n;
    to->total_ms = from->total_ms;
}

void snapshot_save(struct snapshot *snapshot, const struct layout *layout)
{
    snapshot->n = 0;
    reserve(snapshot, layout->n_live);
    for (uint32_t i = 0; i < layout->n_pieces; i++) {
        const struct piece *piece = &layout->pieces[i];

        if (piece->part != NO_PART)
            snapshot->pieces[snapshot->n++] =
                (struct change){.piece = NO_PIECE,
                                .part = piece->part,
                                .device = piece->device,
                                .range = piece->range,
                                .block = piece->block};
    }
    snapshot->total_ms = layout->total_ms;
}

void snapshot_load(const struct snapshot *snapshot, struct layout *layout)
{
    layout_clear(layout);
    for (uint32_t i = 0; i < snapshot->n; i++)
        layout_insert(layout, &snapshot->pieces[i]);
    layout_price(layout);
}

double snapshot_price(struct snapshot *snapshot, const struct parts *parts)
{
    struct layout layout;
    double excess;

    layout_init(&layout, parts);
    snapshot_load(snapshot, &layout);
    snapshot->total_ms = layout_true_total(&layout);
    excess = layout.excess;
    layout_release(&layout);
    return excess;
}

struct placed {
    uint32_t unit, rank, width, range, block, device;
    const struct part *part;
};

/* Pieces of one range follow each other; wide ranges come first. Halves stay
 * in their order. */
static int compare_placed(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;

    if (a->unit != b->unit)
        return a->unit < b->unit ? -1 : 1;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->width != b->width)
        return a->width > b->width ? -1 : 1;
    if (a->range != b->range)
        return a->range < b->range ? -1 : 1;
    if (a->block != b->block)
        return a->block < b->block ? -1 : 1;
    return (a->device > b->device) - (a->device < b->device);
}

static size_t count_shards(const struct snapshot *snapshot,
                           const struct parts *parts)
{
    size_t n = 0;

    for (uint32_t i = 0; i < snapshot->n; i++) {
        uint32_t unit = parts->parts[snapshot->pieces[i].part].unit;

        n += parts->of[unit].unit->n_tables;
    }
    return n;
}

/* Gives out the columns of one piece; col is where its unit's go on. */
static struct shard place_shard(const struct parts *parts,
                                const struct placed *piece, uint32_t table,
                                uint32_t col)
{
    struct shard shard = shard_whole(parts->problem, table, piece->device);

    shard.kind = piece->part->kind;
    if (shard.kind & (SHARD_ROW | SHARD_GRID))
        parts_place_block(&shard, piece->part, piece->range, piece->block);
    if (shard.kind == SHARD_COLUMN) {
        shard.col_begin = col;
        shard.col_end = col + piece->width;
    }
    return shard;
}

/* A plan that replaces another gives the columns out such that few move. */
static void order_by_homes(const struct parts *parts, struct placed *placed,
                           uint32_t n)
{
    struct column_piece *order = mem_alloc(n, sizeof(*order));
    struct placed *copy = mem_alloc(n, sizeof(*copy));

    for (uint32_t begin = 0, end; begin < n; begin = end) {
        for (end = begin; end < n && placed[end].unit == placed[begin].unit;
             end++) {
            copy[end - begin] = placed[end];
            order[end - begin] = (struct column_piece){
                placed[end].width, placed[end].device, end - begin};
        }
        if (placed[begin].part->kind != SHARD_COLUMN)
            continue;
        homes_order(parts->homes, parts->of[placed[begin].unit].unit->tables[0],
                    order, end - begin);
        for (uint32_t i = begin; i < end; i++)
            placed[i] = copy[order[i - begin].idx];
    }
    mem_free(order);
    mem_free(copy);
}

void snapshot_to_plan(const struct snapshot *snapshot,
                      const struct parts *parts, struct plan *plan,
                      struct arena *arena)
{
    struct placed *placed = mem_alloc(snapshot->n, sizeof(*placed));
    uint32_t col = 0;
    size_t n = 0;

    for (uint32_t i = 0; i < snapshot->n; i++) {
        const struct change *piece = &snapshot->pieces[i];
        const struct part *part = &parts->parts[piece->part];

        placed[i] = (struct placed){part->unit,   parts->is_halved ? i : 0,
                                    part->width,  piece->range,
                                    piece->block, piece->device,
                                    part};
    }
    qsort(placed, snapshot->n, sizeof(*placed), compare_placed);
    if (parts->homes)
        order_by_homes(parts, placed, snapshot->n);
    plan->shards =
        ARENA_NEW(arena, struct shard, count_shards(snapshot, parts));
    for (uint32_t i = 0; i < snapshot->n; i++) {
        const struct placed *piece = &placed[i], *before = piece - 1;
        const struct unit *unit = parts->of[piece->unit].unit;

        if (!i || before->unit != piece->unit)
            col = 0;
        else if (!piece->block) /* another range begins */
            col += before->width;
        for (uint32_t k = 0; k < unit->n_tables; k++)
            plan->shards[n++] = place_shard(parts, piece, unit->tables[k], col);
    }
    plan->n_shards = n;
    plan->shard_ms = NULL; /* of other shards */
    plan_sort_shards(plan);
    mem_free(placed);
}

bool snapshot_from_plan(struct snapshot *snapshot, const struct parts *parts,
                        const struct plan *plan)
{
    uint32_t *unit_of = mem_alloc(parts->problem->n_tables, sizeof(*unit_of));
    bool fits = true;

    for (uint32_t u = 0; u < parts->n_units; u++)
        for (uint32_t k = 1; k < parts->of[u].unit->n_tables; k++)
            unit_of[parts->of[u].unit->tables[k]] = NO_PART;
    for (uint32_t u = 0; u < parts->n_units; u++)
        unit_of[parts->of[u].unit->tables[0]] = u;
    snapshot->n = 0;
    for (size_t i = 0; i < plan->n_shards && fits; i++) {
        const struct shard *shard = &plan->shards[i];
        uint32_t unit = unit_of[shard->table], part;

        if (unit == NO_PART)
            continue; /* the group's first table stands for all */
        part = parts_of_width(parts, unit, shard->col_end - shard->col_begin);
        fits = part != NO_PART && (shard->kind & (SHARD_TABLE | SHARD_COLUMN));
        if (fits)
            snapshot_add(snapshot, (struct change){.piece = NO_PIECE,
                                                   .part = part,
                                                   .device = shard->device,
                                                   .range = shard->col_begin});
    }
    mem_free(unit_of);
    /* Which sorts them: nothing may hang on the order of the input. */
    return fits && snapshot_join(snapshot, parts);
}
