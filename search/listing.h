/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_LISTING_H
#define NEUROSHARD_SEARCH_LISTING_H

#include "search/search_space.h"

/*
 * A listing lists and prices the piece types and shardings of a range of units.
 * Each unit is listed independently of the others. So threads can share the
 * work, and the result depends neither on the number of threads nor on the
 * ranges. Only space_init uses listings.
 */

struct listing {
    struct search_space *space; /* search space; not owned; the listing fills
                                   the units of its range */
    uint32_t begin, end;        /* range of units */
    /* clock time in ms after which small units of a long list are not cut, and
     * the remaining units get neither row cuts nor
     * replicas, if they have another sharding */
    double end_ms;
    struct problem even;     /* the problem with all rows equally hot */
    double *room;            /* [oracle->width] scratch */
    struct piece_type *list; /* [n_types] piece types; every listing numbers its
                                types from 0 */
    double *standalone_ms;   /* [n_types] standalone costs */
    double *vectors;         /* [n_types][oracle->width]; NULL if nothing is
                                priced */
    uint32_t n_types;
    struct sharding *shardings; /* [n_shardings] */
    uint32_t n_shardings;
    /* first sharding and first piece type of the current unit */
    uint32_t first_sharding, first_type;
    /* tier that is being listed, and kinds that it allows for the unit */
    enum tier tier;
    unsigned kinds;
    bool has_width_step; /* the unit's width step is known */
    size_t list_capacity, standalone_capacity, vectors_capacity,
        shardings_capacity;
    /* holds the arrays `types_of_blocks` of the shardings */
    struct arena arena;
};

/* Lists the units of the range. The caller has set parts, begin, end and
 * end_ms. */
void listing_fill(struct listing *listing);
/* Appends the piece types and shardings of the listing to the arrays of the
 * search space, which must have room for them. Releases the listing. */
void listing_append(struct listing *listing, struct search_space *space);

/* Functions that listing.c shares with row_cuts.c. */

/* Maximum rounding error of the memory of a piece, in bytes. The memory is a
 * sum in which three items are rounded. */
#define LISTING_PIECE_ROUNDING 3

/* Fills the vector of a piece type and returns its standalone cost in ms
 * (space_standalone_ms). */
double listing_price(const struct listing *listing,
                     const struct piece_type *type, double *vector);
/* Lists a piece type and returns its number. Call it before listing the
 * sharding that the type belongs to. */
uint32_t listing_add_type(struct listing *listing, struct piece_type type);
/* Returns a sharding of n pieces that all have this piece type. */
struct sharding listing_sharding(enum sharding_kind kind, uint32_t type,
                                 uint32_t n);
/* Lists a sharding. Its piece types must have been listed before, because the
 * costs of the sharding come from them. */
void listing_add_sharding(struct listing *listing, struct sharding sharding);
/* Returns true if a sharding with at least this load and at least these bytes
 * may pay. If the sharding cannot pay, records in the unit an upper bound of
 * its savings. */
bool listing_may_pay(struct listing *listing, uint32_t unit,
                     enum shard_kind kind, double load_ms, double bytes);
/* Lists all shardings of the unit by rows: over all devices, over the devices
 * of one host, and so on. Blocks of whole rows come first, then grids. */
void listing_add_row_cuts(struct listing *listing, uint32_t unit);

/* Returns the load in ms that each device would have if all units were whole
 * and their work were spread evenly over the devices. */
double listing_mean_ms(const struct search_space *space, struct pool *pool);

#endif
