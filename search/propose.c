/* SPDX-License-Identifier: MIT */
#include "search/propose.h"

#include "search/forms.h"
#include "search/homes.h"
#include "search/rebuild.h"
#include "search/trial.h"

/* Replicas and rows over very many devices make long plans. */
#define MAX_PIECES (1u << 18)
/* To cut a table anew may touch all devices: with more than so many it is tried
 * less often. */
#define CHEAP_DEVICES 16

static uint32_t any_piece(const struct layout *layout, struct rng *rng)
{
    for (;;) {
        uint32_t idx = rng_draw(rng, layout->n_pieces);

        if (layout->pieces[idx].part != NO_PART)
            return idx;
    }
}

static uint32_t piece_on(const struct layout *layout, uint32_t device,
                         struct rng *rng)
{
    const struct holding *holding = &layout->holdings[device];

    return holding->n ? holding->pieces[rng_draw(rng, holding->n)] : NO_PIECE;
}

/* A device that sets the total: of a term by its share in it. */
static uint32_t critical_device(const struct layout *layout, struct rng *rng)
{
    double left = rng_uniform(rng) * layout->total_ms;
    uint32_t n_terms = layout->parts->oracle->n_terms;

    for (uint32_t k = 0; layout->terms_ms && k < n_terms; k++) {
        left -= layout->tops[k].ms[0];
        if (left < 0)
            return layout->tops[k].device[0];
    }
    return layout->slowest;
}

static uint32_t pick_piece(const struct layout *layout, struct rng *rng)
{
    uint32_t idx = NO_PIECE;

    if (layout->parts->homes && rng_draw(rng, 2))
        idx = homes_draw(layout, rng);
    if (idx == NO_PIECE && !tuning_draw(rng, layout->parts->tuning->anywhere))
        idx = piece_on(layout, critical_device(layout, rng), rng);
    return idx == NO_PIECE ? any_piece(layout, rng) : idx;
}

/* Another device than this one; R > 1. */
static uint32_t other_device(const struct layout *layout, uint32_t device,
                             struct rng *rng)
{
    uint32_t r;

    if (layout->fastest != device &&
        tuning_draw(rng, layout->parts->tuning->to_fastest))
        return layout->fastest;
    r = rng_draw(rng, layout->n_devices - 1);
    return r + (r >= device);
}

static const struct part *part_of(const struct layout *layout, uint32_t piece)
{
    return &layout->parts->parts[layout->pieces[piece].part];
}

static bool can_move(const struct layout *layout, uint32_t piece)
{
    return parts_can_move(layout->parts, layout->pieces[piece].part);
}

static bool is_columns(const struct layout *layout, uint32_t piece)
{
    return parts_is_columns(layout->parts, layout->pieces[piece].part);
}

static void propose_move(struct trial *trial, const struct layout *layout,
                         uint32_t piece, struct rng *rng)
{
    if (can_move(layout, piece))
        trial_move(trial, layout, piece,
                   other_device(layout, layout->pieces[piece].device, rng));
}

static void propose_swap(struct trial *trial, const struct layout *layout,
                         uint32_t piece, struct rng *rng)
{
    uint32_t device = layout->pieces[piece].device;
    uint32_t to = other_device(layout, device, rng);
    uint32_t other = piece_on(layout, to, rng);

    if (other == NO_PIECE || !can_move(layout, piece) ||
        !can_move(layout, other) ||
        layout->pieces[piece].part == layout->pieces[other].part)
        return;
    trial_move(trial, layout, piece, to);
    trial_move(trial, layout, other, device);
}

static void propose_eject(struct trial *trial, const struct layout *layout,
                          uint32_t piece, struct rng *rng)
{
    uint32_t device = layout->pieces[piece].device;
    uint32_t to = other_device(layout, device, rng);
    uint32_t other = piece_on(layout, to, rng);
    uint32_t third = other_device(layout, to, rng);

    if (other == NO_PIECE || !can_move(layout, piece) ||
        !can_move(layout, other))
        return;
    trial_move(trial, layout, piece, to);
    trial_move(trial, layout, other, third);
}

