/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_STARTS_H
#define NEUROSHARD_SEARCH_STARTS_H

#include "search/state.h"

/*
 * Where the full search starts: a form for each unit and its pieces on devices,
 * longest first, by different views of what is dear.
 *
 * A job launches replicas and row blocks by themselves, and so pays once for
 * the first of each: no single change of a plan that has many shows what it
 * would be without. So there is a start of each family: all forms, or row
 * blocks of all tables that can be cut so where that is cheaper; no replicas;
 * no row blocks; neither. The first family is also built under 85 and 70 % of
 * the memory, as a layout that is found with less may be cheaper. If costs are
 * additive nothing is paid once, and the cheapest of all families are kept. One
 * start instead costs 0.5 to 1.9 % more on HugeCTR's seven tables by TorchRec's
 * formulas, and the cheapest of all instead of one a family 0.2 to 1.2 % on
 * DCNv2 by the roofline if nothing overlaps (three seeds each); other lists
 * 0.7 % less to 0.3 more.
 *
 * Fills the empty best[] with what can be built, of different totals; some or
 * all may stay empty. Work is bounded; once something was found, SIGINT and the
 * clock at end_ms (INFINITY: never) end it too. Returns how many were priced.
 */
#define STARTS_KEPT 4
uint64_t starts_find(struct snapshot best[STARTS_KEPT],
                     const struct parts *parts, struct pool *pool,
                     double end_ms);

/* Fills *out, but its total_ms, by memory alone, pieces as large as may be up
 * to peak_bytes: with room for each, or may_exceed, with or without. False
 * where there is none. */
bool starts_by_memory(struct snapshot *out, const struct parts *parts,
                      uint64_t peak_bytes, bool may_exceed);

#endif
