/* SPDX-License-Identifier: MIT */
#include "search/candidate.h"

#include "search/migration.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Maximum number of changes of a candidate that is checked for two pieces of
 * one row block on one device. Candidates with more changes place a whole table
 * anew and keep its row blocks apart anyway. */
#define MAX_BLOCKS 32

/* Empties a candidate. Between two candidates all entries of `place` and
 * `first_on` are NO_PIECE. Only the entries that the candidate used are reset,
 * so the time does not depend on the number of devices. */
void candidate_clear(struct candidate *candidate)
{
    for (uint32_t i = 0; i < candidate->n_devices; i++) {
        candidate->place[candidate->devices[i]] = NO_PIECE;
        candidate->n_in_block[candidate->devices[i] / ASSIGNMENT_BLOCK] = 0;
    }
    candidate->n_devices = candidate->changes.n = candidate->n_moved = 0;
    candidate->is_apart = candidate->is_given_up = false;
}

double candidate_limit_ms(const struct candidate *candidate,
                          const struct rng *rng)
{
    struct rng next = *rng;

    return candidate->limit_ms -
           candidate->temperature_ms * log(rng_uniform(&next));
}

void candidate_send(struct candidate *candidate,
                    const struct assignment *assignment, uint32_t piece,
                    uint32_t n_width_steps, uint32_t device)
{
    const struct search_space *space = assignment->space;
    const struct change *it = &assignment->pieces[piece];
    const struct unit *unit = &space->units[space->types[it->type].unit];
    const uint32_t n_all = space_width_steps(space, it->type);
    struct change change = *it;

    if (n_width_steps && n_width_steps < n_all)
        change.type = unit_type_of_steps(unit, n_all - n_width_steps);
    else
        change.device = device;
    *snapshot_next(&candidate->changes) = change;
    if (change.type != it->type)
        candidate_add(candidate, (struct change){.type = unit_type_of_steps(
                                                     unit, n_width_steps),
                                                 .device = device});
}

/* Adds a piece to the sums of its device (sign 1) or removes it from them (sign
 * -1). Sets the sums of an empty device to 0, so that no rounding errors
 * remain. Bytes saturate, because a device that holds more than UINT64_MAX
 * bytes must not look empty. */
static inline void sum_piece(struct candidate *candidate,
                             const struct assignment *assignment,
                             const struct change *piece, double sign)
{
    const size_t width = assignment->space->oracle->width;
    const uint64_t bytes = assignment->space->types[piece->type].bytes;
    const uint32_t device = piece->device;
    const bool is_new = candidate->place[device] == NO_PIECE;
    const uint32_t i = is_new ? candidate->n_devices : candidate->place[device];
    double *sum = candidate->sums + i * width;

    /* Copies the values of the device from the assignment, except the sums. */
    if (is_new) {
        candidate->place[device] = i;
        candidate->n_in_block[device / ASSIGNMENT_BLOCK]++;
        candidate->devices[candidate->n_devices++] = device;
        candidate->n_held[i] = assignment->holdings[device].n;
        candidate->bytes[i] = assignment->bytes[device];
    }
    candidate->n_held[i] += sign < 0 ? -1 : 1;
    candidate->bytes[i] = sign < 0 ? candidate->bytes[i] - bytes
                                   : saturating_add(candidate->bytes[i], bytes);
    add_lanes(sum, is_new ? assignment->sums + device * width : sum,
              assignment->space->vectors + piece->type * width, sign, width);
    if (sign < 0 && !candidate->n_held[i])
        memset(sum, 0, width * sizeof(*sum));
}

/* Adds up the changes on all devices, or only on device `only` if `only` is not
 * NO_PIECE. Removes pieces before it adds any. So a device that loses all its
 * pieces and gets new ones has sums of exactly 0 in between. */
