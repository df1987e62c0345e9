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

/* Number of samples whose layers are in memory at a time. Sums over a batch are
 * cut there. */
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
    /* [batch][pooled] gradients of the pooled vectors; in stepwise mode the
     * executed ones after their comparison */
    double *pooled_gradients;
    /* scales of the current step's gradients (struct reference_net) */
    double scales[2 * DENSE_MAX_PRODUCTS];
    /* kinks of the current step: those of all processes, and those that take
     * the other side */
    struct reference_kinks kinks, taken;
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
    mem_free(reference->kinks.items);
    mem_free(reference->taken.items);
    mem_free(reference);
}

/* --- gradients of a step --- */

static uint64_t n_outputs_of(const struct dense *dense)
{
    return dense->top.width[dense->top.n - 1];
}

/* Returns what one sample's loss counts in the mean over the batch. */
static double mean_scale(const struct train_reference *reference)
{
    return 1 / ((double)reference->placement->batch *
                (double)n_outputs_of(reference->dense));
}

/* Trains on n samples of the drawn batch, from `first` on, and adds their
 * gradients times `scale`. Stores the gradients of their pooled vectors in
 * pooled_gradients[n][pooled]. Returns the sum of their losses. */
static double train_samples(struct train_reference *reference, unsigned number,
                            uint64_t first, size_t n, double scale,
                            double *pooled_gradients)
{
    const struct placement *placement = reference->placement;
    const struct dense *dense = reference->dense;
    uint32_t n_features = dense->bottom.n ? dense->bottom.width[0] : 0;
    uint64_t n_outputs = n_outputs_of(dense);
    double *features = mem_alloc(n * n_features, sizeof(double));
    double *pooled = mem_alloc(n * (size_t)dense->pooled, sizeof(double));
    double *labels = mem_alloc(n * (size_t)n_outputs, sizeof(double));
    float *values = mem_alloc(n_features, sizeof(float));
    struct reference_samples samples = {first,  n,      features,
                                        pooled, labels, pooled_gradients};
    double loss;

    for (size_t i = 0; i < n; i++) {
        uint64_t sample = (uint64_t)number * placement->batch + first + i;

        values_features(values, placement->seed, sample, n_features);
        widen(features + i * n_features, values, n_features);
        for (uint64_t j = 0; j < n_outputs; j++)
            labels[i * n_outputs + j] =
                values_label(placement->seed, sample * n_outputs + j);
    }
    reference_rows_pool(&reference->rows, first, n, pooled);
    loss = reference_net_train(&reference->net, &samples, scale);
    mem_free(features);
    mem_free(pooled);
    mem_free(labels);
    mem_free(values);
    return loss;
}

/* Computes the loss and the gradients of the whole batch: each process those of
 * its samples, which the processes add up. */
static int train_batch(struct train_reference *reference, unsigned number,
                       double *loss, struct err *err)
{
    struct world *world = reference->placement->comm->world;
    const struct dense *dense = reference->dense;
    double scale = mean_scale(reference), sum = 0;
    uint64_t first;

    memset(reference->net.gradients, 0,
           (size_t)dense->n_parameters * sizeof(double));
    memset(reference->scales, 0, sizeof(reference->scales));
    reference->net.scales = reference->scales;
    reference->kinks.n = reference->taken.n = 0;
    reference->net.taken = NULL;
    reference->net.found = reference->is_free ? NULL : &reference->kinks;
    for (first = reference->begin; first < reference->end;
         first += CHUNK_SAMPLES) {
        if (interrupt_requested())
            return err_set(err, ERR_INTERRUPTED, "interrupted");
        sum +=
            train_samples(reference, number, first,
                          min_u64(CHUNK_SAMPLES, reference->end - first), scale,
                          reference->pooled_gradients + first * dense->pooled);
    }
    if (reference_add_up(world, &sum, 1, err) ||
        reference_add_up(world, reference->net.gradients,
                         (size_t)dense->n_parameters, err) ||
        reference_add_up(world, reference->scales, 2 * DENSE_MAX_PRODUCTS, err))
        return -1;
    /* The recomputation of samples adds nothing. */
    reference->net.scales = NULL;
    *loss = sum * scale;
    return 0;
}

/* --- kinks --- */

/* Replaces the kinks of this process by those of all processes, in the order of
 * ranks. */
static int gather_kinks(struct train_reference *reference, struct err *err)
{
    struct world *world = reference->placement->comm->world;
    struct reference_kinks *kinks = &reference->kinks;
    uint64_t *counts = mem_alloc(world->size, sizeof(*counts)), own = kinks->n;
    size_t *n_bytes = mem_alloc(world->size, sizeof(*n_bytes));
    char **parts = mem_alloc(world->size, sizeof(*parts)), *all;
    size_t n = 0;
    int rc = -1;

    if (world_all_gather(world, &own, sizeof(own), counts, err))
        goto out;
    for (uint32_t r = 0; r < world->size; r++)
        n += counts[r];
    all = mem_grow(NULL, n, sizeof(*kinks->items));
    n = 0;
    for (uint32_t r = 0; r < world->size; r++) {
        n_bytes[r] = counts[r] * sizeof(*kinks->items);
        parts[r] = all + n * sizeof(*kinks->items);
        n += counts[r];
    }
    if (own)
        memcpy(parts[world->rank], kinks->items, n_bytes[world->rank]);
    rc = reference_gather(world, parts, n_bytes, err);
    mem_free(kinks->items);
    *kinks = (struct reference_kinks){(void *)all, n, n};
out:
    mem_free(counts);
    mem_free(n_bytes);
    mem_free(parts);
    return rc;
}

