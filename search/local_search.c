/* SPDX-License-Identifier: MIT */
#include "search/local_search.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "core/plan_check.h"
#include "search/evaluator.h"
#include "search/moves.h"
#include "search/simplicity.h"

#include <math.h>

/* Maximum number of candidates that a local search prices. */
#define MAX_PRICED 200000
/* Maximum number of pieces that a local search looks at as partners of other
 * pieces. Looking at ten million pieces takes a second. Without this limit, one
 * step for 200,000 tables on 64 GPUs would look at 600 million. */
#define MAX_LOOKED 10000000
/* Minimum gain of a change, as a share of the value before the change. A
 * smaller gain may be a rounding error. */
#define LEAST_GAIN 1e-9

/* --- local search --- */

/*
 * Aim of a local search:
 *
 *     LESS_FULL  less memory on the fullest device, as a share of its usable
 *                memory, at the same total
 *     LESS_MS    a lower total
 *     AS_SIMPLE  a lower total with no more pieces than before the search; only
 *                pieces of the slowest devices are moved
 */
enum aim { LESS_FULL, LESS_MS, AS_SIMPLE };

/* Returns the bytes as a share of the usable memory of the device. */
static double share_of(const struct assignment *assignment, uint32_t device,
                       uint64_t bytes)
{
    return (double)bytes / ((double)assignment->space->room_bytes[device] + 1);
}

/* Prices one candidate and notes its result. The candidate moves n_width_steps
 * width steps of a piece to device `to`, or all of the piece if n_width_steps
 * is 0. Piece `other` moves back in exchange, unless it is NO_PIECE. Under
 * LESS_FULL a candidate with a lower total is not accepted either. If it were,
 * a longer search might end with a more expensive plan than a shorter search,
 * because the two settle different assignments. */
static void offer_shift(struct evaluator *evaluator, enum aim aim,
                        uint32_t piece, uint32_t n_width_steps, uint32_t to,
                        uint32_t other)
{
    const struct assignment *assignment = &evaluator->assignment;
    struct candidate *candidate = &evaluator->candidate;
    const bool by_memory = aim == LESS_FULL;
    double total_ms, share = 0;

    if (evaluator->n_priced >= MAX_PRICED)
        return;
    candidate_clear(candidate);
    candidate_send(candidate, assignment, piece, n_width_steps, to);
    if (other != NO_PIECE)
        candidate_send(candidate, assignment, other, 0,
                       assignment->pieces[piece].device);
    total_ms = evaluator_price(evaluator);
    if (candidate->after.excess > assignment->excess ||
        (by_memory && (total_ms > assignment->total_ms ||
                       total_ms < assignment->total_ms * (1 - LEAST_GAIN))))
        return;
    candidate->after.excess =
        0; /* the excess does not rise, so it is ignored */
    for (uint32_t i = 0; by_memory && i < candidate->after.n_devices; i++)
        share = fmax(share, share_of(assignment, candidate->after.devices[i],
                                     candidate->after.bytes[i]));
    evaluator_note(evaluator, by_memory ? share : total_ms);
}

/* Prices all candidates for one piece. The piece goes to another device,
 * changes places with a piece of another device, or sends some of its columns
 * to another device. If the number of pieces must not rise (AS_SIMPLE), columns
 * go only to other pieces of its unit. */
static void offer_piece(struct evaluator *evaluator, enum aim aim,
                        uint32_t piece, uint64_t *n_looked)
{
    const struct assignment *assignment = &evaluator->assignment;
    const struct search_space *space = assignment->space;
    const struct change *it = &assignment->pieces[piece];
    const uint32_t n_width_steps = space_width_steps(space, it->type);
    const uint32_t first = assignment->first_of[space->types[it->type].unit];

    if (*n_looked > MAX_LOOKED || evaluator->n_priced >= MAX_PRICED ||
        !space_can_move(space, it->type))
        return;
    *n_looked += assignment->n_live;
    for (uint32_t i = first; aim == AS_SIMPLE && i != NO_PIECE;
         i = assignment->links[i].next)
        for (uint32_t n = 1; i != piece && n < n_width_steps; n++)
            offer_shift(evaluator, aim, piece, n, assignment->pieces[i].device,
                        NO_PIECE);
    for (uint32_t r = 0; r < assignment->n_devices; r++) {
        const struct holding *holding = &assignment->holdings[r];

        if (r == it->device)
            continue;
        for (uint32_t n = 0; !n || (n < n_width_steps && aim != AS_SIMPLE); n++)
            offer_shift(evaluator, aim, piece, n, r, NO_PIECE);
        for (uint32_t i = 0; i < holding->n; i++) {
            uint32_t other = assignment->pieces[holding->pieces[i]].type;

            if (other != it->type && space_can_move(space, other) &&
                (aim != LESS_FULL ||
                 space->types[other].bytes < space->types[it->type].bytes))
                offer_shift(evaluator, aim, piece, 0, r, holding->pieces[i]);
        }
    }
}