/* A piece's columns in quanta. */
static uint32_t quanta_of(const struct layout *layout, uint32_t piece)
{
    return parts_quanta(layout->parts, layout->pieces[piece].part);
}

static void propose_split(struct trial *trial, const struct layout *layout,
                          uint32_t piece, struct rng *rng)
{
    uint32_t n, taken;

    if (!is_columns(layout, piece) || !can_move(layout, piece) ||
        (n = quanta_of(layout, piece)) < 2)
        return;
    taken = rng_draw(rng, 2) ? n / 2 : 1 + rng_draw(rng, n - 1);
    trial_split(trial, layout, piece, taken,
                other_device(layout, layout->pieces[piece].device, rng));
}

/* Another piece of the same table, or NO_PIECE. */
static uint32_t sibling(const struct layout *layout, uint32_t piece,
                        struct rng *rng)
{
    uint32_t unit = part_of(layout, piece)->unit, n = 0;
    uint32_t idx = layout->first_of[unit];

    for (uint32_t i = idx; i != NO_PIECE; i = layout->pieces[i].next)
        n++;
    if (n < 2)
        return NO_PIECE;
    for (uint32_t k = 1 + rng_draw(rng, n - 1), at = piece;; k--) {
        if (!k)
            return at;
        at = layout->pieces[at].next;
        if (at == NO_PIECE)
            at = idx;
    }
}

static void propose_merge(struct trial *trial, const struct layout *layout,
                          uint32_t piece, struct rng *rng)
{
    uint32_t unit = part_of(layout, piece)->unit, other, part;

    if (!is_columns(layout, piece))
        return;
    other = sibling(layout, piece, rng);
    if (other == NO_PIECE)
        return;
    part = parts_of_quanta(layout->parts, unit,
                           quanta_of(layout, piece) + quanta_of(layout, other));
    if (part == NO_PART)
        return;
    trial_change(trial, layout, piece, part, layout->pieces[piece].device);
    trial_remove(trial, other);
}

static void propose_resplit(struct trial *trial, const struct layout *layout,
                            uint32_t piece, struct rng *rng)
{
    uint32_t unit = part_of(layout, piece)->unit, n, taken, other;

    if (!is_columns(layout, piece) || (n = quanta_of(layout, piece)) < 2)
        return;
    other = sibling(layout, piece, rng);
    if (other == NO_PIECE)
        return;
    taken = rng_draw(rng, 2) ? 1 : 1 + rng_draw(rng, n - 1);
    trial_change(trial, layout, piece,
                 parts_of_quanta(layout->parts, unit, n - taken),
                 layout->pieces[piece].device);
    trial_change(
        trial, layout, other,
        parts_of_quanta(layout->parts, unit, quanta_of(layout, other) + taken),
        layout->pieces[other].device);
}

/* There are many ways to cut, but one to leave whole and one to replicate. */
static struct form draw_form(const struct parts *parts, uint32_t unit,
                             struct rng *rng)
{
    uint32_t kind = rng_draw(rng, 4);
    const struct form *form = NULL;

    if (kind < 2)
        form = forms_find(parts, unit, kind ? FORM_REPLICA : FORM_WHOLE);
    return form ? *form
                : forms_get(parts, unit,
                            rng_draw(rng, forms_count(parts, unit)));
}

/* Open places are filled from a random device on. */
static void propose_recut(struct trial *trial, const struct layout *layout,
                          uint32_t piece, struct rng *rng)
{
    const struct parts *parts = layout->parts;
    uint32_t unit = part_of(layout, piece)->unit, at;
    struct form form = draw_form(parts, unit, rng);

    if (parts->of[unit].unit->device >= 0 ||
        form.n_pieces + layout->n_live > MAX_PIECES)
        return;
    trial_remove_unit(trial, layout, unit);
    at = other_device(layout, layout->pieces[piece].device, rng);
    for (uint32_t i = 0; i < form.n_pieces; i++) {
        struct change next = forms_piece(parts, unit, form, i);

        if (next.device == NO_PIECE)
            next.device = forms_ring_device(parts, form, &next, at);
        trial_add(trial, next);
    }
}

