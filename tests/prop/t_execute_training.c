/* SPDX-License-Identifier: MIT */
#include "tests/drawn_training.h"

#include <dlfcn.h>

/* Trainings of random models by random plans, compared with the unsharded
 * reference. The processes, the pipeline and the threads that move ids change
 * no bit of the weights. */

#define N_GPU_CASES 6 /* cases that a GPU, if there is one, trains, too */

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

            cases[n_cases++] =
                (struct training_case){.seed = seed,
                                       .spec = model < 2 ? models[model] : NULL,
                                       .n_ranks = ranks[r],
                                       .dense_optimizer = optimizers[rule][0],
                                       .optimizer = optimizers[rule][1]};
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
