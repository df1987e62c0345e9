/* SPDX-License-Identifier: MIT */
#include "search/replan_start.h"

#include "search/forms.h"

#include <math.h>
#include <stdlib.h>

struct starter {
    const struct parts *parts;
    const struct homes *homes;
    struct snapshot *out;
    double *free_bytes; /* [R], below 0 where memory is exceeded */
    double left_bytes;  /* that may still move */
    uint64_t most_room; /* of a device */
};

static uint32_t n_devices_of(const struct starter *starter)
{
    return starter->parts->problem->cluster.n_devices;
}

static void take_room(struct starter *starter, const struct change *piece)
{
    starter->free_bytes[piece->device] -=
        (double)starter->parts->parts[piece->part].bytes;
}

/* Of the first n devices. */
static uint32_t freest_device(const struct starter *starter, uint32_t n)
{
    uint32_t best = 0;

    for (uint32_t r = 1; r < n; r++)
        if (starter->free_bytes[r] > starter->free_bytes[best])
            best = r;
    return best;
}

/* The host whose fullest device has most memory left: its first device. */
static uint32_t freest_host(const struct starter *starter)
{
    uint32_t per_host = starter->parts->problem->cluster.devices_per_host;
    uint32_t best = 0;
    double most = -INFINITY;

    for (uint32_t first = 0; first + per_host <= n_devices_of(starter);
         first += per_host) {
        double least = INFINITY;

        for (uint32_t r = first; r < first + per_host; r++)
            least = fmin(least, starter->free_bytes[r]);
        if (least > most) {
            most = least;
            best = first;
        }
    }
    return best;
}

/* --- as it was --- */

/* Block, range and part of an old piece under one of the cuts of today. */
static bool find_block(struct change *piece, const struct parts *parts,
                       const struct cut *cut, const struct shard *old)
{
    const struct part *block = &parts->parts[cut->block];
    const struct part *last = &parts->parts[cut->last];
    uint64_t n_rows = old->row_end - old->row_begin;

    piece->range = old->col_begin / block->width;
    piece->block = (uint32_t)(old->row_begin / block->n_rows);
    piece->part = piece->block + 1 == cut->n_blocks ? cut->last : cut->block;
    return old->col_end - old->col_begin == block->width &&
           old->col_begin % block->width == 0 &&
           old->row_begin % block->n_rows == 0 &&
           n_rows == (piece->part == cut->last ? last : block)->n_rows;
}

/* Where the oracle asks for it, blocks stand on all devices in order, or on
 * those of one host. */
static bool keeps_ranks(const struct starter *starter, const struct cut *cut,
                        const struct change *pieces, size_t n)
{
    uint32_t per_host = starter->parts->problem->cluster.devices_per_host;

    for (size_t i = 0; i < n; i++) {
        uint32_t first = pieces[i].device - pieces[i].block;

        if (starter->parts->oracle->row_cut != ROW_CUT_ANY &&
            (pieces[i].device == NO_PIECE ||
             (cut->fills_host
                  ? first % per_host != 0 || pieces[i].device < pieces[i].block
                  : first != 0)))
            return false;
    }
    return true;
}

static bool as_cut(const struct starter *starter, uint32_t unit,
                   const struct table_pieces *before, struct change *pieces)
{
    const struct parts *parts = starter->parts;
    const struct part_unit *of = &parts->of[unit];

    for (uint32_t c = 0; c < of->n_cuts; c++) {
        const struct cut *cut = &parts->cuts[of->first_cut + c];
        bool is_it = before->n == (size_t)cut->n_blocks * cut->n_ranges;

        for (size_t i = 0; i < before->n && is_it; i++)
            is_it = find_block(&pieces[i], parts, cut, &before->pieces[i]);
        if (is_it && keeps_ranks(starter, cut, pieces, before->n))
            return true;
    }
    return false;
}

static bool as_columns(const struct starter *starter, uint32_t unit,
                       const struct table_pieces *before, struct change *pieces)
{
    for (size_t i = 0; i < before->n; i++) {
        const struct shard *old = &before->pieces[i];

        pieces[i].part =
            parts_of_width(starter->parts, unit, old->col_end - old->col_begin);
        pieces[i].range = (uint32_t)i;
        if (pieces[i].part == NO_PART)
            return false;
    }
    return true;
}

/* The pieces that the unit has now, [before->n]; devices that are gone are
 * open. False where it cannot be cut so any more. */
static bool as_before(const struct starter *starter, uint32_t unit,
                      struct change *pieces)
{
    const struct parts *parts = starter->parts;
    const struct unit *of = parts->of[unit].unit;
    const struct table_pieces *before = &starter->homes->before[of->tables[0]];
    const struct table *now = &parts->problem->tables[of->tables[0]];

    if (!before->table || before->table->dim != now->dim ||
        before->table->num_embeddings != now->num_embeddings ||
        before->pieces[0].kind == SHARD_REPLICATE)
        return false;
    for (size_t i = 0; i < before->n; i++) {
        uint32_t device = before->pieces[i].device;

        pieces[i] = (struct change){.piece = NO_PIECE, .device = device};
        if (device >= n_devices_of(starter))
            pieces[i].device = NO_PIECE;
        if (of->device >= 0)
            pieces[i].device = (uint32_t)of->device;
    }
    if (before->pieces[0].kind & (SHARD_ROW | SHARD_GRID))
        return as_cut(starter, unit, before, pieces);
    return as_columns(starter, unit, before, pieces);
}

static size_t n_before(const struct starter *starter, uint32_t unit)
{
    const struct unit *of = starter->parts->of[unit].unit;

    return starter->homes->before[of->tables[0]].n;
}

