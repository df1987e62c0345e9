/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_BUILDER_H
#define NEUROSHARD_SEARCH_BUILDER_H

#include "search/state.h"

/*
 * Builds a layout in which each unit has a given form: dearest first, each
 * piece to the least loaded device that has room (Graham 1969: longest first).
 * A unit that finds no room goes first in the next try (squeaky wheel
 * optimization, Joslin and Clements 1999).
 */

/* What is dear: settles the form of each unit (starts.c) and where it goes. */
struct view {
    double peak_ms, ms_per_byte;
    double ms_per_piece; /* so that there are not too many pieces */
    double all_ms;       /* load that all units have together, at least */
    double replica_frac; /* the load of replicas counts this much: alone, each
                            looks dearer than it is beside others */
    double room_frac;    /* of its room that a device may fill */
    uint64_t peak_bytes;
    unsigned barred; /* forms, a mask of 1 << form_kind, that only a unit
                        without others gets */
    bool by_memory;  /* the load is bytes; the oracle is not asked */
    bool may_exceed; /* a device may be given more than it has room for */
};

/* Work of one layout (pieces placed, and devices tried for them), at most; and
 * of all starts, once something was found: about a second of one core. */
#define BUILDER_MAX_WORK 20000000

/* Fills *out (its total_ms stays as it is) by forms[n_units], which count from
 * the unit's first. Leaves it empty if a piece finds no room or that takes more
 * than BUILDER_MAX_WORK. *is_short says whether a piece found no room in any
 * try. Returns the work that it took. */
uint64_t builder_run(struct snapshot *out, bool *is_short,
                     const struct parts *parts, const struct view *view,
                     const uint32_t *forms);

#endif
