/* SPDX-License-Identifier: MIT */
/* A unit that must be placed anew gets the best possible placement, given the
 * units that stay. All other units stay where they are. */
#include "search/carry_over.h"

#include "search/evaluator.h"
#include "search/moves.h"
#include "search/space_init.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define N_PROBLEMS 300

/* Whole tables on the current devices. The last table is new, or was on a
 * device that is gone. */
struct scene {
    struct arena arena;
    struct problem problem;
    struct random_oracle oracle;
    struct plan from;
    struct current_plan current;
    struct search_space space;
    struct snapshot out;
    uint32_t last; /* the unit */
    bool is_new;
};

struct tally {
    size_t n, n_moved, n_worse, n_cut, n_exceeding;
};

static bool open_scene(struct scene *scene, uint64_t seed)
{
    struct problem *problem = &scene->problem;
    uint32_t *device_of, n;
    struct err err;
    struct rng rng;

    *scene = (struct scene){.is_new = seed % 2};
    rng_init(&rng, seed, 0);
    fake_random(problem, &rng, 1 + 2 * rng_uniform(&rng), &scene->arena);
    random_oracle_init(&scene->oracle, problem, &rng);
    scene->oracle.base.row_cut = ROW_CUT_ANY;
    n = (uint32_t)problem->n_tables;
    device_of = ARENA_NEW(&scene->arena, uint32_t, n);
    for (uint32_t t = 0; t + 1 < n; t++)
        device_of[t] = rng_draw(&rng, problem->cluster.n_devices);
    device_of[n - 1] = problem->cluster.n_devices;
    problem->tables[n - 1].kinds =
        SHARD_TABLE | rng_draw(&rng, SHARD_ALL_KINDS + 1);
    scene->from =
        fake_whole_plan(problem, device_of, n - scene->is_new, &scene->arena);
    scene->from.problem.cluster.n_devices++;
    current_init(&scene->current, problem, &scene->from, &scene->arena);
    if (space_init(&scene->space, problem, &scene->oracle.base, &scene->current,
                   NULL, &scene->arena, &err))
        return false;
    while (scene->space.units[scene->last].tables[0] != n - 1)
        scene->last++;
    carry_over(&scene->out, &scene->space);
    return true;
}

static void close_scene(struct scene *scene)
{
    snapshot_release(&scene->out);
    arena_release(&scene->arena);
}

/* Adds the last unit to the others: a new unit in sharding number `way`, an old
 * unit as it was, on device number `way`. */
static void put(struct evaluator *evaluator, const struct scene *scene,
                uint32_t way)
{
    const struct unit *unit = &scene->space.units[scene->last];
    const struct sharding *sharding =
        scene->is_new ? &unit->shardings[way] : NULL;
    struct rng rng;

    candidate_clear(&evaluator->candidate);
    rng_init(&rng, 0, 0);
    if (scene->is_new)
        rebuild(&evaluator->candidate, &evaluator->assignment, &sharding, 1,
                &rng);
    else
        candidate_add(
            &evaluator->candidate,
            (struct change){.type = unit->whole[TIER_HBM], .device = way});
}

static bool is_better(double excess, double total_ms,
                      const struct snapshot *than)
{
    if (fabs(excess - than->excess) > 1e-9)
        return excess < than->excess;
    return total_ms < than->total_ms * (1 - 1e-9);
}

static void try_scene(struct scene *scene, struct tally *tally)
{
    const struct unit *unit = &scene->space.units[scene->last];
    struct snapshot others = {0};
    struct evaluator evaluator;

    snapshot_price(&scene->out, &scene->space);
    tally->n++;
    tally->n_exceeding += scene->out.excess > 0;
    for (uint32_t i = 0; i < scene->out.n; i++) {
        const struct change *piece = &scene->out.pieces[i];
        const struct piece_type *type = &scene->space.types[piece->type];
        uint32_t table = scene->space.units[type->unit].tables[0];

        if (type->unit == scene->last) {
            tally->n_cut += type->kind != SHARD_TABLE;
            continue;
        }
        *snapshot_next(&others) = *piece;
        tally->n_moved += piece->device != scene->from.shards[table].device;
    }
    evaluator_init(&evaluator, &scene->space);
    evaluator.assignment.is_partial = true;
    snapshot_load(&others, &evaluator.assignment);
    /* column shardings are skipped, because rebuild() distributes their pieces
     * at random */
    for (uint32_t way = 0;
         way < (scene->is_new ? unit->n_shardings : scene->space.n_devices);
         way++) {
        double total_ms;

        if (scene->is_new && unit->shardings[way].kind == SHARDING_COLUMNS)
            continue;
        put(&evaluator, scene, way);
        total_ms = evaluator_price(&evaluator);
        tally->n_worse +=
            is_better(evaluator.candidate.after.excess, total_ms, &scene->out);
    }
    evaluator_release(&evaluator);
    snapshot_release(&others);
}

