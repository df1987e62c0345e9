/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_CHOICES_H
#define NEUROSHARD_SEARCH_CHOICES_H

#include "base/parallel.h"
#include "core/oracle.h"
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
 * unit. The step is four columns. It is larger if the table is very wide or the
 * list very long, because there would be too many widths to price.
 */

/* Index that stands for "no piece type". */
#define NO_TYPE UINT32_MAX

/* A piece type. */
struct piece_type {
    uint32_t unit;
    uint32_t sharding; /* index of its sharding among those of the unit; for
                      columns the first sharding by columns */
    enum shard_kind kind;
    uint32_t width;             /* columns; for a group those of its first
                                   table */
    uint64_t row_begin, n_rows; /* for a group those of its first table */
    uint32_t block;   /* row block that sets the price, as an index into the
                         blocks of the sharding; if several blocks are of this
                         type, one with about as much work as their mean */
    uint32_t hottest; /* row block of this type that has most work; it sets the
                         bytes */
    uint32_t col_begin;    /* first column if `stands`, else 0 */
    uint32_t first_device; /* first device that the blocks may be placed on; not
                              0 if the oracle would take blocks on the first
                              host for a cut over all devices */
    bool is_empty;         /* block of no rows, which costs as much as the first
                              block: oracle->prices_empty_blocks */
    bool stands;           /* row block of the current plan, in re-planning; its
                              rows and columns begin at row_begin, col_begin */
    uint64_t bytes;        /* by the problem's memory model */
    uint64_t mean_bytes;   /* bytes if all rows of the table were equally hot */
};

/*
 * A sharding: a starting point or a resharding move chooses from these. Later
 * moves can make column ranges of uneven widths.
 *
 *   SHARDING_WHOLE    one piece
 *   SHARDING_COLUMNS  2, 3 ... column ranges, as even as the width step allows:
 *                 n_last pieces of type `last`, which is one width step wider,
 *                 and the rest of type `part`
 *   SHARDING_REPLICA  one replica on each device
 *   SHARDING_ROWS      row blocks, perhaps of several column ranges. Their
 * types are `part` to `last`; blocks with about the same work share a type. In
 * re-planning also the blocks of the current plan: blocks of any rows and
 * columns, each of its own type, n_blocks in one range
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
    uint32_t type, last, n_last;    /* piece types, and the number of pieces of
                                       type `last` */
    const uint8_t *types_of_blocks; /* [n_blocks]: type of each block, counted
                             from `part`; NULL: each block has its own type */
    bool fills_host;     /* the row blocks go on the devices of one host, in
                            order */
    uint64_t peak_bytes; /* bytes of the largest piece */
    double bytes;        /* bytes of all pieces; for row blocks a lower bound,
                            because a type has the bytes of its hottest block */
    double load_ms;      /* sum of the standalone costs of its pieces */
    double peak_ms;      /* standalone cost of its dearest piece */
    double least_ms;     /* standalone cost of its cheapest piece */
};

/* A table, or all tables of a group, placed as one. Groups are not cut. */
struct unit {
    const uint32_t *tables; /* [n_tables], indices into problem->tables */
    uint32_t n_tables;
    const struct table *first; /* first of `tables` */
    int64_t pin;               /* device, or -1 */
    unsigned kinds;            /* shard kinds that it may be cut into, a mask */
    uint32_t width_step, n_width_steps; /* width step in columns; number of
                                   width steps of the whole table */
    uint32_t whole;   /* piece type of the whole unit, or NO_TYPE */
    uint32_t columns; /* piece type of one width step; n width steps are type
                         columns + n - 1; NO_TYPE if columns may not be cut */
    uint32_t replica; /* piece type of a replica, or NO_TYPE */
    uint32_t device;  /* the only device that its pieces may be on, because it
                         is pinned or there is no other; else NO_PIECE */
    struct sharding *shardings; /* [n_shardings] */
    uint32_t n_shardings;
    bool leaves_out;    /* some shardings are left out because they cannot pay
                           (search/listing.c) */
    double left_out_ms; /* upper bound of the savings of the cheapest sharding
                           left out */
};

/* Least share of its standalone cost that a replica is assumed to cost.
 * Together with other pieces, a replica costs less than alone. */
#define LEAST_REPLICA_FRAC 0.2

struct current_plan;
struct search_options;

/* The search space. */
struct search_space {
    const struct problem *problem;      /* not owned */
    const struct oracle *oracle;        /* not owned */
    const struct current_plan *current; /* current plan, not owned; NULL except
                                  in re-planning (search/migration.h) */
    uint32_t n_devices;
    const uint64_t *room_bytes;  /* [n_devices] usable memory: memory less
                                    reserve */
    uint64_t most_room_bytes;    /* largest usable memory of a device */
    uint64_t least_room_bytes;   /* smallest usable memory of a device */
    double all_room_bytes;       /* usable memory of all devices */
    const struct tuning *tuning; /* not owned; the default unless the caller
                                    sets another */
    struct unit *units;          /* [n_units], in the problem's canonical order,
                                 so a permuted list is searched the same
                                 way */
    uint32_t n_units;
    struct arena *arena;        /* not owned; holds all arrays */
    struct sharding *shardings; /* [n_shardings] */
    uint32_t n_shardings;
    struct piece_type *types; /* [n_types] */
    uint32_t n_types;
    bool is_long; /* the list is long: shardings that cannot pay are left out */
    uint32_t most_width_steps; /* maximum number of width steps of a unit */
    uint32_t most_types;       /* maximum number of piece types of a row cut */
    double mean_ms;  /* load of a device if all units were whole and spread
                        evenly; 0 for a short list, in which no sharding is
                        left out */
    double *vectors; /* [n_types][oracle->width]; NULL if nothing is priced */
    double
        *load_ms; /* [n_types]: share of a piece in the load of its device:
                     standalone_ms, or the marginal cost (search/marginal.h) */
    double
        *standalone_ms; /* [n_types]: standalone cost of a piece: sum of the
                      terms of a device that holds nothing else, or its compute
                      if the oracle has no terms; 0 if nothing is priced */
};

