/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_UNITS_H
#define NEUROSHARD_SEARCH_UNITS_H

#include "base/parallel.h"
#include "core/oracle.h"
#include "core/plan.h"

/*
 * What a search places, priced once. A unit is a table, or all tables of a
 * group; an item is a piece of a unit: level h holds 1 / 2^h of the columns,
 * and all pieces of one level are alike. The items of a unit follow each
 * other, so that halving item i gives two of item i + 1. Units stand in the
 * problem's canonical order: a permuted list is searched the same way.
 */

struct unit {
    const uint32_t *tables; /* [n_tables], indices into the problem */
    uint32_t n_tables;
    uint32_t first_item;
    uint32_t n_levels;    /* >= 1 */
    uint32_t start_level; /* 1 where the whole table may not be placed */
    int64_t device;       /* pin, or -1 */
};

struct item {
    uint32_t unit, level;
    uint32_t rank;    /* place in the order of the greedy */
    uint64_t bytes;   /* by the problem's memory model */
    double output;    /* floats a sample that it sends: its dim */
    double single_ms; /* compute of a device that holds it alone */
};

struct units {
    const struct problem *problem; /* not owned */
    const struct oracle *oracle;   /* not owned */
    struct unit *units;            /* [n_units] */
    uint32_t n_units;
    struct item *items; /* [n_items] */
    uint32_t n_items;
    double *vectors;          /* [n_items][oracle->width] */
    uint64_t *room_bytes;     /* [R]: memory less reserve */
    uint64_t most_room_bytes; /* the largest of them */
    double mean_output;       /* of a device */
    double empty_ms;          /* compute of a device that holds nothing */
};

/* Finds the units and their pins and the devices' room, no items: what the
 * full search starts from. ERR_INPUT where a group is pinned to two devices. */
int units_collect(struct units *units, const struct problem *problem,
                  const struct oracle *oracle, struct arena *arena,
                  struct err *err) MUST_CHECK;

/* Finds the units, prices every level (over the pool, which may be NULL).
 * Everything lives in the arena. ERR_USAGE where a table allows neither table
 * nor column shards, ERR_INPUT where a group is pinned to two devices or the
 * cost model gives no finite cost. */
int units_init(struct units *units, const struct problem *problem,
               const struct oracle *oracle, struct pool *pool,
               struct arena *arena, struct err *err) MUST_CHECK;

/* The same without levels and without asking the oracle for costs: what the
 * baselines place. ERR_NO_PLAN where a table may not be placed whole. */
int units_init_whole(struct units *units, const struct problem *problem,
                     const struct oracle *oracle, struct arena *arena,
                     struct err *err) MUST_CHECK;

/* Whether an item has halves. */
int units_can_halve(const struct units *units, uint32_t item);
/* Whether the item may stand on the device, its memory aside. */
int units_may_hold(const struct units *units, uint32_t item, uint32_t device);
/* The unit's first table's name. */
const char *units_name(const struct units *units, uint32_t item);

/* The plan's shards become those of n pieces; each unit's tile its tables,
 * columns given out in the order of the pieces. They are in the arena. */
void units_to_plan(const struct units *units, const uint32_t *pieces,
                   const uint32_t *devices, size_t n, struct plan *plan,
                   struct arena *arena);

#endif