static void one_table(struct problem *problem, uint32_t n_devices,
                      struct arena *arena)
{
    fake_problem(problem, (const uint64_t[]){1000}, (const uint32_t[]){16}, 1,
                 n_devices, UINT64_C(1) << 30, arena);
}

/* A table that must be cut keeps both of its halves if only one GPU is left. */
static void test_one_left(void)
{
    struct arena arena = {0};
    struct problem two, one;
    struct snapshot out = {0};
    struct oracle oracle;
    struct current_plan current;
    struct search_space space;
    struct plan from;
    struct err err;

    one_table(&two, 2, &arena);
    one_table(&one, 1, &arena);
    one.kinds = two.kinds = SHARD_COLUMN;
    from = fake_plan(&two,
                     (struct shard[]){{.table = 0,
                                       .kind = SHARD_COLUMN,
                                       .row_end = 1000,
                                       .col_end = 8,
                                       .device = 0},
                                      {.table = 0,
                                       .kind = SHARD_COLUMN,
                                       .row_end = 1000,
                                       .col_begin = 8,
                                       .col_end = 16,
                                       .device = 1}},
                     2, &arena);
    current_init(&current, &one, &from, &arena);
    oracle = fake_oracle(&one);
    if (!space_init(&space, &one, &oracle, &current, NULL, &arena, &err))
        carry_over(&out, &space);
    is_i64(out.n, 2, "a table that must be cut has two pieces");
    for (uint32_t i = 0; i < out.n; i++)
        is_i64(out.pieces[i].device, 0, "on the one GPU that is left");
    snapshot_release(&out);
    arena_release(&arena);
}

/* A replica stays a replica on the same number of GPUs. On more GPUs it would
 * have to be copied. */
static void test_replica(uint32_t n_devices)
{
    struct arena arena = {0};
    struct problem before, after;
    struct shard shards[2] = {
        {0, SHARD_REPLICATE, 0, 1000, 0, 16, 0, TIER_HBM},
        {0, SHARD_REPLICATE, 0, 1000, 0, 16, 1, TIER_HBM}};
    struct snapshot out = {0};
    struct oracle oracle;
    struct current_plan current;
    struct search_space space;
    struct plan from;
    struct err err;

    one_table(&before, 2, &arena);
    one_table(&after, n_devices, &arena);
    from = fake_plan(&before, shards, 2, &arena);
    current_init(&current, &after, &from, &arena);
    oracle = fake_oracle(&after);
    oracle.kinds = SHARD_ALL_KINDS;
    if (space_init(&space, &after, &oracle, &current, NULL, &arena, &err))
        ok(0, "parts: %s", err.msg);
    else
        ok(snapshot_from_plan(&out, &space, &from) == (n_devices == 2) &&
               (n_devices != 2 ||
                (out.n == 2 &&
                 space.types[out.pieces[0].type].kind == SHARD_REPLICATE)),
           "a replica of 2 GPUs on %u", n_devices);
    snapshot_release(&out);
    arena_release(&arena);
}

int main(void)
{
    static const char *const names[] = {"a piece whose GPU is gone",
                                        "a new table"};

    for (int is_new = 0; is_new < 2; is_new++) {
        struct tally tally = {0};

        for (uint64_t i = 0; i < tap_many(N_PROBLEMS); i++) {
            struct scene scene;

            if (open_scene(&scene, 2 * i + (uint64_t)is_new))
                try_scene(&scene, &tally);
            close_scene(&scene);
        }
        ok(tally.n > 10 && tally.n_exceeding < tally.n &&
               (tally.n_cut > 0) == is_new,
           "%s: of %zu plans %zu exceed the memory, %zu pieces are cut",
           names[is_new], tally.n, tally.n_exceeding, tally.n_cut);
        is_i64((int64_t)tally.n_moved, 0, "the others stay");
        is_i64((int64_t)tally.n_worse, 0, "it has no better way");
    }
    test_one_left();
    test_replica(2);
    test_replica(3);
    return tap_done();
}
