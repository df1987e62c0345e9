/* SPDX-License-Identifier: MIT */
#include "search/pack.h"

#include <string.h>

/* Max-heap of pieces by bytes; of equal ones the lower item first. */
struct heap {
    uint32_t *items;
    size_t n;
};

static bool goes_first(const struct units *units, uint32_t a, uint32_t b)
{
    if (units->items[a].bytes != units->items[b].bytes)
        return units->items[a].bytes > units->items[b].bytes;
    return a < b;
}

static void heap_push(struct heap *heap, const struct units *units,
                      uint32_t item)
{
    size_t i = heap->n++;

    for (; i && goes_first(units, item, heap->items[(i - 1) / 2]);
         i = (i - 1) / 2)
        heap->items[i] = heap->items[(i - 1) / 2];
    heap->items[i] = item;
}

static uint32_t heap_pop(struct heap *heap, const struct units *units)
{
    uint32_t top = heap->items[0], last = heap->items[--heap->n];
    size_t i = 0;

    for (size_t child; (child = 2 * i + 1) < heap->n; i = child) {
        if (child + 1 < heap->n &&
            goes_first(units, heap->items[child + 1], heap->items[child]))
            child++;
        if (!goes_first(units, heap->items[child], last))
            break;
        heap->items[i] = heap->items[child];
    }
    heap->items[i] = last;
    return top;
}

/* Pieces there can be at most: every unit cut to its finest. */
static size_t max_pieces(const struct units *units)
{
    size_t n = 0;

    for (uint32_t u = 0; u < units->n_units; u++)
        n += (size_t)1 << (units->units[u].n_levels - 1);
    return n;
}

static uint32_t emptiest(const struct units *units, const uint64_t *used,
                         uint32_t item)
{
    uint32_t n_devices = units->problem->cluster.n_devices, best = n_devices;

    for (uint32_t r = 0; r < n_devices; r++)
        if (units_may_hold(units, item, r) &&
            units->items[item].bytes <= units->room_bytes[r] - used[r] &&
            (best == n_devices || used[r] < used[best]))
            best = r;
    return best;
}

bool pack(struct packing *packing, const struct units *units,
          struct arena *arena)
{
    uint32_t n_devices = units->problem->cluster.n_devices;
    size_t max = max_pieces(units);
    uint64_t *used = ARENA_NEW(arena, uint64_t, n_devices);
    struct heap heap = {.items = ARENA_NEW(arena, uint32_t, max + 1)};

    *packing = (struct packing){.pieces = ARENA_NEW(arena, uint32_t, max),
                                .placement = ARENA_NEW(arena, uint32_t, max)};
    for (uint32_t u = 0; u < units->n_units; u++)
        for (uint32_t k = 0; k <= units->units[u].start_level; k++)
            heap_push(&heap, units,
                      units->units[u].first_item + units->units[u].start_level);
    while (heap.n) {
        uint32_t item = heap_pop(&heap, units);
        uint32_t r = emptiest(units, used, item);

        if (r < n_devices) {
            used[r] += units->items[item].bytes;
            packing->pieces[packing->n_pieces] = item;
            packing->placement[packing->n_pieces++] = r;
        } else if (units_can_halve(units, item)) {
            heap_push(&heap, units, item + 1);
            heap_push(&heap, units, item + 1);
        } else {
            return false;
        }
    }
    return true;
}
