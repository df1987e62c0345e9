/* SPDX-License-Identifier: MIT */
#include "tests/drawn_training.h"

/* Trainings of random models in sharding groups, each with its own copy of the
 * tables, compared with a reference in double precision that averages the
 * copies. The processes change no bit of the weights. */

#define SYNC_EVERY 5 /* divides N_STEPS: a training ends with a sync */
#define LIMIT 3e-7   /* largest error of weights after a sync */

static const enum optimizer optimizers[][2] = {
    {OPTIMIZER_SGD, OPTIMIZER_SGD},
    {OPTIMIZER_ADAM, OPTIMIZER_ROWWISE_ADAGRAD},
    {OPTIMIZER_ADAGRAD, OPTIMIZER_SGD},
    {OPTIMIZER_SGD, OPTIMIZER_ROWWISE_ADAGRAD}};
static const uint32_t shapes[][2] = {{4, 2}, {2, 2}, {6, 3}, {4, 4}};

#define MAX_CASES 120
static struct training_case cases[MAX_CASES];

static struct training_case draw_case(uint64_t seed)
{
    const uint32_t *shape = shapes[seed % 4];
    const enum optimizer *rule = optimizers[(seed / 2) % 4];

    return (struct training_case){.seed = 1000 + seed,
                                  .n_ranks = shape[0],
                                  .n_groups = shape[1],
                                  .layout = seed % 3 ? GROUPS_STRIDED
                                                     : GROUPS_CONTIGUOUS,
                                  .sync_every = SYNC_EVERY,
                                  .dense_optimizer = rule[0],
                                  .optimizer = rule[1]};
}

static void check_errors(const struct training_case *own,
                         const struct found *found)
{
    const double *errors = found->errors;
    const bool is_free = found->n[REFERENCE_WEIGHTS] > 0;

    ok(found->is_done && !found->failure[0],
       "seed %llu, %u %s groups of %u GPUs, %s and %s agree %s",
       (unsigned long long)own->seed, own->n_groups,
       groups_layout_names[own->layout], own->n_ranks / own->n_groups,
       optimizer_names[own->dense_optimizer], optimizer_names[own->optimizer],
       found->failure);
    if (is_free)
        ok(errors[REFERENCE_WEIGHTS] <= LIMIT &&
               found->n[REFERENCE_WEIGHTS] > 1000,
           "... weights after %u steps and %u syncs within %.1g", N_STEPS,
           found->sync.n, errors[REFERENCE_WEIGHTS]);
    else
        ok(errors[REFERENCE_UPDATES] <= LIMIT &&
               errors[REFERENCE_AVERAGES] <= LIMIT &&
               found->n[REFERENCE_AVERAGES] > 1000,
           "... updates within %.1g, averages of weights and states within "
           "%.1g",
           errors[REFERENCE_UPDATES], errors[REFERENCE_AVERAGES]);
}

/* An all-reduce over n groups sends 2 (n - 1) / n of the bytes that it
 * averages. */
static void check_bytes(const struct training_case *own,
                        const struct found *found)
{
    const double n = own->n_groups;

    is_i64((int64_t)(found->sync.sent_bytes * n + 0.5),
           (int64_t)(2 * (n - 1) * found->planned_bytes + 0.5),
           "... the sync bytes of the plan, and no others, were sent");
    is_i64(found->sync.n, N_STEPS / SYNC_EVERY, "... in each sync");
}

/* With SGD and a sync after each step, groups train like one group: the mean of
 * the updates is the update by the mean gradient. */
static void test_equal_to_one_group(void)
{
    const struct training_case two = {
        .seed = 7, .n_ranks = 4, .n_groups = 2, .sync_every = 1, .batch = 30};
    struct training_case one = two;
    const struct found *grouped, *whole;
    double most = 0;

    one.n_ranks = 2;
    one.n_groups = 0;
    one.batch = 60;
    grouped = train_in_one(&two, PIPELINE_NONE, DEVICE_CPU);
    whole = train_in_one(&one, PIPELINE_NONE, DEVICE_CPU);
    for (unsigned i = 0; i < N_STEPS; i++)
        most = fmax(most, fabs(grouped->losses[i] / whole->losses[i] - 1));
    ok(grouped->is_done && whole->is_done && most < 1e-6,
       "two groups that sync each step have the losses of one, within %.1g",
       most);
}

int main(void)
{
    static struct found *many[MAX_CASES];
    const size_t n_cases = tap_size(8, MAX_CASES);

    /* Processes are forked before this one has threads. */
    for (size_t i = 0; i < n_cases; i++) {
        cases[i] = draw_case(i);
        many[i] =
            train_in_many(&cases[i], i % 3 ? PIPELINE_NONE : PIPELINE_SDD);
    }
    for (size_t i = 0; i < n_cases; i++) {
        struct found *one = train_in_one(&cases[i], PIPELINE_NONE, DEVICE_CPU);

        check_errors(&cases[i], one);
        check_bytes(&cases[i], one);
        ok(many[i]->is_done && !many[i]->failure[0] &&
               many[i]->dense_hash == one->dense_hash &&
               many[i]->weight_hash == one->weight_hash &&
               many[i]->sync.sent_bytes == one->sync.sent_bytes,
           "... the same bits in a process for each rank %s", many[i]->failure);
        munmap(one, sizeof(*one));
    }
    test_equal_to_one_group();
    return tap_done();
}
