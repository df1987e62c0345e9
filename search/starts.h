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

/* Fills *out, but its total_ms, by memory alone, pieces as large as may be up
 * to peak_bytes: with room for each, or may_exceed, with or without. False
 * where there is none. */
bool starts_by_memory(struct snapshot *out, const struct parts *parts,
                      uint64_t peak_bytes, bool may_exceed);

#endif
