/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_FORMS_H
#define NEUROSHARD_SEARCH_FORMS_H

#include "search/state.h"

/*
 * The ways in which a unit may be cut, numbered (struct form), and which pieces
 * they come to. Uneven widths come of later changes.
 */

/* Finds the forms of all units; in the arena. */
void forms_list(struct parts *parts, struct arena *arena);
static inline uint32_t forms_count(const struct parts *parts, uint32_t unit)
{
    return parts->of[unit].n_forms;
}
static inline struct form forms_get(const struct parts *parts, uint32_t unit,
                                    uint32_t idx)
{
    return parts->of[unit].forms[idx];
}
/* The first of that kind; NULL where there is none. */
const struct form *forms_find(const struct parts *parts, uint32_t unit,
                              enum form_kind kind);

/* One at random. There are many ways to cut, but one to leave whole and one to
 * replicate, which are drawn more often. */
struct form forms_draw(const struct parts *parts, uint32_t unit,
                       struct rng *rng);
/* The form that comes nearest to how the unit is cut now. */
struct form forms_now(const struct layout *layout, uint32_t unit);

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
