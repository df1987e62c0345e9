/* SPDX-License-Identifier: MIT */
/*
 * Relations between the prices of two sets of tables that hold whatever the
 * times are. Each shipped model is tested by 500 pairs of sets, 20,000 in the
 * full size:
 *
 * - weights in fp16 are never dearer than weights in fp32;
 * - a table without lookups is free;
 * - a set without one of its tables is never dearer.
 *
 * Half of the sets are inside the ranges of the model's training, the other
 * half has batches, rows, columns, lookups and numbers of tables at the ends of
 * these ranges. A relation is broken if it fails by more than 1 %. Both sets of
 * a pair are priced by one oracle, because opening one takes most of the time.
 */
#include "base/rng.h"
#include "costmodel/modelfile/model_file.h"
#include "costmodel/models/oracle_open.h"
#include "tests/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_PAIRS 500
#define N_PAIRS_FULL 20000
#define TOLERATED 0.01
#define MAX_TABLES 61

enum relation { NARROW, EMPTY, FEWER, N_RELATIONS };
static const char *const relation_names[] = {
    "fp16 is no dearer", "an empty table is free", "fewer are no dearer"};

struct scene {
    const char *name;
    struct model model;
    struct rng rng;
    bool is_at_edge;
    size_t n_broken[N_RELATIONS], n[N_RELATIONS];
    double worst[N_RELATIONS]; /* largest excess */
};

/* Draws a number from a range, evenly in its logarithm. At an edge, draws one
 * of the ends of the range. */
static double draw(struct scene *scene, double least, double most)
{
    if (scene->is_at_edge)
        return rng_draw(&scene->rng, 2) ? most : least;
    return exp(log(least) + rng_uniform(&scene->rng) * log(most / least));
}

/* Draws a number from the training range of a feature. */
static double draw_feature(struct scene *scene, const char *name,
                           double (*value)(double x))
{
    const struct feature_set *set = &scene->model.features;
    unsigned f = 0;

    while (f < set->n && strcmp(set->items[f].name, name) != 0)
        f++;
    return draw(scene, fmax(value(set->items[f].min), 1),
                value(set->items[f].max));
}

static void draw_table(struct scene *scene, struct table *table,
                       const struct model_range *range, double batch)
{
    const double lookups = draw_feature(scene, "log1p_lookups", expm1);

    table_init(table);
    table->name = "t";
    table->num_embeddings =
        (uint64_t)fmax(draw_feature(scene, "log1p_rows", expm1), 1);
    table->dim =
        4 * (uint32_t)fmax(draw_feature(scene, "log2_dim", exp2) / 4, 1);
    table->pooling_factor = lookups / batch;
    table->zipf_alpha = 1.5 * rng_uniform(&scene->rng);
    table->precision = PRECISION_FP32;
    table->optimizer = range->optimizer;
}

static void draw_problem(struct scene *scene, struct problem *problem,
                         struct arena *arena)
{
    const struct range_list *ranges = &scene->model.ranges;
    const struct model_range *range =
        &ranges->items[rng_draw(&scene->rng, (uint32_t)ranges->n)];
    const double batch = round(draw(scene, range->batch_min, range->batch_max));

    *problem = (struct problem){
        .tables = ARENA_NEW(arena, struct table, 2 * MAX_TABLES),
        .n_tables = (size_t)draw(scene, 2, MAX_TABLES - 1),
        .cluster = {.n_devices = 1,
                    .devices_per_host = 1,
                    .memory_bytes = ARENA_NEW(arena, uint64_t, 1),
                    .reserve_bytes = ARENA_NEW(arena, uint64_t, 1)},
        .batch = (uint64_t)batch,
        .kinds = SHARD_ALL_KINDS,
    };
    problem->cluster.memory_bytes[0] = (uint64_t)1 << 50;
    for (size_t t = 0; t < problem->n_tables; t++)
        draw_table(scene, &problem->tables[t], range, batch);
}

/* Returns the time of a device that holds n tables from the first one on, as
 * the oracle prices it. */