/* Lets a kink take the other side: replaces the contribution of its sample to
 * the gradients. */
static void take_kink(struct train_reference *reference, unsigned number,
                      const struct reference_kink *kink)
{
    struct reference_kinks *taken = &reference->taken, found = {0};
    const uint64_t pooled = reference->dense->pooled;
    double *gradients = mem_alloc((size_t)pooled, sizeof(double));
    double scale = mean_scale(reference);
    uint64_t sample = kink->sample;

    reference->net.found = NULL;
    train_samples(reference, number, sample, 1, -scale, gradients);
    taken->items =
        mem_room(taken->items, taken->n, &taken->cap, sizeof(*taken->items));
    taken->items[taken->n++] = *kink;
    reference->net.taken = taken;
    reference->net.found = &found;
    train_samples(reference, number, sample, 1, scale, gradients);
    if (sample >= reference->begin && sample < reference->end)
        memcpy(reference->pooled_gradients + sample * pooled, gradients,
               (size_t)pooled * sizeof(double));
    /* The layers below get other gradients now. */
    for (size_t i = 0; i < found.n; i++)
        for (size_t j = 0; j < reference->kinks.n; j++) {
            struct reference_kink *other = &reference->kinks.items[j];

            if (other->sample == sample &&
                other->product == found.items[i].product &&
                other->unit == found.items[i].unit)
                other->change = found.items[i].change;
        }
    mem_free(found.items);
    mem_free(gradients);
}

/* Finds the kinks of a unit in different samples. Fills
 * own[REFERENCE_MOST_KINKS] with their indices, from `begin` on, and returns
 * their number. */
static unsigned kinks_of_unit(const struct reference_kinks *kinks, size_t begin,
                              size_t *own)
{
    const struct reference_kink *first = &kinks->items[begin];
    unsigned n = 0;

    for (size_t i = begin; i < kinks->n && n < REFERENCE_MOST_KINKS; i++)
        if (kinks->items[i].product == first->product &&
            kinks->items[i].unit == first->unit)
            own[n++] = i;
    return n;
}

/* Returns true if a kink before this one is of the same unit. */
static bool has_earlier(const struct reference_kinks *kinks, size_t idx)
{
    for (size_t i = 0; i < idx; i++)
        if (kinks->items[i].product == kinks->items[idx].product &&
            kinks->items[i].unit == kinks->items[idx].unit)
            return true;
    return false;
}

/* Lets those kinks of a unit take the other side that together bring the
 * gradient of the unit's bias closest to the executed one. The unit is that of
 * the kink `begin`. */
static void take_of_unit(struct train_reference *reference,
                         const struct executed_step *step, size_t begin)
{
    const struct reference_kinks *kinks = &reference->kinks;
    const uint32_t p = kinks->items[begin].product;
    const uint64_t bias =
        reference_net_offset(reference->dense, p) +
        reference->dense->products[p].in * reference->dense->products[p].out +
        kinks->items[begin].unit;
    double changes[REFERENCE_MOST_KINKS];
    size_t own[REFERENCE_MOST_KINKS];
    const unsigned n = kinks_of_unit(kinks, begin, own);
    unsigned set;

    for (unsigned i = 0; i < n; i++)
        changes[i] = kinks->items[own[i]].change;
    set = reference_kinks_choose(
        step->gradients[bias] - reference->net.gradients[bias], changes, n);
    for (unsigned i = 0; i < n; i++)
        if (set & 1u << i) {
            const struct reference_kink kink = kinks->items[own[i]];

            take_kink(reference, step->number, &kink);
        }
}

/* Lets kinks take the other side as the executed step did. Begins with the last
 * layer, because a kink changes the gradients of all layers before its own. */
static void take_kinks(struct train_reference *reference,
                       const struct executed_step *step)
{
    const struct reference_kinks *kinks = &reference->kinks;

    for (uint32_t p = reference->dense->n_products; p-- > 0;)
        for (size_t i = 0; i < kinks->n; i++)
            if (kinks->items[i].product == p && !has_earlier(kinks, i))
                take_of_unit(reference, step, i);
}

/* --- steps --- */

/* Completes the gradients of the pooled vectors, of which this process has
 * those of its own samples. */
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
static int check_gradients(struct train_reference *reference,
                           const struct executed_step *step, struct err *err)
{
    const struct dense *dense = reference->dense;
    size_t n = (size_t)(reference->end - reference->begin);
    double *own =
        reference->pooled_gradients + reference->begin * dense->pooled;

    if (gather_kinks(reference, err))
        return -1;
    take_kinks(reference, step);
    reference_check_dense(&reference->check, REFERENCE_GRADIENTS, dense,
                          reference->net.gradients, step->gradients,
                          reference->scales, "gradient");
    reference_check_pooled(&reference->check, &reference->rows, n, own,
                           step->pooled_gradients);
    widen(reference->net.gradients, step->gradients, dense->n_parameters);
    widen(own, step->pooled_gradients, n * dense->pooled);
    return 0;
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
    if (train_batch(reference, step->number, &loss, err))
        return -1;
    reference_check_loss(&reference->check, loss, step->loss);
    if (!reference->is_free && check_gradients(reference, step, err))
        return -1;
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
