/* SPDX-License-Identifier: MIT */
#include "search/trial.h"

#include "search/movement.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Largest candidate, in changes, whose row blocks are checked for two pieces of
 * one block on one device. Larger candidates place a whole table anew, which
 * keeps its row blocks apart. */
#define MAX_BLOCKS 32

/* Empties a candidate. Between two candidates all entries of `place` and
 * `first_on` are NO_PIECE. Only the touched entries are reset, so the time does
 * not depend on the number of devices. */
void trial_clear(struct trial *trial)
{
    for (uint32_t i = 0; i < trial->n_devices; i++) {
        trial->place[trial->devices[i]] = NO_PIECE;
        trial->n_in_block[trial->devices[i] / ASSIGNMENT_BLOCK] = 0;
    }
    trial->n_devices = trial->changes.n = trial->n_moved = 0;
    trial->is_apart = trial->is_given_up = false;
}

double trial_limit_ms(const struct trial *trial, const struct rng *rng)
{
    struct rng next = *rng;

    return trial->limit_ms - trial->temperature_ms * log(rng_uniform(&next));
}

void trial_send(struct trial *trial, const struct assignment *assignment,
                uint32_t piece, uint32_t n_quanta, uint32_t device)
{
    const struct search_space *space = assignment->space;
    const struct change *it = &assignment->pieces[piece];
    const struct unit *of = &space->units[space->types[it->type].unit];
    const uint32_t n_all = space_quanta_of(space, it->type);
    struct change change = *it;

    if (n_quanta && n_quanta < n_all)
        change.type = unit_type_of_quanta(of, n_all - n_quanta);
    else
        change.device = device;
    *snapshot_next(&trial->changes) = change;
    if (change.type != it->type)
        trial_add(trial,
                  (struct change){.type = unit_type_of_quanta(of, n_quanta),
                                  .device = device});
}

/* Removes a piece from the sums of its device (sign -1) or adds it (sign 1).
 * Sets the sums of an empty device to 0, so that no rounding errors remain.
 * Bytes saturate: a device that holds more than UINT64_MAX bytes must not look
 * empty. */
static inline void sum_piece(struct trial *trial,
                             const struct assignment *assignment,
                             const struct change *piece, double sign)
{
    const size_t width = assignment->space->oracle->width;
    const uint64_t bytes = assignment->space->types[piece->type].bytes;
    const uint32_t device = piece->device;
    const bool is_new = trial->place[device] == NO_PIECE;
    const uint32_t i = is_new ? trial->n_devices : trial->place[device];
    double *sum = trial->sums + i * width;

    /* Copies the values of the assignment, except the sums. */
    if (is_new) {
        trial->place[device] = i;
        trial->n_in_block[device / ASSIGNMENT_BLOCK]++;
        trial->devices[trial->n_devices++] = device;
        trial->n_held[i] = assignment->holdings[device].n;
        trial->bytes[i] = assignment->bytes[device];
    }
    trial->n_held[i] += sign < 0 ? -1 : 1;
    trial->bytes[i] = sign < 0 ? trial->bytes[i] - bytes
                               : saturating_add(trial->bytes[i], bytes);
    add_lanes(sum, is_new ? assignment->sums + device * width : sum,
              assignment->space->vectors + piece->type * width, sign, width);
    if (sign < 0 && !trial->n_held[i])
        memset(sum, 0, width * sizeof(*sum));
}

/* Adds up the changes on all devices, or only on device `only` if that is not
 * NO_PIECE. Removes pieces before it adds any, so that a device that is emptied
 * and refilled is exactly empty in between. */
static void sum_up(struct trial *trial, const struct assignment *assignment,
                   uint32_t only)
{
    const struct change *changes = trial->changes.pieces;

    for (uint32_t c = 0; c < trial->changes.n; c++)
        if (changes[c].piece != NO_PIECE &&
            (only == NO_PIECE ||
             assignment->pieces[changes[c].piece].device == only))
            sum_piece(trial, assignment, &assignment->pieces[changes[c].piece],
                      -1);
    for (uint32_t c = 0; c < trial->changes.n; c++)
        if (changes[c].type != NO_TYPE &&
            (only == NO_PIECE || changes[c].device == only))
            sum_piece(trial, assignment, &changes[c], 1);
}

