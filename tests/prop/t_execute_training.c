/* SPDX-License-Identifier: MIT */
#include "exec/exec_train.h"

#include <dlfcn.h>
#include <math.h>
#include <sys/mman.h>

#include "base/rng.h"
#include "device/world_fork.h"
#include "tests/tap.h"
#include "tests/unit/exec/exec_fixture.h"

/* Trainings of random models by random plans, compared with the unsharded
 * reference. The processes, the pipeline and the threads that move ids change
 * no bit of the weights. */

#define N_STEPS 10
#define N_GPU_CASES 6 /* cases that a GPU, if there is one, trains, too */
#define BATCH 61

/* One training: a model, a plan and the way in which it runs. */
struct training_case {
    uint64_t seed;
    const char *spec; /* NULL: drawn from the seed */
    uint32_t n_ranks;
    enum optimizer dense_optimizer, optimizer;
};

/* Results, in memory that the processes share. */
struct found {
    bool is_done;
    double errors[N_REFERENCE_WHAT];
    uint64_t n[N_REFERENCE_WHAT];
    uint64_t dense_hash, weight_hash;
    double losses[N_STEPS];
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
    const uint32_t n = own->n_ranks;
    struct rng rng;

    rng_init(&rng, own->seed, 1);
    fixture->plan = (struct plan){.problem = {.tables = fixture->tables,
                                              .cluster.n_devices = n,
                                              .batch = BATCH},
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
                                         .dense_optimizer =
                                             own->dense_optimizer,
                                         .scale_rows = 1,
                                         .seed = own->seed,
                                         .check = true};
    const char *spec = draw_spec(own, &fixture.arena);
    int rc;

    draw_plan(&fixture, own);
    rc = dense_read(&options.dense, spec, strlen(spec), fixture.tables,
                    fixture.plan.problem.n_tables, &fixture.arena, err) ||
         device_open(&fixture.device, kind, 0, 1, err) ||
         exec_train(&result, &fixture.plan, world, fixture.device, &options,
                    &fixture.arena, err);
    if (!rc && !world->rank) {
        *found = (struct found){.is_done = true,
                                .dense_hash = result.dense_hash,
                                .weight_hash = result.weight_hash};
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

/* --- cases --- */

static const char *const models[] = {
    "bottom:13-32-16;interaction:dcn:3x8;top:64-32-16-1",
    "bottom:13-32-16;interaction:dot;top:64-32-16-1"};
static const enum optimizer optimizers[][2] = {
    {OPTIMIZER_SGD, OPTIMIZER_SGD},
    {OPTIMIZER_ADAM, OPTIMIZER_ROWWISE_ADAGRAD},
    {OPTIMIZER_ADAGRAD, OPTIMIZER_SGD}};

#define N_MODELS 6 /* dcnv2, dlrm and four drawn models */
#define N_RANKS 3
#define MAX_CASES 400

static struct training_case cases[MAX_CASES];
static unsigned n_cases;

static void make_cases(uint64_t n_seeds)
{
    static const uint32_t ranks[N_RANKS] = {1, 2, 4};

    for (uint64_t seed = 0; seed < n_seeds; seed++)
        for (unsigned r = 0; r < N_RANKS; r++) {
            const unsigned model = (unsigned)(seed % N_MODELS);
            const unsigned rule = (unsigned)(seed / N_MODELS) % 3;

            cases[n_cases++] = (struct training_case){
                seed, model < 2 ? models[model] : NULL, ranks[r],
                optimizers[rule][0], optimizers[rule][1]};
        }
}

/* Checks that a training agrees with the reference. */
static void check_errors(const struct training_case *own,
                         const struct found *found, const char *where)
{
    const bool is_free = own->dense_optimizer == OPTIMIZER_SGD &&
                         own->optimizer == OPTIMIZER_SGD;
    const double *errors = found->errors;

    ok(found->is_done && !found->failure[0] &&
           errors[REFERENCE_LOSSES] <= (is_free ? 1e-5 : 1e-4) &&
           found->n[REFERENCE_LOSSES] == N_STEPS,
       "seed %llu, %u ranks, %s, %s: losses within %.1g %s",
       (unsigned long long)own->seed, own->n_ranks,
       optimizer_names[own->dense_optimizer], where, errors[REFERENCE_LOSSES],
       found->failure);
    if (is_free)
        ok(errors[REFERENCE_WEIGHTS] <= 1e-5 &&
               found->n[REFERENCE_WEIGHTS] > 1000,
           "... all weights within %.1g", errors[REFERENCE_WEIGHTS]);
    else
        ok(errors[REFERENCE_GRADIENTS] <= 1e-5 &&
               errors[REFERENCE_UPDATES] <= 1e-6 &&
               found->n[REFERENCE_GRADIENTS] > 1000 &&
               found->n[REFERENCE_UPDATES] > 1000,
           "... gradients within %.1g, updates within %.1g",
           errors[REFERENCE_GRADIENTS], errors[REFERENCE_UPDATES]);
}

static void check_case(const struct training_case *own,
                       const struct found *many, const struct found *one,
                       const struct found *pipelined)
{
    check_errors(own, one, "CPU");
    ok(many->is_done && !many->failure[0] &&
           many->dense_hash == one->dense_hash &&
           many->weight_hash == one->weight_hash,
       "... the same bits in a process for each rank %s", many->failure);
    ok(pipelined->is_done && pipelined->dense_hash == one->dense_hash &&
           pipelined->weight_hash == one->weight_hash &&
           !memcmp(pipelined->losses, one->losses, sizeof(one->losses)),
       "... and in the other pipeline");
}

/* Loads the stand-in for cuBLAS of the emulated GPU, which then is found by its
 * name. A real GPU needs the real library. */
static void load_stand_in(const char *program)
{
    char path[1024];

    if (!dlsym(RTLD_DEFAULT, "cudaMemcpy"))
        return;
    snprintf(path, sizeof(path), "%.*s/../../fake/libcublas.so.13",
             (int)(strrchr(program, '/') - program), program);
    ok(!!dlopen(path, RTLD_NOW | RTLD_LOCAL), "the stand-in of cuBLAS");
}

int main(int argc, char **argv)
{
    static struct found *many[MAX_CASES], *pipelined[MAX_CASES];

    (void)argc;
    make_cases(tap_size(2 * N_MODELS, 20 * N_MODELS));
    /* Processes are forked before this one has threads. */
    for (unsigned i = 0; i < n_cases; i++)
        if (cases[i].n_ranks > 1)
            many[i] =
                train_in_many(&cases[i], i % 2 ? PIPELINE_SDD : PIPELINE_NONE);
    load_stand_in(argv[0]);
    for (unsigned i = 0; i < n_cases; i++) {
        struct found *one = train_in_one(&cases[i], PIPELINE_NONE, DEVICE_CPU);

        pipelined[i] = train_in_one(&cases[i], PIPELINE_SDD, DEVICE_CPU);
        check_case(&cases[i], many[i] ? many[i] : one, one, pipelined[i]);
        if (i < N_GPU_CASES && device_count(DEVICE_CUDA))
            check_errors(&cases[i],
                         train_in_one(&cases[i], PIPELINE_NONE, DEVICE_CUDA),
                         "GPU");
        munmap(one, sizeof(*one));
    }
    return tap_done();
}
