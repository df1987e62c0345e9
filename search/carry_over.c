/* SPDX-License-Identifier: MIT */
#include "search/carry_over.h"

#include "base/ranked.h"
#include "search/forms.h"
#include "search/trial.h"

#include <math.h>

/* A trial's score, in ms, beside its total: how much heavier the devices
 * become, near the slowest one, and on average. */
#define HEAVY_WEIGHT 0.02

struct starter {
    const struct parts *parts;
    const struct homes *homes;
    struct tryout tryout;
    struct ranked *by_load; /* [R]: devices, the least loaded first */
};

static uint32_t n_devices_of(const struct starter *starter)
{
    return starter->parts->n_devices;
}

/* --- as it was --- */

/* A piece of then; its device is open where it is gone. */
static void keep_piece(struct snapshot *out, const struct starter *starter,
                       uint32_t device, struct change piece)
{
    int64_t pin =
        starter->parts->of[starter->parts->parts[piece.part].unit].unit->device;

    piece.piece = NO_PIECE;
    piece.device = device < n_devices_of(starter) ? device : NO_PIECE;
    if (pin >= 0)
        piece.device = (uint32_t)pin;
    snapshot_add(out, piece);
}

/* Where block b of the range that begins with old piece `first` stands, of n
 * old blocks: where the oracle asks for ranks, on the b-th device of all or of
 * the host. False where it cannot. */
static bool find_block(uint32_t *device, const struct starter *starter,
                       const struct cut *cut, const struct table_pieces *old,
                       size_t first, uint32_t n, uint32_t b)
{
    const struct cluster *cluster = &starter->parts->problem->cluster;
    uint32_t at = old->pieces[first].device;

    if (starter->parts->oracle->row_cut == ROW_CUT_ANY) {
        *device = b < n ? old->pieces[first + b].device : NO_PIECE;
        return b < n;
    }
    *device = at + b;
    if (cut->fills_host)
        return at % cluster_group(cluster) == 0 && *device < cluster->n_devices;
    return at == 0 && old->n_devices == cluster->n_devices;
}

/* Equal blocks in place of those of then, range by range. */
static bool as_equal_blocks(struct snapshot *out, const struct starter *starter,
                            const struct cut *cut,
                            const struct table_pieces *old)
{
    const struct shard *blocks = old->pieces;
    uint32_t range = 0;

    out->n = 0;
    for (size_t first = 0, end; first < old->n; first = end, range++) {
        end = first + 1;
        while (end < old->n && blocks[end].col_begin == blocks[first].col_begin)
            end++;
        if (range == cut->n_ranges)
            return false;
        for (uint32_t b = 0; b < cut->n_blocks; b++) {
            uint32_t device;

            if (!find_block(&device, starter, cut, old, first,
                            (uint32_t)(end - first), b))
                return false;
            keep_piece(out, starter, device,
                       (struct change){.part = parts_of_block(cut, b),
                                       .range = range,
                                       .block = b});
        }
    }
    return range == cut->n_ranges;
}

/* The blocks of then; those of another plan are others. */
static bool as_standing(struct snapshot *out, const struct starter *starter,
                        const struct cut *cut, const struct table_pieces *old)
{
    out->n = 0;
    for (uint32_t b = 0; b < cut->n_blocks && old->n == cut->n_blocks; b++)
        keep_piece(out, starter, old->pieces[b].device,
                   (struct change){.part = cut->block + b, .block = b});
    return out->n > 0;
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

    for (uint32_t c = of->first_cut; c < of->first_cut + of->n_cuts; c++) {
        const struct cut *cut = &parts->cuts[c];
        uint64_t bytes;

        if (!(cut->stands ? as_standing : as_equal_blocks)(&next, starter, cut,
                                                           old) ||
            has_meeting(&next, parts))
            continue;
        bytes = homes_unit_bytes(starter->homes, parts, next.pieces, next.n);
        if (bytes >= least)
            continue;
        least = bytes;
        snapshot_copy(out, &next);
    }
    snapshot_release(&next);
    return least < UINT64_MAX;
}

static bool as_columns(struct snapshot *out, const struct starter *starter,
                       uint32_t unit, const struct table_pieces *old)
{
    if (old->n > 1 && starter->parts->of[unit].unit->device >= 0)
        return false;
    for (size_t i = 0; i < old->n; i++) {
        const struct shard *piece = &old->pieces[i];
        uint32_t part = parts_of_width(starter->parts, unit,
                                       piece->col_end - piece->col_begin);

        if (part == NO_PART)
            return false;
        keep_piece(out, starter, piece->device,
                   (struct change){.part = part, .range = out->n});
    }
    return true;
}

/* On as many devices as before: more copies would be movement. */
static bool as_replicas(struct snapshot *out, const struct starter *starter,
                        uint32_t unit, const struct table_pieces *old)
{
    uint32_t part = starter->parts->of[unit].replica;

    if (part == NO_PART || old->n_devices != n_devices_of(starter))
        return false;
    for (size_t i = 0; i < old->n; i++)
        keep_piece(out, starter, old->pieces[i].device,
                   (struct change){.part = part});
    return true;
}

