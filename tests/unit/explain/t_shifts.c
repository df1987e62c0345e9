/* SPDX-License-Identifier: MIT */
#include "explain/shifts.h"

#include "core/plan_check.h"
#include "core/plan_price.h"
#include "tests/unit/core/what_if_fixture.h"

#define MAX_GAINING 512

/* Results of all moves and swaps of a GPU's pieces, each priced on its own. */
struct brute {
    uint64_t n_moves, n_swaps;
    double least_ms[2 * N_TABLES]; /* best step after moving each piece alone */
    double gaining_ms[MAX_GAINING];
    size_t n;
};

static void try_one(struct brute *brute, struct what_if *what_if, size_t shard,
                    size_t other, uint32_t gpu, struct arena *arena)
{
    const struct plan *now = what_if->plan;
    struct plan plan = *now;
    struct err err = {0};

    plan.shards = ARENA_NEW(arena, struct shard, now->n_shards);
    memcpy(plan.shards, now->shards, now->n_shards * sizeof(*plan.shards));
    plan.shards[shard].device = gpu;
    if (other != NO_SHARD)
        plan.shards[other].device = now->shards[shard].device;
    ++*(other == NO_SHARD ? &brute->n_moves : &brute->n_swaps);
    plan_derive_kinds(&plan);
    if (plan_price(&plan, what_if->oracle, arena, &err))
        ok(0, "priced: %s", err.msg);
    if (plan_check(&plan, &err))
        return;
    if (other == NO_SHARD)
        brute->least_ms[shard] = fmin(brute->least_ms[shard], plan.total_ms);
    if (plan.total_ms < now->total_ms)
        brute->gaining_ms[brute->n++] = plan.total_ms;
}

static int compare_ms(const void *left, const void *right)
{
    const double *a = left, *b = right;

    return *a < *b ? -1 : *a > *b;
}

static void try_all(struct brute *brute, struct what_if *what_if, uint32_t gpu,
                    struct arena *arena)
{
    const struct plan *plan = what_if->plan;

    *brute = (struct brute){0};
    for (size_t i = 0; i < plan->n_shards; i++) {
        brute->least_ms[i] = INFINITY;
        for (uint32_t r = 0; plan->shards[i].device == gpu && r < N_DEVICES;
             r++) {
            if (r == gpu)
                continue;
            try_one(brute, what_if, i, NO_SHARD, r, arena);
            for (size_t j = 0; j < plan->n_shards; j++)
                if (plan->shards[j].device == r &&
                    plan->shards[j].table != plan->shards[i].table)
                    try_one(brute, what_if, i, j, r, arena);
        }
    }
    qsort(brute->gaining_ms, brute->n, sizeof(double), compare_ms);
}

static bool is_close(double a, double b)
{
    return fabs(a - b) <= 1e-9 * b;
}

/* Returns the name of the shard's table, or NULL for NO_SHARD. */
static const char *name_of(const struct plan *plan, size_t shard)
{
    return shard == NO_SHARD
               ? NULL
               : plan->problem.tables[plan->shards[shard].table].name;
}

static bool is_named(const struct plan *plan, const struct shift *shift)
{
    return shift->table == name_of(plan, shift->shard) &&
           shift->other_table == name_of(plan, shift->other);
}

/* Returns the number of shifts whose time differs from the individually priced
 * one or whose table is wrong. */
static size_t count_wrong(const struct shifts *shifts,
                          const struct brute *brute, const struct plan *plan)
{
    const size_t n = brute->n < MAX_GAINS ? brute->n : MAX_GAINS;
    size_t n_wrong = shifts->n_moves != brute->n_moves ||
                     shifts->n_swaps != brute->n_swaps || shifts->n_gains != n;

    for (size_t i = 0; i < n && i < shifts->n_gains; i++)
        n_wrong += !is_close(shifts->gains[i].total_ms, brute->gaining_ms[i]) ||
                   !is_close(shifts->gains[i].gain_ms,
                             plan->total_ms - shifts->gains[i].total_ms) ||
                   !is_named(plan, &shifts->gains[i]);
    for (size_t i = 0; i < shifts->n_places; i++)
        n_wrong += (!shifts->places[i].why_not &&
                    !is_close(shifts->places[i].total_ms,
                              brute->least_ms[shifts->places[i].shard])) ||
                   !is_named(plan, &shifts->places[i]);
    return n_wrong;
}

int main(void)
{
    size_t n_wrong = 0, n_gaining = 0, n_plans = 0;

    for (uint64_t seed = 0; seed < 300; seed++) {
        struct fixture fixture;
        struct what_if what_if;
        struct shifts shifts;
        struct brute brute;
        struct arena arena = {0};
        struct err err = {0};
        struct rng rng;
        uint32_t gpu;

        rng_init(&rng, seed, 4);
        fixture_init(&fixture, &rng, &arena);
        gpu = (uint32_t)rng_below(&rng, N_DEVICES);
        what_if_init(&what_if, &fixture.plan, &fixture.oracle);
        if (!plan_check(&fixture.plan, &err)) {
            shifts_find(&shifts, &what_if, gpu, &arena);
            try_all(&brute, &what_if, gpu, &arena);
            n_wrong += count_wrong(&shifts, &brute, &fixture.plan);
            n_gaining += brute.n;
            n_plans++;
        }
        what_if_release(&what_if);
        arena_release(&arena);
    }
    ok(n_plans > 50 && n_gaining > n_plans, "%zu shifts of %zu plans gain",
       n_gaining, n_plans);
    is_i64((int64_t)n_wrong, 0,
           "those found are the cheapest of all, tried one by one");
    return tap_done();
}
