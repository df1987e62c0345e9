/* SPDX-License-Identifier: MIT */
#include "search/moves.h"

#include "search/movement.h"

#include <assert.h>
#include <math.h>

/* Replicas and rows over very many devices make long plans. */
#define MAX_PIECES (1u << 18)
/* To rebuild tables may touch all devices: with more than so many it is tried
 * less often. */
#define CHEAP_DEVICES 16
/* Where a plan is to be replaced, one proposal of so many is that a table goes
 * back to where it stands. */
#define HOMING 8
/* What is left of a table when all devices are full goes in shares: this part
 * of what there still is. */
#define LEFT_SHARE 4

/* What a change is thought of. */
struct draw {
    struct trial *trial; /* its room for estimates is used */
    const struct layout *layout;
    struct rng *rng;
    uint32_t piece, device, unit; /* at which it begins */
    /* of a rebuild: */
    double target_ms;      /* devices are full there */
    double limit_ms;       /* of loads that add up exactly: what no device may
                              have to do, else all is given up at once */
    const struct unit *of; /* the unit in hand */
};

/* Any of the device's pieces, all alike; NO_PIECE where it has none. */
static uint32_t piece_on(const struct layout *layout, uint32_t device,
                         struct rng *rng)
{
    const struct holding *holding = &layout->holdings[device];

    return holding->n ? holding->pieces[rng_draw(rng, holding->n)] : NO_PIECE;
}

/* A device that sets the total: that leads a term, drawn by how large it is and
 * how much of it shows. */
static uint32_t critical_device(const struct layout *layout, struct rng *rng)
{
    const double *max_ms = layout->most_ms;
    double left = 0;
    uint32_t k;

    for (k = 0; k < layout->n_terms; k++)
        left += layout->weight[k] * max_ms[k];
    left *= rng_uniform(rng);
    for (k = 0;
         k + 1 < layout->n_terms && left >= layout->weight[k] * max_ms[k]; k++)
        left -= layout->weight[k] * max_ms[k];
    return layout->leader[k];
}

static uint32_t unit_of(const struct layout *layout, uint32_t piece)
{
    return layout->parts->parts[layout->pieces[piece].part].unit;
}

/* Only what leaves a device that sets the total can lower it at once; but to
 * get there other devices must make room first, so the rest begins anywhere. */
static uint32_t pick_piece(const struct layout *layout, struct rng *rng)
{
    uint32_t idx = NO_PIECE;

    if (!tuning_draw(rng, layout->parts->tuning->anywhere))
        idx = piece_on(layout, critical_device(layout, rng), rng);
    while (idx == NO_PIECE || layout->pieces[idx].part == NO_PART)
        idx = rng_draw(rng, layout->n_pieces);
    return idx;
}

/* Another device than that of the piece in hand; R > 1. */
static uint32_t other_device(const struct draw *draw)
{
    uint32_t r = rng_draw(draw->rng, draw->layout->n_devices - 1);

    return r + (r >= draw->device);
}

static bool can_move(const struct draw *draw, uint32_t piece)
{
    return parts_can_move(draw->layout->parts,
                          draw->layout->pieces[piece].part);
}

/* A piece's columns in quanta; 0 where it is none that columns are cut of. */
static uint32_t quanta_of(const struct draw *draw, uint32_t piece)
{
    return parts_quanta(draw->layout->parts, draw->layout->pieces[piece].part);
}

/* That of another piece of the same table, or NO_PIECE. The list is walked as a
 * ring, by fewer steps than it has pieces: each other piece is as likely. */
static uint32_t sibling_device(const struct draw *draw)
{
    const struct layout *layout = draw->layout;
    uint32_t first = layout->first_of[draw->unit], at = draw->piece, n = 0;

    for (uint32_t i = first; i != NO_PIECE; i = layout->links[i].next)
        n++;
    if (n < 2)
        return NO_PIECE;
    for (uint32_t k = 1 + rng_draw(draw->rng, n - 1); k > 0; k--) {
        at = layout->links[at].next;
        if (at == NO_PIECE)
            at = first;
    }
    return layout->pieces[at].device;
}