/* Makes the best change. Returns false if no change is an improvement. */
static bool step(struct evaluator *evaluator, enum aim aim, uint64_t *n_looked)
{
    const struct assignment *assignment = &evaluator->assignment;
    uint32_t full = 0;
    double most = 0;

    for (uint32_t r = 0; r < assignment->n_devices; r++)
        if (share_of(assignment, r, assignment->bytes[r]) > most) {
            most = share_of(assignment, r, assignment->bytes[r]);
            full = r;
        }
    evaluator_seek(evaluator, 0,
                   (1 - LEAST_GAIN) *
                       (aim == LESS_FULL ? most : assignment->total_ms));
    for (uint32_t r = 0; r < assignment->n_devices; r++) {
        bool is_in = aim == LESS_FULL ? r == full : aim == LESS_MS;

        for (uint32_t k = 0; k < assignment->n_terms; k++)
            is_in |= aim == AS_SIMPLE && assignment->leader[k] == r;
        for (uint32_t i = 0; is_in && i < assignment->holdings[r].n; i++)
            offer_piece(evaluator, aim, assignment->holdings[r].pieces[i],
                        n_looked);
    }
    return evaluator_make(evaluator);
}

uint64_t settle(struct snapshot *snapshot, const struct search_space *space,
                bool by_memory, double most_ms)
{
    struct evaluator evaluator;
    uint64_t n_looked = 0;

    evaluator_init(&evaluator, space);
    snapshot_load(snapshot, &evaluator.assignment);
    while (evaluator.assignment.total_ms > most_ms &&
           step(&evaluator, by_memory ? LESS_FULL : LESS_MS, &n_looked))
        continue;
    snapshot_save(snapshot, &evaluator.assignment);
    return evaluator_release(&evaluator);
}

/* --- reducing the number of pieces --- */

/* Rise of the second limit that the total must keep while pieces are merged.
 * Several limits are tried one after the other. The first limit is the total
 * before merging. The second limit is higher by FIRST_RISE, a share of that
 * total. From then on the rise grows by the factor NEXT_RISE. The limits do not
 * depend on the rise that the caller allows. So a caller that allows more gets
 * no worse plan. */
#define FIRST_RISE 0.001
#define NEXT_RISE 1.25
/* Rise of the last limit, as a multiple of the rise that the caller allows. The
 * second limit is always tried. Limits go beyond the allowed rise because a
 * merged assignment becomes cheaper once its other pieces have settled. An
 * assignment above the allowed rise is only an intermediate state and never the
 * result. */
#define MOST_RISE 3

/* Prices the unit in its other shardings that have fewer pieces. Each piece
 * goes to the device with the least load. This also reduces the number of row
 * blocks and replicas. All pieces of the unit are removed and new ones added,
 * so the candidate with the fewest changes has the fewest pieces. */
static void offer_shardings(struct evaluator *evaluator, double below_ms,
                            uint32_t u)
{
    const struct assignment *assignment = &evaluator->assignment;
    const struct unit *unit = &assignment->space->units[u];
    struct candidate *candidate = &evaluator->candidate;
    uint32_t most;
    struct rng rng;

    candidate_clear(candidate);
    candidate_remove_unit(candidate, assignment, u);
    most = 2 * candidate->changes.n - 1;
    for (uint32_t f = 0; f < unit->n_shardings && unit->device == NO_PIECE;
         f++) {
        const struct sharding *sharding = &unit->shardings[f];
        double total_ms;

        if (sharding->kind == SHARDING_REPLICA)
            continue;
        rng_init(&rng, u, f);
        candidate_clear(candidate);
        rebuild(candidate, assignment, &sharding, 1, &rng);
        total_ms = evaluator_price(evaluator);
        if (candidate->changes.n > most || candidate->after.excess > 0 ||
            total_ms >= below_ms)
            continue;
        if (candidate->changes.n < most)
            evaluator_seek(evaluator, 0, below_ms);
        most = candidate->changes.n;
        evaluator_note(evaluator, total_ms);
    }
}

