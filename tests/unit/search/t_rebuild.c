/* SPDX-License-Identifier: MIT */
#include "search/rebuild.h"

#include "search/build.h"
#include "search/marginal.h"
#include "search/snapshot.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define N_TABLES 6
#define N_DEVICES 4
#define N_REBUILDS 2000
#define GIB (UINT64_C(1) << 30)

enum sort { ADDITIVE, BY_TERMS, BY_COMM };

struct scene {
    struct arena arena;
    struct problem problem;
    struct random_oracle oracle;
    struct units units;
    struct parts parts;
    struct layout layout;
    struct trial trial;
    struct rng rng;
};

/* All tables stand somewhere. */
static void scene_open(struct scene *scene, enum sort sort)
{
    const uint64_t rows[N_TABLES] = {1000, 2000, 500, 70000, 12, 300};
    const uint32_t dims[N_TABLES] = {64, 32, 128, 16, 8, 64};
    struct snapshot start = {0};
    struct err err = {0};
    uint32_t stuck;

    *scene = (struct scene){0};
    arena_init(&scene->arena);
    fake_problem(&scene->problem, rows, dims, N_TABLES, N_DEVICES, GIB,
                 &scene->arena);
    for (uint64_t seed = 0;; seed++) {
        const struct oracle *oracle = &scene->oracle.base;

        rng_init(&scene->rng, 11, seed);
        random_oracle_init(&scene->oracle, &scene->problem, &scene->rng);
        if (sort == (oracle->is_additive  ? ADDITIVE
                     : oracle->ops->terms ? BY_TERMS
                                          : BY_COMM))
            break;
    }
    ok(!units_collect(&scene->units, &scene->problem, &scene->oracle.base,
                      &scene->arena, &err) &&
           !parts_init(&scene->parts, &scene->units, NULL, &scene->arena,
                       &err) &&
           build_by_memory(&start, &scene->parts, &stuck),
       "a start: %s", err.msg);
    layout_init(&scene->layout, &scene->parts);
    trial_init(&scene->trial, &scene->layout);
    snapshot_load(&start, &scene->layout);
    snapshot_release(&start);
}

static void scene_close(struct scene *scene)
{
    trial_release(&scene->trial);
    layout_release(&scene->layout);
    arena_release(&scene->arena);
}

/* The total of devices that have an average share of all tables; the last one
 * has this part besides, unless it is NO_PART. */
static double total_beside(const struct scene *scene, uint32_t extra)
{
    const struct oracle *oracle = &scene->oracle.base;
    double sums[N_DEVICES * RANDOM_WIDTH] = {0}, total = 0;
    double compute[N_DEVICES], fwd[N_DEVICES], bwd[N_DEVICES];

    for (uint32_t i = 0; i < N_DEVICES * RANDOM_WIDTH; i++)
        for (uint32_t u = 0; u < scene->parts.n_units; u++)
            sums[i] +=
                scene->parts.vectors[scene->parts.of[u].whole * RANDOM_WIDTH +
                                     i % RANDOM_WIDTH] /
                N_DEVICES;
    for (uint32_t w = 0; extra != NO_PART && w < RANDOM_WIDTH; w++)
        sums[(N_DEVICES - 1) * RANDOM_WIDTH + w] +=
            scene->parts.vectors[extra * RANDOM_WIDTH + w];
    oracle->ops->compute(oracle, sums, N_DEVICES, compute);
    oracle->ops->comm(oracle, 1, sums, compute, fwd, bwd);
    for (uint32_t r = 0; r < N_DEVICES; r++)
        total = fmax(total, compute[r] + fwd[r] + bwd[r]);
    return total;
}

static void check_marginal(enum sort sort)
{
    unsigned n_off = 0, n_dearer = 0;
    struct scene scene;

    scene_open(&scene, sort);
    for (uint32_t i = 0; i < scene.parts.n_parts; i++) {
        double ms = scene.parts.marginal_ms[i];
        double want = total_beside(&scene, i) - total_beside(&scene, NO_PART);

        n_off += !(fabs(ms - want) <= 1e-9);
        n_dearer += ms > scene.parts.alone_ms[i] + 1e-12;
    }
    ok(!n_off, "marginal costs are differences of totals: %u are not", n_off);
    if (sort == BY_TERMS)
        ok(!n_dearer, "nothing costs more beside others than alone");
    scene_close(&scene);
}

