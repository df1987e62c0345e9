/* SPDX-License-Identifier: MIT */
#include "search/replan_start.h"
#include "search/tryout.h"

#include <math.h>
#include <stdlib.h>

/* Devices that are tried for a piece: the fastest. */
#define N_TAKERS 6u
/* What gains less, of the step, is no gain. */
#define LEAST_GAIN_FRAC 1e-6
/* Moves in all, a piece. */
#define MOVES_A_PIECE 2u

struct rebalancing {
    const struct parts *parts;
    struct tryout tryout;
    uint32_t takers[N_TAKERS];
    uint32_t n_takers;
};

/* A piece, or some of its columns, that goes to a device. */
struct gift {
    uint32_t piece, to;
    uint32_t n_quanta; /* 0: all of it */
    double gain;       /* ms a byte */
};

/* The fastest devices, but the slowest is none of them. */
static void find_takers(struct rebalancing *rebalancing)
{
    const struct layout *layout = &rebalancing->tryout.layout;
    uint32_t *takers = rebalancing->takers, n = 0;

    for (uint32_t r = 0; r < layout->n_devices; r++) {
        uint32_t i;

        if (r == layout->slowest ||
            (n == N_TAKERS &&
             layout->local_ms[r] >= layout->local_ms[takers[n - 1]]))
            continue;
        i = n < N_TAKERS ? n++ : n - 1;
        for (; i && layout->local_ms[takers[i - 1]] > layout->local_ms[r]; i--)
            takers[i] = takers[i - 1];
        takers[i] = r;
    }
    rebalancing->n_takers = n;
}

static void try_gift(struct rebalancing *rebalancing, const struct gift *gift)
{
    struct tryout *tryout = &rebalancing->tryout;
    const struct piece *piece = &tryout->layout.pieces[gift->piece];
    const struct part *part = &rebalancing->parts->parts[piece->part];
    const struct part_unit *of = &rebalancing->parts->of[part->unit];
    uint32_t taken = gift->n_quanta * of->quantum;

    trial_clear(&tryout->trial);
    if (!taken) {
        trial_change(&tryout->trial, &tryout->layout, gift->piece, piece->part,
                     gift->to);
        return;
    }
    trial_change(
        &tryout->trial, &tryout->layout, gift->piece,
        parts_of_width(rebalancing->parts, part->unit, part->width - taken),
        piece->device);
    trial_add(&tryout->trial,
              parts_of_width(rebalancing->parts, part->unit, taken), gift->to,
              0, 0);
}

/* What it takes off the slower of the two, a byte that moves. */
static double gain_of(struct rebalancing *rebalancing, const struct gift *gift)
{
    struct tryout *tryout = &rebalancing->tryout;
    const struct layout *layout = &tryout->layout;
    double most_ms = layout->local_ms[layout->slowest], gain, bytes;

    try_gift(rebalancing, gift);
    if (!isfinite(tryout_price(tryout)) ||
        tryout->trial.excess > layout->excess)
        return 0;
    gain = most_ms - fmax(tryout_local_ms(tryout, layout->slowest),
                          tryout_local_ms(tryout, gift->to));
    if (!(gain > LEAST_GAIN_FRAC * most_ms))
        return 0;
    bytes =
        (double)tryout->trial.all_moved_bytes - (double)layout->all_moved_bytes;
    return gain / fmax(bytes, 1);
}

static void offer(struct rebalancing *rebalancing, struct gift *best,
                  struct gift gift)
{
    gift.gain = gain_of(rebalancing, &gift);
    if (gift.gain > best->gain)
        *best = gift;
}

/* A piece, or half of its columns, to each of the takers. */
static void offer_piece(struct rebalancing *rebalancing, struct gift *best,
                        uint32_t piece, bool by_half)
{
    const struct layout *layout = &rebalancing->tryout.layout;
    const struct parts *parts = rebalancing->parts;
    const struct part *part = &parts->parts[layout->pieces[piece].part];
    const struct part_unit *of = &parts->of[part->unit];
    struct gift gift = {.piece = piece};

    if (!parts_can_move(parts, layout->pieces[piece].part))
        return;
    if (by_half)
        gift.n_quanta = part->width / of->quantum / 2;
    if (by_half && (!gift.n_quanta || of->columns == NO_PART ||
                    !(part->kind & (SHARD_TABLE | SHARD_COLUMN))))
        return;
    for (uint32_t i = 0; i < rebalancing->n_takers; i++) {
        gift.to = rebalancing->takers[i];
        offer(rebalancing, best, gift);
    }
}

/* Halves cost more in all, so they come second. */
static bool give(struct rebalancing *rebalancing)
{
    const struct layout *layout = &rebalancing->tryout.layout;
    const struct holding *holding = &layout->holdings[layout->slowest];
    struct gift best = {.gain = 0};

    find_takers(rebalancing);
    for (int by_half = 0; by_half < 2 && !(best.gain > 0); by_half++)
        for (uint32_t i = 0; i < holding->n; i++)
            offer_piece(rebalancing, &best, holding->pieces[i], by_half);
    if (!(best.gain > 0))
        return false;
    try_gift(rebalancing, &best);
    (void)tryout_price(&rebalancing->tryout);
    layout_commit(&rebalancing->tryout.layout, &rebalancing->tryout.trial);
    return true;
}

void replan_rebalance(struct snapshot *snapshot, const struct parts *parts)
{
    struct rebalancing rebalancing = {.parts = parts};
    uint32_t n_left = MOVES_A_PIECE * snapshot->n;

    tryout_init(&rebalancing.tryout, parts);
    tryout_load(&rebalancing.tryout, snapshot);
    while (n_left && give(&rebalancing))
        n_left--;
    snapshot_save(snapshot, &rebalancing.tryout.layout);
    tryout_release(&rebalancing.tryout);
}