/* Returns the piece type of the whole unit in its tier, or NO_TYPE. */
static uint32_t whole_of(const struct assignment *assignment, uint32_t unit)
{
    const struct search_space *space = assignment->space;
    const uint32_t type = assignment->pieces[assignment->first_of[unit]].type;

    return space->units[unit].whole[space->types[type].tier];
}

/* Prices one candidate: `piece` goes to the device. If `piece` is NO_PIECE, the
 * whole unit goes to the device in one piece. */
static void offer_merge(struct evaluator *evaluator, uint32_t unit,
                        uint32_t piece, uint32_t device)
{
    const struct assignment *assignment = &evaluator->assignment;
    struct candidate *candidate = &evaluator->candidate;

    candidate_clear(candidate);
    if (piece != NO_PIECE) {
        candidate_send(candidate, assignment, piece, 0, device);
    } else {
        candidate_remove_unit(candidate, assignment, unit);
        candidate_add(candidate,
                      (struct change){.type = whole_of(assignment, unit),
                                      .device = device});
    }
    evaluator_note(evaluator, evaluator_price(evaluator));
}

/* Returns the narrowest column piece of the unit, or NO_PIECE if the unit has
 * no column piece. */
static uint32_t narrowest(const struct assignment *assignment, uint32_t unit)
{
    const struct search_space *space = assignment->space;
    uint32_t found = NO_PIECE, least = UINT32_MAX;

    for (uint32_t i = assignment->first_of[unit]; i != NO_PIECE;
         i = assignment->links[i].next) {
        const uint32_t n = space_width_steps(space, assignment->pieces[i].type);

        if (n && n < least) {
            least = n;
            found = i;
        }
    }
    return found;
}

/* Makes the cheapest change that reduces the number of pieces of the unit and
 * keeps the total below below_ms. A change that makes the unit whole is
 * preferred to all other changes. Returns false if no change keeps the total
 * below below_ms. */
static bool merge_pieces(struct evaluator *evaluator, double below_ms,
                         uint32_t u)
{
    const struct assignment *assignment = &evaluator->assignment;
    const struct unit *unit = &assignment->space->units[u];
    const uint32_t first = assignment->first_of[u],
                   piece = narrowest(assignment, u);

    if (assignment->links[first].next == NO_PIECE)
        return false;
    evaluator_seek(evaluator, 0, below_ms);
    for (uint32_t r = 0; r < assignment->n_devices; r++)
        if (whole_of(assignment, u) != NO_TYPE && unit->device == NO_PIECE)
            offer_merge(evaluator, u, NO_PIECE, r);
    if (!evaluator->best.n && piece != NO_PIECE)
        for (uint32_t i = first; i != NO_PIECE; i = assignment->links[i].next)
            if (i != piece)
                offer_merge(evaluator, u, piece, assignment->pieces[i].device);
    if (!evaluator->best.n)
        offer_shardings(evaluator, below_ms, u);
    return evaluator_make(evaluator);
}

/* Returns whether the pieces of the unit change its training. */
static bool changes_training(const struct assignment *assignment, uint32_t u)
{
    const struct search_space *space = assignment->space;
    const uint32_t first = assignment->first_of[u];

    return space->types[assignment->pieces[first].type].kind &
           space->units[u].changing;
}

/* Makes the cheapest change after which the training of the unit is unchanged
 * and the total is below below_ms. The number of pieces may rise. Returns false
 * if the training is unchanged already, or if no change keeps the total below
 * below_ms. */
static bool keep_training(struct evaluator *evaluator, double below_ms,
                          uint32_t u)
{
    const struct assignment *assignment = &evaluator->assignment;
    const struct search_space *space = assignment->space;
    const struct unit *unit = &space->units[u];
    struct rng rng;

    if (!changes_training(assignment, u) || unit->device != NO_PIECE)
        return false;
    evaluator_seek(evaluator, 0, below_ms);
    for (uint32_t r = 0;
         r < assignment->n_devices && whole_of(assignment, u) != NO_TYPE; r++)
        offer_merge(evaluator, u, NO_PIECE, r);
    for (uint32_t f = 0; f < unit->n_shardings; f++) {
        const struct sharding *sharding = &unit->shardings[f];

        if (sharding->kind == SHARDING_WHOLE ||
            space->types[sharding->type].kind & unit->changing)
            continue;
        rng_init(&rng, u, f);
        candidate_clear(&evaluator->candidate);
        rebuild(&evaluator->candidate, assignment, &sharding, 1, &rng);
        evaluator_note(evaluator, evaluator_price(evaluator));
    }
    return evaluator_make(evaluator);
}

