/* SPDX-License-Identifier: MIT */
#include "search/grid.h"

#include <math.h>
#include <string.h>

#define CAP_STEP 0.05

void grid_init(struct grid *grid, const struct units *units, size_t max_pieces,
               struct arena *arena)
{
    size_t n = GRID_POINTS * (size_t)units->problem->cluster.n_devices;

    for (unsigned i = 0; i < GRID_CAPS; i++)
        grid->caps[i] = (1 + CAP_STEP * i) * units->mean_output;
    grid->caps[GRID_CAPS] = INFINITY;
    greedy_init(&grid->greedy, units, grid->caps, GRID_POINTS, max_pieces,
                arena);
    grid->compute_ms = ARENA_NEW(arena, double, n);
    grid->fwd_ms = ARENA_NEW(arena, double, n);
    grid->bwd_ms = ARENA_NEW(arena, double, n);
}

/* The greedy counts an empty device as 0, the total as what the oracle says
 * of it, as published. */
static void price(struct grid *grid)
{
    const struct greedy *greedy = &grid->greedy;
    const struct units *units = greedy->units;
    const struct oracle *oracle = units->oracle;
    size_t n_devices = units->problem->cluster.n_devices;

    for (unsigned b = 0; b < greedy->n_branches; b++) {
        const struct branch *branch = &greedy->branches[b];

        for (size_t r = 0; r < n_devices; r++)
            grid->compute_ms[b * n_devices + r] =
                branch->devices[r].n_held ? branch->devices[r].compute_ms
                                          : units->empty_ms;
    }
    oracle->ops->comm(oracle, greedy->n_branches, greedy->branches[0].sums,
                      grid->compute_ms, grid->fwd_ms, grid->bwd_ms);
}

static double total_of(const struct grid *grid, unsigned b, size_t n_devices)
{
    size_t at = b * n_devices;

    return oracle_total_ms(n_devices, grid->compute_ms + at, grid->bwd_ms + at,
                           grid->fwd_ms + at);
}

void grid_search(struct grid *grid, const uint32_t *pieces, size_t n,
                 struct grid_result *result, uint32_t *placement)
{
    const struct greedy *greedy = &grid->greedy;
    size_t n_devices = greedy->units->problem->cluster.n_devices;
    const struct branch *best = NULL;

    *result = (struct grid_result){.capped_ms = INFINITY, .best_ms = INFINITY};
    greedy_run(&grid->greedy, pieces, n);
    if (!greedy->n_branches)
        return;
    price(grid);
    result->n_priced = greedy->n_branches;
    for (unsigned b = 0; b < greedy->n_branches; b++) {
        const struct branch *branch = &greedy->branches[b];
        double total = total_of(grid, b, n_devices);

        if (!isfinite(total))
            continue;
        if (branch->cap_begin < GRID_CAPS && total < result->capped_ms)
            result->capped_ms = total;
        if (!best || total < result->best_ms ||
            (total == result->best_ms && branch->cap_begin < best->cap_begin)) {
            best = branch;
            result->best_ms = total;
        }
    }
    if (placement && best)
        memcpy(placement, best->placement, n * sizeof(*placement));
}
