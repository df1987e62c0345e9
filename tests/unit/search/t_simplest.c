/* SPDX-License-Identifier: MIT */
/* Layouts drawn at random are made simpler: who allows more never has more
 * pieces, and of as many none that cost more. */
#include "search/finish.h"

#include "search/moves.h"
#include "tests/unit/search/standing.h"
#include "tests/unit/search/state_check.h"

#include <float.h>

#define N_LAYOUTS 100
#define N_CHANGES 20
/* Of a device: six have nearly twice what all tables take. */
#define TIGHT 400000

struct tally {
    unsigned n_wrong, n_over, n_more, n_dearer, n_simpler;
};

/* A little way off, no fuller. */
static void change(struct tryout *tryout, struct rng *rng)
{
    for (unsigned i = 0; i < N_CHANGES; i++) {
        propose(&tryout->trial, &tryout->layout, rng);
        if (!tryout->trial.changes.n || !isfinite(tryout_price(tryout)) ||
            tryout->trial.excess > tryout->layout.excess)
            continue;
        layout_commit(&tryout->layout, &tryout->trial);
    }
    layout_price(&tryout->layout);
}

static void try_layout(struct standing *standing, struct tally *tally)
{
    static const double rises[] = {DBL_MIN, 0.002, 0.01, 0.02, 0.05, 0.07,
                                   0.1,     0.15,  0.2,  0.3,  0.5,  1};
    struct layout *layout = &standing->tryout.layout;
    struct snapshot given = {0}, before = {0};
    struct err err = {0};

    change(&standing->tryout, &standing->rng);
    tally->n_wrong += layout->excess > 0;
    snapshot_save(&given, layout);
    snapshot_price(&given, &standing->parts);
    snapshot_copy(&before, &given);
    for (size_t i = 0; i < sizeof rises / sizeof *rises; i++) {
        struct snapshot simple = {0};

        snapshot_copy(&simple, &given);
        (void)simplify(&simple, &standing->parts, rises[i], NO_MOVE_LIMIT);
        tally->n_over += simple.excess > 0 ||
                         simple.total_ms > given.total_ms * (1 + rises[i]);
        tally->n_more += simple.n > before.n;
        tally->n_dearer +=
            simple.n == before.n && simple.total_ms > before.total_ms;
        tally->n_simpler += simple.n < before.n;
        snapshot_copy(&before, &simple);
        snapshot_release(&simple);
    }
    snapshot_load(&before, layout);
    tally->n_wrong += layout_check(layout, &err) != 0;
    snapshot_release(&before);
    snapshot_load(&given, layout);
    snapshot_release(&given);
}

/* A table that may not stay whole keeps two of its four row blocks. */
static void test_rows(void)
{
    static const uint64_t rows[] = {1000};
    static const uint32_t dims[] = {16};
    struct shard blocks[4];
    struct snapshot simple = {0};
    struct arena arena = {0};
    struct problem problem;
    struct oracle oracle;
    struct parts parts;
    struct plan plan;
    struct err err;

    for (uint32_t r = 0; r < 4; r++)
        blocks[r] =
            (struct shard){0, SHARD_ROW, 250 * r, 250 * r + 250, 0, 16, r};
    fake_problem(&problem, rows, dims, 1, 4, UINT64_C(1) << 30, &arena);
    problem.kinds = SHARD_ROW;
    oracle = fake_oracle(&problem);
    oracle.kinds = SHARD_ALL_KINDS;
    oracle.row_cut = ROW_CUT_ANY;
    plan = fake_plan(&problem, blocks, 4, &arena);
    if (parts_init(&parts, &problem, &oracle, NULL, NULL, &arena, &err) ||
        !snapshot_from_plan(&simple, &parts, &plan)) {
        ok(0, "four row blocks");
    } else {
        snapshot_price(&simple, &parts);
        (void)simplify(&simple, &parts, 1, NO_MOVE_LIMIT);
        is_i64(simple.n, 2, "four row blocks become two");
    }
    snapshot_release(&simple);
    arena_release(&arena);
}

int main(void)
{
    for (uint64_t memory = TIGHT; memory <= 3 * TIGHT; memory *= 3) {
        struct tally tally = {0};

        for (uint64_t seed = 1; seed < 5; seed++) {
            struct standing standing;

            standing_open(&standing, seed, ROW_CUT_ANY, 1, memory);
            standing.tryout.layout.move_limit_bytes = NO_MOVE_LIMIT;
            for (unsigned i = 0; i < N_LAYOUTS; i++)
                try_layout(&standing, &tally);
            standing_close(&standing);
        }
        is_i64(tally.n_wrong, 0, "simpler layouts are right");
        is_i64(tally.n_over, 0, "all keep within what is allowed");
        is_i64(tally.n_more, 0, "who allows more has no more pieces");
        is_i64(tally.n_dearer, 0, "and none as many that cost more");
        ok(tally.n_simpler > N_LAYOUTS, "%u are simpler", tally.n_simpler);
    }
    test_rows();
    return tap_done();
}