/* The form that comes nearest to how the unit is cut now. */
static struct form form_now(const struct layout *layout, uint32_t unit)
{
    const struct parts *parts = layout->parts;
    uint32_t part = layout->pieces[layout->first_of[unit]].part, n = 0;
    const struct cut *cut = parts_cut_of(parts, part);

    if (parts->parts[part].kind == SHARD_REPLICATE)
        return *forms_find(parts, unit, FORM_REPLICA);
    if (cut)
        return *(forms_find(parts, unit, FORM_CUT) + (cut - parts->cuts) -
                 parts->of[unit].first_cut);
    for (uint32_t i = layout->first_of[unit]; i != NO_PIECE;
         i = layout->pieces[i].next)
        n++;
    return (struct form){
        .kind = n > 1 ? FORM_COLUMNS : FORM_WHOLE, .n = n, .n_pieces = n};
}

static bool is_among(const struct rebuild_unit *units, uint32_t n,
                     uint32_t unit)
{
    for (uint32_t i = 0; i < n; i++)
        if (units[i].unit == unit)
            return true;
    return false;
}

static void propose_rebuild(struct trial *trial, const struct layout *layout,
                            uint32_t piece, struct rng *rng)
{
    const struct parts *parts = layout->parts;
    struct rebuild_unit units[TUNING_MAX_REBUILT];
    uint32_t most = 1 + rng_draw(rng, parts->tuning->n_rebuilt);
    uint32_t n = 0, n_pieces = layout->n_live;

    for (uint32_t i = 0; i < most; i++) {
        uint32_t unit = part_of(layout, piece)->unit;
        bool is_kept = i && !tuning_draw(rng, parts->tuning->recuts);

        piece = pick_piece(layout, rng);
        if (parts->of[unit].unit->device >= 0 || is_among(units, n, unit))
            continue;
        units[n].unit = unit;
        units[n].form =
            is_kept ? form_now(layout, unit) : draw_form(parts, unit, rng);
        n_pieces += units[n].form.n_pieces;
        n++;
    }
    if (n && n_pieces <= MAX_PIECES)
        rebuild(trial, layout, units, n, rng);
}

static enum change_kind draw_kind(const uint32_t *shares, struct rng *rng)
{
    uint32_t sum = 0, m = 0, left;

    for (uint32_t i = 0; i < N_CHANGE_KINDS; i++)
        sum += shares[i];
    left = rng_draw(rng, sum);
    for (; left >= shares[m]; m++)
        left -= shares[m];
    return (enum change_kind)m;
}

static void draw_change(struct trial *trial, const struct layout *layout,
                        struct rng *rng)
{
    static void (*const proposers[N_CHANGE_KINDS])(
        struct trial *, const struct layout *, uint32_t, struct rng *) = {
        [CHANGE_MOVE] = propose_move,   [CHANGE_SWAP] = propose_swap,
        [CHANGE_EJECT] = propose_eject, [CHANGE_SPLIT] = propose_split,
        [CHANGE_MERGE] = propose_merge, [CHANGE_RESPLIT] = propose_resplit};
    const struct tuning *tuning = layout->parts->tuning;
    uint32_t piece = pick_piece(layout, rng);
    enum change_kind kind = draw_kind(tuning->changes, rng);
    bool is_cheap = rng_draw(rng, layout->n_devices) < CHEAP_DEVICES;

    trial_clear(trial);
    if (layout->parts->homes && rng_draw(rng, 8) == 0) {
        homes_propose(trial, layout, part_of(layout, piece)->unit);
        return;
    }
    if (is_cheap && tuning_draw(rng, tuning->rebuilds))
        propose_rebuild(trial, layout, piece, rng);
    else if (kind != CHANGE_RECUT)
        proposers[kind](trial, layout, piece, rng);
    if (kind >= CHANGE_SPLIT && !trial->n_changes && is_cheap)
        propose_recut(trial, layout, piece, rng);
}

void propose(struct trial *trial, const struct layout *layout, struct rng *rng)
{
    draw_change(trial, layout, rng);
    if (!trial_join(trial, layout))
        trial_clear(trial);
}
