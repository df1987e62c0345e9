/* SPDX-License-Identifier: MIT */
/* More views of what is dear find better starts, and all of them fit. */
#include "search/starts.h"

#include "search/state_check.h"
#include "search/tuning.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

struct tally {
    unsigned n, n_found, n_wrong, n_alike, n_several, n_dearer, n_gain;
};

/* Whether the layout is sound, keeps the memory and costs what it says. */
static bool is_right(struct snapshot *start, const struct parts *parts)
{
    const double ms = start->total_ms;
    struct layout layout;
    struct err err = {0};
    bool right;

    layout_init(&layout, parts);
    snapshot_load(start, &layout);
    snapshot_price(start, parts);
    right = !layout_check(&layout, &err) && layout.excess <= 0 &&
            fabs(start->excess) <= 0 && start->total_ms == ms;
    layout_release(&layout);
    return right;
}

/* The cheapest; INFINITY for none. */
static double find(struct parts *parts, const struct tuning *tuning,
                   struct tally *tally)
{
    struct snapshot starts[STARTS_KEPT] = {{0}};
    double best_ms = INFINITY;

    parts->tuning = tuning;
    starts_find(starts, parts, NULL, INFINITY);
    for (unsigned i = 0; i < STARTS_KEPT; i++) {
        for (unsigned k = 0; k < i && starts[i].n; k++)
            tally->n_alike += starts[k].n == starts[i].n &&
                              starts[k].total_ms == starts[i].total_ms;
        if (starts[i].n) {
            tally->n_wrong += !is_right(&starts[i], parts);
            best_ms = fmin(best_ms, starts[i].total_ms);
        }
        tally->n_several += i && starts[i].n;
        snapshot_release(&starts[i]);
    }
    return best_ms;
}

static void try_problem(uint64_t seed, struct tally *tally)
{
    struct tuning few = *tuning_default();
    struct random_oracle oracle;
    struct problem problem;
    struct parts parts;
    struct err err = {0};
    struct arena arena;
    struct rng rng;
    double all_ms, few_ms;

    few.n_prices = 1;
    arena_init(&arena);
    rng_init(&rng, 51, seed);
    fake_random(&problem, &rng, 2, &arena);
    random_oracle_init(&oracle, &problem, &rng);
    if (parts_init(&parts, &problem, &oracle.base, NULL, NULL, &arena, &err)) {
        ok(0, "parts: %s", err.msg);
        return;
    }
    tally->n++;
    all_ms = find(&parts, tuning_default(), tally);
    few_ms = find(&parts, &few, tally);
    tally->n_found += isfinite(all_ms) ? 1 : 0;
    tally->n_dearer += !(all_ms <= few_ms);
    tally->n_gain += all_ms < few_ms;
    arena_release(&arena);
}

int main(void)
{
    struct tally tally = {0};

    for (uint64_t seed = 0; seed < tap_size(30, 2000); seed++)
        try_problem(seed, &tally);
    ok(tally.n_found > tally.n / 2, "of %u problems %u have starts", tally.n,
       tally.n_found);
    is_i64(tally.n_wrong, 0, "which fit, and cost what they say");
    is_i64(tally.n_alike, 0, "no two are alike");
    ok(tally.n_several > tally.n / 4, "%u beside the first", tally.n_several);
    is_i64(tally.n_dearer, 0, "more views are never dearer");
    ok(tally.n_gain > 0 || tally.n < 30, "and gains %u times", tally.n_gain);
    return tap_done();
}
