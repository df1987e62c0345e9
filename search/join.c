/* SPDX-License-Identifier: MIT */
#include "search/join.h"

#include <stdlib.h>

/* Row blocks are looked at in trials of so few changes; larger ones put a whole
 * table anew, which sets them apart by itself. */
#define MAX_BLOCKS 32

static uint32_t unit_of(const struct layout *layout, uint32_t part)
{
    return layout->parts->parts[part].unit;
}

static uint32_t joined(const struct parts *parts, uint32_t a, uint32_t b)
{
    return parts_of_width(parts, parts->parts[a].unit,
                          parts->parts[a].width + parts->parts[b].width);
}

/* --- columns --- */

/* Change c, which puts a piece where change `into` puts one, becomes part of
 * that; true where c is another change then. */
static bool join_change(struct trial *trial, uint32_t c, uint32_t into,
                        uint32_t part)
{
    trial->changes[into].part = part;
    trial->changes[c].part = NO_PART;
    if (trial->changes[c].piece != NO_PIECE)
        return false; /* it goes */
    trial->changes[c] = trial->changes[--trial->n_changes];
    return true;
}

/* What the trial puts of this unit, by device. */
static bool join_changes(struct trial *trial, const struct layout *layout,
                         uint32_t unit)
{
    bool is_fine = true;

    for (uint32_t c = 0; c < trial->n_changes; c++) {
        const struct change *change = &trial->changes[c];
        uint32_t *first, part;

        if (change->part == NO_PART || unit_of(layout, change->part) != unit)
            continue;
        first = &trial->first_on[change->device];
        if (*first == NO_PIECE) {
            *first = c;
            continue;
        }
        part = joined(layout->parts, trial->changes[*first].part, change->part);
        is_fine = is_fine && part != NO_PART;
        if (part != NO_PART)
            c -= join_change(trial, c, *first, part);
    }
    return is_fine;
}

/* What the layout has there already. */
static bool join_held(struct trial *trial, const struct layout *layout,
                      uint32_t unit)
{
    uint32_t next = 0, piece, into, part;
    bool is_fine = true;

    for (piece = layout->first_of[unit]; piece != NO_PIECE;
         piece = layout->pieces[piece].next) {
        into = trial->first_on[layout->pieces[piece].device];
        if (into == NO_PIECE || trial_find(trial, piece, &next))
            continue;
        part = joined(layout->parts, trial->changes[into].part,
                      layout->pieces[piece].part);
        is_fine = is_fine && part != NO_PART;
        if (part == NO_PART)
            continue;
        trial->changes[into].part = part;
        trial_remove(trial, piece);
    }
    return is_fine;
}

/* Whether all pieces that the unit has then are alike. */
static bool are_alike(const struct trial *trial, const struct layout *layout,
                      uint32_t unit)
{
    uint32_t next = 0, alike = NO_PART;

    for (uint32_t c = 0; c < trial->n_changes; c++) {
        uint32_t part = trial->changes[c].part;

        if (part == NO_PART || unit_of(layout, part) != unit)
            continue;
        if (alike != NO_PART && part != alike)
            return false;
        alike = part;
    }
    for (uint32_t i = layout->first_of[unit]; i != NO_PIECE;
         i = layout->pieces[i].next) {
        if (trial_find(trial, i, &next))
            continue;
        if (alike != NO_PART && layout->pieces[i].part != alike)
            return false;
        alike = layout->pieces[i].part;
    }
    return true;
}

static bool join_unit(struct trial *trial, const struct layout *layout,
                      uint32_t unit)
{
    bool is_fine = join_changes(trial, layout, unit);

    is_fine = join_held(trial, layout, unit) && is_fine;
    for (uint32_t c = 0; c < trial->n_changes; c++)
        if (trial->changes[c].part != NO_PART)
            trial->first_on[trial->changes[c].device] = NO_PIECE;
    if (layout->parts->of[unit].is_even)
        is_fine = is_fine && are_alike(trial, layout, unit);
    return is_fine;
}

/* --- row blocks --- */

