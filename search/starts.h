/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_STARTS_H
#define NEUROSHARD_SEARCH_STARTS_H

#include "base/parallel.h"
#include "search/state.h"

/*
 * What the full search starts from: layouts built by different views of what
 * is dear (search/build.h), and others cut table by table as TorchRec's
 * proposer does. The best are kept, each total once.
 */

struct starts {
    struct snapshot best[TUNING_MAX_STARTS]; /* [n], the best first */
    unsigned n;
    uint64_t n_priced;
};

/* Adds to zeroed starts what can be built, maybe nothing. Work is bounded;
 * once something was found, SIGINT and the clock at end_ms (INFINITY: never)
 * end it too. */
void starts_find(struct starts *starts, const struct parts *parts,
                 struct pool *pool, double end_ms);
/* Prices a layout and keeps it, where it is good enough: *snapshot then has
 * another's arrays. */
void starts_add(struct starts *starts, const struct parts *parts,
                struct snapshot *snapshot);
void starts_release(struct starts *starts);

#endif
