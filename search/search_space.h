/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_SEARCH_SPACE_H
#define NEUROSHARD_SEARCH_SEARCH_SPACE_H

#include "base/parallel.h"
#include "core/oracle.h"
#include "search/current_plan.h"
#include "search/tuning.h"

/*
 * Search space: everything that a search can place, priced once.
 *
 *   unit        a table, or all tables of a group, placed as one
 *   sharding    one way to cut a unit: whole, column ranges, row blocks, row
 *               blocks of column ranges (a grid), or replicas
 *   piece type  all pieces of a unit that cost the same, wherever they stand
 *               and however often they occur: the whole unit, a number of
 *               columns, a row block, a row block of a column range, a replica
 *
 * A column piece may have any width that is a multiple of the width step of its
 * unit. The width step is four columns. For a very wide table, or for a very
 * long list of tables, the width step is larger, because there would be too
 * many widths to price.
 */

/* A piece type. */
struct piece_type {
    uint32_t unit;
    uint32_t sharding; /* index of the sharding that the type belongs to, among
                          the shardings of its unit; for a type of columns the
                          first sharding by columns */
    enum shard_kind kind;
    enum tier tier;
    uint32_t width; /* number of columns; for a group, of its first table */
    uint64_t row_begin, n_rows; /* rows; for a group, of its first table */
    /* row block that sets the price of the type, as an index into the blocks of
     * the sharding. If several blocks have this type, it is a block with about
     * the mean work of these blocks */
    uint32_t block;
    uint32_t hottest; /* row block of this type that has most work; it sets the
                         bytes of the type */
    uint32_t col_begin; /* first column if `stands`, else 0 */
    /* first device on which the row blocks may be placed. It is not 0 if the
     * oracle would mistake blocks on the first host for a cut over all
     * devices */
    uint32_t first_device;
    bool is_empty; /* the row block has no rows but costs as much as the first
                       block (only if oracle->prices_empty_blocks) */
    bool stands;   /* in re-planning: a row block of the current plan, which
                       begins at row_begin and col_begin */
    /* bytes of a piece by the problem's memory model, with one set of slots if
     * it is cached; bytes in host memory */
    uint64_t bytes, host_bytes;
    uint64_t mean_bytes; /* bytes of a piece if all rows of the table were
                            equally hot */
};

/*
 * A sharding of a unit. Starting points and moves that reshard a unit choose
 * one of its shardings. Later moves can make column ranges of uneven widths.
 *
 *   SHARDING_WHOLE    one piece
 *   SHARDING_COLUMNS  2, 3 ... column ranges, as even as the width step allows:
 *                     n_last pieces of type `last`, which is one width step
 *                     wider, and all other pieces of type `part`
 *   SHARDING_REPLICA  one replica on each device
 *   SHARDING_ROWS     row blocks, perhaps of several column ranges; their types
 *                     are `part` to `last`; blocks with about the same work
 *                     share a type
 *
 * In re-planning SHARDING_ROWS may also be the blocks of the current plan. They
 * are blocks of any rows and columns. Each block has its own type, and all
 * n_blocks blocks are in one range.
 *
 * Pieces are numbered range by range.
 */
enum sharding_kind {
    SHARDING_WHOLE,
    SHARDING_COLUMNS,
    SHARDING_REPLICA,
    SHARDING_ROWS
};

struct sharding {
    enum sharding_kind kind;
    uint32_t n_blocks, n_ranges, n_pieces;
    uint32_t type, last, n_last; /* n_last: number of pieces of type `last` */
    const uint8_t *types_of_blocks; /* [n_blocks]: type of each block, counted
                             from `part`; NULL: each block has its own type */
    uint32_t n_ways;     /* number of devices over which the rows are cut; there
                            may be fewer blocks; 0 if the rows are not cut, or
                            if they are blocks of the current plan */
    bool fills_host;     /* row block b is placed on device b of one host */
    uint64_t peak_bytes; /* bytes of the largest piece */
    double bytes;        /* bytes of all pieces; for row blocks a lower bound,
                            because a type has the bytes of its hottest block */
    double load_ms;      /* sum of the standalone costs of its pieces */
    double peak_ms;      /* standalone cost of its most expensive piece */
    double least_ms;     /* standalone cost of its cheapest piece */
};