/* Best assignment of a simplification so far. */
struct simplest {
    struct snapshot *best;
    struct simplicity simplicity; /* of the best */
    double most_ms;               /* highest total that is allowed */
    uint64_t n_looked; /* number of pieces that local steps looked at */
    uint64_t n_copied, most_copied; /* see struct simplify_limits */
    bool is_behind;                 /* a changed assignment was not looked at */
};

static uint32_t count_changed(const struct assignment *assignment)
{
    uint32_t n = 0;

    for (uint32_t u = 0; u < assignment->space->n_units; u++)
        n += changes_training(assignment, u);
    return n;
}

/* Saves the assignment as the best if it keeps all limits and is simpler than
 * the best so far. */
static void keep_simplest(struct simplest *simplest,
                          const struct assignment *assignment)
{
    const struct simplicity simplicity = {count_changed(assignment),
                                          assignment->n_live};
    struct snapshot *best = simplest->best, next = {0};

    simplest->is_behind = false;
    simplest->n_copied += assignment->n_live;
    snapshot_save(&next, assignment);
    snapshot_price(&next, assignment->space);
    if (next.total_ms <= simplest->most_ms && next.excess <= 0 &&
        is_simpler(simplicity, next.total_ms, simplest->simplicity,
                   best->total_ms)) {
        snapshot_copy(best, &next);
        simplest->simplicity = simplicity;
    }
    snapshot_release(&next);
}

/* Calls keep_simplest after a change, unless too many pieces were copied. */
static void note_change(struct simplest *simplest,
                        const struct assignment *assignment)
{
    simplest->is_behind = true;
    if (simplest->n_copied < simplest->most_copied)
        keep_simplest(simplest, assignment);
}

/* Calls keep_simplest if the last change was not looked at. */
static void catch_up(struct simplest *simplest,
                     const struct assignment *assignment)
{
    if (simplest->is_behind)
        keep_simplest(simplest, assignment);
}

static bool may_go_on(const struct evaluator *evaluator,
                      const struct simplify_limits *limits)
{
    return evaluator->n_priced < limits->most_priced &&
           clock_ms() < limits->end_ms && !interrupt_requested();
}

/* Makes all changes that keep the total at most limit_ms. */
static void simplify_below(struct evaluator *evaluator,
                           struct simplest *simplest, double limit_ms,
                           const struct simplify_limits *limits)
{
    const double below_ms = nextafter(limit_ms, INFINITY);
    const struct assignment *assignment = &evaluator->assignment;
    const uint32_t n_units = assignment->space->n_units;

    for (uint32_t u = 0; u < n_units && may_go_on(evaluator, limits); u++)
        while (keep_training(evaluator, below_ms, u))
            note_change(simplest, assignment);
    catch_up(simplest, assignment);
    for (uint32_t u = 0; u < n_units && may_go_on(evaluator, limits); u++)
        while (merge_pieces(evaluator, below_ms, u))
            note_change(simplest, assignment);
    catch_up(simplest, assignment);
    while (may_go_on(evaluator, limits) &&
           step(evaluator, AS_SIMPLE, &simplest->n_looked))
        note_change(simplest, assignment);
    catch_up(simplest, assignment);
}

uint64_t simplify(struct snapshot *snapshot, const struct search_space *space,
                  const struct simplify_limits *limits)
{
    const double least_ms = snapshot->total_ms;
    struct simplest simplest = {.best = snapshot,
                                .most_ms = limits->most_ms,
                                .most_copied = limits->most_copied};
    double limit_ms, rise = 0;
    struct evaluator evaluator;

    if (!(limits->most_ms > least_ms))
        return 0;
    evaluator_init(&evaluator, space);
    evaluator.assignment.move_limit_bytes = limits->move_limit_bytes;
    snapshot_load(snapshot, &evaluator.assignment);
    simplest.simplicity = (struct simplicity){
        count_changed(&evaluator.assignment), evaluator.assignment.n_live};
    do {
        limit_ms = least_ms * (1 + rise);
        simplify_below(&evaluator, &simplest, limit_ms, limits);
        rise = fmax(FIRST_RISE, rise * NEXT_RISE);
    } while ((rise <= FIRST_RISE ||
              limit_ms < least_ms + MOST_RISE * (limits->most_ms - least_ms)) &&
             may_go_on(&evaluator, limits));
    return evaluator_release(&evaluator);
}
