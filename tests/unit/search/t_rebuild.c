/* SPDX-License-Identifier: MIT */
#include "search/rebuild.h"

#include "search/layout_check.h"
#include "search/marginal.h"
#include "search/tryout.h"
#include "tests/unit/search/scene.h"

#define N_REBUILDS 2000

struct site {
    struct scene scene;
    struct tryout tryout;
    struct rng rng;
};

/* All tables stand somewhere. */
static void site_open(struct site *site, enum scene_sort sort)
{
    scene_open(&site->scene, sort);
    tryout_init(&site->tryout, &site->scene.parts);
    tryout_load(&site->tryout, &site->scene.start);
    rng_init(&site->rng, 11, 0);
}

static void site_close(struct site *site)
{
    tryout_release(&site->tryout);
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

/* Some units, in forms drawn at random, or else poured. */
static void rebuild_some(struct site *site, bool pours)
{
    struct rebuild_unit units[TUNING_MAX_REBUILT];
    uint32_t order[SCENE_TABLES],
        n = 1 + rng_draw(&site->rng, TUNING_MAX_REBUILT);

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
    trial_clear(&site->tryout.trial);
    rebuild(&site->tryout.trial, &site->tryout.layout, units, n, &site->rng);
    (void)tryout_price(&site->tryout);
}

/* Whatever is rebuilt, the layout is one, and what it keeps is right. */
static void check_layouts(enum scene_sort sort)
{
    struct err err = {0};
    unsigned n_wrong = 0;
    struct site site;

    site_open(&site, sort);
    for (unsigned i = 0; i < N_REBUILDS; i++) {
        rebuild_some(&site, i % 2);
        layout_commit(&site.tryout.layout, &site.tryout.trial);
        n_wrong += layout_check(&site.tryout.layout, &err) != 0;
    }
    ok(!n_wrong, "layouts stay right, %u times not: %s", n_wrong, err.msg);
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
    struct layout *layout = &site.tryout.layout;
    const struct trial *trial = &site.tryout.trial;
    double most, mean, first;

    site_open(&site, ADDITIVE);
    first = most_load(layout, &mean);
    for (unsigned i = 0; i < N_REBUILDS; i++) {
        bool is_kept = true;

        most = most_load(layout, &mean);
        rebuild_some(&site, true);
        for (uint32_t k = 0; k < trial->n_devices; k++)
            is_kept = is_kept && trial->load_ms[trial->devices[k]] <= most;
        if (is_kept)
            layout_commit(layout, trial);
    }
    most = most_load(layout, &mean);
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