/* Computes the sums of the touched devices and the excess. The excess changes
 * only with the bytes of touched devices and with the migration of changed
 * units. */
void trial_sum(struct trial *trial, const struct assignment *assignment)
{
    sum_up(trial, assignment, NO_PIECE);
    trial->excess = assignment->excess;
    trial->all_moved_bytes = assignment->all_moved_bytes;
    for (uint32_t i = 0; i < trial->n_devices; i++) {
        uint32_t r = trial->devices[i];

        trial->excess += assignment_excess(assignment, r, trial->bytes[i]) -
                         assignment_excess(assignment, r, assignment->bytes[r]);
    }
    if (assignment_counts_moves(assignment))
        homes_count_trial(trial, assignment);
}

const double *trial_sum_on(struct trial *trial,
                           const struct assignment *assignment, uint32_t device)
{
    sum_up(trial, assignment, device);
    if (!trial->n_devices)
        return assignment->sums + device * assignment->space->oracle->width;
    trial->place[device] = NO_PIECE;
    trial->n_in_block[device / ASSIGNMENT_BLOCK] = 0;
    trial->n_devices = 0;
    return trial->sums;
}

/* Returns the maximum of term k over the devices that the candidate does not
 * touch; 0 if it touches all. Blocks of devices with a touched device are
 * scanned device by device. */
static double most_left_alone(const struct trial *trial,
                              const struct assignment *assignment, size_t k)
{
    const size_t n_terms = assignment->n_terms;
    const uint32_t n_blocks = assignment_n_blocks(assignment->n_devices);
    double most_ms = 0;

    for (uint32_t b = 0; b < n_blocks; b++) {
        const uint32_t begin = b * ASSIGNMENT_BLOCK;
        const uint32_t end =
            (uint32_t)min_u64(begin + ASSIGNMENT_BLOCK, assignment->n_devices);

        if (!trial->n_in_block[b])
            most_ms = max_of(assignment->block_ms[b * n_terms + k], most_ms);
        for (uint32_t r = begin; r < end && trial->n_in_block[b]; r++)
            if (trial->place[r] == NO_PIECE)
                most_ms =
                    max_of(assignment->terms_ms[r * n_terms + k], most_ms);
    }
    return most_ms;
}

/* Prices the candidate by terms. Scans the untouched devices for a term only if
 * the candidate touches the device that leads the term. */
static void price_terms(struct trial *trial,
                        const struct assignment *assignment)
{
    const struct oracle *oracle = assignment->space->oracle;
    const size_t n_terms = oracle->n_terms;
    double max_ms[ORACLE_MAX_TERMS];

    oracle->ops->terms(oracle, trial->sums, trial->n_devices, trial->compute_ms,
                       trial->terms_ms);
    for (size_t k = 0; k < n_terms; k++) {
        max_ms[k] = trial->place[assignment->leader[k]] == NO_PIECE
                        ? assignment->most_ms[k]
                        : most_left_alone(trial, assignment, k);
        for (uint32_t i = 0; i < trial->n_devices; i++)
            max_ms[k] = max_of(trial->terms_ms[i * n_terms + k], max_ms[k]);
    }
    trial->total_ms = oracle_terms_total_ms(oracle, max_ms);
}

/* --- pieces of one unit on one device --- */

/* Returns whether the candidate changes or removes this piece. *next is the
 * index of the change to look at first, 0 for the first piece. Large candidates
 * change pieces in the order of their unit's list, so the search usually ends
 * at once. */
static bool touches(const struct trial *trial, uint32_t piece, uint32_t *next)
{
    for (uint32_t i = 0; i < trial->changes.n; i++, ++*next) {
        *next = *next < trial->changes.n ? *next : 0;
        if (trial->changes.pieces[*next].piece == piece)
            return true;
    }
    return false;
}

/* Removals that the caller adds during the walk are skipped like all others. */
bool trial_walk(struct unit_walk *walk, const struct trial *trial,
                const struct assignment *assignment)
{
    while (walk->c < trial->changes.n) {
        walk->piece = trial->changes.pieces[walk->c++];
        if (walk->piece.type != NO_TYPE &&
            assignment->space->types[walk->piece.type].unit == walk->unit)
            return true;
    }
    while (walk->held != NO_PIECE) {
        walk->piece = assignment->pieces[walk->held];
        walk->held = assignment->links[walk->held].next;
        walk->is_held = !touches(trial, walk->piece.piece, &walk->next);
        if (walk->is_held)
            return true;
    }
    return false;
}