/*
 * Each of these draws what it needs, and leaves the trial empty where the piece
 * in hand does not allow it: that is cheaper than to list what is allowed.
 * Together they lead from any layout of column pieces to any other, as each can
 * be undone by one of them; what cuts a table by rows or replicates it comes of
 * rebuilding alone.
 */

/* The piece, which must have so many quanta at least, goes to a device that is
 * drawn, if there is one. Or where `often` is not 0 so many of its quanta, in
 * half of all cases, or any number but all. */
static void send_piece(struct draw *draw, uint32_t least, uint32_t often,
                       uint32_t (*draw_device)(const struct draw *))
{
    uint32_t n = quanta_of(draw, draw->piece), to = NO_PIECE;

    if (n >= least && can_move(draw, draw->piece))
        to = draw_device(draw);
    if (to == NO_PIECE)
        return;
    if (often)
        n = rng_draw(draw->rng, 2) ? often : 1 + rng_draw(draw->rng, n - 1);
    trial_send(draw->trial, draw->layout, draw->piece, n, to);
}

static void propose_move(struct draw *draw)
{
    send_piece(draw, 0, 0, other_device);
}

/* On the device of the other piece the two become one (trial_join). */
static void propose_merge(struct draw *draw)
{
    send_piece(draw, 1, 0, sibling_device);
}

/* Halves most often: they take the most off a device that is too slow. */
static void propose_split(struct draw *draw)
{
    send_piece(draw, 2, quanta_of(draw, draw->piece) / 2, other_device);
}

/* One quantum most often: two devices that are nearly even become more so. */
static void propose_resplit(struct draw *draw)
{
    send_piece(draw, 2, 1, sibling_device);
}

/* The piece and one of another device change places, if both may; or as many
 * quanta of theirs, all that both have in half of all cases. */
static void exchange(struct draw *draw, bool is_of_columns)
{
    const struct change *pieces = draw->layout->pieces;
    uint32_t other = piece_on(draw->layout, other_device(draw), draw->rng);
    uint32_t n = 0;

    if (other == NO_PIECE || !can_move(draw, draw->piece) ||
        !can_move(draw, other) ||
        pieces[draw->piece].part == pieces[other].part)
        return;
    if (is_of_columns) {
        n = (uint32_t)min_u64(quanta_of(draw, draw->piece),
                              quanta_of(draw, other));
        if (!n || unit_of(draw->layout, other) == draw->unit)
            return;
        n = rng_draw(draw->rng, 2) ? n : 1 + rng_draw(draw->rng, n);
    }
    trial_send(draw->trial, draw->layout, draw->piece, n, pieces[other].device);
    trial_send(draw->trial, draw->layout, other, n, draw->device);
}

/* Where devices are full, a move alone would exceed their memory. */
static void propose_swap(struct draw *draw)
{
    exchange(draw, false);
}

/* What devices send stays as even as it is, which two splits would upset. */
static void propose_trade(struct draw *draw)
{
    exchange(draw, true);
}

/* --- rebuilding --- */

/* What its device has once the piece comes, or goes (sign -1). */
static void reckon(struct draw *draw, const struct change *piece, double sign)
{
    const struct parts *parts = draw->layout->parts;
    const uint64_t bytes = parts->parts[piece->part].bytes;
    struct estimate *on = &draw->trial->estimates[piece->device];

    on->load_ms += sign * parts->load_ms[piece->part];
    on->bytes += sign < 0 ? -bytes : bytes;
}

static void put(struct draw *draw, const struct change *piece)
{
    reckon(draw, piece, 1);
    draw->trial->is_given_up |=
        draw->trial->estimates[piece->device].load_ms > draw->limit_ms;
    trial_add(draw->trial, *piece);
}

