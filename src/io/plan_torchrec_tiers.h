/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_PLAN_TORCHREC_TIERS_H
#define NEUROSHARD_IO_PLAN_TORCHREC_TIERS_H

#include "io/plan_torchrec_shards.h"

/* Compute kernels and caches in TorchRec's plans. */

/* Load factor of a cache whose plan gives none: FBGEMM's default. */
#define TORCHREC_LOAD_FACTOR 0.2

/* Sets the tier of an entry from its compute kernel. Fails for other kernels,
 * unless the reader accepts tables in any memory. */
int torchrec_read_kernel(struct torchrec_entry *entry,
                         const struct torchrec_reader *reader,
                         struct err *err) MUST_CHECK;
/* Reads the member "cache_params" of a cached entry: sets the load factor of
 * the entry, and the pipeline of the plan's job. `params` may be NULL or null.
 * Refuses members that a plan cannot have. */
int torchrec_read_cache(struct torchrec_entry *entry,
                        struct torchrec_reader *reader, json_t *params,
                        struct err *err) MUST_CHECK;
/* Reads the load factor of a cached entry from the cell of a report; NULL and
 * "None" are no factor. */
int torchrec_read_load_factor(struct torchrec_entry *entry, const char *cell,
                              struct err *err) MUST_CHECK;
/* Stores the load factor of a cached entry in the plan, which has room for
 * n_tables tables. Warns if the entry has none. */
void torchrec_add_load_factor(struct torchrec_reader *reader,
                              const struct torchrec_entry *entry);

#endif
