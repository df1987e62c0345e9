/* SPDX-License-Identifier: MIT */
#include "search/snapshot.h"

void snapshot_release(struct snapshot *snapshot)
{
    mem_free(snapshot->pieces);
    *snapshot = (struct snapshot){0};
}

void snapshot_copy(struct snapshot *to, const struct snapshot *from)
{
    to->n = 0;
    for (uint32_t i = 0; i < from->n; i++)
        *snapshot_next(to) = from->pieces[i];
    to->total_ms = from->total_ms;
    to->excess = from->excess;
}
