/* SPDX-License-Identifier: MIT */
#include "search/movement.h"

#include "base/ranked.h"
#include "search/trial.h"

#include <math.h>

struct starter {
    const struct parts *parts;
    struct tryout tryout;
    struct ranked *by_load; /* [R]: devices, the least loaded first */
};

/* --- as it was --- */

/* A piece of then; its device is open where it is gone. */
static void keep_piece(struct snapshot *out, const struct starter *starter,
                       uint32_t device, struct change piece)
{
    int64_t pin =
        starter->parts->of[starter->parts->parts[piece.part].unit].unit->device;

    piece.piece = NO_PIECE;
    piece.device = device < starter->parts->n_devices ? device : NO_PIECE;
    if (pin >= 0)
        piece.device = (uint32_t)pin;
    snapshot_add(out, piece);
}

/* The pieces of the cut, one for one in place of those of then. Where the
 * oracle asks for ranks, blocks stand on the devices of all or of one host, in
 * order. */
static bool as_blocks(struct snapshot *out, const struct starter *starter,
                      const struct form *cut, const struct table_pieces *old)
{
    const struct cluster *cluster = &starter->parts->problem->cluster;
    uint32_t n = cut->n_blocks;

    out->n = 0;
    for (uint32_t i = 0; i < old->n; i++) {
        uint32_t b = i % n, first = old->pieces[i - b].device;
        uint32_t device = old->pieces[i].device;
        bool is_ranked =
            device == first + b && device < cluster->n_devices &&
            (cut->fills_host
                 ? first % cluster_group(cluster) == 0
                 : first == 0 && old->n_devices == cluster->n_devices);

        if (!is_ranked && starter->parts->oracle->row_cut != ROW_CUT_ANY)
            return false;
        keep_piece(out, starter, device,
                   (struct change){.part = parts_of_block(cut, b),
                                   .range = i / n,
                                   .block = b});
    }
    return old->n == (size_t)n * cut->n_ranges;
}

/* Whether pieces of the same rows are on one device. */
static bool has_meeting(const struct snapshot *of_unit,
                        const struct parts *parts)
{
    const struct change *pieces = of_unit->pieces;

    for (uint32_t i = 0; i < of_unit->n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (pieces[i].device == pieces[j].device &&
                pieces[i].device != NO_PIECE &&
                trial_same_block(parts, pieces[i].part, pieces[i].block,
                                 pieces[j].part, pieces[j].block))
                return true;
    return false;
}

/* Under that cut of today of which the fewest bytes move. */
static bool as_cut(struct snapshot *out, const struct starter *starter,
                   uint32_t unit, const struct table_pieces *old)
{
    const struct parts *parts = starter->parts;
    const struct part_unit *of = &parts->of[unit];
    struct snapshot next = {0};
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < of->n_forms; i++) {
        const struct form *form = &of->forms[i];
        uint64_t bytes;

        if (form->kind != FORM_CUT || !as_blocks(&next, starter, form, old) ||
            has_meeting(&next, parts))
            continue;
        bytes = homes_unit_bytes(parts, &next);
        if (bytes >= least)
            continue;
        least = bytes;
        snapshot_copy(out, &next);
    }
    snapshot_release(&next);
    return least < UINT64_MAX;
}

/* The pieces of the unit where they stand; devices that are gone are open.
 * False where it cannot be cut so any more: more copies would be movement. */
static bool as_before(struct snapshot *out, const struct starter *starter,
                      uint32_t unit)
{
    const struct parts *parts = starter->parts;
    const struct part_unit *of = &parts->of[unit];
    const struct table_pieces *old =
        &parts->homes->standing[of->unit->tables[0]];
    bool is_replica = old->n && shard_is_replica(old->pieces[0].kind);

    out->n = 0;
    if (old->n && shard_cuts_rows(old->pieces[0].kind))
        return as_cut(out, starter, unit, old);
    if (is_replica ? old->n_devices != parts->n_devices
                   : old->n > 1 && of->unit->device >= 0)
        return false;
    for (uint32_t i = 0; i < old->n; i++) {
        const struct shard *piece = &old->pieces[i];
        uint32_t part = is_replica
                            ? of->replica
                            : parts_of_width(parts, unit,
                                             piece->col_end - piece->col_begin);

        if (part == NO_PART)
            return false;
        keep_piece(out, starter, piece->device,
                   (struct change){.part = part, .range = is_replica ? 0 : i});
    }
    return old->n > 0;
}

/* --- anew --- */

static void sort_devices(struct starter *starter)
{
    for (uint32_t r = 0; r < starter->parts->n_devices; r++)
        starter->by_load[r] =
            (struct ranked){starter->tryout.layout.local_ms[r], r};
    ranked_sort(starter->by_load, starter->parts->n_devices);
}

/* The first device behind *at, in the order of by_load round and round, that
 * has room; or, where none has, just the next. *at then stands on it. */
