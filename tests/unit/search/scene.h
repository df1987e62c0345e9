/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_UNIT_SEARCH_SCENE_H
#define NEUROSHARD_TESTS_UNIT_SEARCH_SCENE_H

/* Six tables on four devices with enough memory for all, a random cost model of
 * the requested sort, and a starting assignment that fits. Include in one file
 * only. */

#include "search/assignment.h"
#include "search/fit.h"
#include "search/space_init.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define SCENE_TABLES 6
#define SCENE_DEVICES 4

enum scene_sort { ADDITIVE, BY_TERMS, BY_COMM };

struct scene {
    struct arena arena;
    struct problem problem;
    struct random_oracle oracle;
    struct search_space space;
    struct snapshot start; /* priced */
};

static enum scene_sort scene_sort_of(const struct oracle *oracle)
{
    if (oracle->is_additive)
        return ADDITIVE;
    return oracle->ops->terms ? BY_TERMS : BY_COMM;
}

static void scene_open(struct scene *scene, enum scene_sort sort)
{
    const uint64_t rows[SCENE_TABLES] = {1000, 2000, 500, 70000, 12, 300};
    const uint32_t dims[SCENE_TABLES] = {64, 32, 128, 16, 8, 64};
    struct err err = {0};
    uint64_t seed = 0;

    *scene = (struct scene){0};
    fake_problem(&scene->problem, rows, dims, SCENE_TABLES, SCENE_DEVICES,
                 UINT64_C(1) << 30, &scene->arena);
    do {
        struct rng rng;

        rng_init(&rng, 9, seed++);
        random_oracle_init(&scene->oracle, &scene->problem, &rng);
    } while (scene_sort_of(&scene->oracle.base) != sort);
    ok(!space_init(&scene->space, &scene->problem, &scene->oracle.base, NULL,
                   NULL, &scene->arena, &err) &&
           fit_by_memory(&scene->start, &scene->space, NULL),
       "a start: %s", err.msg);
    snapshot_price(&scene->start, &scene->space);
}

static void scene_close(struct scene *scene)
{
    snapshot_release(&scene->start);
    arena_release(&scene->arena);
}

#endif