static double price(const struct oracle *oracle, size_t first, size_t n,
                    struct arena *arena)
{
    struct shard shards[MAX_TABLES];
    double *vectors = ARENA_NEW(arena, double, oracle->width *n);
    double *sums = ARENA_NEW(arena, double, oracle->width), ms;

    for (size_t t = 0; t < n; t++)
        shards[t] = shard_whole(oracle->problem, (uint32_t)(first + t), 0);
    oracle->ops->embed(oracle, shards, n, vectors);
    oracle_add_shards(oracle, shards, vectors, n, 1, sums);
    oracle->ops->compute(oracle, sums, 1, &ms);
    return ms;
}

/* Appends the changed set to the tables of the problem, the n tables of the
 * first set. It costs no more by the relation, or as much. */
static void append(struct scene *scene, struct problem *problem,
                   enum relation relation)
{
    const size_t n = problem->n_tables;
    struct table *changed = problem->tables + n;

    memcpy(changed, problem->tables, n * sizeof *changed);
    problem->n_tables += n;
    switch (relation) {
    case NARROW:
        for (size_t t = 0; t < n; t++)
            changed[t].precision = PRECISION_FP16;
        break;
    case EMPTY:
        changed[n] = changed[n - 1];
        changed[n].num_embeddings = 1;
        changed[n].dim = 4;
        changed[n].pooling_factor = 0;
        problem->n_tables++;
        break;
    case FEWER:
    case N_RELATIONS:
        changed[rng_draw(&scene->rng, (uint32_t)n)] = changed[n - 1];
        problem->n_tables--;
    }
}

/* Returns by how much the changed set is dearer, relative to the first one; NAN
 * on failure. */
static double excess_of(const struct scene *scene,
                        const struct problem *problem, size_t n,
                        struct arena *arena)
{
    struct oracle *oracle;
    struct err err = {0};

    if (oracle_open(&oracle, scene->name, problem, arena, &err)) {
        printf("# %s\n", err.msg);
        return NAN;
    }
    return price(oracle, n, problem->n_tables - n, arena) /
               price(oracle, 0, n, arena) -
           1;
}

static void test_pair(struct scene *scene, enum relation relation)
{
    struct arena arena = {0};
    struct problem problem;
    double excess;
    size_t n;

    draw_problem(scene, &problem, &arena);
    n = problem.n_tables;
    append(scene, &problem, relation);
    excess = excess_of(scene, &problem, n, &arena);
    if (relation == EMPTY)
        excess = fabs(excess);
    scene->n[relation]++;
    scene->worst[relation] = tap_worst(scene->worst[relation], excess);
    scene->n_broken[relation] += !(excess <= TOLERATED);
    arena_release(&arena);
}

static void test_model(const char *name, struct arena *arena)
{
    const char *data = getenv("NEUROSHARD_DATA");
    struct scene scene = {.name = arena_printf(arena, "model:%s.nsm", name)};
    struct err err = {0};
    const size_t n_pairs = tap_size(N_PAIRS, N_PAIRS_FULL);

    if (!ok(!model_load(&scene.model,
                        arena_printf(arena, "%s/models/%s.nsm",
                                     data ? data : "data", name),
                        arena, &err),
            "%s %s", name, err.msg))
        return;
    rng_init(&scene.rng, 45, 0);
    for (size_t i = 0; i < n_pairs; i++) {
        scene.is_at_edge = i >= n_pairs / 2;
        test_pair(&scene, (enum relation)(i % N_RELATIONS));
    }
    for (int r = 0; r < N_RELATIONS; r++)
        ok(!scene.n_broken[r],
           "%s: %s: %zu of %zu pairs broken, worst %+.2f %%", name,
           relation_names[r], scene.n_broken[r], scene.n[r],
           100 * scene.worst[r]);
}

int main(void)
{
    static const char *const models[] = {"h100", "h200", "cuda-nvidia-h100",
                                         "cpu-amd-epyc-2t"};
    struct arena arena = {0};

    for (size_t m = 0; m < sizeof(models) / sizeof(*models); m++)
        test_model(models[m], &arena);
    arena_release(&arena);
    return tap_done();
}
