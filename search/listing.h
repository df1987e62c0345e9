/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_LISTING_H
#define NEUROSHARD_SEARCH_LISTING_H

#include "search/choices.h"

/*
 * Lists the parts and forms of a run of units and prices them. Units are listed
 * apart from each other, so that threads share the work and neither their
 * number nor the runs change anything. parts_init alone uses this.
 */

struct listing {
    struct parts *parts; /* not owned; quanta and numbers of the run's units
                            are filled in */
    uint32_t begin, end; /* units of the run */
    double end_ms;       /* when the clock is past it, the units that are left
                            get no cuts of rows if there is another way */
    struct problem even; /* the problem as if all rows were equally hot */
    double *room;        /* [oracle->width] */
    struct part *list;   /* [n_parts]; their numbers count from 0 */
    double *alone_ms;    /* [n_parts] */
    double *vectors;     /* [n_parts][oracle->width]; NULL: nothing is priced */
    uint32_t n_parts;
    struct form *forms; /* [n_forms] */
    uint32_t n_forms;
    uint32_t first_form; /* of the unit in hand */
    size_t list_capacity, alone_capacity, vectors_capacity, forms_capacity;
    struct arena arena; /* sorts of blocks */
};

/* Lists the units from begin to end; parts, begin, end and end_ms are set. */
void listing_fill(struct listing *listing);
/* Appends what was listed to the arrays of the parts, which have room for it,
 * and releases the listing. */
void listing_append(struct listing *listing, struct parts *parts);

/* For listing_fill and the cuts of rows. */

/* Three items of a piece's memory are rounded to bytes. */
#define LISTING_PIECE_ROUNDING 3

/* Fills the vector of a part and returns what a device that holds it alone
 * takes (parts_alone_ms). */
double listing_price(const struct listing *listing, const struct part *part,
                     double *vector);
/* Lists a part before the form that it belongs to; returns its number. */
uint32_t listing_add_part(struct listing *listing, struct part part);
/* A form of n pieces, all of this part. */
struct form listing_form(enum form_kind kind, uint32_t part, uint32_t n);
/* Prices the form by its parts, which are listed, and lists it. */
void listing_add_form(struct listing *listing, struct form form);
/* Whether a form of at least this load and these bytes may pay. If it does
 * not, its unit notes what it may have saved. */
bool listing_may_pay(struct listing *listing, uint32_t unit,
                     enum shard_kind kind, double load_ms, double bytes);
/* Lists all ways to cut the unit's rows: over all devices, over one host's ...
 * whole rows first, then ranges of them. */
void listing_add_row_cuts(struct listing *listing, uint32_t unit);

/* Load of a GPU, in ms, if all units stood whole and shared the work evenly. */
double listing_mean_ms(const struct parts *parts, struct pool *pool);

#endif