bool join_same_block(const struct parts *parts, uint32_t part_a,
                     uint32_t block_a, uint32_t part_b, uint32_t block_b)
{
    const struct part *a = &parts->parts[part_a], *b = &parts->parts[part_b];
    struct shard of_a, of_b;

    if (a->unit != b->unit || b->kind != SHARD_GRID)
        return false;
    parts_place_block(&of_a, a, 0, block_a);
    parts_place_block(&of_b, b, 0, block_b);
    return of_a.row_begin == of_b.row_begin && of_a.row_end == of_b.row_end;
}

/* Whether a grid's piece, which change c puts, meets another of its block. */
static bool meets(const struct trial *trial, const struct layout *layout,
                  uint32_t c)
{
    const struct change *change = &trial->changes[c];
    const struct holding *holding = &layout->holdings[change->device];
    uint32_t next = 0;

    for (uint32_t i = 0; i < c; i++)
        if (trial->changes[i].part != NO_PART &&
            trial->changes[i].device == change->device &&
            join_same_block(layout->parts, change->part, change->block,
                            trial->changes[i].part, trial->changes[i].block))
            return true;
    for (uint32_t i = 0; i < holding->n; i++) {
        const struct piece *held = &layout->pieces[holding->pieces[i]];

        if (join_same_block(layout->parts, change->part, change->block,
                            held->part, held->block) &&
            !trial_find(trial, holding->pieces[i], &next))
            return true;
    }
    return false;
}

bool trial_join(struct trial *trial, const struct layout *layout)
{
    const struct parts *parts = layout->parts;
    uint32_t last = NO_PART, part;
    bool is_fine = true;

    if (trial->is_home)
        return true;
    for (uint32_t c = 0; c < trial->n_changes; c++) {
        part = trial->changes[c].part;
        if (part == NO_PART)
            continue;
        if (parts->parts[part].kind == SHARD_GRID) {
            is_fine = is_fine && (trial->n_changes > MAX_BLOCKS ||
                                  !meets(trial, layout, c));
        } else if (parts_is_columns(parts, part) &&
                   unit_of(layout, part) != last) {
            last = unit_of(layout, part);
            is_fine = join_unit(trial, layout, last) && is_fine;
        }
    }
    return is_fine;
}

/* --- snapshots --- */

struct placed {
    uint32_t unit;
    struct change piece;
};

static int compare_placed(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;

    if (a->unit != b->unit)
        return a->unit < b->unit ? -1 : 1;
    if (a->piece.device != b->piece.device)
        return a->piece.device < b->piece.device ? -1 : 1;
    if (a->piece.range != b->piece.range)
        return a->piece.range < b->piece.range ? -1 : 1;
    if (a->piece.block != b->piece.block)
        return a->piece.block < b->piece.block ? -1 : 1;
    return (a->piece.part > b->piece.part) - (a->piece.part < b->piece.part);
}

bool snapshot_join(struct snapshot *snapshot, const struct parts *parts)
{
    struct placed *sorted = mem_alloc(snapshot->n, sizeof(*sorted));
    uint32_t n = 0, n_all = snapshot->n, part;
    bool is_fine = true;

    for (uint32_t i = 0; i < n_all; i++)
        sorted[i] = (struct placed){parts->parts[snapshot->pieces[i].part].unit,
                                    snapshot->pieces[i]};
    qsort(sorted, n_all, sizeof(*sorted), compare_placed);
    for (uint32_t i = 0; i < n_all; i++) {
        struct change *last = n ? &snapshot->pieces[n - 1] : NULL;

        snapshot->pieces[n++] = sorted[i].piece;
        if (!last || sorted[i].unit != sorted[i - 1].unit ||
            last->device != sorted[i].piece.device ||
            !parts_is_columns(parts, last->part))
            continue;
        part = joined(parts, last->part, sorted[i].piece.part);
        is_fine = is_fine && part != NO_PART;
        if (part == NO_PART)
            continue;
        last->part = part;
        n--;
    }
    snapshot->n = n;
    mem_free(sorted);
    return is_fine;
}