/* The pieces of the unit where they stand; devices that are gone are open.
 * False where it cannot be cut so any more. */
static bool as_before(struct snapshot *out, const struct starter *starter,
                      uint32_t unit)
{
    const struct table_pieces *old =
        &starter->homes->standing[starter->parts->of[unit].unit->tables[0]];

    out->n = 0;
    if (!old->n)
        return false;
    if (shard_is_replica(old->pieces[0].kind))
        return as_replicas(out, starter, unit, old);
    if (shard_cuts_rows(old->pieces[0].kind))
        return as_cut(out, starter, unit, old);
    return as_columns(out, starter, unit, old);
}

/* --- anew --- */

static void sort_devices(struct starter *starter)
{
    uint32_t n = n_devices_of(starter);

    for (uint32_t r = 0; r < n; r++)
        starter->by_load[r] =
            (struct ranked){starter->tryout.layout.local_ms[r], r};
    ranked_sort(starter->by_load, n);
}

/* Devices that hold some of the unit now come first. */
static void put_holders_first(struct starter *starter, uint32_t unit)
{
    const struct unit *of = starter->parts->of[unit].unit;
    const struct table_pieces *before = &starter->homes->before[of->tables[0]];
    uint32_t n_first = 0;

    for (uint32_t i = 0; i < n_devices_of(starter); i++) {
        struct ranked device = starter->by_load[i];
        bool holds = false;

        for (size_t k = 0; before->table && k < before->n && !holds; k++)
            holds = before->pieces[k].device == device.idx;
        if (!holds)
            continue;
        for (uint32_t at = i; at > n_first; at--)
            starter->by_load[at] = starter->by_load[at - 1];
        starter->by_load[n_first++] = device;
    }
}

/* The first device behind *at, in the order of by_load round and round, that
 * has room; or, where none has, just the next. *at then stands on it. */
static uint32_t next_device(const struct starter *starter, uint32_t part,
                            uint32_t *at)
{
    const struct layout *layout = &starter->tryout.layout;
    uint64_t bytes = starter->parts->parts[part].bytes;
    uint32_t n = n_devices_of(starter), first = *at + 1 < n ? *at + 1 : 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t r = starter->by_load[ *at = (first + i) % n].idx;

        if (!(layout_excess(layout, r,
                            saturating_add(layout->bytes[r], bytes)) > 0))
            return r;
    }
    *at = first;
    return starter->by_load[first].idx;
}

/* The host with the least sum of loads: its first device. */
static uint32_t least_loaded_host(const struct starter *starter)
{
    uint32_t per_host = cluster_group(&starter->parts->problem->cluster);
    uint32_t best = 0;
    double least = INFINITY;

    for (uint32_t first = 0; first + per_host <= n_devices_of(starter);
         first += per_host) {
        double load = 0;

        for (uint32_t r = first; r < first + per_host; r++)
            load += starter->tryout.layout.local_ms[r];
        if (load < least) {
            least = load;
            best = first;
        }
    }
    return best;
}

/* Where a piece goes that is set apart from the others of its form, room or
 * not. */
static uint32_t device_apart(const struct starter *starter, struct form form,
                             const struct change *piece)
{
    const struct parts *parts = starter->parts;

    if (forms_fills_host(parts, form))
        return forms_ring_device(parts, form, piece,
                                 least_loaded_host(starter));
    return starter->by_load[forms_ring_device(parts, form, piece, 0)].idx;
}

static void put_form(struct starter *starter, uint32_t unit, struct form form,
                     bool by_room)
{
    const struct parts *parts = starter->parts;
    uint32_t at = UINT32_MAX;

    trial_clear(&starter->tryout.trial);
    trial_remove_unit(&starter->tryout.trial, &starter->tryout.layout, unit);
    for (uint32_t i = 0; i < form.n_pieces; i++) {
        struct change piece = forms_piece(parts, unit, form, i);

        if (piece.device == NO_PIECE)
            piece.device = by_room ? next_device(starter, piece.part, &at)
                                   : device_apart(starter, form, &piece);
        trial_add(&starter->tryout.trial, piece);
    }
}

/* By room, unless pieces would meet then. False where they always do. */
static bool try_form(struct starter *starter, uint32_t unit, struct form form)
{
    struct tryout *tryout = &starter->tryout;
    bool is_grid =
        form.kind == FORM_CUT && (starter->parts->cuts[form.n].n_ranges > 1 ||
                                  forms_fills_host(starter->parts, form));

    put_form(starter, unit, form, !is_grid);
    if (trial_join(&tryout->trial, &tryout->layout))
        return true;
    put_form(starter, unit, form, false);
    return trial_join(&tryout->trial, &tryout->layout);
}

/* The total, and what the trial does to devices that do not set it. */
static double score_of(const struct starter *starter)
{
    const struct tryout *tryout = &starter->tryout;
    const struct layout *layout = &tryout->layout;
    double most_ms = layout->local_ms[layout->slowest];
    double heavier = 0, more = 0;

    for (uint32_t i = 0; i < tryout->trial.n_devices; i++) {
        uint32_t r = tryout->trial.devices[i];
        double then = tryout_local_ms(tryout, r);

        heavier += layout_heaviness(then, most_ms) -
                   layout_heaviness(layout->local_ms[r], most_ms);
        more += then - layout->local_ms[r];
    }
    return tryout->trial.total_ms + HEAVY_WEIGHT * heavier +
           more / layout->n_devices;
}