/* The best device so far: the one that exceeds its memory least, then the one
 * that has least to do. */
struct best {
    uint32_t device; /* or NO_PIECE */
    double excess, ms;
};

static inline void consider(struct best *best, const struct layout *layout,
                            uint32_t device, double ms, uint64_t bytes)
{
    const double excess = layout_excess(layout, device, bytes);

    if (excess < best->excess || (excess == best->excess && ms < best->ms))
        *best = (struct best){device, excess, ms};
}

/* The first of so many devices that follow each other, of which the busiest
 * counts; 1: any device. */
static uint32_t device_for(const struct draw *draw, uint32_t part,
                           uint32_t apart)
{
    const struct trial *trial = draw->trial;
    const struct estimate *estimates = trial->estimates;
    const uint64_t bytes = draw->layout->parts->parts[part].bytes;
    struct best best = {NO_PIECE, INFINITY, INFINITY};

    assert(apart > 0);
    for (uint32_t at = draw->layout->parts->parts[part].first_device;
         at + apart <= draw->layout->n_devices; at += apart) {
        uint32_t r = at;

        for (uint32_t i = at + 1; i < at + apart; i++)
            if (estimates[i].load_ms > estimates[r].load_ms)
                r = i;
        if (trial->first_on[at] == NO_PIECE)
            consider(&best, draw->layout, r, estimates[r].load_ms,
                     estimates[r].bytes + bytes);
    }
    return best.device / apart * apart;
}

/* The most quanta that the device takes before it is full, by load or by
 * memory; all of them only where the unit may stand whole. By halves: no piece
 * is cheaper or smaller than a narrower one of its unit. Where a cost model has
 * it otherwise what is found fits all the same, and is rather of few powers of
 * two, which add up: DCNv2 on 8 GPUs by TorchRec's formulas ends at its least
 * from 13 of 13 seeds, by bisection from 9. Bytes lie apart: they are looked at
 * in the end. */
static uint32_t room_on(const struct draw *draw, uint32_t device)
{
    const struct parts *parts = draw->layout->parts;
    const struct estimate *on = &draw->trial->estimates[device];
    const uint32_t most = draw->of->n_quanta - (draw->of->whole == NO_PART);
    uint32_t least = 0;

    if (on->load_ms + parts->load_ms[draw->of->columns] > draw->target_ms)
        return 0;
    for (uint32_t step = 1U << 31 >> __builtin_clz(draw->of->n_quanta); step;
         step /= 2) {
        const uint32_t n = least + step;
        const uint32_t part = parts_of_quanta(draw->of, n);

        if (n <= most &&
            !(on->load_ms + parts->load_ms[part] > draw->target_ms))
            least = n;
    }
    while (least &&
           on->bytes + parts->parts[parts_of_quanta(draw->of, least)].bytes >
               parts->room_bytes[device])
        least--;
    return least;
}

/* Where the widest piece of n quanta or fewer goes: the fullest of the devices
 * that take as much; some have room. */
static uint32_t device_to_fill(const struct draw *draw, uint32_t n)
{
    const struct estimate *estimates = draw->trial->estimates;
    uint32_t best = 0, most = 0;
    double best_ms = -INFINITY;

    for (uint32_t r = 0; r < draw->layout->n_devices; r++) {
        const uint32_t room = (uint32_t)min_u64(estimates[r].room_quanta, n);

        if (room < most || (room == most && estimates[r].load_ms <= best_ms))
            continue;
        most = room;
        best = r;
        best_ms = estimates[r].load_ms;
    }
    return best;
}

