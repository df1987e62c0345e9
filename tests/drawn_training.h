/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_DRAWN_TRAINING_H
#define NEUROSHARD_TESTS_DRAWN_TRAINING_H

#include "exec/exec_train.h"

#include <math.h>
#include <sys/mman.h>

#include "base/rng.h"
#include "core/sharding_groups.h"
#include "device/world_fork.h"
#include "tests/tap.h"
#include "tests/unit/exec/exec_fixture.h"

/* Trainings of random models by random plans, in one process or in one process
 * for each rank. Include in one file only. */

#define N_STEPS 10
#define BATCH 61

/* One training: a model, a plan and the way in which it runs. */
struct training_case {
    uint64_t seed;
    const char *spec; /* NULL: drawn from the seed */
    uint32_t n_ranks; /* of all sharding groups */
    enum optimizer dense_optimizer, optimizer;
    uint32_t n_groups; /* sharding groups; 0 and 1 are the same */
    enum groups_layout layout;
    uint64_t sync_every;
    uint64_t batch; /* samples of a group; 0: BATCH */
};

/* Results, in memory that the processes share. */
struct found {
    bool is_done;
    double errors[N_REFERENCE_WHAT];
    uint64_t n[N_REFERENCE_WHAT];
    uint64_t dense_hash, weight_hash;
    double losses[N_STEPS];
    struct sync_result sync;
    double planned_bytes; /* averaged on the fullest GPU, by the plan */
    char failure[400];
};

/* Adds the pieces of the last table, of a kind that is drawn. */
static void draw_pieces(struct fixture *fixture, struct rng *rng, uint32_t n)
{
    const struct table *table = &fixture->tables[last_table(fixture)];
    const uint64_t half = table->num_embeddings / 3;

    switch (rng_below(rng, 4)) {
    case 0:
        add_whole(fixture, (uint32_t)rng_below(rng, n));
        return;
    case 1:
        add_columns(fixture, (uint32_t)rng_below(rng, n), 0, 4);
        add_columns(fixture, (uint32_t)rng_below(rng, n), 4, table->dim);
        return;
    case 2:
        add_rows(fixture, (uint32_t)rng_below(rng, n), 0, half);
        add_rows(fixture, (uint32_t)rng_below(rng, n), half,
                 table->num_embeddings);
        return;
    default:
        add_replicas(fixture);
        return;
    }
}

static void draw_plan(struct fixture *fixture, const struct training_case *own)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    const uint32_t n_groups = own->n_groups ? own->n_groups : 1;
    const uint32_t n = own->n_ranks / n_groups;
    struct rng rng;

    rng_init(&rng, own->seed, 1);
    fixture->plan = (struct plan){
        .problem = {.tables = fixture->tables,
                    .cluster.n_devices = n,
                    .groups = {.count = own->n_groups, .layout = own->layout},
                    .batch = own->batch ? own->batch : BATCH},
        .shards = fixture->shards};
    for (unsigned t = 0; t < sizeof(names) / sizeof(*names); t++) {
        struct table *table =
            add_table(fixture, names[t], 40 + rng_below(&rng, 900), 16,
                      1 + (double)rng_below(&rng, 5));

        table->optimizer = own->optimizer;
        table->zipf_alpha = rng_uniform(&rng);
        if (t == 1) {
            table->num_outputs = 2;
            table->pooling_factor = 4;
        }
        draw_pieces(fixture, &rng, n);
    }
    plan_derive_kinds(&fixture->plan);
}

/* Returns the case's spec of the dense part, or a random spec if it has
 * none. */
static const char *draw_spec(const struct training_case *own,
                             struct arena *arena)
{
    static const char *const interactions[] = {"cat", "dot", "pool:5",
                                               "dcn:2x6"};
    struct rng rng;

    if (own->spec)
        return own->spec;
    rng_init(&rng, own->seed, 2);
    return arena_printf(
        arena, "bottom:%u-%u-16;interaction:%s;top:%u-%u-%u",
        1 + (unsigned)rng_below(&rng, 13), 4 + (unsigned)rng_below(&rng, 40),
        interactions[rng_below(&rng, 4)], 8 + (unsigned)rng_below(&rng, 60),
        4 + (unsigned)rng_below(&rng, 20), 1 + (unsigned)rng_below(&rng, 2));
}

/* Trains in this process of the world. Process 0 stores the findings. */
static int train_case(struct found *found, const struct training_case *own,
                      enum pipeline pipeline, enum device_kind kind,
                      struct world *world, struct err *err)
{
    struct train_result result;
    struct fixture fixture = {0};
    struct exec_train_options options = {.n_steps = N_STEPS,
                                         .pipeline = pipeline,
                                         .sync_every = own->sync_every,
                                         .dense_optimizer =
                                             own->dense_optimizer,
                                         .scale_rows = 1,
                                         .seed = own->seed,
                                         .check = true};
    const char *spec = draw_spec(own, &fixture.arena);
    int rc;

    draw_plan(&fixture, own);
    if (world->size > 1 &&
        world_renumber(
            world, sharding_groups_place(&fixture.plan.problem, world->rank),
            err))
        return -1;
    rc = dense_read(&options.dense, spec, strlen(spec), fixture.tables,
                    fixture.plan.problem.n_tables, &fixture.arena, err) ||
         device_open(&fixture.device, kind, 0, 1, err) ||
         exec_train(&result, &fixture.plan, world, fixture.device, &options,
                    &fixture.arena, err);
    if (!rc && !world->rank) {
        *found =
            (struct found){.is_done = true,
                           .dense_hash = result.dense_hash,
                           .weight_hash = result.weight_hash,
                           .sync = result.sync,
                           .planned_bytes = plan_sync_bytes(&fixture.plan)};
        memcpy(found->losses, result.losses, sizeof(found->losses));
        snprintf(found->failure, sizeof(found->failure), "%s",
                 result.failure ? result.failure : "");
        for (unsigned i = 0; i < N_REFERENCE_WHAT; i++) {
            found->errors[i] = result.found.tallies[i].error;
            found->n[i] = result.found.tallies[i].n;
        }
    }
    device_close(fixture.device);
    arena_release(&fixture.arena);
    return rc;
}

static struct found *share(void)
{
    return mmap(NULL, sizeof(struct found), PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

/* Trains with n processes of one thread each. */
static struct found *train_in_many(const struct training_case *own,
                                   enum pipeline pipeline)
{
    struct found *found = share();
    struct world *world = NULL;
    struct err err = {0};
    int rc;

    fflush(stdout);
    rc = world_fork(&world, own->n_ranks, &err);
    if (!rc && world) {
        rc = train_case(found, own, pipeline, DEVICE_CPU, world, &err);
        if (rc)
            fprintf(stderr, "%s\n", err.msg);
        world_close(world);
        exit(rc ? 1 : 0);
    }
    if (rc)
        printf("# %s\n", err.msg);
    return found;
}

/* Trains with one process. */
static struct found *train_in_one(const struct training_case *own,
                                  enum pipeline pipeline, enum device_kind kind)
{
    struct found *found = share();
    struct world *world = NULL;
    struct err err = {0};

    if (world_open(&world, &err) ||
        train_case(found, own, pipeline, kind, world, &err))
        printf("# %s\n", err.msg);
    world_close(world);
    return found;
}

#endif
