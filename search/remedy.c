/* SPDX-License-Identifier: MIT */
#include "search/remedy.h"

#include <math.h>

#include "base/text.h"

uint64_t remedy_round_up(uint64_t bytes)
{
    double unit = 1, step;

    while ((double)bytes >= 1024 * unit)
        unit *= 1024;
    step = (double)bytes >= 100 * unit  ? unit
           : (double)bytes >= 10 * unit ? unit / 10
                                        : unit / 100;
    return (uint64_t)round(ceil((double)bytes / step) * step);
}

const char *remedy_size(uint64_t bytes, struct arena *arena)
{
    char buf[TEXT_BYTES_MAX];

    return arena_strdup(arena, text_from_bytes(buf, (double)bytes));
}

const char *remedy_items(const struct memory_items *items, struct arena *arena)
{
    return arena_printf(
        arena, "%s (weights %s, optimizer %s, io %s)",
        remedy_size(items->total, arena), remedy_size(items->weights, arena),
        remedy_size(items->optimizer, arena), remedy_size(items->io, arena));
}