static void sum_up(struct candidate *candidate,
                   const struct assignment *assignment, uint32_t only)
{
    const struct change *changes = candidate->changes.pieces;

    for (uint32_t c = 0; c < candidate->changes.n; c++)
        if (changes[c].piece != NO_PIECE &&
            (only == NO_PIECE ||
             assignment->pieces[changes[c].piece].device == only))
            sum_piece(candidate, assignment,
                      &assignment->pieces[changes[c].piece], -1);
    for (uint32_t c = 0; c < candidate->changes.n; c++)
        if (changes[c].type != NO_TYPE &&
            (only == NO_PIECE || changes[c].device == only))
            sum_piece(candidate, assignment, &changes[c], 1);
}

/* Computes the sums of the touched devices, and the excess of the candidate.
 * The excess changes only by the bytes of touched devices and by the migration
 * of changed units. */
void candidate_sum(struct candidate *candidate,
                   const struct assignment *assignment)
{
    sum_up(candidate, assignment, NO_PIECE);
    candidate->excess = assignment->excess;
    candidate->all_moved_bytes = assignment->all_moved_bytes;
    for (uint32_t i = 0; i < candidate->n_devices; i++) {
        uint32_t r = candidate->devices[i];

        candidate->excess +=
            assignment_excess(assignment, r, candidate->bytes[i]) -
            assignment_excess(assignment, r, assignment->bytes[r]);
    }
    if (assignment_counts_moves(assignment))
        migration_count_candidate(candidate, assignment);
}

const double *candidate_sum_on(struct candidate *candidate,
                               const struct assignment *assignment,
                               uint32_t device)
{
    sum_up(candidate, assignment, device);
    if (!candidate->n_devices)
        return assignment->sums + device * assignment->space->oracle->width;
    candidate->place[device] = NO_PIECE;
    candidate->n_in_block[device / ASSIGNMENT_BLOCK] = 0;
    candidate->n_devices = 0;
    return candidate->sums;
}

/* Returns the maximum of term k over the devices that the candidate does not
 * touch, or 0 if it touches all devices. Blocks that contain a touched device
 * are scanned device by device. */
static double most_left_alone(const struct candidate *candidate,
                              const struct assignment *assignment, size_t k)
{
    const size_t n_terms = assignment->n_terms;
    const uint32_t n_blocks = assignment_n_blocks(assignment->n_devices);
    double most_ms = 0;

    for (uint32_t b = 0; b < n_blocks; b++) {
        const uint32_t begin = b * ASSIGNMENT_BLOCK;
        const uint32_t end =
            (uint32_t)min_u64(begin + ASSIGNMENT_BLOCK, assignment->n_devices);

        if (!candidate->n_in_block[b])
            most_ms = max_of(assignment->block_ms[b * n_terms + k], most_ms);
        for (uint32_t r = begin; r < end && candidate->n_in_block[b]; r++)
            if (candidate->place[r] == NO_PIECE)
                most_ms =
                    max_of(assignment->terms_ms[r * n_terms + k], most_ms);
    }
    return most_ms;
}

/* Prices the candidate by terms. If the candidate touches the device that leads
 * a term, the untouched devices are scanned for the new maximum of this term.
 * Otherwise they are not scanned. */
static void price_terms(struct candidate *candidate,
                        const struct assignment *assignment)
{
    const struct oracle *oracle = assignment->space->oracle;
    const size_t n_terms = oracle->n_terms;
    double max_ms[ORACLE_MAX_TERMS];

    oracle->ops->terms(oracle, candidate->sums, candidate->n_devices,
                       candidate->compute_ms, candidate->terms_ms);
    for (size_t k = 0; k < n_terms; k++) {
        max_ms[k] = candidate->place[assignment->leader[k]] == NO_PIECE
                        ? assignment->most_ms[k]
                        : most_left_alone(candidate, assignment, k);
        for (uint32_t i = 0; i < candidate->n_devices; i++)
            max_ms[k] = max_of(candidate->terms_ms[i * n_terms + k], max_ms[k]);
    }
    candidate->total_ms = oracle_terms_total_ms(oracle, max_ms);
}

/* --- pieces of one unit on one device --- */

/* Returns whether the candidate changes or removes this piece. *next is the
 * index of the change where the search begins; it is 0 for the first piece of
 * the unit. Large candidates change pieces in the order of their unit's list,
 * so the search usually ends at once. */
