/* SPDX-License-Identifier: MIT */
/* The choices for a table are the shardings that the search has for it if its
 * own constraints are lifted, and each of them makes a legal plan. */
#include "explain/choices.h"

#include "core/plan_check.h"
#include "search/space_init.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define N_TABLES 4u
#define N_GPUS 8u
#define PER_HOST 4u

struct scene {
    struct arena arena;
    struct plan plan;
    struct random_oracle oracle;
    uint32_t n_members; /* number of tables placed together with table 0 */
};

/* Makes a plan of whole tables on GPU 0, whose memory is large. If is_free is
 * true, one table has row blocks that follow neither GPUs nor hosts. */
static void scene_open(struct scene *scene, uint64_t seed, bool is_free)
{
    uint32_t dims[N_TABLES];
    uint64_t rows[N_TABLES];
    struct problem problem;
    struct rng rng;

    *scene = (struct scene){.n_members = seed % 5 ? 1 : 2};
    rng_init(&rng, 17, seed);
    for (uint32_t t = 0; t < N_TABLES; t++) {
        dims[t] = 4 * (1 + rng_draw(&rng, 24));
        rows[t] = 5 + rng_below(&rng, rng_below(&rng, 2) ? 20 : 5000);
    }
    fake_problem(&problem, rows, dims, N_TABLES, N_GPUS, UINT64_C(1) << 40,
                 &scene->arena);
    problem.cluster.devices_per_host = PER_HOST;
    if (scene->n_members > 1)
        problem.tables[0].group = problem.tables[3].group = "both";
    else if (rng_below(&rng, 4) == 0)
        problem.tables[0].output = OUTPUT_SEQUENCE;
    scene->plan.problem = problem;
    scene->plan.shards = ARENA_NEW(&scene->arena, struct shard, N_TABLES + 1);
    for (uint32_t t = 0; t < N_TABLES; t++)
        scene->plan.shards[scene->plan.n_shards++] =
            shard_whole(&problem, t, 0);
    if (is_free) {
        scene->plan.shards[1].row_end = 1;
        scene->plan.shards[N_TABLES] = shard_whole(&problem, 1, 5);
        scene->plan.shards[N_TABLES].row_begin = 1;
        scene->plan.n_shards++;
    }
    plan_derive_kinds(&scene->plan);
    random_oracle_init(&scene->oracle, &scene->plan.problem, &rng);
}

/* Returns the unit of table 0 in a search space of all tables. */
static const struct unit *find_unit(struct search_space *space,
                                    struct scene *scene)
{
    struct err err = {0};

    if (space_init(space, &scene->plan.problem, &scene->oracle.base, NULL, NULL,
                   &scene->arena, &err))
        ok(0, "space: %s", err.msg);
    for (uint32_t u = 0; u < space->n_units; u++)
        for (uint32_t k = 0; k < space->units[u].n_tables; k++)
            if (space->units[u].tables[k] == 0)
                return &space->units[u];
    return NULL;
}

/* Returns true if a plan with the choice is legal. Slots are GPUs. */
static bool is_legal(struct scene *scene, const struct choice *choice)
{
    struct plan plan = scene->plan;
    struct err err = {0};
    bool is_ok;

    plan.shards = mem_alloc(plan.n_shards + choice->n, sizeof(*plan.shards));
    plan.n_shards = 0;
    for (size_t i = 0; i < scene->plan.n_shards; i++)
        if (!tables_share_group(&plan.problem, 0, scene->plan.shards[i].table))
            plan.shards[plan.n_shards++] = scene->plan.shards[i];
    for (size_t i = 0; i < choice->n; i++)
        plan.shards[plan.n_shards++] = choice->shards[i];
    is_ok = !plan_check(&plan, &err);
    mem_free(plan.shards);
    return is_ok;
}

/* Returns true if each place has as many slots as it may have, and the places
 * are numbered from 0 on. */
static bool is_placed(const struct choice *choice)
{
    uint32_t n_places = 0;

    for (size_t i = 0; i < choice->n; i++) {
        const uint32_t place = choice->shards[i].device / choice->place_size;

        n_places = place + 1 > n_places ? place + 1 : n_places;
    }
    return choice->is_fixed
               ? n_places <= N_GPUS && choice->place_size == 1
               : n_places <= choice->n_places && !choice->shards[0].device;
}

/* Lifted constraints must change nothing. */
static void constrain(struct scene *scene, uint64_t seed)
{
    struct table *table = &scene->plan.problem.tables[0];

    if (seed % 3 == 1)
        table->kinds = SHARD_TABLE;
    if (seed % 3 == 2)
        table->device = 0;
    if (seed % 4 == 1)
        table->rows_over = ROWS_OVER_HOST;
    if (seed % 7 == 1 && scene->n_members == 1)
        table->group = "only one";
}

int main(void)
{
    size_t n_wrong = 0, n_choices = 0, n_grids = 0, n_hosts = 0;
    const size_t n = tap_size(300, 5000);

    for (uint64_t seed = 0; seed < n; seed++) {
        const bool is_free = seed % 2;
        struct search_space space;
        struct choices choices;
        const struct unit *unit;
        struct scene scene;

        scene_open(&scene, seed, is_free);
        scene.oracle.base.row_cut = is_free ? ROW_CUT_ANY : ROW_CUT_RANKS;
        unit = find_unit(&space, &scene);
        constrain(&scene, seed);
        choices_find(&choices, &scene.plan, &scene.oracle.base, 0,
                     &scene.arena);
        scene.plan.problem.tables[0].kinds = SHARD_ALL_KINDS;
        scene.plan.problem.tables[0].device = -1;
        scene.plan.problem.tables[0].rows_over = ROWS_OVER_ANY;
        if (scene.n_members == 1)
            scene.plan.problem.tables[0].group = NULL;
        n_wrong += choices.n != unit->n_shardings;
        for (size_t i = 0; i < choices.n && i < unit->n_shardings; i++) {
            const struct choice *choice = &choices.choices[i];
            const struct sharding *sharding = &unit->shardings[i];

            n_choices++;
            n_grids += choice->kind == SHARD_GRID;
            n_hosts += choice->place_size > 1;
            n_wrong += choice->n != sharding->n_pieces * scene.n_members ||
                       choice->kind != space.types[sharding->type].kind;
            n_wrong += !is_legal(&scene, choice) || !is_placed(choice);
        }
        arena_release(&scene.arena);
    }
    is_i64((int64_t)n_wrong, 0, "choices are the shardings of the search");
    ok(n_choices > 8 * n && n_grids > n && n_hosts > n / 2,
       "%zu choices, %zu grids, %zu over hosts", n_choices, n_grids, n_hosts);
    return tap_done();
}
