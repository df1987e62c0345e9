/* SPDX-License-Identifier: MIT */
#include "exec/train_reference.h"

#include "base/interrupt.h"
#include "device/world.h"
#include "exec/rank_work.h"
#include "exec/reference_gather.h"
#include "exec/reference_net.h"
#include "exec/reference_rule.h"
#include "exec/values.h"

#include <math.h>
#include <string.h>

/* Number of samples whose layers are in memory at a time. The losses of a batch
 * are added up chunk by chunk. */
#define CHUNK_SAMPLES 256

struct train_reference {
    const struct placement *placement; /* not owned */
    const struct dense *dense;         /* not owned */
    bool is_free;
    struct reference_rows rows;
    struct reference_net net;
    struct reference_rule rule;
    struct reference_check check;
    /* samples of this process, [begin, end) of the batch */
    uint64_t begin, end;
    /* [batch][pooled] gradients of the pooled vectors. In stepwise mode, the
     * executed gradients replace them after the comparison. */
    double *pooled_gradients;
    /* scales of the current step's gradients (struct reference_net) */
    double scales[2 * DENSE_MAX_PRODUCTS];
};

bool train_reference_is_free(const struct train_reference *reference)
{
    return reference->is_free;
}

static bool all_sgd(const struct problem *problem, enum optimizer optimizer)
{
    bool is_sgd = optimizer == OPTIMIZER_SGD;

    for (size_t t = 0; t < problem->n_tables; t++)
        if (problem->tables[t].num_outputs > 0)
            is_sgd = is_sgd && problem->tables[t].optimizer == OPTIMIZER_SGD;
    return is_sgd;
}

/* Converts n numbers to double precision. */
static void widen(double *to, const float *from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        to[i] = from[i];
}

int train_reference_open(struct train_reference **out,
                         const struct placement *placement,
                         const struct dense *dense, enum optimizer optimizer,
                         const unsigned *numbers, size_t n_numbers,
                         struct err *err)
{
    const struct problem *problem = &placement->plan->problem;
    struct train_reference *reference;
    float *parameters;

    if (optimizer != OPTIMIZER_SGD && optimizer != OPTIMIZER_ADAGRAD &&
        optimizer != OPTIMIZER_ADAM)
        return err_input(err,
                         "the dense part has %s, which has no reference yet",
                         optimizer_names[optimizer]);
    reference = mem_alloc(1, sizeof(*reference));
    reference->placement = placement;
    reference->dense = dense;
    reference->is_free = all_sgd(problem, optimizer);
    reference->begin = placement_sample(placement, placement->here.begin);
    reference->end = placement_sample(placement, placement->here.end);
    reference_rows_open(&reference->rows, placement, numbers, n_numbers);
    reference_net_init(&reference->net, dense, placement->pool);
    reference->net.scales = reference->scales;
    reference_rule_init(&reference->rule, optimizer, dense->n_parameters);
    reference_check_init(&reference->check, placement, reference->is_free);
    reference->pooled_gradients =
        mem_alloc(placement->batch * (size_t)dense->pooled, sizeof(double));
    parameters = mem_grow(NULL, (size_t)dense->n_parameters, sizeof(float));
    values_parameters(parameters, placement->seed, dense);
    widen(reference->net.parameters, parameters, dense->n_parameters);
    mem_free(parameters);
    *out = reference;
    return 0;
}

void train_reference_close(struct train_reference *reference)
{
    if (!reference)
        return;
    reference_rows_close(&reference->rows);
    reference_net_release(&reference->net);
    reference_rule_release(&reference->rule);
    mem_free(reference->pooled_gradients);
    mem_free(reference);
}

/* --- gradients of a step --- */

/* Returns the weight of one output's loss in the mean over the samples of a
 * sharding group. */
static double mean_scale(const struct train_reference *reference)
{
    return 1 / ((double)placement_copy_samples(reference->placement) *
                (double)dense_n_outputs(reference->dense));
}

/* Divides sums over all samples by the number of sharding groups. */
static void average_groups(const struct train_reference *reference,
                           double *sums, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        sums[i] /= reference->placement->n_copies;
}

/* Trains on n samples of the drawn batch, from `first` on. Adds `scale` times
 * their gradients to those of the net. Stores the gradients of their pooled
 * vectors in pooled_gradients[n][pooled]. Returns the sum of their losses. */
static double train_samples(struct train_reference *reference,
                            const struct executed_step *step, uint64_t first,
                            size_t n, double scale, double *pooled_gradients)
{
    const struct placement *placement = reference->placement;
    const struct dense *dense = reference->dense;
    uint32_t n_features = dense_n_features(dense);
    uint64_t n_outputs = dense_n_outputs(dense);
    double *features = mem_alloc(n * n_features, sizeof(double));
    double *pooled = mem_alloc(n * (size_t)dense->pooled, sizeof(double));
    double *labels = mem_alloc(n * (size_t)n_outputs, sizeof(double));
    float *values = mem_alloc(n_features, sizeof(float));
    const float *executed[DENSE_MAX_PRODUCTS] = {0};
    struct reference_samples samples = {n,      features,         pooled,
                                        labels, pooled_gradients, NULL};
    double loss;

    for (size_t i = 0; i < n; i++) {
        uint64_t sample = (uint64_t)step->number * placement->batch + first + i;

        values_features(values, placement->seed, sample, n_features);
        widen(features + i * n_features, values, n_features);
        for (uint64_t j = 0; j < n_outputs; j++)
            labels[i * n_outputs + j] =
                values_label(placement->seed, sample * n_outputs + j);
    }
    reference_rows_pool(&reference->rows, first, n, pooled);
    for (uint32_t p = 0; !reference->is_free && p < dense->n_products; p++)
        if (dense->products[p].has_relu)
            executed[p] = step->relu_outputs[p] +
                          (first - reference->begin) * dense->products[p].out;
    samples.executed = reference->is_free ? NULL : executed;
    loss = reference_net_train(&reference->net, &samples, scale);
    mem_free(features);
    mem_free(pooled);
    mem_free(labels);
    mem_free(values);
    return loss;
}