/* Merges the piece that was walked last into change `into`, which puts a piece
 * on the same device. Returns false if no piece type has the joint width. */
static bool join_last(struct trial *trial, const struct assignment *assignment,
                      struct unit_walk *walk, uint32_t into)
{
    const uint32_t type = space_joined_type(
        assignment->space, trial->changes.pieces[into].type, walk->piece.type);

    if (type == NO_TYPE)
        return false;
    trial->changes.pieces[into].type = type;
    if (walk->is_held)
        trial_remove(trial, walk->piece.piece);
    else if (walk->piece.piece != NO_PIECE)
        trial->changes.pieces[walk->c - 1].type =
            NO_TYPE; /* removes the piece */
    else
        trial->changes.pieces[--walk->c] =
            trial->changes.pieces[--trial->changes.n];
    return true;
}

/* Merges column pieces of a unit that share a device. The changes of the unit
 * begin at index `from`. The first change on each device absorbs the pieces
 * that the candidate puts there later and the pieces that the assignment has
 * there. Returns false if a merge is impossible, or if the pieces of a sequence
 * table would have different widths. */
static bool join_unit(struct trial *trial, const struct assignment *assignment,
                      uint32_t unit, uint32_t from)
{
    const struct unit_walk begin = {
        .unit = unit, .c = from, .held = assignment->first_of[unit]};
    struct unit_walk walk = begin;
    uint32_t alike = NO_TYPE;
    bool is_fine = true;

    while (trial_walk(&walk, trial, assignment)) {
        uint32_t *first = &trial->first_on[walk.piece.device];

        if (*first != NO_PIECE)
            is_fine = join_last(trial, assignment, &walk, *first) && is_fine;
        else if (!walk.is_held)
            *first = walk.c - 1;
    }
    for (uint32_t c = from; c < trial->changes.n; c++)
        if (trial->changes.pieces[c].type != NO_TYPE)
            trial->first_on[trial->changes.pieces[c].device] = NO_PIECE;
    if (assignment->space->units[unit].first->output != OUTPUT_SEQUENCE)
        return is_fine;
    for (walk = begin; trial_walk(&walk, trial, assignment);) {
        is_fine = is_fine && (alike == NO_TYPE || walk.piece.type == alike);
        alike = walk.piece.type;
    }
    return is_fine;
}

/* Returns whether the grid piece of change c shares its device with another
 * piece of the same row block. Compares rows, not block numbers, as each
 * standing block of the current plan has a number of its own. */
static bool meets(const struct trial *trial,
                  const struct assignment *assignment, uint32_t c)
{
    const struct piece_type *types = assignment->space->types;
    const struct change *change = &trial->changes.pieces[c];
    const uint32_t unit = assignment->space->types[change->type].unit;
    struct unit_walk walk = {.unit = unit, .held = assignment->first_of[unit]};
    struct shard mine, other;

    type_place_block(&mine, &types[change->type], 0, change->block);
    while (trial_walk(&walk, trial, assignment)) {
        if (walk.piece.device != change->device ||
            (!walk.is_held && walk.c > c))
            continue;
        type_place_block(&other, &types[walk.piece.type], 0, walk.piece.block);
        if (mine.row_begin == other.row_begin && mine.row_end == other.row_end)
            return true;
    }
    return false;
}

/* Merges pieces of one unit on one device, unit by unit. The changes of a unit
 * usually follow each other. If they do not, the unit is visited again and has
 * nothing left to merge. Row blocks that are tied to ranks cannot move, so
 * pieces of two column ranges of such a block may share a device. */
bool trial_join(struct trial *trial, const struct assignment *assignment)
{
    const struct search_space *space = assignment->space;
    uint32_t last = NO_TYPE, type;
    bool is_fine = true;

    if (trial->is_apart)
        return true;
    for (uint32_t c = 0; c < trial->changes.n; c++) {
        type = trial->changes.pieces[c].type;
        if (type == NO_TYPE)
            continue;
        if (space->types[type].kind == SHARD_GRID) {
            is_fine = is_fine && (trial->changes.n > MAX_BLOCKS ||
                                  !space_can_move(space, type) ||
                                  !meets(trial, assignment, c));
        } else if (space_quanta_of(space, type) &&
                   space->types[type].unit != last) {
            last = space->types[type].unit;
            is_fine = join_unit(trial, assignment, last, c) && is_fine;
        }
    }
    return is_fine;
}