/* A table, or all tables of a group, placed as one. A group is never cut. */
struct unit {
    const uint32_t *tables; /* [n_tables], indices into problem->tables */
    uint32_t n_tables;
    const struct table *first; /* first of `tables` */
    int64_t pin;               /* device, or -1 */
    unsigned kinds; /* mask of the shard kinds into which the unit may be cut */
    bool widths_alike; /* all column pieces have one width: a sequence, or a
                          rule of the target */
    bool keeps_apart;  /* a device holds at most one piece of the unit */
    bool stays; /* all pieces keep their devices (search/reshardable.h) */
    unsigned changing; /* mask of the shard kinds that change the training of a
                          table of the unit (kind_changes_training) */
    /* width of a width step in columns; number of width steps of the whole
     * table */
    uint32_t width_step, n_width_steps;
    unsigned tiers; /* mask of the tiers (1 << enum tier) that all tables of the
                       unit allow */
    /* piece type of the whole unit in each tier, or NO_TYPE */
    uint32_t whole[N_TIERS];
    /* piece type of one width step in each tier; n width steps are type columns
     * + n - 1; NO_TYPE if columns may not be cut */
    uint32_t columns[N_TIERS];
    uint32_t replica; /* piece type of a replica, or NO_TYPE */
    /* The only device on which the pieces of the unit may be placed, because
     * the unit is pinned or there is only one device; else NO_PIECE. */
    uint32_t device;
    struct sharding *shardings; /* [n_shardings] */
    uint32_t n_shardings;
    bool leaves_out;    /* some shardings are left out because they cannot pay
                           (search/listing.c) */
    double left_out_ms; /* upper bound, in ms, of the savings of the cheapest
                           sharding that is left out */
};

/* Least cost that is assumed for a replica, as a share of its standalone cost.
 * Together with other pieces, a replica costs less than alone. */
#define LEAST_REPLICA_FRAC 0.2

/* The search space. */
struct search_space {
    const struct problem *problem; /* not owned */
    const struct oracle *oracle;   /* not owned */
    /* current plan (search/current_plan.h); not owned; NULL except in
     * re-planning */
    const struct current_plan *current;
    uint32_t n_devices;
    const uint64_t *room_bytes;  /* [n_devices] usable memory: memory less
                                    reserve */
    uint64_t most_room_bytes;    /* largest usable memory of a device */
    uint64_t least_room_bytes;   /* smallest usable memory of a device */
    double all_room_bytes;       /* usable memory of all devices */
    const struct tuning *tuning; /* not owned; the default unless the caller
                                    sets another */
    /* [n_units], in the problem's canonical order, so the order of the list of
     * tables does not change the search */
    struct unit *units;
    uint32_t n_units;
    struct arena *arena;        /* not owned; holds all arrays */
    struct sharding *shardings; /* [n_shardings] */
    uint32_t n_shardings;
    struct piece_type *types; /* [n_types] */
    uint32_t n_types;
    bool has_tiers; /* tables may be in host memory */
    bool is_long; /* the list is long: shardings that cannot pay are left out */
    uint32_t most_width_steps; /* maximum number of width steps of a unit */
    uint32_t most_types;       /* maximum number of piece types of a row cut */
    double mean_ms;  /* load that each device would have if all units were whole
                        and spread evenly; 0 for a short list of tables, for
                        which no sharding is left out */
    double *vectors; /* [n_types][oracle->width]; NULL if nothing is priced */
    /* [n_types]: load that a piece adds to its device: standalone_ms, or the
     * marginal cost (search/marginal.h) */
    double *load_ms;
    /* [n_types]: standalone cost of a piece: sum of the terms of a device that
     * holds nothing else, or its compute if the oracle has no terms; 0 if
     * nothing is priced */
    double *standalone_ms;
};

/* Returns a shard that stands for all pieces of a piece type when the oracle
 * and the memory model are asked. `table` is one of the tables of the unit. The
 * shard has the rows of row block type->block and the columns of the first
 * column range. All other pieces of the type cost the same. */
struct shard space_shard(const struct search_space *space,
                         const struct piece_type *type, uint32_t table);