/* Columns of the unit's pieces, or 0 where it is no table of columns. */
static uint32_t columns_of(const struct scene *scene, uint32_t unit)
{
    const struct layout *layout = &scene->layout;
    uint32_t n = 0;

    for (uint32_t i = layout->first_of[unit]; i != NO_PIECE;
         i = layout->pieces[i].next) {
        const struct part *part = &scene->parts.parts[layout->pieces[i].part];

        if (!(part->kind & (SHARD_TABLE | SHARD_COLUMN)))
            return 0;
        n += part->width;
    }
    return n;
}

static bool is_whole(const struct scene *scene)
{
    for (uint32_t u = 0; u < scene->parts.n_units; u++) {
        uint32_t table = scene->units.units[u].tables[0];
        uint32_t n = columns_of(scene, u);

        if (scene->layout.first_of[u] == NO_PIECE ||
            (n && n != scene->problem.tables[table].dim))
            return false;
    }
    return true;
}

/* Some units, in forms drawn at random, or else poured. */
static void rebuild_some(struct scene *scene, bool pours)
{
    struct rebuild_unit units[REBUILD_MAX_UNITS];
    uint32_t order[N_TABLES], n = 1 + rng_draw(&scene->rng, REBUILD_MAX_UNITS);

    for (uint32_t i = 0; i < N_TABLES; i++)
        order[i] = i;
    rng_shuffle(&scene->rng, order, N_TABLES);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t n_forms = forms_count(&scene->parts, order[i]);

        units[i].unit = order[i];
        units[i].form = pours ? (struct form){FORM_WHOLE, 1}
                              : forms_get(&scene->parts, order[i],
                                          rng_draw(&scene->rng, n_forms));
    }
    trial_clear(&scene->trial);
    rebuild(&scene->trial, &scene->layout, units, n, &scene->rng);
    trial_sum(&scene->trial, &scene->layout);
}

static void commit(struct scene *scene)
{
    const struct oracle *oracle = &scene->oracle.base;

    oracle->ops->compute(oracle, scene->trial.sums, scene->trial.n_devices,
                         scene->trial.compute_ms);
    if (oracle->ops->terms)
        trial_price_terms(&scene->trial, &scene->layout);
    layout_commit(&scene->layout, &scene->trial);
}

static void check_layouts(enum sort sort)
{
    unsigned n_torn = 0, n_off = 0;
    struct scene scene;

    scene_open(&scene, sort);
    for (unsigned i = 0; i < N_REBUILDS; i++) {
        double load_ms[N_DEVICES];

        rebuild_some(&scene, i % 2);
        commit(&scene);
        n_torn += !is_whole(&scene);
        memcpy(load_ms, scene.layout.load_ms, sizeof load_ms);
        layout_price(&scene.layout);
        for (uint32_t r = 0; r < N_DEVICES; r++)
            n_off += !(fabs(load_ms[r] - scene.layout.load_ms[r]) <= 1e-9);
    }
    ok(!n_torn, "every table is there, whole: %u times not", n_torn);
    ok(!n_off, "loads that are kept up are those added up afresh");
    scene_close(&scene);
}

static double most_load(const struct layout *layout, double *mean)
{
    double most = 0;

    *mean = 0;
    for (uint32_t r = 0; r < N_DEVICES; r++) {
        *mean += layout->load_ms[r] / N_DEVICES;
        most = fmax(most, layout->load_ms[r]);
    }
    return most;
}

/* Those that make the busiest device less busy are kept, the others not. */
static void check_pouring(void)
{
    struct scene scene;
    double most, mean, first;

    scene_open(&scene, ADDITIVE);
    first = most_load(&scene.layout, &mean);
    for (unsigned i = 0; i < N_REBUILDS; i++) {
        most = most_load(&scene.layout, &mean);
        rebuild_some(&scene, true);
        for (uint32_t k = 0; k < scene.trial.n_devices; k++)
            if (scene.trial.load_ms[scene.trial.devices[k]] > most)
                scene.trial.n_changes = 0;
        if (scene.trial.n_changes)
            commit(&scene);
    }
    most = most_load(&scene.layout, &mean);
    ok(first > 1.2 * mean && most < 1.05 * mean,
       "gaps are filled: %.3g ms, then %.3g, the mean is %.3g", first, most,
       mean);
    scene_close(&scene);
}

int main(void)
{
    for (enum sort sort = ADDITIVE; sort <= BY_COMM; sort++) {
        check_marginal(sort);
        check_layouts(sort);
    }
    check_pouring();
    return tap_done();
}
