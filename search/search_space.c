/* SPDX-License-Identifier: MIT */
#include "search/search_space.h"

#include <assert.h>

struct shard space_shard(const struct search_space *space,
                         const struct piece_type *type, uint32_t table)
{
    struct shard shard = shard_whole(space->problem, table, 0);

    if (type->kind != SHARD_TABLE)
        type_place_block(&shard, type, 0, type->block);
    shard.device = type->first_device + type->block;
    shard.tier = type->tier;
    return shard;
}

/* Returns the standalone cost in ms of a device whose pieces add up to
 * `vector`. It is the sum of the oracle's terms, which is the cost of the
 * device in an additive plan. If the oracle has no terms, it is the compute
 * alone. Communication then depends on all devices and is left out. */
double space_standalone_ms(const struct oracle *oracle, const double *vector)
{
    double terms_ms[ORACLE_MAX_TERMS], compute_ms;

    if (oracle->ops->terms) {
        oracle->ops->terms(oracle, vector, 1, &compute_ms, terms_ms);
        return oracle_terms_total_ms(oracle, terms_ms);
    }
    oracle->ops->compute(oracle, vector, 1, &compute_ms);
    return compute_ms;
}

uint32_t space_type_of_width(const struct search_space *space, uint32_t unit,
                             uint32_t width, enum tier tier)
{
    const struct unit *entry = &space->units[unit];

    assert(width); /* width is at most the number of columns of the unit */
    return width % entry->width_step
               ? NO_TYPE
               : unit_type_of_steps(entry, width / entry->width_step, tier);
}

void type_place_block(struct shard *shard, const struct piece_type *type,
                      uint32_t range, uint32_t block)
{
    /* number of rows of every block of the cut except the last block */
    const uint64_t n_rows =
        type->block ? type->row_begin / type->block : type->n_rows;

    shard->kind = type->kind;
    shard->col_begin = type->stands ? type->col_begin : range * type->width;
    shard->col_end = shard->col_begin + type->width;
    shard->row_begin = type->stands ? type->row_begin : block * n_rows;
    shard->row_end = shard->row_begin + type->n_rows;
}

/*
 * Returns whether a piece of this type may move. Three kinds of pieces may not:
 *
 *    - replicas, because they stand on every device
 *    - pieces of units that are pinned or stay
 *    - row blocks that the oracle ties to ranks or to a host, because all
 * blocks of a cut would have to move together
 */
bool space_can_move(const struct search_space *space, uint32_t type)
{
    const struct piece_type *p = &space->types[type];
    const struct unit *unit = &space->units[p->unit];

    return !shard_is_replica(p->kind) && unit->pin < 0 && !unit->stays &&
           (space->oracle->row_cut == ROW_CUT_ANY || !shard_cuts_rows(p->kind));
}

uint32_t space_n_hosts(const struct search_space *space)
{
    return space->has_tiers ? space_host_of(space, space->n_devices - 1) + 1
                            : 0;
}

/* --- drawing shardings and their pieces at random --- */

const struct sharding *sharding_draw(const struct search_space *space,
                                     uint32_t unit, struct rng *rng)
{
    const struct unit *entry = &space->units[unit];
    uint32_t kind = rng_draw(rng, 4), type = NO_TYPE;

    if (kind < 2)
        type = kind ? entry->replica
                    : entry->whole[space->has_tiers ? rng_draw(rng, N_TIERS)
                                                    : TIER_HBM];
    return type == NO_TYPE
               ? &entry->shardings[rng_draw(rng, entry->n_shardings)]
               : space_sharding_of(space, type);
}

struct change sharding_piece(const struct search_space *space,
                             const struct sharding *sharding, uint32_t i)
{
    const uint32_t unit = space->types[sharding->type].unit;
    struct change piece = {.device = space->units[unit].device,
                           .range = i / sharding->n_blocks,
                           .block = i % sharding->n_blocks};

    piece.type = i < sharding->n_last
                     ? sharding->last
                     : sharding_type_of_block(sharding, piece.block);
    if (sharding->kind == SHARDING_REPLICA)
        piece.device = i;
    else if (sharding->kind == SHARDING_ROWS && !sharding->fills_host &&
             space->oracle->row_cut != ROW_CUT_ANY)
        piece.device = piece.block;
    return piece;
}