/* --- several candidates at once --- */

void pricing_init(struct pricing *pricing, const struct search_space *space,
                  uint32_t n)
{
    const size_t n_rows = (size_t)n * space->n_devices;
    const size_t width = space->oracle->width;

    *pricing = (struct pricing){0};
    if (space->oracle->ops->terms)
        return;
    pricing->sums = mem_alloc(n_rows, (width + 4) * sizeof(double));
    pricing->rows_ms = pricing->sums + n_rows * width;
    pricing->compute_ms = pricing->rows_ms + n_rows;
    pricing->fwd_ms = pricing->compute_ms + n_rows;
    pricing->bwd_ms = pricing->fwd_ms + n_rows;
    if (n > 1 && space->oracle->ops->bwd)
        bwd_memo_init(&pricing->memo, space->oracle, n);
}

void pricing_release(struct pricing *pricing)
{
    mem_free(pricing->sums);
    bwd_memo_release(&pricing->memo);
    *pricing = (struct pricing){0};
}

/* Computes compute_ms of all devices that the candidates touch, in one call. */
static void price_heads(struct tryout *const *tryouts, uint32_t n,
                        struct pricing *pricing)
{
    const struct oracle *oracle = tryouts[0]->assignment.space->oracle;
    size_t n_rows = 0;

    assert(pricing->sums); /* the oracle has no terms */
    for (uint32_t i = 0; i < n; i++) {
        struct trial *trial = &tryouts[i]->trial;

        trial->compute_ms = trial->terms_ms = pricing->rows_ms + n_rows;
        memcpy(pricing->sums + n_rows * oracle->width, trial->sums,
               trial->n_devices * oracle->width * sizeof(double));
        n_rows += trial->n_devices;
    }
    if (n_rows)
        oracle->ops->compute(oracle, pricing->sums, n_rows, pricing->rows_ms);
}

/* Copies the sums of a device, or only the given lane if width is 1. */
static inline void gather(double *to, const double *sums, size_t width,
                          size_t lane)
{
    if (width == 1)
        *to = sums[lane];
    else
        memcpy(to, sums, width * sizeof(*to));
}

/* Prices the exchange of all candidates. The nets take all devices of all
 * candidates in one call, which takes most of the search time. With a memo,
 * only the lane that comm needs is gathered, and backward exchanges that were
 * priced before are not priced again. */
static void price_comm(struct tryout *const *tryouts, uint32_t n,
                       struct pricing *pricing)
{
    const struct oracle *oracle = tryouts[0]->assignment.space->oracle;
    const size_t n_devices = tryouts[0]->assignment.n_devices;
    const bool has_memo = pricing->memo.oracle != NULL;
    const size_t width = oracle->width, stride = has_memo ? 1 : width;
    const size_t lane = oracle->comm_lane;

    for (uint32_t i = 0; i < n; i++) {
        const struct assignment *assignment = &tryouts[i]->assignment;
        const struct trial *trial = &tryouts[i]->trial;
        double *sums = pricing->sums + i * n_devices * stride;
        double *compute_ms = pricing->compute_ms + i * n_devices;

        for (size_t r = 0; r < n_devices; r++)
            gather(sums + r * stride, assignment->sums + r * width, stride,
                   lane);
        memcpy(compute_ms, assignment->compute_ms,
               n_devices * sizeof(*compute_ms));
        for (uint32_t k = 0; k < trial->n_devices; k++) {
            const size_t r = trial->devices[k];

            gather(sums + r * stride, trial->sums + k * width, stride, lane);
            compute_ms[r] = trial->compute_ms[k];
        }
    }
    if (has_memo) {
        bwd_memo_price(&pricing->memo, n, pricing->sums, pricing->bwd_ms);
        oracle->ops->fwd(oracle, n, pricing->sums, pricing->compute_ms,
                         pricing->bwd_ms, pricing->fwd_ms);
    } else {
        oracle->ops->comm(oracle, n, pricing->sums, pricing->compute_ms,
                          pricing->fwd_ms, pricing->bwd_ms);
    }
    for (uint32_t i = 0; i < n; i++)
        tryouts[i]->trial.total_ms = oracle_total_ms(
            n_devices, pricing->compute_ms + i * n_devices,
            pricing->bwd_ms + i * n_devices, pricing->fwd_ms + i * n_devices);
}