/* Returns the standalone cost of a piece with this vector: the sum of the terms
 * of a device that holds only this piece, or the compute of that device if the
 * oracle has no terms. */
double space_standalone_ms(const struct oracle *oracle, const double *vector);

/* Returns the piece type of `width` columns and all rows in a tier. `width` may
 * be from 1 to all columns; with all columns it returns the type of the whole
 * unit. Returns NO_TYPE if there is no such type. */
uint32_t space_type_of_width(const struct search_space *space, uint32_t unit,
                             uint32_t width, enum tier tier);
/* Returns the piece type of n width steps and all rows in a tier. `n` may be
 * from 1 to n_width_steps. */
static inline uint32_t unit_type_of_steps(const struct unit *entry, uint32_t n,
                                          enum tier tier)
{
    return n == entry->n_width_steps ? entry->whole[tier]
                                     : entry->columns[tier] + n - 1;
}
/* Returns the piece type whose width is the sum of the widths of two piece
 * types of one unit, in one tier; NO_TYPE if there is no such type. */
static inline uint32_t space_joined_type(const struct search_space *space,
                                         uint32_t a, uint32_t b)
{
    return space_type_of_width(space, space->types[a].unit,
                               space->types[a].width + space->types[b].width,
                               space->types[a].tier);
}
/* Returns the width of a piece type in width steps. Returns 0 if the type does
 * not have all rows, or if the columns of its unit may not be cut. */
static inline uint32_t space_width_steps(const struct search_space *space,
                                         uint32_t type)
{
    const struct piece_type *p = &space->types[type];
    const struct unit *unit = &space->units[p->unit];
    bool has_all_rows = p->kind & (SHARD_TABLE | SHARD_COLUMN);

    return has_all_rows && unit->columns[p->tier] != NO_TYPE
               ? p->width / unit->width_step
               : 0;
}
/* Returns the piece type of row block b, in any range of the sharding. A
 * sharding without row cuts has one block, b = 0. For a sharding by columns,
 * block 0 has the type of the narrower pieces, `part`. */
static inline uint32_t sharding_type_of_block(const struct sharding *cut,
                                              uint32_t b)
{
    return cut->type + (cut->types_of_blocks ? cut->types_of_blocks[b] : b);
}
/* Returns the sharding that a piece type belongs to. For a type of columns this
 * is the first sharding by columns. */
static inline const struct sharding *
space_sharding_of(const struct search_space *space, uint32_t type)
{
    const struct piece_type *p = &space->types[type];

    return &space->units[p->unit].shardings[p->sharding];
}
/* Sets the kind, rows and columns of a shard as for a piece of this type.
 * `range` and `block` are the members of the piece in struct change. */
void type_place_block(struct shard *shard, const struct piece_type *type,
                      uint32_t range, uint32_t block);
/* Returns true if a search may move a single piece of this type to another
 * device. A search may not move a single replica, a piece of a unit that is
 * pinned or stays, or, if the oracle wants row cuts over whole hosts, a row
 * block. */
bool space_can_move(const struct search_space *space, uint32_t type);

/* Returns the number of hosts whose memory holds tables: 0 if all tables are in
 * the memory of devices. */
uint32_t space_n_hosts(const struct search_space *space);
/* Returns the host of a device. */
static inline uint32_t space_host_of(const struct search_space *space,
                                     uint32_t device)
{
    return device / space->problem->cluster.devices_per_host;
}

/* Returns a random sharding of the unit. SHARDING_WHOLE and SHARDING_REPLICA
 * are drawn more often than other shardings, because a unit has only one
 * sharding of each of these kinds and many shardings of other kinds. */
const struct sharding *sharding_draw(const struct search_space *space,
                                     uint32_t unit, struct rng *rng);

/* Returns piece i of a sharding: its type, range, block and device. The device
 * is set in the cases where only one device is possible: the unit is pinned,
 * there is only one device, the piece is a replica, or the oracle asks for row
 * cuts over all devices. In all other cases the device is NO_PIECE. If the row
 * blocks fill a host, the device is also NO_PIECE: any host may be chosen, and
 * then its device b gets block b. */
struct change sharding_piece(const struct search_space *space,
                             const struct sharding *sharding, uint32_t i);

#endif
