/* SPDX-License-Identifier: MIT */
#include "core/cache_share.h"

#include "base/rng.h"
#include "core/cache_model.h"
#include "tests/tap.h"

/* Division of memory among caches against all divisions of a grid. */

#define N_STEPS 4000

struct drawn {
    double lanes[CACHE_LANES];
    struct cache_demand demand;
};

/* Draws the cache of one to three tables that follow Zipf laws. */
static void draw(struct drawn *drawn, struct rng *rng)
{
    const unsigned n = 1 + rng_draw(rng, 3);

    memset(drawn->lanes, 0, sizeof(drawn->lanes));
    for (unsigned i = 0; i < n; i++) {
        double piece[CACHE_LANES];
        struct cache_curve curve;
        struct table table;

        table_init(&table);
        table.num_embeddings = 20000 + rng_draw(rng, 2000000);
        table.zipf_alpha = 0.6 + 0.1 * rng_draw(rng, 7);
        table.skew_assumed = false;
        cache_curve_init(&curve, &table, 5000 + rng_draw(rng, 100000));
        cache_embed(piece, &curve, 1, 64.0 * (1 + rng_draw(rng, 8)), 0);
        for (unsigned k = 0; k < CACHE_LANES; k++)
            drawn->lanes[k] += piece[k];
    }
    drawn->demand = (struct cache_demand){drawn->lanes + CACHE_ROWS,
                                          drawn->lanes + CACHE_BYTES,
                                          80.0 * (1 + rng_draw(rng, 8))};
}

static double missed(const struct drawn *drawn, double bytes)
{
    return cache_missed_bytes(&drawn->demand, CACHE_KNOTS,
                              bytes / drawn->demand.slot_bytes);
}

/* Bytes of slots for all rows of a cache. */
static double all_bytes(const struct drawn *drawn)
{
    return drawn->demand.rows[CACHE_KNOTS - 1] * drawn->demand.slot_bytes;
}

static void test_one(struct rng *rng)
{
    double worst = 0;

    for (int i = 0; i < 100; i++) {
        struct drawn drawn;
        double bytes, slots;

        draw(&drawn, rng);
        bytes = all_bytes(&drawn) * rng_uniform(rng) * 1.2;
        cache_share(&drawn.demand, 1, CACHE_KNOTS, bytes, &slots);
        worst = tap_worst(
            worst, fabs(slots / fmin(bytes / drawn.demand.slot_bytes,
                                     drawn.demand.rows[CACHE_KNOTS - 1]) -
                        1));
        worst = tap_worst(worst,
                          fabs(missed(&drawn, bytes) -
                               cache_evaluate(drawn.lanes, slots).miss_bytes) /
                              drawn.demand.bytes[0]);
    }
    ok(worst < 1e-9, "one cache gets all memory that it can use (%g)", worst);
}

/* At most 0.1 % of all bytes above the best of a grid: uses are nearly
 * convex. */
static void test_two(struct rng *rng)
{
    double worst = 0, left = 0;

    for (int i = 0; i < 60; i++) {
        struct drawn drawn[2];
        struct cache_demand demands[2];
        double bytes, slots[2], best = INFINITY, got = 0, used = 0, all = 0;

        for (int j = 0; j < 2; j++) {
            draw(&drawn[j], rng);
            demands[j] = drawn[j].demand;
            all += demands[j].bytes[0];
        }
        bytes = (all_bytes(&drawn[0]) + all_bytes(&drawn[1])) *
                pow(rng_uniform(rng), 2);
        cache_share(demands, 2, CACHE_KNOTS, bytes, slots);
        for (int j = 0; j < 2; j++) {
            got += cache_missed_bytes(&demands[j], CACHE_KNOTS, slots[j]);
            used += slots[j] * demands[j].slot_bytes;
        }
        for (int step = 0; step <= N_STEPS; step++) {
            const double part = bytes * step / N_STEPS;

            best = fmin(best, missed(&drawn[0], part) +
                                  missed(&drawn[1], bytes - part));
        }
        worst = tap_worst(worst, (got - best) / all);
        left = tap_worst(left, fabs(used / bytes - 1));
    }
    ok(worst < 0.001,
       "two caches miss as few bytes as by the best division "
       "(%.2g of all above it)",
       worst);
    ok(left < 1e-9, "and use all memory (%g)", left);
}

static void test_ends(void)
{
    const double rows[] = {0, 10, 20}, bytes[] = {100, 40, 0};
    const struct cache_demand demands[] = {{rows, bytes, 2}, {rows, bytes, 4}};
    double slots[2];

    cache_share(demands, 2, 3, -5, slots);
    ok(slots[0] == 0 && slots[1] == 0, "no slots without memory");
    cache_share(demands, 2, 3, 1000, slots);
    ok(slots[0] == 20 && slots[1] == 20, "all rows with much memory");
    cache_share(demands, 2, 3, 50, slots);
    ok(slots[0] == 20 && slots[1] == 2.5,
       "the cache that saves most per byte comes first");
}

int main(void)
{
    struct rng rng;

    rng_init(&rng, 49, 0);
    test_one(&rng);
    test_two(&rng);
    test_ends();
    return tap_done();
}
