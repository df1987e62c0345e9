/* SPDX-License-Identifier: MIT */
#include "search/greedy.h"

#include <math.h>
#include <string.h>

#define NOWHERE UINT32_MAX

/* The branches' sums stand next to each other, so that one call prices the
 * communication of all. */
void greedy_init(struct greedy *greedy, const struct units *units,
                 const double *caps, unsigned n_caps, size_t max_pieces,
                 struct arena *arena)
{
    size_t n_devices = units->problem->cluster.n_devices;
    size_t width = units->oracle->width;
    double *sums = ARENA_NEW(arena, double, n_caps *n_devices *width);

    memset(greedy, 0, sizeof(*greedy));
    greedy->units = units;
    greedy->caps = caps;
    greedy->n_caps = n_caps;
    greedy->branches = ARENA_NEW(arena, struct branch, n_caps);
    greedy->gathered = ARENA_NEW(arena, double, n_caps *width);
    greedy->gathered_ms = ARENA_NEW(arena, double, n_caps);
    greedy->chosen = ARENA_NEW(arena, uint32_t, n_caps);
    for (unsigned b = 0; b < n_caps; b++) {
        struct branch *branch = &greedy->branches[b];

        branch->sums = sums + b * n_devices * width;
        branch->devices = ARENA_NEW(arena, struct branch_device, n_devices);
        branch->placement = ARENA_NEW(arena, uint32_t, max_pieces);
    }
}

static void branch_clear(struct branch *branch, size_t n_devices, size_t width)
{
    memset(branch->sums, 0, n_devices * width * sizeof(*branch->sums));
    memset(branch->devices, 0, n_devices * sizeof(*branch->devices));
}

static void branch_copy(struct branch *to, const struct branch *from,
                        size_t n_devices, size_t width, size_t n_placed)
{
    memcpy(to->sums, from->sums, n_devices * width * sizeof(*to->sums));
    memcpy(to->devices, from->devices, n_devices * sizeof(*to->devices));
    memcpy(to->placement, from->placement, n_placed * sizeof(*to->placement));
    to->cap_begin = from->cap_begin;
    to->cap_end = from->cap_end;
}

static uint32_t choose_device(const struct greedy *greedy,
                              const struct branch *branch, uint32_t piece,
                              double cap)
{
    const struct units *units = greedy->units;
    const struct item *item = &units->items[piece];
    int64_t pin = units->units[item->unit].device;
    uint32_t begin = pin < 0 ? 0 : (uint32_t)pin;
    uint32_t end = pin < 0 ? units->problem->cluster.n_devices : begin + 1;
    double least_ms = INFINITY;
    uint64_t least_bytes = UINT64_MAX;
    uint32_t chosen = NOWHERE;

    for (uint32_t r = begin; r < end; r++) {
        const struct branch_device *device = &branch->devices[r];
        double ms = device->compute_ms;
        uint64_t bytes = device->bytes;

        if (item->bytes > units->room_bytes[r] - bytes ||
            device->output + item->output > cap)
            continue;
        if (ms < least_ms || (ms == least_ms && bytes < least_bytes)) {
            least_ms = ms;
            least_bytes = bytes;
            chosen = r;
        }
    }
    return chosen;
}

/* Where branch b puts the piece. Caps that cannot follow become a new branch
 * at the end of the list, which chooses for itself. */
static void choose(struct greedy *greedy, unsigned b, uint32_t piece,
                   size_t n_placed)
{
    const struct units *units = greedy->units;
    struct branch *branch = &greedy->branches[b], *tighter;
    uint32_t r =
        choose_device(greedy, branch, piece, greedy->caps[branch->cap_end - 1]);
    unsigned cap = branch->cap_begin;

    greedy->chosen[b] = r;
    if (r == NOWHERE)
        return;
    while (branch->devices[r].output + units->items[piece].output >
           greedy->caps[cap])
        cap++;
    if (cap == branch->cap_begin)
        return;
    tighter = &greedy->branches[greedy->n_branches++];
    branch_copy(tighter, branch, units->problem->cluster.n_devices,
                units->oracle->width, n_placed);
    tighter->cap_end = cap;
    branch->cap_begin = cap;
}

/* Removes the branches that found no place. */
static void drop_stuck(struct greedy *greedy, size_t n_placed)
{
    const struct units *units = greedy->units;

    for (unsigned b = 0; b < greedy->n_branches;) {
        unsigned last = greedy->n_branches - 1;

        if (greedy->chosen[b] != NOWHERE) {
            b++;
            continue;
        }
        if (b != last)
            branch_copy(&greedy->branches[b], &greedy->branches[last],
                        units->problem->cluster.n_devices, units->oracle->width,
                        n_placed);
        greedy->chosen[b] = greedy->chosen[last];
        greedy->n_branches = last;
    }
}

static void place(struct branch *branch, const struct units *units,
                  uint32_t piece, uint32_t r, size_t position)
{
    const struct item *item = &units->items[piece];
    size_t width = units->oracle->width;
    const double *vector = units->vectors + piece * width;
    double *sum = branch->sums + r * width;

    for (size_t w = 0; w < width; w++)
        sum[w] += vector[w];
    branch->devices[r].output += item->output;
    branch->devices[r].bytes += item->bytes;
    branch->devices[r].n_held++;
    branch->placement[position] = r;
}

/* Prices the device that each branch has just added to. */
static void price_chosen(struct greedy *greedy)
{
    const struct oracle *oracle = greedy->units->oracle;
    size_t width = oracle->width;

    for (unsigned b = 0; b < greedy->n_branches; b++)
        memcpy(greedy->gathered + b * width,
               greedy->branches[b].sums + greedy->chosen[b] * width,
               width * sizeof(*greedy->gathered));
    oracle->ops->compute(oracle, greedy->gathered, greedy->n_branches,
                         greedy->gathered_ms);
    for (unsigned b = 0; b < greedy->n_branches; b++)
        greedy->branches[b].devices[greedy->chosen[b]].compute_ms =
            greedy->gathered_ms[b];
}

void greedy_run(struct greedy *greedy, const uint32_t *pieces, size_t n)
{
    const struct units *units = greedy->units;

    branch_clear(&greedy->branches[0], units->problem->cluster.n_devices,
                 units->oracle->width);
    greedy->branches[0].cap_begin = 0;
    greedy->branches[0].cap_end = greedy->n_caps;
    greedy->n_branches = 1;
    for (size_t i = 0; i < n && greedy->n_branches; i++) {
        /* The list grows while it is walked: new branches choose as well. */
        for (unsigned b = 0; b < greedy->n_branches; b++)
            choose(greedy, b, pieces[i], i);
        drop_stuck(greedy, i);
        for (unsigned b = 0; b < greedy->n_branches; b++)
            place(&greedy->branches[b], units, pieces[i], greedy->chosen[b], i);
        price_chosen(greedy);
    }
}