/* The device that has least to do with n quanta more. */
static uint32_t device_to_overfill(const struct draw *draw, uint32_t n)
{
    const struct parts *parts = draw->layout->parts;
    const struct estimate *estimates = draw->trial->estimates;
    struct best best = {NO_PIECE, INFINITY, INFINITY};

    for (uint32_t r = 0; r < draw->layout->n_devices; r++) {
        const struct estimate *on = &estimates[r];
        const uint32_t then = parts_of_quanta(draw->of, on->held_quanta + n);

        if (then != NO_PART)
            consider(&best, draw->layout, r, on->load_ms + parts->load_ms[then],
                     on->bytes + parts->parts[then].bytes);
    }
    return best.device;
}

/* All of the unit in hand, by columns: devices that have room get what they
 * take up to the target, one piece each, so there are at most as many pieces as
 * devices. What is left when none has room goes to the least loaded, in shares,
 * as one of them may take all that the others could not. */
static void pour(struct draw *draw)
{
    struct estimate *estimates = draw->trial->estimates;
    const uint32_t n_devices = draw->layout->n_devices;
    uint32_t left = draw->of->n_quanta, n_open = 0, n, r;

    for (r = 0; r < n_devices; r++) {
        estimates[r].room_quanta = room_on(draw, r);
        estimates[r].held_quanta = 0;
        n_open += estimates[r].room_quanta > 0;
    }
    for (; left && n_open; left -= n, n_open--) {
        r = device_to_fill(draw, left);
        n = (uint32_t)min_u64(estimates[r].room_quanta, left);
        estimates[r].room_quanta = 0;
        estimates[r].held_quanta = n;
    }
    for (; left; left -= n) {
        n = (left + LEFT_SHARE - 1) / LEFT_SHARE;
        estimates[device_to_overfill(draw, n)].held_quanta += n;
    }
    for (r = 0; r < n_devices && trial_is_priced(draw->trial); r++)
        if (estimates[r].held_quanta)
            put(draw, &(struct change){.part = parts_of_quanta(
                                           draw->of, estimates[r].held_quanta),
                                       .device = r,
                                       .range = r});
}

/* Where an open piece goes: not where its row block is of another range, all of
 * which are among the pieces that were put from change `first` on. Blocks that
 * fill a host follow each other. */
static uint32_t open_device(const struct draw *draw, const struct form *form,
                            const struct change *piece, uint32_t first)
{
    const struct trial *trial = draw->trial;
    const struct change *block = &trial->changes.pieces[first + piece->block];
    const struct cluster *cluster = &draw->layout->parts->problem->cluster;
    uint32_t device;

    if (form->fills_host && piece->block)
        return trial->changes.pieces[trial->changes.n - 1].device + 1;
    for (uint32_t range = 0; range < piece->range; range++)
        trial->first_on[block[range * form->n_blocks].device] = 0;
    device = device_for(draw, piece->part,
                        form->fills_host ? cluster_group(cluster) : 1);
    for (uint32_t range = 0; range < piece->range; range++)
        trial->first_on[block[range * form->n_blocks].device] = NO_PIECE;
    return device;
}

void rebuild(struct trial *trial, const struct layout *layout,
             const struct form *const *forms, uint32_t n_forms, struct rng *rng)
{
    struct draw draw = {.trial = trial, .layout = layout, .rng = rng};
    const struct parts *parts = layout->parts;
    double mean = 0, most = 0;

    assert(!trial->changes.n); /* what goes is found there */
    for (uint32_t r = 0; r < layout->n_devices; r++) {
        const double ms = layout->load_ms[r];

        mean += ms / layout->n_devices;
        most = ms > most ? ms : most;
        trial->estimates[r] =
            (struct estimate){.load_ms = ms, .bytes = layout->bytes[r]};
    }
    draw.target_ms = mean + rng_uniform(rng) * (most - mean);
    draw.limit_ms =
        parts->oracle->is_additive ? trial_limit_ms(trial, rng) : INFINITY;
    trial->is_apart = true;
    for (uint32_t i = 0; i < n_forms; i++)
        trial_remove_unit(trial, layout, parts->parts[forms[i]->part].unit);
    for (uint32_t c = 0; c < trial->changes.n; c++)
        reckon(&draw, &layout->pieces[trial->changes.pieces[c].piece], -1);
    for (uint32_t i = 0; i < n_forms && trial_is_priced(trial); i++) {
        const struct form *form = forms[i];
        const uint32_t first = trial->changes.n;

        draw.of = &parts->of[parts->parts[form->part].unit];
        if (draw.of->columns != NO_PART && parts->tuning->pours &&
            draw.of->device == NO_PIECE &&
            (form->kind == FORM_WHOLE || form->kind == FORM_COLUMNS)) {
            pour(&draw);
            trial->is_apart &= draw.of->first->output != OUTPUT_SEQUENCE;
            continue;
        }
        for (uint32_t k = 0; k < form->n_pieces && trial_is_priced(trial);
             k++) {
            struct change piece = forms_piece(parts, form, k);

            if (piece.device == NO_PIECE)
                piece.device = open_device(&draw, form, &piece, first);
            put(&draw, &piece);
        }
        trial->is_apart &=
            form->kind == FORM_REPLICA || draw.of->device != NO_PIECE;
    }
}

