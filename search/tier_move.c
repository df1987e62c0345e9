/* SPDX-License-Identifier: MIT */
#include "search/tier_move.h"

/* Returns the piece type that differs from this one only in its tier, or
 * NO_TYPE. */
static uint32_t type_in_tier(const struct search_space *space, uint32_t type,
                             enum tier tier)
{
    const struct piece_type *p = &space->types[type];
    const struct unit *unit = &space->units[p->unit];
    const struct sharding *cut = space_sharding_of(space, type);

    if (p->kind == SHARD_TABLE)
        return unit->whole[tier];
    if (p->kind == SHARD_COLUMN)
        return unit->columns[tier] == NO_TYPE
                   ? NO_TYPE
                   : unit_type_of_steps(unit, p->width / unit->width_step,
                                        tier);
    for (uint32_t i = 0; i < unit->n_shardings; i++) {
        const struct sharding *other = &unit->shardings[i];

        if (space->types[other->type].tier == tier &&
            other->kind == cut->kind && other->n_blocks == cut->n_blocks &&
            other->n_ranges == cut->n_ranges &&
            other->fills_host == cut->fills_host &&
            other->last - other->type == cut->last - cut->type)
            return other->type + (type - cut->type);
    }
    return NO_TYPE;
}

void tier_propose(struct candidate *candidate,
                  const struct assignment *assignment, uint32_t piece,
                  struct rng *rng)
{
    const struct search_space *space = assignment->space;
    const uint32_t unit = space->types[assignment->pieces[piece].type].unit;
    const enum tier now = space->types[assignment->pieces[piece].type].tier;
    const enum tier tier =
        (enum tier)((now + 1 + rng_draw(rng, N_TIERS - 1)) % N_TIERS);

    for (uint32_t i = assignment->first_of[unit]; i != NO_PIECE;
         i = assignment->links[i].next) {
        struct change change = assignment->pieces[i];

        change.type = type_in_tier(space, change.type, tier);
        if (change.type == NO_TYPE) {
            candidate_clear(candidate);
            return;
        }
        *snapshot_next(&candidate->changes) = change;
    }
    candidate->is_apart = true;
}
