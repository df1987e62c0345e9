/* SPDX-License-Identifier: MIT */
#include "search/moves.h"

#include "core/cluster.h"
#include "search/tier_move.h"

#include <assert.h>
#include <math.h>

/* Maximum number of pieces after a ruin and recreate. The limit is needed
 * because replicas and row blocks over very many devices make long plans. */
#define MAX_PIECES (1u << 18)
/* Number of devices up to which ruin and recreate is proposed with its full
 * share. It may touch all devices. So if there are more devices, it is proposed
 * less often. */
#define CHEAP_DEVICES 16
/* If the search re-plans, one in 8 proposals moves a table back to its place in
 * the current plan. */
#define HOMING 8
/* If tables may be in host memory, one in 6 proposals changes the tier of a
 * table. */
#define TIERING 6
/* Once all devices are full, the rest of a table is given out in shares of the
 * remaining width. LEFT_SHARE is the divisor: each share is a quarter. */
#define LEFT_SHARE 4

/* State from which one move is drawn. */
struct draw {
    struct candidate *candidate; /* its estimates of the loads are used, too */
    const struct assignment *assignment;
    struct rng *rng;
    /* piece, device and unit where the move begins */
    uint32_t piece, device, unit;
    /* The members below are for ruin and recreate only. */
    double target_ms; /* load at which a device counts as full */
    /* Load of a device above which the whole candidate is rejected at once. It
     * is INFINITY unless loads are exactly additive. */
    double limit_ms;
    const struct unit *poured; /* unit that is being placed */
    enum tier tier;            /* its tier */
};

/* Returns a piece of the device, drawn uniformly, or NO_PIECE if the device has
 * no piece. */
static uint32_t piece_on(const struct assignment *assignment, uint32_t device,
                         struct rng *rng)
{
    const struct holding *holding = &assignment->holdings[device];

    return holding->n ? holding->pieces[rng_draw(rng, holding->n)] : NO_PIECE;
}

/* Returns a device that sets the total. Draws a term in proportion to its
 * maximum times its weight and returns the device that has this maximum. */
static uint32_t critical_device(const struct assignment *assignment,
                                struct rng *rng)
{
    const double *max_ms = assignment->most_ms;
    double left = 0;
    uint32_t k;

    for (k = 0; k < assignment->n_terms; k++)
        left += assignment->weight[k] * max_ms[k];
    left *= rng_uniform(rng);
    for (k = 0; k + 1 < assignment->n_terms &&
                left >= assignment->weight[k] * max_ms[k];
         k++)
        left -= assignment->weight[k] * max_ms[k];
    return assignment->leader[k];
}

static uint32_t unit_of(const struct assignment *assignment, uint32_t piece)
{
    return assignment->space->types[assignment->pieces[piece].type].unit;
}

/* Draws the piece at which a move begins. The total becomes lower at once only
 * if work is removed from a device that sets the total. Other devices must
 * first make room for that work. So some moves begin on a device that sets the
 * total, and the rest begin on any device. */
static uint32_t pick_piece(const struct assignment *assignment, struct rng *rng)
{
    uint32_t idx = NO_PIECE;

    if (!tuning_draw(rng, assignment->space->tuning->anywhere))
        idx = piece_on(assignment, critical_device(assignment, rng), rng);
    while (idx == NO_PIECE || assignment->pieces[idx].type == NO_TYPE)
        idx = rng_draw(rng, assignment->n_pieces);
    return idx;
}

/* Returns a device other than the one where the move begins. Requires at least
 * two devices. */
static uint32_t other_device(const struct draw *draw)
{
    uint32_t r = rng_draw(draw->rng, draw->assignment->n_devices - 1);

    return r + (r >= draw->device);
}

static bool can_move(const struct draw *draw, uint32_t piece)
{
    return space_can_move(draw->assignment->space,
                          draw->assignment->pieces[piece].type);
}

/* Returns the width of a piece in width steps. Returns 0 if the columns of the
 * piece cannot be cut. */
