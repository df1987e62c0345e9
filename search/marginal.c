/* SPDX-License-Identifier: MIT */
#include "search/marginal.h"

#include <math.h>
#include <string.h>

/* Number of pieces that are priced in one call of the oracle. */
#define TOGETHER 16

struct marginal_pricing {
    struct search_space *space;
    double *share;   /* [width]: vector of an average device */
    double share_ms; /* compute of an average device */
    double total_ms; /* total of a cluster of average devices */
};

/* Computes the average device: each device has an equal share of every table,
 * and of the work on tables that are not placed. Every table has its first
 * sharding. */
static void find_share(struct marginal_pricing *marginal)
{
    const struct search_space *space = marginal->space;
    const size_t width = space->oracle->width;
    const double *busy = space->oracle->busy_sums;

    for (size_t i = 0; busy && i < space->n_devices * width; i++)
        marginal->share[i % width] += busy[i] / space->n_devices;
    for (uint32_t u = 0; u < space->n_units; u++) {
        const struct sharding *sharding = &space->units[u].shardings[0];

        for (uint32_t b = 0; b < sharding->n_blocks; b++) {
            const uint32_t n_alike = sharding->n_pieces / sharding->n_blocks;
            const double *vector =
                space->vectors + sharding_type_of_block(sharding, b) * width;

            for (size_t w = 0; w < width; w++)
                marginal->share[w] += vector[w] * n_alike / space->n_devices;
        }
    }
    space->oracle->ops->compute(space->oracle, marginal->share, 1,
                                &marginal->share_ms);
}

/* Prices n clusters and writes their totals. All devices of a cluster are
 * average devices. The first device of cluster i also holds the vector
 * extra[i][width]. */
static void price(const struct marginal_pricing *marginal, const double *extra,
                  size_t n, double *total_ms)
{
    const struct oracle *oracle = marginal->space->oracle;
    const size_t n_devices = marginal->space->n_devices, width = oracle->width;
    double *sums = mem_alloc(n * n_devices, (width + 3) * sizeof(*sums));
    double *compute_ms = sums + n * n_devices * width;
    double *fwd_ms = compute_ms + n * n_devices;
    double *bwd_ms = fwd_ms + n * n_devices;

    for (size_t r = 0; r < n * n_devices; r++) {
        memcpy(sums + r * width, marginal->share, width * sizeof(*sums));
        compute_ms[r] = marginal->share_ms;
    }
    for (size_t i = 0; i < n; i++) {
        double *first = sums + i * n_devices * width;

        for (size_t w = 0; w < width; w++)
            first[w] += extra[i * width + w];
        oracle->ops->compute(oracle, first, 1, &compute_ms[i * n_devices]);
    }
    oracle->ops->comm(oracle, n, sums, compute_ms, fwd_ms, bwd_ms);
    for (size_t i = 0; i < n; i++)
        total_ms[i] =
            oracle_total_ms(n_devices, compute_ms + i * n_devices,
                            bwd_ms + i * n_devices, fwd_ms + i * n_devices);
    mem_free(sums);
}

/* Prices the pieces from `begin` to `end` - 1. A net may predict that a piece
 * reduces the total. The negative cost of such a piece is set to 0. */
static void price_some(void *ctx, uint64_t begin, uint64_t end, unsigned thread)
{
    const struct marginal_pricing *marginal = ctx;
    const size_t width = marginal->space->oracle->width;
    double *load_ms = marginal->space->load_ms;

    (void)thread;
    price(marginal, marginal->space->vectors + begin * width, end - begin,
          load_ms + begin);
    for (uint64_t i = begin; i < end; i++)
        load_ms[i] = fmax(0, load_ms[i] - marginal->total_ms);
}

void space_load_marginal(struct search_space *space, struct pool *pool)
{
    struct marginal_pricing marginal = {.space = space};
    double *nothing;

    if (space->oracle->ops->terms || space->n_devices == 1)
        return;
    space->load_ms = ARENA_NEW(space->arena, double, space->n_types);
    nothing = ARENA_NEW(space->arena, double, space->oracle->width);
    marginal.share = ARENA_NEW(space->arena, double, space->oracle->width);
    find_share(&marginal);
    price(&marginal, nothing, 1, &marginal.total_ms);
    pool_run_range(pool, space->n_types, TOGETHER, price_some, &marginal);
}
