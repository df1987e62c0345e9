/* SPDX-License-Identifier: MIT */
#include "search/marginal.h"

#include "search/forms.h"

#include <math.h>
#include <string.h>

/* Parts priced by one task of the pool. */
#define CHUNK 32

struct pricing {
    struct parts *parts;
    double *share;   /* [width]: a device's average share */
    double share_ms; /* its compute */
    double total_ms; /* of devices that all have it */
};

static void find_share(const struct parts *parts, double *share)
{
    const uint32_t n_devices = parts->problem->cluster.n_devices;
    const size_t width = parts->oracle->width;

    for (uint32_t u = 0; u < parts->n_units; u++) {
        struct form form = forms_get(parts, u, 0);
        uint32_t n = forms_figures(parts, u, form).n_pieces;

        for (uint32_t i = 0; i < n; i++) {
            uint32_t part = forms_piece(parts, u, form, i).part;

            for (size_t w = 0; w < width; w++)
                share[w] += parts->vectors[part * width + w] / n_devices;
        }
    }
}

/* Of devices that have the average share, but for one, which has these sums. */
static double total_of(const struct pricing *pricing, const double *sums)
{
    const struct parts *parts = pricing->parts;
    const struct oracle *oracle = parts->oracle;
    const uint32_t n_devices = parts->problem->cluster.n_devices;
    const size_t width = oracle->width;
    double *all, *compute_ms, total;

    if (oracle->ops->terms)
        return parts_alone_ms(oracle, sums);
    all = mem_alloc(n_devices, (width + 1) * sizeof(double));
    compute_ms = all + n_devices * width;
    for (uint32_t r = 0; r < n_devices; r++) {
        memcpy(all + r * width, r ? pricing->share : sums,
               width * sizeof(double));
        compute_ms[r] = pricing->share_ms;
    }
    oracle->ops->compute(oracle, sums, 1, compute_ms);
    total = oracle_comm_total_ms(oracle, all, compute_ms);
    mem_free(all);
    return total;
}

static void price_chunk(void *ctx, size_t task, unsigned thread)
{
    const struct pricing *pricing = ctx;
    const struct parts *parts = pricing->parts;
    const size_t width = parts->oracle->width, end = (task + 1) * CHUNK;
    double *sums = mem_alloc(width, sizeof(*sums));

    (void)thread;
    for (size_t i = task * CHUNK; i < end && i < parts->n_parts; i++) {
        for (size_t w = 0; w < width; w++)
            sums[w] = pricing->share[w] + parts->vectors[i * width + w];
        parts->marginal_ms[i] =
            fmax(0, total_of(pricing, sums) - pricing->total_ms);
    }
    mem_free(sums);
}

void marginal_price(struct parts *parts, struct pool *pool, struct arena *arena)
{
    const struct oracle *oracle = parts->oracle;
    struct pricing pricing = {.parts = parts};

    if (oracle->is_additive) {
        parts->marginal_ms = parts->alone_ms;
        return;
    }
    parts->marginal_ms = ARENA_NEW(arena, double, parts->n_parts);
    pricing.share = mem_alloc(oracle->width, sizeof(double));
    find_share(parts, pricing.share);
    oracle->ops->compute(oracle, pricing.share, 1, &pricing.share_ms);
    pricing.total_ms = total_of(&pricing, pricing.share);
    pool_run(pool, (parts->n_parts + CHUNK - 1) / CHUNK, price_chunk, &pricing);
    mem_free(pricing.share);
}