static uint32_t width_steps_of(const struct draw *draw, uint32_t piece)
{
    return space_width_steps(draw->assignment->space,
                             draw->assignment->pieces[piece].type);
}

/* Returns the device of another piece of the same table, or NO_PIECE if the
 * table has only one piece. Treats the list of the table's pieces as a ring. It
 * goes forward by a random number of steps, fewer than there are pieces, so
 * each other piece is equally likely. */
static uint32_t sibling_device(const struct draw *draw)
{
    const struct assignment *assignment = draw->assignment;
    uint32_t first = assignment->first_of[draw->unit], pos = draw->piece, n = 0;

    for (uint32_t i = first; i != NO_PIECE; i = assignment->links[i].next)
        n++;
    if (n < 2)
        return NO_PIECE;
    for (uint32_t k = 1 + rng_draw(draw->rng, n - 1); k > 0; k--) {
        pos = assignment->links[pos].next;
        if (pos == NO_PIECE)
            pos = first;
    }
    return assignment->pieces[pos].device;
}

/* The proposal functions. Each function draws the parameters of one kind of
 * move. If the piece does not allow the move, the function leaves the candidate
 * empty. This is cheaper than a list of the allowed moves. Each move between
 * column pieces can be undone by another move. So the moves together lead from
 * any assignment of column pieces to any other. Only ruin and recreate makes
 * row blocks and replicas. */

/* Sends the piece, or some of its columns, to a device that draw_device
 * returns. Does nothing if the piece has fewer than `least` width steps, or if
 * no device is drawn. If `often` is 0, it sends the whole piece. Otherwise it
 * sends `often` width steps in half of all cases. In the other half it sends a
 * random number of width steps that leaves the piece at least one. */
static void send_piece(struct draw *draw, uint32_t least, uint32_t often,
                       uint32_t (*draw_device)(const struct draw *))
{
    uint32_t n = width_steps_of(draw, draw->piece), to = NO_PIECE;

    if (n >= least && can_move(draw, draw->piece))
        to = draw_device(draw);
    if (to == NO_PIECE)
        return;
    if (often)
        n = rng_draw(draw->rng, 2) ? often : 1 + rng_draw(draw->rng, n - 1);
    candidate_send(draw->candidate, draw->assignment, draw->piece, n, to);
}

static void propose_move(struct draw *draw)
{
    send_piece(draw, 0, 0, other_device);
}

/* Sends the whole piece to the device of another piece of its table.
 * candidate_join then merges the two pieces. */
static void propose_merge(struct draw *draw)
{
    send_piece(draw, 1, 0, sibling_device);
}

/* Sends some columns of the piece to any other device. Most often it sends half
 * of them, because this takes the most work off a device that is too slow. */
static void propose_split(struct draw *draw)
{
    send_piece(draw, 2, width_steps_of(draw, draw->piece) / 2, other_device);
}

/* Shifts columns to another piece of the same table. Most often it shifts one
 * width step, which balances two devices whose loads are nearly equal. */
static void propose_resplit(struct draw *draw)
{
    send_piece(draw, 2, 1, sibling_device);
}

/* Swaps the piece with a piece of another device, if both pieces may move. With
 * is_of_columns it swaps the same number of width steps of both pieces. In half
 * of all cases this is the full width of the narrower piece. In the other half
 * it is a random number up to that width. */
static void exchange(struct draw *draw, bool is_of_columns)
{
    const struct change *pieces = draw->assignment->pieces;
    uint32_t other = piece_on(draw->assignment, other_device(draw), draw->rng);
    uint32_t n = 0;

    if (other == NO_PIECE || !can_move(draw, draw->piece) ||
        !can_move(draw, other) ||
        pieces[draw->piece].type == pieces[other].type)
        return;
    if (is_of_columns) {
        n = (uint32_t)min_u64(width_steps_of(draw, draw->piece),
                              width_steps_of(draw, other));
        if (!n || unit_of(draw->assignment, other) == draw->unit)
            return;
        n = rng_draw(draw->rng, 2) ? n : 1 + rng_draw(draw->rng, n);
    }
    candidate_send(draw->candidate, draw->assignment, draw->piece, n,
                   pieces[other].device);
    candidate_send(draw->candidate, draw->assignment, other, n, draw->device);
}