/* The table in hand in a form drawn anew, and some others, drawn as it was, of
 * which a share keep theirs: they only make room. Pieces are counted as if none
 * were taken off, on the safe side of MAX_PIECES. */
static void propose_rebuild(struct draw *draw)
{
    const struct layout *layout = draw->layout;
    const struct parts *parts = layout->parts;
    const struct form *forms[TUNING_MAX_REBUILT];
    uint32_t most = 1 + rng_draw(draw->rng, parts->tuning->n_rebuilt);
    uint32_t n = 0, n_pieces = layout->n_live, unit = draw->unit;

    for (uint32_t i = 0; i < most; i++) {
        bool is_kept = i && !tuning_draw(draw->rng, parts->tuning->recuts);
        bool is_out;

        if (i)
            unit = unit_of(layout, pick_piece(layout, draw->rng));
        is_out = parts->of[unit].pin >= 0;
        for (uint32_t k = 0; k < n; k++)
            is_out |= parts->parts[forms[k]->part].unit == unit;
        if (is_out)
            continue;
        forms[n] =
            is_kept ? parts_form_of(parts,
                                    layout->pieces[layout->first_of[unit]].part)
                    : forms_draw(parts, unit, draw->rng);
        n_pieces += forms[n++]->n_pieces;
    }
    if (n && n_pieces <= MAX_PIECES)
        rebuild(draw->trial, layout, forms, n, draw->rng);
}

/* --- any of them, by shares of their sum: one whose share is 0 never --- */

#define PROPOSE(id, name, few, many) propose_##name,
static void (*const proposals[])(struct draw *) = {CHANGE_KINDS(PROPOSE)};

void propose(struct trial *trial, const struct layout *layout, struct rng *rng)
{
    const uint32_t *shares = layout->parts->tuning->changes[layout->style];
    struct draw draw = {.trial = trial, .layout = layout, .rng = rng};
    uint32_t sum = 0, kind = 0;

    trial_clear(trial);
    draw.piece = pick_piece(layout, rng);
    draw.device = layout->pieces[draw.piece].device;
    draw.unit = unit_of(layout, draw.piece);
    for (uint32_t i = 0; i < N_CHANGE_KINDS; i++)
        sum += shares[i];
    for (uint32_t left = rng_draw(rng, sum); left >= shares[kind]; kind++)
        left -= shares[kind];
    if (layout->parts->homes && rng_draw(rng, HOMING) == 0)
        homes_propose(trial, layout, draw.unit);
    else if (tuning_draw(rng, layout->parts->tuning->rebuilds) &&
             rng_draw(rng, layout->n_devices) < CHEAP_DEVICES)
        propose_rebuild(&draw);
    else
        proposals[kind](&draw);
    if (!trial_join(trial, layout) && !trial->is_given_up)
        trial_clear(trial);
}
