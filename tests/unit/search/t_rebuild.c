/* SPDX-License-Identifier: MIT */
#include "search/rebuild.h"

#include "search/marginal.h"
#include "search/snapshot.h"
#include "tests/unit/search/scene.h"

#define N_REBUILDS 2000

struct site {
    struct scene scene;
    struct layout layout;
    struct trial trial;
    struct rng rng;
};

/* All tables stand somewhere. */
static void site_open(struct site *site, enum scene_sort sort)
{
    scene_open(&site->scene, sort);
    layout_init(&site->layout, &site->scene.parts);
    trial_init(&site->trial, &site->layout);
    snapshot_load(&site->scene.start, &site->layout);
    rng_init(&site->rng, 11, 0);
}

static void site_close(struct site *site)
{
    trial_release(&site->trial);
    layout_release(&site->layout);
    scene_close(&site->scene);
}

/* The total of devices that have an average share of all tables; the last one
 * has this part besides, unless it is NO_PART. */
static double total_beside(const struct scene *scene, uint32_t extra)
{
    const struct oracle *oracle = &scene->oracle.base;
    double sums[SCENE_DEVICES * RANDOM_WIDTH] = {0}, total = 0;
    double compute[SCENE_DEVICES], fwd[SCENE_DEVICES], bwd[SCENE_DEVICES];

    for (uint32_t i = 0; i < SCENE_DEVICES * RANDOM_WIDTH; i++)
        for (uint32_t u = 0; u < scene->parts.n_units; u++)
            sums[i] +=
                scene->parts.vectors[scene->parts.of[u].whole * RANDOM_WIDTH +
                                     i % RANDOM_WIDTH] /
                SCENE_DEVICES;
    for (uint32_t w = 0; extra != NO_PART && w < RANDOM_WIDTH; w++)
        sums[(SCENE_DEVICES - 1) * RANDOM_WIDTH + w] +=
            scene->parts.vectors[extra * RANDOM_WIDTH + w];
    oracle->ops->compute(oracle, sums, SCENE_DEVICES, compute);
    oracle->ops->comm(oracle, 1, sums, compute, fwd, bwd);
    for (uint32_t r = 0; r < SCENE_DEVICES; r++)
        total = fmax(total, compute[r] + fwd[r] + bwd[r]);
    return total;
}

static void check_marginal(enum scene_sort sort)
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
static uint32_t columns_of(const struct site *site, uint32_t unit)
{
    const struct layout *layout = &site->layout;
    uint32_t n = 0;

    for (uint32_t i = layout->first_of[unit]; i != NO_PIECE;
         i = layout->pieces[i].next) {
        const struct part *part =
            &site->scene.parts.parts[layout->pieces[i].part];

        if (!(part->kind & (SHARD_TABLE | SHARD_COLUMN)))
            return 0;
        n += part->width;
    }
    return n;
}

static bool is_row_block(const struct site *site, uint32_t part)
{
    return site->scene.parts.parts[part].kind & (SHARD_ROW | SHARD_GRID);
}

/* Whether no two row blocks of the unit are the same one. */
static bool blocks_differ(const struct site *site, uint32_t unit)
{
    const struct piece *pieces = site->layout.pieces;

    for (uint32_t i = site->layout.first_of[unit]; i != NO_PIECE;
         i = pieces[i].next) {
        if (!is_row_block(site, pieces[i].part))
            continue;
        for (uint32_t j = pieces[i].next; j != NO_PIECE; j = pieces[j].next)
            if (pieces[i].range == pieces[j].range &&
                pieces[i].block == pieces[j].block)
                return false;
    }
    return true;
}

static bool is_whole(const struct site *site)
{
    for (uint32_t u = 0; u < site->scene.parts.n_units; u++) {
        uint32_t table = site->scene.units.units[u].tables[0];
        uint32_t n = columns_of(site, u);

        if (site->layout.first_of[u] == NO_PIECE || !blocks_differ(site, u) ||
            (n && n != site->scene.problem.tables[table].dim))
            return false;
    }
    return true;
}

/* Some units, in forms drawn at random, or else poured. */
static void rebuild_some(struct site *site, bool pours)
{
    struct rebuild_unit units[REBUILD_MAX_UNITS];
    uint32_t order[SCENE_TABLES],
        n = 1 + rng_draw(&site->rng, REBUILD_MAX_UNITS);

    for (uint32_t i = 0; i < SCENE_TABLES; i++)
        order[i] = i;
    rng_shuffle(&site->rng, order, SCENE_TABLES);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t n_forms = forms_count(&site->scene.parts, order[i]);

        units[i].unit = order[i];
        units[i].form = pours ? (struct form){FORM_WHOLE, 1}
                              : forms_get(&site->scene.parts, order[i],
                                          rng_draw(&site->rng, n_forms));
    }
    trial_clear(&site->trial);
    rebuild(&site->trial, &site->layout, units, n, &site->rng);
    trial_sum(&site->trial, &site->layout);
}

static void commit(struct site *site)
{
    const struct oracle *oracle = &site->scene.oracle.base;

    oracle->ops->compute(oracle, site->trial.sums, site->trial.n_devices,
                         site->trial.compute_ms);
    if (oracle->ops->terms)
        trial_price_terms(&site->trial, &site->layout);
    layout_commit(&site->layout, &site->trial);
}

static void check_layouts(enum scene_sort sort)
{
    unsigned n_torn = 0, n_off = 0;
    struct site site;

    site_open(&site, sort);
    for (unsigned i = 0; i < N_REBUILDS; i++) {
        double load_ms[SCENE_DEVICES];

        rebuild_some(&site, i % 2);
        commit(&site);
        n_torn += !is_whole(&site);
        memcpy(load_ms, site.layout.load_ms, sizeof load_ms);
        layout_price(&site.layout);
        for (uint32_t r = 0; r < SCENE_DEVICES; r++)
            n_off += !(fabs(load_ms[r] - site.layout.load_ms[r]) <= 1e-9);
    }
    ok(!n_torn, "every table is there, whole: %u times not", n_torn);
    ok(!n_off, "loads that are kept up are those added up afresh");
    site_close(&site);
}

static double most_load(const struct layout *layout, double *mean)
{
    double most = 0;

    *mean = 0;
    for (uint32_t r = 0; r < SCENE_DEVICES; r++) {
        *mean += layout->load_ms[r] / SCENE_DEVICES;
        most = fmax(most, layout->load_ms[r]);
    }
    return most;
}

/* Those that make the busiest device less busy are kept, the others not. */
static void check_pouring(void)
{
    struct site site;
    double most, mean, first;

    site_open(&site, ADDITIVE);
    first = most_load(&site.layout, &mean);
    for (unsigned i = 0; i < N_REBUILDS; i++) {
        most = most_load(&site.layout, &mean);
        rebuild_some(&site, true);
        for (uint32_t k = 0; k < site.trial.n_devices; k++)
            if (site.trial.load_ms[site.trial.devices[k]] > most)
                site.trial.n_changes = 0;
        if (site.trial.n_changes)
            commit(&site);
    }
    most = most_load(&site.layout, &mean);
    ok(first > 1.2 * mean && most < 1.05 * mean,
       "gaps are filled: %.3g ms, then %.3g, the mean is %.3g", first, most,
       mean);
    site_close(&site);
}

int main(void)
{
    for (enum scene_sort sort = ADDITIVE; sort <= BY_COMM; sort++) {
        check_marginal(sort);
        check_layouts(sort);
    }
    check_pouring();
    return tap_done();
}