/* Swaps two whole pieces. This helps if devices are full, because a single move
 * would exceed the memory of its target. */
static void propose_swap(struct draw *draw)
{
    exchange(draw, false);
}

/* Swaps the same number of columns of two pieces. So each device keeps its
 * number of columns and sends as many bytes as before. Two splits in place of
 * one trade would change these numbers after the first split. */
static void propose_trade(struct draw *draw)
{
    exchange(draw, true);
}

/* --- ruin and recreate --- */

/* Updates the estimates of a device when a piece arrives (sign 1) or leaves
 * (sign -1). */
static void reckon(struct draw *draw, const struct change *piece, double sign)
{
    const struct search_space *space = draw->assignment->space;
    const uint64_t bytes = space->types[piece->type].bytes;
    struct device_estimate *estimate =
        &draw->candidate->estimates[piece->device];

    estimate->load_ms += sign * space->load_ms[piece->type];
    estimate->bytes += sign < 0 ? -bytes : bytes;
}

static void put(struct draw *draw, const struct change *piece)
{
    reckon(draw, piece, 1);
    draw->candidate->is_given_up |=
        draw->candidate->estimates[piece->device].load_ms > draw->limit_ms;
    candidate_add(draw->candidate, *piece);
}

/* Best device so far: the device with the least excess memory. Ties go to the
 * device with the least load. */
struct best {
    uint32_t device; /* index of the device, or NO_PIECE */
    double excess, ms;
};

static inline void consider(struct best *best,
                            const struct assignment *assignment,
                            uint32_t device, double ms, uint64_t bytes)
{
    const double excess = assignment_excess(assignment, device, bytes);

    if (excess < best->excess || (excess == best->excess && ms < best->ms))
        *best = (struct best){device, excess, ms};
}

/* Returns the first device of the best group of `apart` consecutive devices. A
 * group is as good as its most loaded device. With apart = 1 the result is the
 * best single device. */
static uint32_t device_for(const struct draw *draw, uint32_t type,
                           uint32_t apart)
{
    const struct candidate *candidate = draw->candidate;
    const struct device_estimate *estimates = candidate->estimates;
    const uint64_t bytes = draw->assignment->space->types[type].bytes;
    struct best best = {NO_PIECE, INFINITY, INFINITY};

    assert(apart > 0);
    for (uint32_t pos = draw->assignment->space->types[type].first_device;
         pos + apart <= draw->assignment->n_devices; pos += apart) {
        uint32_t r = pos;

        for (uint32_t i = pos + 1; i < pos + apart; i++)
            if (estimates[i].load_ms > estimates[r].load_ms)
                r = i;
        if (candidate->first_on[pos] == NO_PIECE)
            consider(&best, draw->assignment, r, estimates[r].load_ms,
                     estimates[r].bytes + bytes);
    }
    return best.device / apart * apart;
}

/*
 * Returns the largest number of width steps of the unit that the device can
 * take before its load or its memory is full. The number may be the full width
 * only if the unit may be placed whole.
 *
 * Load and bytes are assumed to grow with the width. The number is a sum of
 * powers of two, and the largest power that fits is added first. So the result
 * fits even if a cost model breaks this assumption, and it tends to be a sum of
 * few powers of two. These widths combine well. For DCNv2 on 8 GPUs with
 * TorchRec's formulas, the least cost is reached from 13 of 13 seeds. With
 * bisection in place of powers of two, it is reached from 9 seeds. Memory is
 * checked last, because the bytes are in another array than the loads.
 */
