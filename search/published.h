/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_PUBLISHED_H
#define NEUROSHARD_SEARCH_PUBLISHED_H

#include "search/search.h"

/* What the published search makes. */
#define SEARCH_PUBLISHED_KINDS (SHARD_TABLE | SHARD_COLUMN)

/* search_reference without its last resort: ERR_NO_PLAN, with no reasons, where
 * neither its greedy nor a simple packing finds a place for every table.
 * Sets shards, stopped and n_evaluations. */
int search_published(struct plan *plan, const struct oracle *oracle,
                     const struct search_options *options, struct arena *arena,
                     struct err *err) MUST_CHECK;

#endif