static uint32_t next_device(const struct starter *starter, uint32_t part,
                            uint32_t *at)
{
    const struct layout *layout = &starter->tryout.layout;
    uint64_t bytes = starter->parts->parts[part].bytes;
    uint32_t n = starter->parts->n_devices, first = *at + 1 < n ? *at + 1 : 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t r = starter->by_load[ *at = (first + i) % n].idx;

        if (!(layout_excess(layout, r,
                            saturating_add(layout->bytes[r], bytes)) > 0))
            return r;
    }
    *at = first;
    return starter->by_load[first].idx;
}

/* Where an open piece of a form goes: one after the other where there is room;
 * or set apart from the others, room or not. */
static uint32_t open_device(const struct starter *starter, struct form form,
                            const struct change *piece, bool is_apart,
                            uint32_t *at)
{
    const struct parts *parts = starter->parts;

    if (form.fills_host)
        return forms_ring_device(parts, form, piece, starter->by_load[0].idx);
    if (is_apart)
        return starter->by_load[forms_ring_device(parts, form, piece, 0)].idx;
    return next_device(starter, piece->part, at);
}

static void put_form(struct starter *starter, uint32_t unit, struct form form,
                     bool is_apart)
{
    uint32_t at = UINT32_MAX; /* before the first */

    trial_clear(&starter->tryout.trial);
    trial_remove_unit(&starter->tryout.trial, &starter->tryout.layout, unit);
    for (uint32_t i = 0; i < form.n_pieces; i++) {
        struct change piece = forms_piece(starter->parts, unit, form, i);

        if (piece.device == NO_PIECE)
            piece.device = open_device(starter, form, &piece, is_apart, &at);
        trial_add(&starter->tryout.trial, piece);
    }
}

/* In the form, by room or apart, that exceeds least and then costs least. */
static void place_anew(struct starter *starter, uint32_t unit)
{
    const struct part_unit *of = &starter->parts->of[unit];
    struct tryout *tryout = &starter->tryout;
    double excess = INFINITY, total_ms = INFINITY;
    uint32_t best = 1; /* which may always be */

    sort_devices(starter);
    for (uint32_t way = 0; way < 2 * of->n_forms; way++) {
        put_form(starter, unit, of->forms[way / 2], way % 2);
        if (isfinite(tryout_price(tryout)) &&
            !(tryout->trial.excess > excess) &&
            (tryout->trial.excess < excess ||
             tryout->trial.total_ms < total_ms)) {
            excess = tryout->trial.excess;
            total_ms = tryout->trial.total_ms;
            best = way;
        }
    }
    put_form(starter, unit, of->forms[best / 2], best % 2);
    (void)tryout_price(tryout);
    layout_commit(&tryout->layout, &tryout->trial);
}

/* --- the whole --- */

/* A piece whose device is gone. False where it meets others of its rows
 * wherever it goes. */
static bool place_open(struct starter *starter, struct change piece)
{
    struct tryout *tryout = &starter->tryout;
    uint32_t at = UINT32_MAX; /* before the first */

    sort_devices(starter);
    for (uint32_t i = 0; i < starter->parts->n_devices; i++) {
        piece.device = next_device(starter, piece.part, &at);
        trial_clear(&tryout->trial);
        trial_add(&tryout->trial, piece);
        if (!trial_join(&tryout->trial, &tryout->layout))
            continue;
        (void)tryout_price(tryout);
        layout_commit(&tryout->layout, &tryout->trial);
        return true;
    }
    return false;
}

/* What stays first; then what needs a device, the dearest units first. Where an
 * open piece finds no place, its unit is placed anew. */
static void place_units(struct starter *starter, struct snapshot *out)
{
    const struct parts *parts = starter->parts;
    bool *is_anew = mem_alloc(parts->n_units, sizeof(*is_anew));
    struct ranked *order = mem_alloc(parts->n_units, sizeof(*order));
    struct snapshot open = {0}, unit = {0};

    out->n = 0;
    for (uint32_t u = 0; u < parts->n_units; u++) {
        order[u] = (struct ranked){-parts->of[u].forms[0].load_ms, u};
        is_anew[u] = !as_before(&unit, starter, u);
        for (uint32_t i = 0; i < unit.n && !is_anew[u]; i++)
            snapshot_add(unit.pieces[i].device == NO_PIECE ? &open : out,
                         unit.pieces[i]);
    }
    snapshot_load(out, &starter->tryout.layout);
    ranked_sort(order, parts->n_units);
    for (uint32_t i = 0; i < parts->n_units; i++) {
        uint32_t u = order[i].idx;

        for (uint32_t k = 0; k < open.n && !is_anew[u]; k++)
            if (parts->parts[open.pieces[k].part].unit == u)
                is_anew[u] = !place_open(starter, open.pieces[k]);
        if (is_anew[u])
            place_anew(starter, u);
    }
    snapshot_save(out, &starter->tryout.layout);
    snapshot_release(&open);
    snapshot_release(&unit);
    mem_free(order);
    mem_free(is_anew);
}

void carry_over(struct snapshot *out, const struct parts *parts)
{
    struct starter starter = {.parts = parts};

    tryout_init(&starter.tryout, parts);
    starter.tryout.layout.is_partial = true;
    starter.by_load = mem_alloc(parts->n_devices, sizeof(*starter.by_load));
    place_units(&starter, out);
    mem_free(starter.by_load);
    tryout_release(&starter.tryout);
}