static uint32_t room_on(const struct draw *draw, uint32_t device)
{
    const struct search_space *space = draw->assignment->space;
    const struct device_estimate *estimate =
        &draw->candidate->estimates[device];
    const uint32_t most = draw->poured->n_width_steps -
                          (draw->poured->whole[draw->tier] == NO_TYPE);
    uint32_t least = 0;

    if (estimate->load_ms + space->load_ms[draw->poured->columns[draw->tier]] >
        draw->target_ms)
        return 0;
    for (uint32_t step = 1U << 31 >> __builtin_clz(draw->poured->n_width_steps);
         step; step /= 2) {
        const uint32_t n = least + step;
        const uint32_t type = unit_type_of_steps(draw->poured, n, draw->tier);

        if (n <= most &&
            !(estimate->load_ms + space->load_ms[type] > draw->target_ms))
            least = n;
    }
    while (
        least &&
        estimate->bytes +
                space
                    ->types[unit_type_of_steps(draw->poured, least, draw->tier)]
                    .bytes >
            space->room_bytes[device])
        least--;
    return least;
}

/* Returns the device for the widest possible piece of at most n width steps. If
 * several devices take this width, it returns the most loaded of them. At least
 * one device must have room. */
static uint32_t device_to_fill(const struct draw *draw, uint32_t n)
{
    const struct device_estimate *estimates = draw->candidate->estimates;
    uint32_t best = 0, most = 0;
    double best_ms = -INFINITY;

    for (uint32_t r = 0; r < draw->assignment->n_devices; r++) {
        const uint32_t room = (uint32_t)min_u64(estimates[r].free_steps, n);

        if (room < most || (room == most && estimates[r].load_ms <= best_ms))
            continue;
        most = room;
        best = r;
        best_ms = estimates[r].load_ms;
    }
    return best;
}

/* Returns the device that would have the least load with n more width steps. */
static uint32_t device_to_overfill(const struct draw *draw, uint32_t n)
{
    const struct search_space *space = draw->assignment->space;
    const struct device_estimate *estimates = draw->candidate->estimates;
    struct best best = {NO_PIECE, INFINITY, INFINITY};

    for (uint32_t r = 0; r < draw->assignment->n_devices; r++) {
        const struct device_estimate *estimate = &estimates[r];
        const uint32_t then = unit_type_of_steps(
            draw->poured, estimate->held_steps + n, draw->tier);

        if (then != NO_TYPE)
            consider(&best, draw->assignment, r,
                     estimate->load_ms + space->load_ms[then],
                     estimate->bytes + space->types[then].bytes);
    }
    return best.device;
}

/* Pours all columns of a unit over the devices. A device with room gets one
 * piece, as wide as fits up to the target load. So there are at most as many
 * pieces as devices. If no device has room, the rest goes in shares to the
 * least loaded devices. Otherwise a single device might get all columns for
 * which the other devices had no room. */
static void pour(struct draw *draw)
{
    struct device_estimate *estimates = draw->candidate->estimates;
    const uint32_t n_devices = draw->assignment->n_devices;
    uint32_t left = draw->poured->n_width_steps, n_open = 0, n, r;

    for (r = 0; r < n_devices; r++) {
        estimates[r].free_steps = room_on(draw, r);
        estimates[r].held_steps = 0;
        n_open += estimates[r].free_steps > 0;
    }
    for (; left && n_open; left -= n, n_open--) {
        r = device_to_fill(draw, left);
        n = (uint32_t)min_u64(estimates[r].free_steps, left);
        estimates[r].free_steps = 0;
        estimates[r].held_steps = n;
    }
    for (; left; left -= n) {
        n = (left + LEFT_SHARE - 1) / LEFT_SHARE;
        estimates[device_to_overfill(draw, n)].held_steps += n;
    }
    for (r = 0; r < n_devices && candidate_is_priced(draw->candidate); r++)
        if (estimates[r].held_steps)
            put(draw, &(struct change){.type = unit_type_of_steps(
                                           draw->poured,
                                           estimates[r].held_steps, draw->tier),
                                       .device = r,
                                       .range = r});
}

