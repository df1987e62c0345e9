/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_LISTING_H
#define NEUROSHARD_SEARCH_LISTING_H

#include "search/search_space.h"

/*
 * Lists and prices the piece types and shardings of a range of units. Each unit
 * is listed on its own, so threads can share the work, and neither the number
 * of threads nor the ranges change the result. Used by space_init alone.
 */

struct listing {
    struct search_space *space; /* not owned; the members of the units of the
                            range are filled in */
    uint32_t begin, end;        /* range of units */
    double end_ms;       /* clock time after which the remaining units get no
                            row cuts and replicas, if they have another
                            sharding */
    struct problem even; /* the problem with all rows equally hot */
    double *room;        /* [oracle->width] scratch */
    struct piece_type *list; /* [n_types] piece types; numbered from 0 in each
                          listing */
    double *standalone_ms;   /* [n_types] standalone costs */
    double *vectors;         /* [n_types][oracle->width]; NULL if nothing is
                                priced */
    uint32_t n_types;
    struct sharding *shardings; /* [n_shardings] */
    uint32_t n_shardings;
    uint32_t first_sharding; /* of the current unit */
    size_t list_capacity, standalone_capacity, vectors_capacity,
        shardings_capacity;
    struct arena arena; /* holds the arrays `sorts` of the shardings */
};

/* Lists the units of the range. The caller has set parts, begin, end and
 * end_ms. */
void listing_fill(struct listing *listing);
/* Appends all that was listed to the arrays of the search space, which have
 * room for it, and releases the listing. */
void listing_append(struct listing *listing, struct search_space *space);

/* Functions that listing.c shares with row_cuts.c. */

/* Maximum rounding of a piece's memory, in bytes: three of its items are
 * rounded. */
#define LISTING_PIECE_ROUNDING 3

/* Fills the vector of a piece type and returns its standalone cost in ms
 * (space_standalone_ms). */
double listing_price(const struct listing *listing,
                     const struct piece_type *type, double *vector);
/* Lists a piece type and returns its number. To be called before the sharding
 * that it belongs to is listed. */
uint32_t listing_add_type(struct listing *listing, struct piece_type type);
/* Returns a sharding of n pieces, all of this type. */
struct sharding listing_sharding(enum sharding_kind kind, uint32_t type,
                                 uint32_t n);
/* Lists a sharding. Its piece types have been listed, and give its prices. */
void listing_add_sharding(struct listing *listing, struct sharding sharding);
/* Returns true if a sharding may pay that has at least this load and these
 * bytes. If it cannot, records in the unit how much it could have saved. */
bool listing_may_pay(struct listing *listing, uint32_t unit,
                     enum shard_kind kind, double load_ms, double bytes);
/* Lists all shardings of the unit by rows: over all devices, over the devices
 * of one host, and so on. Blocks of whole rows come first, then grids. */
void listing_add_row_cuts(struct listing *listing, uint32_t unit);

/* Returns the load of a device in ms if all units were whole and their work
 * were spread evenly. */
double listing_mean_ms(const struct search_space *space, struct pool *pool);

#endif