/* Computes the loss and the gradients of the whole batch. Each process computes
 * those of its own samples, and then all processes add them up. */
static int train_batch(struct train_reference *reference,
                       const struct executed_step *step, double *loss,
                       struct err *err)
{
    struct world *world = reference->placement->comm->world;
    const struct dense *dense = reference->dense;
    double scale = mean_scale(reference), sum = 0;
    uint64_t first;

    memset(reference->net.gradients, 0,
           (size_t)dense->n_parameters * sizeof(double));
    memset(reference->scales, 0, sizeof(reference->scales));
    for (first = reference->begin; first < reference->end;
         first += CHUNK_SAMPLES) {
        if (interrupt_requested())
            return err_set(err, ERR_INTERRUPTED, "interrupted");
        sum +=
            train_samples(reference, step, first,
                          min_u64(CHUNK_SAMPLES, reference->end - first), scale,
                          reference->pooled_gradients + first * dense->pooled);
    }
    if (reference_add_up(world, &sum, 1, err) ||
        reference_add_up(world, reference->net.gradients,
                         (size_t)dense->n_parameters, err) ||
        reference_add_up(world, reference->scales, 2 * DENSE_MAX_PRODUCTS, err))
        return -1;
    average_groups(reference, reference->net.gradients, dense->n_parameters);
    average_groups(reference, reference->scales, 2 * DENSE_MAX_PRODUCTS);
    *loss = sum * scale / reference->placement->n_copies;
    return 0;
}

/* --- steps --- */

/* Gathers the gradients of the pooled vectors of all samples. Each process has
 * computed the gradients of its own samples. */
static int gather_pooled(struct train_reference *reference, struct err *err)
{
    const struct placement *placement = reference->placement;
    struct world *world = placement->comm->world;
    size_t sample_bytes = (size_t)reference->dense->pooled * sizeof(double);
    char **parts = mem_alloc(world->size, sizeof(*parts));
    size_t *n_bytes = mem_alloc(world->size, sizeof(*n_bytes));
    int rc;

    for (uint32_t r = 0; world->size > 1 && r < world->size; r++) {
        uint32_t begin = placement_sample(placement, r);

        parts[r] = (char *)reference->pooled_gradients + begin * sample_bytes;
        n_bytes[r] =
            (placement_sample(placement, r + 1) - begin) * sample_bytes;
    }
    rc = reference_gather(world, parts, n_bytes, err);
    mem_free(parts);
    mem_free(n_bytes);
    return rc;
}

/* Compares the gradients of a step, and takes over the executed ones. */
static void check_gradients(struct train_reference *reference,
                            const struct executed_step *step)
{
    const struct dense *dense = reference->dense;
    size_t n = (size_t)(reference->end - reference->begin);
    double *own =
        reference->pooled_gradients + reference->begin * dense->pooled;

    reference_check_dense(&reference->check, REFERENCE_GRADIENTS, dense,
                          reference->net.gradients, step->gradients,
                          reference->scales, "gradient");
    reference_check_pooled(&reference->check, &reference->rows, n, own,
                           step->pooled_gradients);
    widen(reference->net.gradients, step->gradients, dense->n_parameters);
    widen(own, step->pooled_gradients, n * dense->pooled);
}

/* Compares the updates of a step, and takes over the executed values. */
static int check_updates(struct train_reference *reference,
                         const struct executed_step *step, struct err *err)
{
    const struct dense *dense = reference->dense;

    reference_check_dense(&reference->check, REFERENCE_UPDATES, dense,
                          reference->net.parameters, step->parameters, NULL,
                          "update");
    widen(reference->net.parameters, step->parameters, dense->n_parameters);
    return reference_check_rows(&reference->check, REFERENCE_UPDATES,
                                &reference->rows, err);
}

int train_reference_step(struct train_reference *reference,
                         const struct executed_step *step, struct err *err)
{
    double loss = 0;

    reference->check.step++;
    reference_rows_draw(&reference->rows, step->number);
    if (train_batch(reference, step, &loss, err))
        return -1;
    reference_check_loss(&reference->check, loss, step->loss);
    if (!reference->is_free)
        check_gradients(reference, step);
    if (gather_pooled(reference, err))
        return -1;
    reference_rows_sum(&reference->rows, reference->pooled_gradients);
    reference_rule_step(&reference->rule, reference->net.parameters,
                        reference->net.gradients, (double)STEP_RATE);
    if (!reference->is_free)
        return check_updates(reference, step, err);
    reference_rows_update(&reference->rows);
    return 0;
}

int train_reference_sync(struct train_reference *reference, struct err *err)
{
    reference_rows_average(&reference->rows);
    return reference->is_free
               ? 0
               : reference_check_rows(&reference->check, REFERENCE_AVERAGES,
                                      &reference->rows, err);
}

int train_reference_finish(struct train_reference *reference,
                           const float *parameters,
                           struct train_findings *found, struct err *err)
{
    if (reference->is_free) {
        reference_check_dense(&reference->check, REFERENCE_WEIGHTS,
                              reference->dense, reference->net.parameters,
                              parameters, NULL, "final value");
        if (reference_check_rows(&reference->check, REFERENCE_WEIGHTS,
                                 &reference->rows, err))
            return -1;
    }
    *found = reference->check.found;
    return 0;
}