/* Marks the devices that must not get this piece, or removes the marks. These
 * devices hold a piece of the same row block with another column range, or any
 * piece of the unit if it keeps its pieces apart. All pieces of the unit are
 * among the changes from `first` on. */
static void mark_taken(const struct draw *draw, const struct sharding *sharding,
                       const struct change *piece, uint32_t first,
                       uint32_t mark)
{
    const struct candidate *candidate = draw->candidate;
    const struct change *pieces = &candidate->changes.pieces[first];

    for (uint32_t i = 0;
         draw->poured->keeps_apart && first + i < candidate->changes.n; i++)
        candidate->first_on[pieces[i].device] = mark;
    for (uint32_t range = 0; range < piece->range; range++)
        candidate->first_on[pieces[piece->block + range * sharding->n_blocks]
                                .device] = mark;
}

/* Returns the device for a piece that has no fixed device, other than those of
 * mark_taken. All pieces of
 * the unit are among the changes from `first` on. Blocks that fill a host go to
 * consecutive devices. */
static uint32_t open_device(const struct draw *draw,
                            const struct sharding *sharding,
                            const struct change *piece, uint32_t first)
{
    const struct candidate *candidate = draw->candidate;
    const struct cluster *cluster = &draw->assignment->space->problem->cluster;
    uint32_t device;

    if (sharding->fills_host && piece->block)
        return candidate->changes.pieces[candidate->changes.n - 1].device + 1;
    mark_taken(draw, sharding, piece, first, 0);
    device = device_for(draw, piece->type,
                        sharding->fills_host ? cluster_group(cluster) : 1);
    mark_taken(draw, sharding, piece, first, NO_PIECE);
    return device;
}

void rebuild(struct candidate *candidate, const struct assignment *assignment,
             const struct sharding *const *shardings, uint32_t n_shardings,
             struct rng *rng)
{
    struct draw draw = {
        .candidate = candidate, .assignment = assignment, .rng = rng};
    const struct search_space *space = assignment->space;
    double mean = 0, most = 0;

    assert(!candidate->changes
                .n); /* the removed pieces become the first changes */
    for (uint32_t r = 0; r < assignment->n_devices; r++) {
        const double ms = assignment->load_ms[r];

        mean += ms / assignment->n_devices;
        most = ms > most ? ms : most;
        candidate->estimates[r] = (struct device_estimate){
            .load_ms = ms, .bytes = assignment->bytes[r]};
    }
    draw.target_ms = mean + rng_uniform(rng) * (most - mean);
    draw.limit_ms = space->oracle->is_additive
                        ? candidate_limit_ms(candidate, rng)
                        : INFINITY;
    candidate->is_apart = true;
    for (uint32_t i = 0; i < n_shardings; i++)
        candidate_remove_unit(candidate, assignment,
                              space->types[shardings[i]->type].unit);
    for (uint32_t c = 0; c < candidate->changes.n; c++)
        reckon(&draw, &assignment->pieces[candidate->changes.pieces[c].piece],
               -1);
    for (uint32_t i = 0; i < n_shardings && candidate_is_priced(candidate);
         i++) {
        const struct sharding *sharding = shardings[i];
        const uint32_t first = candidate->changes.n;

        draw.poured = &space->units[space->types[sharding->type].unit];
        draw.tier = space->types[sharding->type].tier;
        if (draw.poured->columns[draw.tier] != NO_TYPE &&
            space->tuning->pours && draw.poured->device == NO_PIECE &&
            !draw.poured->keeps_apart &&
            (sharding->kind == SHARDING_WHOLE ||
             sharding->kind == SHARDING_COLUMNS)) {
            pour(&draw);
            candidate->is_apart &=
                draw.poured->first->output != OUTPUT_SEQUENCE;
            continue;
        }
        for (uint32_t k = 0;
             k < sharding->n_pieces && candidate_is_priced(candidate); k++) {
            struct change piece = sharding_piece(space, sharding, k);

            if (piece.device == NO_PIECE)
                piece.device = open_device(&draw, sharding, &piece, first);
            put(&draw, &piece);
        }
        candidate->is_apart &= sharding->kind == SHARDING_REPLICA ||
                               draw.poured->device != NO_PIECE;
    }
}

