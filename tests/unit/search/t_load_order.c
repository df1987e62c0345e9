/* SPDX-License-Identifier: MIT */
/* Devices stay sorted by load, bytes and index after any change, up or down,
 * and each device is found at its position. */
#include "search/load_order.h"

#include "base/rng.h"
#include "tests/tap.h"

#include <stdbool.h>

#define MAX_DEVICES 40
#define CHANGES 200

static bool is_sorted(const struct load_rank *order, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        const struct load_rank *a = &order[i - 1], *b = &order[i];

        if (a->load > b->load || (a->load == b->load && a->bytes > b->bytes) ||
            (a->load == b->load && a->bytes == b->bytes &&
             a->device >= b->device))
            return false;
    }
    return true;
}

/* Draws from few different loads and bytes, so that ties are common. */
static void draw(struct load_rank *rank, struct rng *rng)
{
    rank->load = (double)rng_below(rng, 4);
    rank->bytes = rng_below(rng, 3);
}

static void try_order(struct rng *rng, unsigned *n_wrong, unsigned *n_lost)
{
    const uint32_t n = 1 + (uint32_t)rng_below(rng, MAX_DEVICES);
    struct load_rank order[MAX_DEVICES] = {{0}};

    for (uint32_t r = 0; r < n; r++) {
        order[r].device = n - 1 - r;
        draw(&order[r], rng);
    }
    load_order_sort(order, n);
    *n_wrong += !is_sorted(order, n);
    for (unsigned i = 0; i < CHANGES; i++) {
        const uint32_t at = (uint32_t)rng_below(rng, n);
        struct load_rank rank = order[at];

        *n_lost += load_order_find(order, n, &rank) != at;
        draw(&rank, rng);
        order[at] = rank;
        load_order_restore(order, n, at);
        *n_wrong += !is_sorted(order, n);
        *n_lost +=
            order[load_order_find(order, n, &rank)].device != rank.device;
    }
}

int main(void)
{
    unsigned n_wrong = 0, n_lost = 0;
    struct rng rng;

    rng_init(&rng, 61, 0);
    for (size_t i = 0; i < tap_size(100, 2000); i++)
        try_order(&rng, &n_wrong, &n_lost);
    is_i64(n_wrong, 0, "devices stay in order");
    is_i64(n_lost, 0, "each device is found at its position");
    return tap_done();
}