static bool touches(const struct candidate *candidate, uint32_t piece,
                    uint32_t *next)
{
    for (uint32_t i = 0; i < candidate->changes.n; i++, ++*next) {
        *next = *next < candidate->changes.n ? *next : 0;
        if (candidate->changes.pieces[*next].piece == piece)
            return true;
    }
    return false;
}

/* The caller may add removals to the candidate during the walk. The removed
 * pieces are then skipped like all other changed pieces. */
bool candidate_walk(struct unit_walk *walk, const struct candidate *candidate,
                    const struct assignment *assignment)
{
    while (walk->c < candidate->changes.n) {
        walk->piece = candidate->changes.pieces[walk->c++];
        if (walk->piece.type != NO_TYPE &&
            assignment->space->types[walk->piece.type].unit == walk->unit)
            return true;
    }
    while (walk->held != NO_PIECE) {
        walk->piece = assignment->pieces[walk->held];
        walk->held = assignment->links[walk->held].next;
        walk->is_held = !touches(candidate, walk->piece.piece, &walk->next);
        if (walk->is_held)
            return true;
    }
    return false;
}

/* Merges the last piece of the walk into change `into`, which puts a piece of
 * the same unit on the same device. Returns false if no piece type has the
 * joint width. */
static bool join_last(struct candidate *candidate,
                      const struct assignment *assignment,
                      struct unit_walk *walk, uint32_t into)
{
    const uint32_t type = space_joined_type(
        assignment->space, candidate->changes.pieces[into].type,
        walk->piece.type);

    if (type == NO_TYPE)
        return false;
    candidate->changes.pieces[into].type = type;
    if (walk->is_held)
        candidate_remove(candidate, walk->piece.piece);
    else if (walk->piece.piece != NO_PIECE)
        candidate->changes.pieces[walk->c - 1].type =
            NO_TYPE; /* removes the piece */
    else
        candidate->changes.pieces[--walk->c] =
            candidate->changes.pieces[--candidate->changes.n];
    return true;
}

/* Merges column pieces of a unit that share a device. The changes of the unit
 * begin at index `from`. On each device, the first change absorbs pieces of two
 * kinds: pieces that later changes put on the device, and pieces that the
 * assignment already has there. Returns false if a merge is impossible, or if
 * the pieces of a sequence table would have different widths. */
static bool join_unit(struct candidate *candidate,
                      const struct assignment *assignment, uint32_t unit,
                      uint32_t from)
{
    const struct unit_walk begin = {
        .unit = unit, .c = from, .held = assignment->first_of[unit]};
    struct unit_walk walk = begin;
    uint32_t alike = NO_TYPE;
    bool is_fine = true;

    while (candidate_walk(&walk, candidate, assignment)) {
        uint32_t *first = &candidate->first_on[walk.piece.device];

        if (*first != NO_PIECE)
            is_fine =
                join_last(candidate, assignment, &walk, *first) && is_fine;
        else if (!walk.is_held)
            *first = walk.c - 1;
    }
    for (uint32_t c = from; c < candidate->changes.n; c++)
        if (candidate->changes.pieces[c].type != NO_TYPE)
            candidate->first_on[candidate->changes.pieces[c].device] = NO_PIECE;
    if (assignment->space->units[unit].first->output != OUTPUT_SEQUENCE)
        return is_fine;
    for (walk = begin; candidate_walk(&walk, candidate, assignment);) {
        is_fine = is_fine && (alike == NO_TYPE || walk.piece.type == alike);
        alike = walk.piece.type;
    }
    return is_fine;
}

/* Returns whether the grid piece of change c shares its device with another
 * piece of the same row block. Compares rows, not block numbers, because each
 * block of the current plan that keeps its device has a number of its own. */
