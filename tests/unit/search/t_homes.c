/* SPDX-License-Identifier: MIT */
#include "search/homes.h"

#include "core/plan_moves.h"
#include "search/propose.h"
#include "search/replan_start.h"
#include "search/tryout.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define N_TABLES 7
#define N_GPUS 6

/* What stands, and a layout that starts there. */
struct scene {
    struct arena arena;
    struct rng rng;
    struct problem old, problem;
    struct random_oracle oracle;
    struct plan from;
    struct units units;
    struct parts parts;
    struct homes homes;
    struct snapshot nearest;
    struct tryout tryout;
};

/* A grid, row blocks, columns, a replica and whole tables; three hosts of two
 * where blocks have to be those of a host. */
static void place(struct scene *scene)
{
    const struct shard shards[] = {
        {0, SHARD_GRID, 0, 500, 0, 32, 2},
        {0, SHARD_GRID, 500, 1000, 0, 32, 3},
        {0, SHARD_GRID, 0, 500, 32, 64, 0},
        {0, SHARD_GRID, 500, 1000, 32, 64, 1},
        {1, SHARD_ROW, 0, 1000, 0, 16, 4},
        {1, SHARD_ROW, 1000, 2000, 0, 16, 5},
        {2, SHARD_COLUMN, 0, 500, 0, 60, 1},
        {2, SHARD_COLUMN, 0, 500, 60, 128, 5},
        {3, SHARD_REPLICATE, 0, 40, 0, 32, 0},
        {3, SHARD_REPLICATE, 0, 40, 0, 32, 1},
        {3, SHARD_REPLICATE, 0, 40, 0, 32, 2},
        {3, SHARD_REPLICATE, 0, 40, 0, 32, 3},
        {3, SHARD_REPLICATE, 0, 40, 0, 32, 4},
        {3, SHARD_REPLICATE, 0, 40, 0, 32, 5},
        {4, SHARD_TABLE, 0, 3000, 0, 16, 0},
        {5, SHARD_TABLE, 0, 70, 0, 8, 1},
        {6, SHARD_TABLE, 0, 900, 0, 64, 2},
    };

    scene->from = fake_plan(&scene->old, shards, sizeof shards / sizeof *shards,
                            &scene->arena);
}

static void scene_open(struct scene *scene, uint64_t seed, enum row_cut row_cut,
                       double growth)
{
    const uint64_t rows[N_TABLES] = {1000, 2000, 500, 40, 3000, 70, 900};
    const uint32_t dims[N_TABLES] = {64, 16, 128, 32, 16, 8, 64};
    struct err err = {0};

    *scene = (struct scene){0};
    arena_init(&scene->arena);
    rng_init(&scene->rng, seed, 5);
    fake_problem(&scene->old, rows, dims, N_TABLES, N_GPUS, UINT64_C(1) << 30,
                 &scene->arena);
    scene->old.cluster.devices_per_host = 2;
    place(scene);
    scene->problem = scene->old;
    scene->problem.tables = ARENA_NEW(&scene->arena, struct table, N_TABLES);
    for (size_t t = 0; t < N_TABLES; t++) {
        scene->problem.tables[t] = scene->old.tables[t];
        scene->problem.tables[t].num_embeddings =
            (uint64_t)((double)rows[t] * growth);
    }
    random_oracle_init(&scene->oracle, &scene->problem, &scene->rng);
    scene->oracle.base.row_cut = row_cut;
    homes_init(&scene->homes, &scene->problem, &scene->from, &scene->arena);
    ok(!units_collect(&scene->units, &scene->problem, &scene->oracle.base,
                      &scene->arena, &err) &&
           !parts_init_from(&scene->parts, &scene->units, &scene->homes, NULL,
                            &scene->arena, &err),
       "a problem: %s", err.msg);
    replan_start(&scene->nearest, &scene->parts, &scene->homes);
    homes_settle(&scene->homes, &scene->parts, &scene->nearest, &scene->arena);
    tryout_init(&scene->tryout, &scene->parts);
    scene->tryout.layout.move_limit_bytes = COUNT_MOVES;
    tryout_load(&scene->tryout, &scene->nearest);
}

static void scene_close(struct scene *scene)
{
    tryout_release(&scene->tryout);
    snapshot_release(&scene->nearest);
    arena_release(&scene->arena);
}

/* By the plan that the layout comes to. */
static uint64_t moved(struct scene *scene)
{
    struct plan plan = {.problem = scene->problem};
    struct snapshot now = {0};
    struct plan_moves moves;

    snapshot_save(&now, &scene->tryout.layout);
    snapshot_to_plan(&now, &scene->parts, &plan, &scene->arena);
    plan_derive_kinds(&plan);
    plan_moves_find(&moves, &scene->from, &plan, &scene->arena);
    snapshot_release(&now);
    return moves.bytes.moved;
}

/* A walk of random changes, many of them back home. What a trial says is what
 * is so when it has come true, and what plan_moves finds. */
static void check_counts(enum row_cut row_cut, double growth, bool stays)
{
    struct scene scene;
    struct layout *layout = &scene.tryout.layout;
    size_t n = 0, n_trial = 0, n_after = 0, n_plan = 0, n_less = 0, n_grids = 0;

    scene_open(&scene, 1, row_cut, growth);
    ok((layout->all_moved_bytes == 0) == stays, "%s moves at home",
       stays ? "nothing" : "something");
    is_i64((int64_t)layout->all_moved_bytes, (int64_t)moved(&scene),
           "as plan_moves counts it");
    for (uint32_t i = 0; i < 3000; i++) {
        struct trial *trial = &scene.tryout.trial;
        uint64_t said, before = layout->all_moved_bytes;

        propose(trial, layout, &scene.rng);
        if (rng_below(&scene.rng, 4) == 0) {
            trial_clear(trial);
            homes_propose(trial, layout,
                          (uint32_t)rng_below(&scene.rng, N_TABLES));
        }
        if (!trial->n_changes)
            continue;
        n++;
        (void)tryout_price(&scene.tryout);
        said = trial->all_moved_bytes;
        layout_commit(layout, trial);
        n_less += said < before;
        n_trial += said != layout->all_moved_bytes;
        layout_price(layout);
        n_after += said != layout->all_moved_bytes;
        n_plan += said != moved(&scene);
        for (uint32_t k = 0; k < layout->n_pieces; k++)
            n_grids +=
                layout->pieces[k].part != NO_PART &&
                layout->pieces[k].range > 0 &&
                scene.parts.parts[layout->pieces[k].part].kind == SHARD_GRID;
    }
    ok(n > 1000 && n_less > 100 && n_grids > 100,
       "%zu changes, %zu move less, %zu with ranges of grids", n, n_less,
       n_grids);
    is_i64((int64_t)n_trial, 0, "a layout has what the trial said");
    is_i64((int64_t)n_after, 0, "and so counted afresh");
    is_i64((int64_t)n_plan, 0, "and so as a plan");
    scene_close(&scene);
}

int main(void)
{
    check_counts(ROW_CUT_ANY, 1, true);
    check_counts(ROW_CUT_ANY, 1.07, true);
    check_counts(ROW_CUT_ANY, 0.9, true);
    check_counts(ROW_CUT_RANKS, 1, true);
    check_counts(ROW_CUT_RANKS, 1.07, false);
    return tap_done();
}
