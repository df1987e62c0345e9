/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_CACHES_TABLE_H
#define NEUROSHARD_EMIT_CACHES_TABLE_H

#include "core/plan.h"

#include <jansson.h>

/* Caches of rows on the GPUs (core/cache_pools.h), a line each: the pieces that
 * share it, the share of their rows that it holds, its memory, the different
 * rows of a batch, those of them that are fetched from the host, and hits. The
 * GPU whose cache fetches most comes first. The plan is priced; plans without
 * caches print nothing, and their list is empty. */
void caches_print(const struct plan *plan, struct buf *out);
json_t *caches_to_json(const struct plan *plan);

/* Prints how much of its tables the cache of a GPU that fetches most holds, as
 * an indented line: "the cache of GPU 3 holds 9 % of its rows; 41 % of the rows
 * of a batch are fetched from the host". Prints nothing if the GPU has no cache
 * that fetches rows. */
void caches_print_binding(const struct plan *plan, uint32_t gpu,
                          struct buf *out);

#endif