/* Prices n candidates. Empty candidates are priced with the others but not
 * counted: their chains stay where they are. */
void tryouts_price(struct tryout *const *tryouts, uint32_t n,
                   struct pricing *pricing)
{
    const struct oracle *oracle = tryouts[0]->assignment.space->oracle;

    for (uint32_t i = 0; i < n; i++) {
        tryouts[i]->n_priced += tryouts[i]->trial.changes.n > 0;
        if (oracle->ops->terms && trial_is_priced(&tryouts[i]->trial))
            price_terms(&tryouts[i]->trial, &tryouts[i]->assignment);
    }
    if (oracle->ops->terms)
        return;
    price_heads(tryouts, n, pricing);
    price_comm(tryouts, n, pricing);
}

/* Allocates all arrays of length [R] once, as candidates are many and small. */
void tryout_init(struct tryout *tryout, const struct search_space *space)
{
    const uint32_t n = space->n_devices;
    struct trial *trial = &tryout->trial;
    struct arena *arena = &trial->arena;

    *tryout = (struct tryout){.trial.limit_ms = INFINITY};
    assignment_init(&tryout->assignment, space);
    trial->devices = ARENA_NEW(arena, uint32_t, n);
    trial->place = ARENA_NEW(arena, uint32_t, n);
    trial->n_in_block = ARENA_NEW(arena, uint32_t, assignment_n_blocks(n));
    trial->first_on = ARENA_NEW(arena, uint32_t, n);
    trial->n_held = ARENA_NEW(arena, int64_t, n);
    trial->bytes = ARENA_NEW(arena, uint64_t, n);
    trial->sums = ARENA_NEW(arena, double, n * space->oracle->width);
    trial->compute_ms = ARENA_NEW(arena, double, n);
    trial->terms_ms = ARENA_NEW(arena, double, n * tryout->assignment.n_terms);
    trial->estimates = ARENA_NEW(arena, struct estimate, n);
    if (space->homes)
        trial->moved = ARENA_NEW(arena, struct unit_moved, space->n_units);
    for (uint32_t r = 0; r < n; r++)
        trial->place[r] = trial->first_on[r] = NO_PIECE;
    pricing_init(&tryout->alone, space, 1);
}

uint64_t tryout_release(struct tryout *tryout)
{
    const uint64_t n_priced = tryout->n_priced;

    assignment_release(&tryout->assignment);
    snapshot_release(&tryout->trial.changes);
    snapshot_release(&tryout->best);
    pricing_release(&tryout->alone);
    arena_release(&tryout->trial.arena);
    *tryout = (struct tryout){0};
    return n_priced;
}

double tryout_price(struct tryout *tryout)
{
    const bool is_fine = trial_join(&tryout->trial, &tryout->assignment);
    double total_ms;

    trial_sum(&tryout->trial, &tryout->assignment);
    tryouts_price(&tryout, 1, &tryout->alone);
    total_ms = tryout->trial.total_ms;
    return is_fine && isfinite(total_ms) ? total_ms : INFINITY;
}

void tryout_seek(struct tryout *tryout, double excess, double value)
{
    tryout->best.n = 0;
    tryout->best.excess = excess;
    tryout->best.total_ms = value;
}

void tryout_note(struct tryout *tryout, double value)
{
    const double excess = tryout->trial.excess;

    if (!isfinite(value) || excess > tryout->best.excess ||
        (excess == tryout->best.excess && value >= tryout->best.total_ms))
        return;
    snapshot_copy(&tryout->best, &tryout->trial.changes);
    tryout->best.excess = excess;
    tryout->best.total_ms = value;
}

bool tryout_make(struct tryout *tryout)
{
    if (!tryout->best.n)
        return false;
    trial_clear(&tryout->trial);
    snapshot_copy(&tryout->trial.changes, &tryout->best);
    (void)tryout_price(tryout);
    assignment_commit(&tryout->assignment, &tryout->trial);
    return true;
}