/* Proposes a ruin and recreate. The unit at which the move begins gets a newly
 * drawn sharding. Then some further units are drawn like the first unit. A
 * share of the further units gets a new sharding as well. The other further
 * units keep their shardings and only make room. The number of pieces is
 * counted as if no piece was removed, so MAX_PIECES is never exceeded. */
static void propose_rebuild(struct draw *draw)
{
    const struct assignment *assignment = draw->assignment;
    const struct search_space *space = assignment->space;
    const struct sharding *shardings[TUNING_MAX_REBUILT];
    uint32_t most = 1 + rng_draw(draw->rng, space->tuning->n_rebuilt);
    uint32_t n = 0, n_pieces = assignment->n_live, unit = draw->unit;

    for (uint32_t i = 0; i < most; i++) {
        bool is_kept = i && !tuning_draw(draw->rng, space->tuning->recuts);
        bool is_out;

        if (i)
            unit = unit_of(assignment, pick_piece(assignment, draw->rng));
        is_out = space->units[unit].pin >= 0;
        for (uint32_t k = 0; k < n; k++)
            is_out |= space->types[shardings[k]->type].unit == unit;
        if (is_out)
            continue;
        shardings[n] =
            is_kept ? space_sharding_of(
                          space,
                          assignment->pieces[assignment->first_of[unit]].type)
                    : sharding_draw(space, unit, draw->rng);
        n_pieces += shardings[n++]->n_pieces;
    }
    if (n && n_pieces <= MAX_PIECES)
        rebuild(draw->candidate, assignment, shardings, n, draw->rng);
}

/* --- one random move; kinds of weight 0 are never drawn --- */

#define PROPOSE(id, name, few, many) propose_##name,
static void (*const proposals[])(struct draw *) = {CHANGE_KINDS(PROPOSE)};

void current_propose(struct candidate *candidate,
                     const struct assignment *assignment, uint32_t unit)
{
    const struct current_plan *current = assignment->space->current;

    if (assignment->move_limit_bytes == NO_MOVE_LIMIT ||
        !assignment->moved_bytes[unit])
        return;
    candidate_remove_unit(candidate, assignment, unit);
    candidate->is_apart = true;
    for (uint32_t i = current->nearest_of[unit];
         i < current->nearest_of[unit + 1]; i++)
        candidate_add(candidate, current->nearest[i]);
}

void propose(struct candidate *candidate, const struct assignment *assignment,
             struct rng *rng)
{
    const uint32_t *shares =
        assignment->space->tuning->changes[assignment->mix];
    struct draw draw = {
        .candidate = candidate, .assignment = assignment, .rng = rng};
    uint32_t sum = 0, kind = 0;

    candidate_clear(candidate);
    draw.piece = pick_piece(assignment, rng);
    draw.device = assignment->pieces[draw.piece].device;
    draw.unit = unit_of(assignment, draw.piece);
    for (uint32_t i = 0; i < N_CHANGE_KINDS; i++)
        sum += shares[i];
    for (uint32_t left = rng_draw(rng, sum); left >= shares[kind]; kind++)
        left -= shares[kind];
    if (assignment->space->has_tiers && rng_draw(rng, TIERING) == 0)
        tier_propose(candidate, assignment, draw.piece, rng);
    else if (assignment->space->current && rng_draw(rng, HOMING) == 0)
        current_propose(candidate, assignment, draw.unit);
    else if (tuning_draw(rng, assignment->space->tuning->rebuilds) &&
             rng_draw(rng, assignment->n_devices) < CHEAP_DEVICES)
        propose_rebuild(&draw);
    else
        proposals[kind](&draw);
    if (!candidate_join(candidate, assignment) && !candidate->is_given_up)
        candidate_clear(candidate);
}