/* Fills the units, their allowed kinds and the usable memory, without piece
 * types and shardings. Arrays live in the arena. Fails with ERR_INPUT if a
 * group is pinned to two devices. */
int space_collect(struct search_space *space, const struct problem *problem,
                  const struct oracle *oracle, struct arena *arena,
                  struct err *err) MUST_CHECK;

/* Fills the whole search space. Arrays live in the arena.
 *
 * homes: NULL, or the current plan in re-planning, which must outlive the
 * search space. The search space then also has all that the tables need to stay
 * as they are: width steps as fine as the widths of their pieces and, unless
 * the oracle wants equal blocks, their row blocks. The last row block grows
 * with its table.
 *
 * options: threads and time limit; may be NULL. Once the time limit has passed,
 * tables that can stand whole or be cut by columns get no other sharding.
 *
 * If the oracle embeds nothing (ops->embed is NULL), piece types have bytes and
 * no costs.
 *
 * Fails as space_collect does, and with ERR_USAGE if a table cannot be placed
 * in any way that the oracle can price, with ERR_INPUT if the oracle gives a
 * cost that is not finite, with ERR_INTERRUPTED after an interrupt if the list
 * is long (a short list takes no time). */
int space_init(struct search_space *space, const struct problem *problem,
               const struct oracle *oracle, const struct current_plan *current,
               const struct search_options *options, struct arena *arena,
               struct err *err) MUST_CHECK;

/* Returns a shard of the table, one of the tables of the unit, that is a piece
 * of this type. The oracle and the memory model are asked about this shard. Its
 * rows are those of row block type->block, its columns those of the first
 * range. All other pieces of the type cost the same. */
struct shard space_shard(const struct search_space *space,
                         const struct piece_type *type, uint32_t table);

/* Returns the standalone cost of pieces with this vector: the sum of the terms
 * of a device that holds nothing else, or its compute if the oracle has no
 * terms. */
double space_standalone_ms(const struct oracle *oracle, const double *vector);

/* Returns the piece type of `width` columns and all rows. width is 1 to all
 * columns; all columns give the whole. Returns NO_TYPE if there is no such
 * type. */
uint32_t space_type_of_width(const struct search_space *space, uint32_t unit,
                             uint32_t width);
/* Returns the piece type of n width steps and all rows; n is 1 to
 * n_width_steps. */
static inline uint32_t unit_type_of_steps(const struct unit *entry, uint32_t n)
{
    return n == entry->n_width_steps ? entry->whole : entry->columns + n - 1;
}
/* Returns the piece type that is as wide as two types of one unit together, or
 * NO_TYPE. */
static inline uint32_t space_joined_type(const struct search_space *space,
                                         uint32_t a, uint32_t b)
{
    return space_type_of_width(space, space->types[a].unit,
                               space->types[a].width + space->types[b].width);
}
/* Returns the width of a piece type in width steps. Returns 0 if it does not
 * have all rows or if the columns of its unit may not be cut. */
static inline uint32_t space_width_steps(const struct search_space *space,
                                         uint32_t type)
{
    const struct piece_type *p = &space->types[type];
    const struct unit *unit = &space->units[p->unit];
    bool has_all_rows = p->kind & (SHARD_TABLE | SHARD_COLUMN);

    return has_all_rows && unit->columns != NO_TYPE
               ? p->width / unit->width_step
               : 0;
}
/* Returns the piece type of row block b, in any range of the sharding. A
 * sharding without row cuts has one block, b = 0; for columns this is the type
 * of the narrower pieces, `part`. */
static inline uint32_t sharding_type_of_block(const struct sharding *cut,
                                              uint32_t b)
{
    return cut->type + (cut->types_of_blocks ? cut->types_of_blocks[b] : b);
}
/* Returns the sharding that a piece type belongs to; for columns the first
 * sharding by columns. */
static inline const struct sharding *
space_sharding_of(const struct search_space *space, uint32_t type)
{
    const struct piece_type *p = &space->types[type];

    return &space->units[p->unit].shardings[p->sharding];
}
/* Sets the kind, rows and columns of a shard to those of a piece of this type.
 * range and block are those of the piece (struct change). */
void type_place_block(struct shard *shard, const struct piece_type *type,
                      uint32_t range, uint32_t block);
/* Returns true if a search may move a single piece of this type to another
 * device. It may not move replicas, pieces of pinned units, and row blocks if
 * the oracle wants row cuts over whole hosts. */
bool space_can_move(const struct search_space *space, uint32_t type);

/* Returns a random sharding of the unit. Whole and replica are drawn more often
 * than others, because there is only one of each and there are many ways to
 * cut. */
const struct sharding *sharding_draw(const struct search_space *space,
                                     uint32_t unit, struct rng *rng);

/* Returns piece i of a sharding: its type, range, block and device. The device
 * is set if there is no choice: by the unit (a pin, or a single device), by a
 * replica, or by a row cut over all devices if the oracle asks for those. It is
 * NO_PIECE otherwise. It is also NO_PIECE if the blocks fill a host, whose
 * device b then gets block b, because any host will do. */
struct change sharding_piece(const struct search_space *space,
                             const struct sharding *sharding, uint32_t i);

#endif
