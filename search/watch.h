/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_WATCH_H
#define NEUROSHARD_SEARCH_WATCH_H

#include "core/oracle.h"

#include <stdatomic.h>

/*
 * A cost model under watch. A search asks from many places and threads, and
 * compares what it hears: an answer that is no number would just lose, or win.
 * So it asks by way of this, which notes whether any answer was not finite.
 */

struct watch {
    struct oracle base;          /* what the search asks */
    const struct oracle *oracle; /* what answers; not owned */
    atomic_bool *is_bad;         /* &noted */
    atomic_bool noted;
    struct oracle_ops ops; /* of base */
};

/* Must stay where it is from then on. */
void watch_init(struct watch *watch, const struct oracle *oracle);
/* Whether an answer was not finite so far. */
bool watch_is_bad(const struct watch *watch);
/* ERR_INPUT, and says so, where one was. */
int watch_check(const struct watch *watch, struct err *err) MUST_CHECK;

#endif
