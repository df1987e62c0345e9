/* SPDX-License-Identifier: MIT */
#include "search/candidate.h"

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
    for (uint32_t i = 0; i < candidate->after.n_devices; i++) {
        candidate->place[candidate->after.devices[i]] = NO_PIECE;
        candidate->n_in_block[candidate->after.devices[i] / ASSIGNMENT_BLOCK] =
            0;
    }
    candidate->after.n_devices = candidate->changes.n =
        candidate->after.n_moved = 0;
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
    const enum tier tier = space->types[it->type].tier;
    struct change change = *it;

    if (n_width_steps && n_width_steps < n_all)
        change.type = unit_type_of_steps(unit, n_all - n_width_steps, tier);
    else
        change.device = device;
    *snapshot_next(&candidate->changes) = change;
    if (change.type != it->type)
        candidate_add(candidate, (struct change){.type = unit_type_of_steps(
                                                     unit, n_width_steps, tier),
                                                 .device = device});
}

/* Adds a piece to the sums of its device (sign 1) or removes it from them (sign
 * -1). Resets the sums of an empty device, so that no rounding errors
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
    const uint32_t i =
        is_new ? candidate->after.n_devices : candidate->place[device];
    double *sum = candidate->after.sums + i * width;

    /* Copies the values of the device from the assignment, except the sums. */
    if (is_new) {
        candidate->place[device] = i;
        candidate->n_in_block[device / ASSIGNMENT_BLOCK]++;
        candidate->after.devices[candidate->after.n_devices++] = device;
        candidate->n_held[i] = assignment->holdings[device].n;
        candidate->after.bytes[i] = assignment->bytes[device];
    }
    candidate->n_held[i] += sign < 0 ? -1 : 1;
    candidate->after.bytes[i] =
        sign < 0 ? candidate->after.bytes[i] - bytes
                 : saturating_add(candidate->after.bytes[i], bytes);
    add_lanes(sum, is_new ? assignment->sums + device * width : sum,
              assignment->space->vectors + piece->type * width, sign, width);
    if (sign < 0 && !candidate->n_held[i])
        oracle_empty_sum(assignment->space->oracle, device, sum);
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

/* Counts the migration of the units that the candidate changes, and adds the
 * excess over the migration limit to the excess of the candidate. */
static void count_migration(struct candidate *candidate,
                            const struct assignment *assignment)
{
    const struct search_space *space = assignment->space;
    const uint64_t limit_bytes = assignment->move_limit_bytes;
    struct snapshot pieces = {0};

    for (uint32_t c = 0; c < candidate->changes.n; c++) {
        const struct change *change = &candidate->changes.pieces[c];
        uint32_t type = change->piece == NO_PIECE
                            ? change->type
                            : assignment->pieces[change->piece].type;
        uint32_t unit = space->types[type].unit;
        struct unit_walk walk = {.unit = unit,
                                 .held = assignment->first_of[unit]};
        uint32_t pos = 0;
        uint64_t bytes;

        while (pos < candidate->after.n_moved &&
               candidate->after.moved[pos].unit != unit)
            pos++;
        if (pos < candidate->after.n_moved)
            continue; /* this unit was already counted */
        pieces.n = 0;
        while (candidate_walk(&walk, candidate, assignment))
            *snapshot_next(&pieces) = walk.piece;
        bytes = migration_of_unit(space, &pieces);
        candidate->after.moved[candidate->after.n_moved++] =
            (struct unit_moved){unit, bytes};
        candidate->after.all_moved_bytes = saturating_add(
            candidate->after.all_moved_bytes - assignment->moved_bytes[unit],
            bytes);
    }
    snapshot_release(&pieces);
    candidate->after.excess +=
        migration_excess(space, limit_bytes, candidate->after.all_moved_bytes) -
        migration_excess(space, limit_bytes, assignment->all_moved_bytes);
}

/* Adds the change of the excess of hosts to the excess of the candidate. */
static void count_hosts(struct candidate *candidate,
                        const struct assignment *assignment)
{
    const struct search_space *space = assignment->space;
    const uint32_t n = space_n_hosts(space);
    uint64_t *bytes = candidate->host_bytes;

    memcpy(bytes, assignment->host_bytes, n * sizeof(*bytes));
    for (uint32_t c = 0; c < candidate->changes.n; c++) {
        const struct change *change = &candidate->changes.pieces[c];

        if (change->piece != NO_PIECE) {
            const struct change *before = &assignment->pieces[change->piece];

            bytes[space_host_of(space, before->device)] -=
                space->types[before->type].host_bytes;
        }
        if (change->type != NO_TYPE)
            bytes[space_host_of(space, change->device)] +=
                space->types[change->type].host_bytes;
    }
    for (uint32_t h = 0; h < n; h++)
        if (bytes[h] != assignment->host_bytes[h])
            candidate->after.excess +=
                space_host_excess(space, bytes[h]) -
                space_host_excess(space, assignment->host_bytes[h]);
}

/* Computes the sums of the touched devices, and the excess of the candidate.
 * The excess changes only by the bytes of touched devices and by the migration
 * of changed units. */
void candidate_sum(struct candidate *candidate,
                   const struct assignment *assignment)
{
    sum_up(candidate, assignment, NO_PIECE);
    candidate->after.excess = assignment->excess;
    candidate->after.all_moved_bytes = assignment->all_moved_bytes;
    for (uint32_t i = 0; i < candidate->after.n_devices; i++) {
        uint32_t r = candidate->after.devices[i];

        candidate->after.excess +=
            assignment_excess(assignment, r, candidate->after.bytes[i]) -
            assignment_excess(assignment, r, assignment->bytes[r]);
    }
    if (assignment->host_bytes)
        count_hosts(candidate, assignment);
    if (assignment_counts_moves(assignment))
        count_migration(candidate, assignment);
}

const double *candidate_sum_on(struct candidate *candidate,
                               const struct assignment *assignment,
                               uint32_t device)
{
    sum_up(candidate, assignment, device);
    if (!candidate->after.n_devices)
        return assignment->sums + device * assignment->space->oracle->width;
    candidate->place[device] = NO_PIECE;
    candidate->n_in_block[device / ASSIGNMENT_BLOCK] = 0;
    candidate->after.n_devices = 0;
    return candidate->after.sums;
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
 * joint width, or if pieces keep their columns. */
static bool join_last(struct candidate *candidate,
                      const struct assignment *assignment,
                      struct unit_walk *walk, uint32_t into)
{
    const struct search_space *space = assignment->space;
    const uint32_t type = space_joined_type(
        space, candidate->changes.pieces[into].type, walk->piece.type);

    if (type == NO_TYPE || (space->current && space->current->keeps_cuts))
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
    if (!assignment->space->units[unit].widths_alike)
        return is_fine;
    for (walk = begin; candidate_walk(&walk, candidate, assignment);) {
        is_fine = is_fine && (alike == NO_TYPE || walk.piece.type == alike);
        alike = walk.piece.type;
    }
    return is_fine;
}

/* Returns whether the row block of change c shares its device with a piece that
 * it must not meet: another piece of the same rows, or any piece of a unit that
 * keeps its pieces apart. Compares rows, not block numbers, because each block
 * of the current plan that keeps its device has a number of its own. */
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
        if (assignment->space->units[unit].keeps_apart)
            return true;
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
        if (space->types[type].kind == SHARD_GRID ||
            (space->types[type].kind == SHARD_ROW &&
             space->units[space->types[type].unit].keeps_apart)) {
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