/* A way to place a unit: less excess is better than a lower score. */
struct placing {
    double excess, score;
    struct form form;
    bool holders_first;
};

static void try_forms(struct starter *starter, uint32_t unit,
                      struct placing *best, bool holders_first)
{
    uint32_t n = forms_count(starter->parts, unit);

    sort_devices(starter);
    if (holders_first)
        put_holders_first(starter, unit);
    for (uint32_t i = 0; i < n; i++) {
        struct placing next = {.form = forms_get(starter->parts, unit, i),
                               .holders_first = holders_first};

        if (!try_form(starter, unit, next.form))
            continue;
        (void)tryout_price(&starter->tryout);
        next.excess = starter->tryout.trial.excess;
        next.score = score_of(starter);
        if (!(next.excess > best->excess) &&
            (next.excess < best->excess || next.score < best->score))
            *best = next;
    }
}

/* The form and the devices of the least score; where the unit stands somewhere
 * now, also there. */
static void place_anew(struct starter *starter, uint32_t unit)
{
    const struct unit *of = starter->parts->of[unit].unit;
    struct placing best = {.excess = INFINITY, .score = INFINITY};

    best.form = forms_get(starter->parts, unit, 0);
    try_forms(starter, unit, &best, false);
    if (starter->homes->before[of->tables[0]].table)
        try_forms(starter, unit, &best, true);
    if (!best.holders_first)
        sort_devices(starter);
    (void)try_form(starter, unit, best.form);
    (void)tryout_price(&starter->tryout);
    layout_commit(&starter->tryout.layout, &starter->tryout.trial);
}

/* --- the whole --- */

/* A piece whose device is gone. False where it meets others of its rows
 * wherever it goes. */
static bool place_open(struct starter *starter, struct change piece)
{
    struct tryout *tryout = &starter->tryout;
    uint32_t at = UINT32_MAX; /* before the first */

    sort_devices(starter);
    for (uint32_t i = 0; i < n_devices_of(starter); i++) {
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

/* Open pieces, the dearest first; where one finds no place, its unit is to be
 * placed anew. */
static void place_all_open(struct starter *starter, const struct snapshot *open,
                           bool *is_anew)
{
    struct ranked *order = mem_alloc(open->n, sizeof(*order));

    for (uint32_t i = 0; i < open->n; i++)
        order[i] =
            (struct ranked){-starter->parts->alone_ms[open->pieces[i].part], i};
    ranked_sort(order, open->n);
    for (uint32_t i = 0; i < open->n; i++) {
        struct change piece = open->pieces[order[i].idx];
        uint32_t unit = starter->parts->parts[piece.part].unit;

        if (!is_anew[unit])
            is_anew[unit] = !place_open(starter, piece);
    }
    mem_free(order);
}

/* Units, the dearest first. */
static void place_all_anew(struct starter *starter, const bool *is_anew)
{
    const struct parts *parts = starter->parts;
    struct ranked *order = mem_alloc(parts->n_units, sizeof(*order));
    uint32_t n = 0;

    for (uint32_t u = 0; u < parts->n_units; u++)
        if (is_anew[u])
            order[n++] = (struct ranked){-forms_get(parts, u, 0).load_ms, u};
    ranked_sort(order, n);
    for (uint32_t i = 0; i < n; i++)
        place_anew(starter, order[i].idx);
    mem_free(order);
}

/* First what stays, then what needs a device. */
static void place_units(struct starter *starter, struct snapshot *out)
{
    uint32_t n_units = starter->parts->n_units;
    bool *is_anew = mem_alloc(n_units, sizeof(*is_anew));
    struct snapshot open = {0}, unit = {0};

    out->n = 0;
    for (uint32_t u = 0; u < n_units; u++) {
        is_anew[u] = !as_before(&unit, starter, u);
        for (uint32_t i = 0; i < unit.n && !is_anew[u]; i++)
            snapshot_add(unit.pieces[i].device == NO_PIECE ? &open : out,
                         unit.pieces[i]);
    }
    snapshot_load(out, &starter->tryout.layout);
    place_all_open(starter, &open, is_anew);
    place_all_anew(starter, is_anew);
    snapshot_save(out, &starter->tryout.layout);
    snapshot_release(&open);
    snapshot_release(&unit);
    mem_free(is_anew);
}

void carry_over(struct snapshot *out, const struct parts *parts,
                const struct homes *homes)
{
    struct starter starter = {.parts = parts, .homes = homes};

    tryout_init(&starter.tryout, parts);
    starter.tryout.layout.is_partial = true;
    starter.by_load =
        mem_alloc(n_devices_of(&starter), sizeof(*starter.by_load));
    place_units(&starter, out);
    mem_free(starter.by_load);
    tryout_release(&starter.tryout);
}