/* --- anew --- */

static bool was_replicated(const struct starter *starter, uint32_t unit)
{
    const struct table_pieces *before =
        &starter->homes->before[starter->parts->of[unit].unit->tables[0]];

    return before->table && before->n &&
           before->pieces[0].kind == SHARD_REPLICATE;
}

/* Whether replicas for the devices that are new may still move. */
static bool may_replicate(const struct starter *starter, uint32_t unit)
{
    const struct table_pieces *before =
        &starter->homes->before[starter->parts->of[unit].unit->tables[0]];
    struct moved_bytes one;

    if (!was_replicated(starter, unit))
        return false;
    if (before->n_devices >= n_devices_of(starter))
        return true;
    table_moves_count(&one, before, before);
    return starter->left_bytes >=
           (double)one.kept / before->n_devices *
               (n_devices_of(starter) - before->n_devices);
}

/* The form with the least load whose pieces fit a device; a replica only where
 * there was one, or nothing else is allowed; whole where there was one that may
 * not be one any more. */
static struct form choose_form(const struct starter *starter, uint32_t unit)
{
    const struct parts *parts = starter->parts;
    uint32_t n = forms_count(parts, unit);
    struct form best = forms_get(parts, unit, 0);
    double least = INFINITY;

    for (uint32_t i = 0; i < n; i++) {
        struct form form = forms_get(parts, unit, i);
        struct form_figures figures = forms_figures(parts, unit, form);
        double price = figures.load_ms;

        if (form.kind == FORM_REPLICA && may_replicate(starter, unit))
            return form;
        if (form.kind == FORM_REPLICA && n > 1)
            continue;
        if (form.kind == FORM_WHOLE && was_replicated(starter, unit))
            price = -1;
        if (figures.peak_bytes > starter->most_room)
            price += 1e9 * (double)figures.peak_bytes;
        if (price < least) {
            least = price;
            best = form;
        }
    }
    return best;
}

static void place_anew(struct starter *starter, uint32_t unit)
{
    const struct parts *parts = starter->parts;
    struct form form = choose_form(starter, unit);
    uint32_t n = forms_figures(parts, unit, form).n_pieces;
    uint32_t host = forms_fills_host(parts, form) ? freest_host(starter) : 0;
    uint32_t n_holders = n_devices_of(starter);

    if (was_replicated(starter, unit)) {
        uint32_t n_old =
            starter->homes->before[parts->of[unit].unit->tables[0]].n_devices;

        if (n_old < n_holders)
            n_holders = n_old;
    }

    for (uint32_t i = 0; i < n; i++) {
        struct change piece = forms_piece(parts, unit, form, i);

        if (forms_fills_host(parts, form))
            piece.device = host + piece.block;
        else if (piece.device == NO_PIECE)
            piece.device = freest_device(starter, n_holders);
        take_room(starter, &piece);
        snapshot_add(starter->out, piece);
    }
    starter->left_bytes -= (double)homes_unit_bytes(
        starter->homes, parts, starter->out->pieces + starter->out->n - n, n);
}

static uint32_t unit_of(const struct starter *starter,
                        const struct change *piece)
{
    return starter->parts->parts[piece->part].unit;
}

/* Pieces whose device is gone get one; then it is known what is left of the
 * limit. */
static void place_open(struct starter *starter)
{
    for (uint32_t i = 0; i < starter->out->n; i++) {
        struct change *piece = &starter->out->pieces[i];

        if (piece->device != NO_PIECE)
            continue;
        piece->device = freest_device(starter, n_devices_of(starter));
        take_room(starter, piece);
    }
    for (uint32_t begin = 0, end; begin < starter->out->n; begin = end) {
        const struct change *pieces = starter->out->pieces;

        for (end = begin;
             end < starter->out->n && unit_of(starter, &pieces[end]) ==
                                          unit_of(starter, &pieces[begin]);)
            end++;
        starter->left_bytes -= (double)homes_unit_bytes(
            starter->homes, starter->parts, pieces + begin, end - begin);
    }
}

/* First what stays, then what needs a device. */
static void place_units(struct starter *starter)
{
    uint32_t n_units = starter->parts->n_units;
    bool *is_placed = mem_alloc(n_units, sizeof(*is_placed));

    starter->out->n = 0;
    for (uint32_t u = 0; u < n_units; u++) {
        size_t n = n_before(starter, u);
        struct change *pieces = mem_alloc(n, sizeof(*pieces));

        is_placed[u] = as_before(starter, u, pieces);
        for (size_t i = 0; i < n && is_placed[u]; i++) {
            if (pieces[i].device != NO_PIECE)
                take_room(starter, &pieces[i]);
            snapshot_add(starter->out, pieces[i]);
        }
        mem_free(pieces);
    }
    place_open(starter);
    for (uint32_t u = 0; u < n_units; u++)
        if (!is_placed[u])
            place_anew(starter, u);
    mem_free(is_placed);
}

void replan_start(struct snapshot *out, const struct parts *parts,
                  const struct homes *homes)
{
    struct starter starter = {.parts = parts,
                              .homes = homes,
                              .out = out,
                              .left_bytes = (double)homes->limit_bytes};
    uint32_t n = parts->problem->cluster.n_devices;

    starter.free_bytes = mem_alloc(n, sizeof(double));
    for (uint32_t r = 0; r < n; r++) {
        uint64_t room = parts->units->room_bytes[r];

        starter.free_bytes[r] = (double)room;
        if (room > starter.most_room)
            starter.most_room = room;
    }
    place_units(&starter);
    mem_free(starter.free_bytes);
}
