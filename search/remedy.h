/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_REMEDY_H
#define NEUROSHARD_SEARCH_REMEDY_H

#include "base/mem.h"
#include "core/problem.h"

/*
 * What the reports of searches that find no plan share (search/shortage.h,
 * no_plan of search/pack.h): how far a remedy is sought, and how sizes print.
 */

/* More GPUs than this many times those there are, nobody buys. */
#define REMEDY_MAX_GROWTH 64
/* Nor a GPU of an exbibyte. */
#define REMEDY_TOO_LARGE ((uint64_t)1 << 60)
/* Sizes are found, or raised, to one part in so many. */
#define REMEDY_SIZE_STEPS 1024

/* Up to the next size that prints in three digits, so that who types what was
 * printed has enough. */
uint64_t remedy_round_up(uint64_t bytes);

/* "9.91 GiB", and with its items in brackets; in the arena. */
const char *remedy_size(uint64_t bytes, struct arena *arena);
const char *remedy_items(const struct memory_items *items, struct arena *arena);

#endif