static bool meets(const struct candidate *candidate,
                  const struct assignment *assignment, uint32_t c)
{
    const struct piece_type *types = assignment->space->types;
    const struct change *change = &candidate->changes.pieces[c];
    const uint32_t unit = assignment->space->types[change->type].unit;
    struct unit_walk walk = {.unit = unit, .held = assignment->first_of[unit]};
    struct shard mine, other;

    type_place_block(&mine, &types[change->type], 0, change->block);
    while (candidate_walk(&walk, candidate, assignment)) {
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
 * are usually neighbours. If they are not, the unit is visited again, and then
 * nothing is left to merge. Row blocks that are tied to ranks cannot move. So
 * two pieces of one such block, with different column ranges, may share a
 * device. */
bool candidate_join(struct candidate *candidate,
                    const struct assignment *assignment)
{
    const struct search_space *space = assignment->space;
    uint32_t last = NO_TYPE, type;
    bool is_fine = true;

    if (candidate->is_apart)
        return true;
    for (uint32_t c = 0; c < candidate->changes.n; c++) {
        type = candidate->changes.pieces[c].type;
        if (type == NO_TYPE)
            continue;
        if (space->types[type].kind == SHARD_GRID) {
            is_fine = is_fine && (candidate->changes.n > MAX_BLOCKS ||
                                  !space_can_move(space, type) ||
                                  !meets(candidate, assignment, c));
        } else if (space_width_steps(space, type) &&
                   space->types[type].unit != last) {
            last = space->types[type].unit;
            is_fine = join_unit(candidate, assignment, last, c) && is_fine;
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

/* Computes compute_ms of all devices that the candidates touch, in one call of
 * the oracle. */
static void price_heads(struct evaluator *const *evaluators, uint32_t n,
                        struct pricing *pricing)
{
    const struct oracle *oracle = evaluators[0]->assignment.space->oracle;
    size_t n_rows = 0;

    assert(pricing->sums); /* the oracle has no terms */
    for (uint32_t i = 0; i < n; i++) {
        struct candidate *candidate = &evaluators[i]->candidate;

        candidate->compute_ms = candidate->terms_ms = pricing->rows_ms + n_rows;
        memcpy(pricing->sums + n_rows * oracle->width, candidate->sums,
               candidate->n_devices * oracle->width * sizeof(double));
        n_rows += candidate->n_devices;
    }
    if (n_rows)
        oracle->ops->compute(oracle, pricing->sums, n_rows, pricing->rows_ms);
}

/* Copies the sums of a device. If width is 1, copies only the given lane. */
static inline void gather(double *to, const double *sums, size_t width,
                          size_t lane)
{
    if (width == 1)
        *to = sums[lane];
    else
        memcpy(to, sums, width * sizeof(*to));
}

/* Prices the exchange of all candidates. The nets take all devices of all
 * candidates in one call. Most of the search time is spent in this call. If
 * there is a memo, only the lane that comm needs is copied, and backward
 * exchanges that were priced before are not priced again. */
static void price_comm(struct evaluator *const *evaluators, uint32_t n,
                       struct pricing *pricing)
{
    const struct oracle *oracle = evaluators[0]->assignment.space->oracle;
    const size_t n_devices = evaluators[0]->assignment.n_devices;
    const bool has_memo = pricing->memo.oracle != NULL;
    const size_t width = oracle->width, stride = has_memo ? 1 : width;
    const size_t lane = oracle->comm_lane;

    for (uint32_t i = 0; i < n; i++) {
        const struct assignment *assignment = &evaluators[i]->assignment;
        const struct candidate *candidate = &evaluators[i]->candidate;
        double *sums = pricing->sums + i * n_devices * stride;
        double *compute_ms = pricing->compute_ms + i * n_devices;

        for (size_t r = 0; r < n_devices; r++)
            gather(sums + r * stride, assignment->sums + r * width, stride,
                   lane);
        memcpy(compute_ms, assignment->compute_ms,
               n_devices * sizeof(*compute_ms));
        for (uint32_t k = 0; k < candidate->n_devices; k++) {
            const size_t r = candidate->devices[k];

            gather(sums + r * stride, candidate->sums + k * width, stride,
                   lane);
            compute_ms[r] = candidate->compute_ms[k];
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
        evaluators[i]->candidate.total_ms = oracle_total_ms(
            n_devices, pricing->compute_ms + i * n_devices,
            pricing->bwd_ms + i * n_devices, pricing->fwd_ms + i * n_devices);
}

/* Prices n candidates. Empty candidates are priced with the others, but they
 * are not counted as priced, because their chains do not change. */
void evaluators_price(struct evaluator *const *evaluators, uint32_t n,
                      struct pricing *pricing)
{
    const struct oracle *oracle = evaluators[0]->assignment.space->oracle;

    for (uint32_t i = 0; i < n; i++) {
        evaluators[i]->n_priced += evaluators[i]->candidate.changes.n > 0;
        if (oracle->ops->terms &&
            candidate_is_priced(&evaluators[i]->candidate))
            price_terms(&evaluators[i]->candidate, &evaluators[i]->assignment);
    }
    if (oracle->ops->terms)
        return;
    price_heads(evaluators, n, pricing);
    price_comm(evaluators, n, pricing);
}

/* Allocates all arrays of length [R] once, because candidates are many and
 * small. */
void evaluator_init(struct evaluator *evaluator,
                    const struct search_space *space)
{
    const uint32_t n = space->n_devices;
    struct candidate *candidate = &evaluator->candidate;
    struct arena *arena = &candidate->arena;

    *evaluator = (struct evaluator){.candidate.limit_ms = INFINITY};
    assignment_init(&evaluator->assignment, space);
    candidate->devices = ARENA_NEW(arena, uint32_t, n);
    candidate->place = ARENA_NEW(arena, uint32_t, n);
    candidate->n_in_block = ARENA_NEW(arena, uint32_t, assignment_n_blocks(n));
    candidate->first_on = ARENA_NEW(arena, uint32_t, n);
    candidate->n_held = ARENA_NEW(arena, int64_t, n);
    candidate->bytes = ARENA_NEW(arena, uint64_t, n);
    candidate->sums = ARENA_NEW(arena, double, n * space->oracle->width);
    candidate->compute_ms = ARENA_NEW(arena, double, n);
    candidate->terms_ms =
        ARENA_NEW(arena, double, n * evaluator->assignment.n_terms);
    candidate->estimates = ARENA_NEW(arena, struct device_estimate, n);
    if (space->current)
        candidate->moved = ARENA_NEW(arena, struct unit_moved, space->n_units);
    for (uint32_t r = 0; r < n; r++)
        candidate->place[r] = candidate->first_on[r] = NO_PIECE;
    pricing_init(&evaluator->alone, space, 1);
}

uint64_t evaluator_release(struct evaluator *evaluator)
{
    const uint64_t n_priced = evaluator->n_priced;

    assignment_release(&evaluator->assignment);
    snapshot_release(&evaluator->candidate.changes);
    snapshot_release(&evaluator->best);
    pricing_release(&evaluator->alone);
    arena_release(&evaluator->candidate.arena);
    *evaluator = (struct evaluator){0};
    return n_priced;
}

double evaluator_price(struct evaluator *evaluator)
{
    const bool is_fine =
        candidate_join(&evaluator->candidate, &evaluator->assignment);
    double total_ms;

    candidate_sum(&evaluator->candidate, &evaluator->assignment);
    evaluators_price(&evaluator, 1, &evaluator->alone);
    total_ms = evaluator->candidate.total_ms;
    return is_fine && isfinite(total_ms) ? total_ms : INFINITY;
}

void evaluator_seek(struct evaluator *evaluator, double excess, double value)
{
    evaluator->best.n = 0;
    evaluator->best.excess = excess;
    evaluator->best.total_ms = value;
}

void evaluator_note(struct evaluator *evaluator, double value)
{
    const double excess = evaluator->candidate.excess;

    if (!isfinite(value) || excess > evaluator->best.excess ||
        (excess == evaluator->best.excess && value >= evaluator->best.total_ms))
        return;
    snapshot_copy(&evaluator->best, &evaluator->candidate.changes);
    evaluator->best.excess = excess;
    evaluator->best.total_ms = value;
}

bool evaluator_make(struct evaluator *evaluator)
{
    if (!evaluator->best.n)
        return false;
    candidate_clear(&evaluator->candidate);
    snapshot_copy(&evaluator->candidate.changes, &evaluator->best);
    (void)evaluator_price(evaluator);
    assignment_commit(&evaluator->assignment, &evaluator->candidate);
    return true;
}
