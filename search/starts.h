/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_STARTS_H
#define NEUROSHARD_SEARCH_STARTS_H

#include "base/parallel.h"
#include "search/state.h"

/*
 * Where the full search starts: a form for each unit and its pieces on devices,
 * longest first, by different views of what is dear.
 *
 * Fills empty *best with the cheapest layout that can be built, if any. Work is
 * bounded; once something was found, SIGINT and the clock at end_ms (INFINITY:
 * never) end it too. Returns how many were priced.
 */
uint64_t starts_find(struct snapshot *best, const struct parts *parts,
                     struct pool *pool, double end_ms);

/*
 * A layout that keeps the memory, whatever it costs: by a greedy packing, then
 * by an exact one of whole tables and even pieces (search/bins.h), in the end
 * by annealing what exceeds (search/temper.h).
 */

enum fit_effort {
    FIT_QUICK, /* hundredths of a second; finds less */
    FIT_HARD,  /* some seconds, where it finds nothing */
};

struct fit_failure {
    bool is_proven; /* every way to place what may not be cut was ruled out */
    uint64_t lacking_bytes; /* by which the nearest layout exceeds the memory;
                               UINT64_MAX where none was looked at */
};

/* Fills *out, but its total_ms, and returns true; false and *failure where none
 * was found. */
bool fit_by_memory(struct snapshot *out, const struct parts *parts,
                   enum fit_effort effort, struct fit_failure *failure);

#endif
