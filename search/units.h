/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_UNITS_H
#define NEUROSHARD_SEARCH_UNITS_H

#include "core/oracle.h"

/*
 * What is placed as one: a table, or all tables of a group; and what room there
 * is for it.
 */

struct unit {
    const uint32_t *tables; /* [n_tables], indices into the problem */
    uint32_t n_tables;
    int64_t device; /* pin, or -1 */
};

/* In the problem's canonical order: a permuted list is searched alike. */
struct units {
    const struct problem *problem; /* not owned */
    const struct oracle *oracle;   /* not owned */
    struct unit *units;            /* [n_units] */
    uint32_t n_units;
    uint64_t *room_bytes;     /* [R]: memory less reserve */
    uint64_t most_room_bytes; /* the largest of them */
};

/* Everything lives in the arena. ERR_INPUT where a group is pinned to two
 * devices. */
int units_collect(struct units *units, const struct problem *problem,
                  const struct oracle *oracle, struct arena *arena,
                  struct err *err) MUST_CHECK;

#endif
