/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_FORMS_H
#define NEUROSHARD_SEARCH_FORMS_H

#include "search/layout.h"

/*
 * The ways in which a unit may be cut, numbered: whole; 2, 3 ... even column
 * pieces; a replica on each device; rows and grids (choices.h). What a form
 * takes in all, and which pieces it comes to. Uneven widths come of later
 * changes.
 */

enum form_kind { FORM_WHOLE, FORM_COLUMNS, FORM_REPLICA, FORM_CUT };

struct form {
    enum form_kind kind;
    uint32_t n; /* of FORM_COLUMNS: pieces; of FORM_CUT: index in parts->cuts */
};

struct form_figures {
    double load_ms;      /* its pieces alone, added up */
    double peak_ms;      /* the dearest of them */
    double bytes;        /* of all of them */
    uint64_t peak_bytes; /* of the largest */
    uint32_t n_pieces;
};

/* Whether there is such a form. */
bool forms_has(const struct parts *parts, uint32_t unit, enum form_kind kind);
uint32_t forms_count(const struct parts *parts, uint32_t unit);
struct form forms_get(const struct parts *parts, uint32_t unit, uint32_t idx);
struct form_figures forms_figures(const struct parts *parts, uint32_t unit,
                                  struct form form);

/* Piece i of a form: its part, range and block. The device is that of a pin,
 * the only one, that of a replica, of a row cut over all devices where the
 * oracle asks for it, else NO_PIECE. The blocks of a cut that fills a host are
 * left open too: block b goes on device b of any one host. */
struct change forms_piece(const struct parts *parts, uint32_t unit,
                          struct form form, uint32_t i);
/* Where an open piece of a form goes: devices in a ring from `at` on, or hosts,
 * and what is of one row block apart. */
uint32_t forms_ring_device(const struct parts *parts, struct form form,
                           const struct change *piece, uint32_t at);
/* Whether its blocks must be those of one host's devices, in order. */
bool forms_fills_host(const struct parts *parts, struct form form);

#endif
