/* SPDX-License-Identifier: MIT */
#include "costmodel/learning/train_net.h"

#include "base/clock.h"
#include "base/parallel.h"
#include "costmodel/learning/mlp_train.h"
#include "costmodel/learning/pseudo_labels.h"
#include "device/gemm_buffers.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846
/* Least time that the relative loss divides by, as a share of the mean time.
 * Without this limit, a time near zero would outweigh everything else. */
#define LEAST_TIME_FRAC 0.02
/* Relative error e beyond which the loss grows like |e| instead of e^2. */
#define TOLERANCE 0.05
#define WEIGHT_DECAY 0.05
/* Largest bias in the head of a monotone net at the start. It spreads the kinks
 * of the hidden units over the range of their inputs. */
#define MOST_BIAS 4.0
/* Weight decay of a net on a roofline, multiplied by the number of its samples
 * and pseudo-labels. The decay pulls the net towards the roofline's prediction.
 * With it, 1,000 samples with 3 % noise give a mean error of 2.9 % instead of
 * 3.1 %. For 10,000 samples the best value is a tenth of this value. */
#define SAMPLES_TO_ROOFLINE 800.0
/* Equivalent of SAMPLES_TO_ROOFLINE for a monotone net. With 3,421 samples of
 * FBGEMM on an H100, values from 8 to 800 give mean errors of 5.4, 5.0 (80)
 * and 6.2 %. */
#define SAMPLES_TO_ROOFLINE_MONOTONE 80.0
/* Constant by which a net's correction of a roofline is shrunk. With n samples,
 * the share n / (n + SAMPLES_DOUBTED) of the correction is kept. Without
 * shrinking, a search would exploit plans that the net prices too low. */
#define SAMPLES_DOUBTED 30.0
/* State of the training of a net. */
struct training_run {
    const struct train_options *options;
    struct net_sides *sides;
    double begin_ms; /* start of the training, on clock_ms() */
    unsigned epochs, batch_size;
    /* Constant that is added to the output of a net that is not monotone, 0 or
     * 1. It is the net's prediction at the start of training. */
    double start;
    double weight_decay;
    struct pool *pool; /* threads that share the parts of a step */
    struct mlp_work work;
    struct mlp mlp, grad;
    /* Running average of the weights; it is validated and kept. */
    struct mlp average;
    struct adam adam;
    struct rng rng;
    uint64_t step, n_steps;
};

/* Chooses the batch size and the number of epochs if the caller gives none.
 * Pseudo-labels do not change the number of steps. */
static void choose_sizes(struct training_run *run)
{
    const size_t n_train = run->sides->n_known;
    uint64_t steps, n_steps;

    run->batch_size = run->options->batch_size;
    if (!run->batch_size) {
        run->batch_size = 32;
        while (run->batch_size < 256 && n_train >= 72 * 2 * run->batch_size)
            run->batch_size *= 2;
    }
    steps = (n_train + run->batch_size - 1) / run->batch_size;
    n_steps = steps * min_u64(max_u64((20000 + steps - 1) / steps, 200), 1000);
    steps =
        (run->sides->train.n_samples + run->batch_size - 1) / run->batch_size;
    run->epochs = run->options->epochs;
    if (!run->epochs)
        run->epochs = (unsigned)((n_steps + steps - 1) / steps);
    run->n_steps = steps * run->epochs;
}

/* Returns the pseudo-Huber function of a relative error (Charbonnier et al.
 * 1994): e^2 near 0, 2 tolerance |e| far from 0. Stores half of its derivative
 * in *slope. */
static double robust(double error, double tolerance, double *slope)
{
    const double far = error / tolerance, root = sqrt(1 + far * far);

    *slope = error / root;
    return 2 * tolerance * tolerance * (root - 1);
}

/* Returns the price of sample i of a batch in units of its estimate, given the
 * net's output. Stores the derivative of the price by the output in *slope. */
static double price_of(const struct training_run *run, double output,
                       double unit_ms, double *slope)
{
    const double unit_us = 1000 * unit_ms;

    *slope = run->mlp.shape.is_monotone ? 1 / unit_us : 1;
    return run->mlp.shape.is_monotone ? output / unit_us : output + run->start;
}

/* A batch on its way through a net. */
struct training_pass {
    struct training_run *run;
    const struct mlp *mlp;
    const struct dataset *side;
    size_t begin; /* position of the batch in the order of the side */
};

/* Returns the sum of the losses of the samples, given the net's output. Stores
 * the derivatives of the mean loss by the output. */
static double batch_loss(const struct training_pass *pass)
{
    struct training_run *run = pass->run;
    const struct dataset *side = pass->side;
    const size_t n = side->batch.n_samples;
    const bool relative = run->options->loss == LOSS_RELATIVE;
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        const uint32_t pos = side->order[pass->begin + i];
        const float ms = (float)side->ms[pos];
        const double want = (double)ms / side->unit[pos];
        const double unit = relative ? fmax(want, LEAST_TIME_FRAC) : 1;
        double by_output;
        const double error = (price_of(run, (double)run->work.out[3][i],
                                       side->unit[pos], &by_output) -
                              want) /
                             unit;
        double slope = error;

        sum += relative ? robust(error, TOLERANCE, &slope) : error * error;
        run->work.d_out[3][i] =
            (float)(2 * slope * by_output / unit / (double)n);
    }
    return sum;
}

static void forward_part(void *ctx, size_t part, unsigned thread)
{
    const struct training_pass *pass = ctx;

    (void)thread;
    mlp_forward_part(pass->mlp, &pass->side->batch, (unsigned)part,
                     &pass->run->work);
}

static void backward_part(void *ctx, size_t part, unsigned thread)
{
    const struct training_pass *pass = ctx;

    (void)thread;
    mlp_backward_part(pass->mlp, &pass->side->batch, (unsigned)part,
                      &pass->run->work);
}

static void update_part(void *ctx, size_t part, unsigned thread)
{
    const struct training_pass *pass = ctx;
    struct training_run *run = pass->run;

    (void)thread;
    mlp_gradient_part(&run->mlp, &pass->side->batch, (unsigned)part, &run->work,
                      &run->grad);
    mlp_update_part(&run->mlp, &run->grad, (unsigned)part, &run->adam);
}

/* Updates the running average of the weights: average = share average + (1 -
 * share) weights. The share is smaller in the first steps, so that the average
 * forgets the random start. */
static void update_average(struct training_run *run)
{
    const double start = (1.0 + (double)run->step) / (10.0 + (double)run->step);
    const float share = (float)fmin(run->options->average, start);

    for (size_t i = 0; i < run->mlp.n_params; i++)
        run->average.params[i] =
            share * run->average.params[i] + (1 - share) * run->mlp.params[i];
}

/* Hidden unit 0 in the head of a monotone net passes the logarithm of the
 * estimate on. Its weight to the output is 1 at the start, in units of the
 * logarithm, and weight decay pulls it back to 1. All other weights to the
 * output are 0 at the start. So the net starts at the estimate. */
#define START_UNIT 0
#define START_WEIGHT 1.0F

/* Restores the form of a monotone net after a step in which weights decayed by
 * the fraction `decay`. */
static void keep_monotone(struct mlp *mlp, double decay)
{
    const struct mlp_layer *in = &mlp->layers[2], *out = &mlp->layers[3];
    float *w = in->weight + START_UNIT * in->n_in;

    out->weight[START_UNIT] += (float)decay * START_WEIGHT;
    mlp_make_monotone(mlp);
    memset(w, 0, in->n_in * sizeof(*w));
    w[in->n_in - HEAD_CONTEXT + HEAD_ESTIMATE] = MLP_LOG_STD;
    in->bias[START_UNIT] = (float)MLP_LOG_MEAN;
}

/* Takes one training step with a batch whose loss was computed. */
static void learn(struct training_run *run, struct training_pass *pass)
{
    const double progress = (double)run->step / (double)run->n_steps;
    double rate = run->options->learning_rate;

    if (run->options->decay)
        rate *= 0.5 + 0.5 * cos(PI * progress);
    mlp_backward_head(&run->mlp, &pass->side->batch, &run->work);
    pool_run(run->pool, MLP_PARTS, backward_part, pass);
    adam_begin(&run->adam, rate, run->weight_decay);
    pool_run(run->pool, MLP_PARTS, update_part, pass);
    if (run->mlp.shape.is_monotone)
        keep_monotone(&run->mlp, rate * run->weight_decay);
    run->step++;
    update_average(run);
}

/* Runs all batches of one side of the split through a net. The net learns from
 * them, unless it is the running average. Returns the mean loss. */
static double run_side(struct training_run *run, struct dataset *side,
                       const struct mlp *mlp)
{
    const size_t n = side->n_samples;
    struct training_pass pass = {run, mlp, side, 0};
    double loss = 0;

    for (; pass.begin < n; pass.begin += run->batch_size) {
        dataset_batch(side, pass.begin);
        pool_run(run->pool, MLP_PARTS, forward_part, &pass);
        mlp_forward_head(mlp, &side->batch, &run->work);
        loss += batch_loss(&pass);
        if (mlp == &run->mlp)
            learn(run, &pass);
    }
    return loss / (double)n;
}

/* Runs all epochs. The model gets the weights of the epoch with the least
 * validation loss or, without validation, the weights of the last epoch. */
static int run_epochs(struct training_run *run, struct model *model,
                      struct err *err)
{
    const struct train_options *options = run->options;
    const bool validates = run->sides->validation.n_samples > 0;
    double best_loss = INFINITY;

    for (unsigned epoch = 1; epoch <= run->epochs; epoch++) {
        double train_loss, loss;

        rng_shuffle(&run->rng, run->sides->train.order,
                    (uint32_t)run->sides->train.n_samples);
        loss = train_loss = run_side(run, &run->sides->train, &run->mlp);
        if (validates)
            loss = run_side(run, &run->sides->validation, &run->average);
        if (loss < best_loss || !validates) {
            best_loss = loss;
            model->training.best_epoch = epoch;
            memcpy(model->mlp.params, run->average.params,
                   run->average.n_params * sizeof(float));
        }
        model->training.epochs = epoch;
        if ((options->on_epoch &&
             options->on_epoch(options->ctx,
                               &(struct train_epoch){options->n_nets, epoch,
                                                     run->epochs, train_loss,
                                                     loss})) ||
            (options->time_limit_s > 0 &&
             clock_ms() - run->begin_ms > 1000 * options->time_limit_s))
            break;
    }
    if (!isfinite(best_loss))
        return err_input(err, "training diverged: the loss is not a number; a "
                              "lower learning rate may help");
    return 0;
}

/* Rescales the last layer of the net, so that the net answers in ms or in units
 * of the estimate. */
static void scale_answer(const struct model *model,
                         const struct training_run *run)
{
    const double n = (double)run->sides->n_known;
    const double doubted =
        run->options->kind == MODEL_NET ? 0 : SAMPLES_DOUBTED;
    const double kept = run->sides->scale * n / (n + doubted);
    const struct mlp_layer *last = &model->mlp.layers[MLP_LAYERS - 1];

    for (uint32_t i = 0; i < last->n_in; i++)
        last->weight[i] = (float)((double)last->weight[i] * kept);
    if (model->mlp.shape.is_monotone)
        last->weight[START_UNIT] += (float)(1 - kept) * START_WEIGHT;
    last->bias[0] =
        (float)((double)last->bias[0] * kept + run->start * run->sides->scale);
}

/* Starts a net at the prediction of its estimate. */
static void start_at_estimate(struct training_run *run)
{
    struct mlp *mlp = &run->mlp;
    const struct mlp_layer *in = &mlp->layers[2], *last = &mlp->layers[3];

    memset(last->weight, 0, last->n_in * sizeof(*last->weight));
    last->bias[0] = 0;
    if (!mlp->shape.is_monotone) {
        run->start = 1;
        return;
    }
    for (uint32_t o = 0; o < in->n_out; o++) {
        float *w = in->weight + o * in->n_in;

        for (uint32_t i = 0; i < in->n_in; i++)
            w[i] = fabsf(w[i]);
        in->bias[o] = (float)(MLP_LOG_MEAN +
                              MOST_BIAS * (2 * rng_uniform(&run->rng) - 1));
    }
    last->weight[START_UNIT] = START_WEIGHT;
    keep_monotone(mlp, 0);
}

/* Makes the net, the inputs of the net, and everything else that training
 * needs. */
static void make_net(struct training_run *run, const struct model *model,
                     struct arena *arena)
{
    const struct mlp_shape shape = {
        model->features.n,
        MLP_HIDDEN,
        MLP_EMBED,
        MLP_HEAD,
        estimate_head_inputs(&model->estimate),
        model->estimate.is_monotone,
    };

    dataset_scale(&run->sides->train, run->sides->scale, run->batch_size,
                  arena);
    dataset_scale(&run->sides->validation, run->sides->scale, run->batch_size,
                  arena);
    if (run->sides->n_known < run->sides->train.n_samples)
        pseudo_labels_price(&run->sides->train, run->sides->n_known);
    mlp_init(&run->mlp, &shape, arena);
    mlp_work_init(
        &run->work, &run->mlp,
        max_u64(run->sides->train.max_rows, run->sides->validation.max_rows),
        run->batch_size, arena);
    mlp_init(&run->grad, &shape, arena);
    mlp_init(&run->average, &shape, arena);
    adam_init(&run->adam, run->mlp.n_params, arena);
    rng_init(&run->rng, run->options->seed, 0);
    mlp_randomise(&run->mlp, &run->rng);
    if (run->options->kind == MODEL_NET)
        return;
    /* With few samples the net stays near its start. */
    run->weight_decay = (shape.is_monotone ? SAMPLES_TO_ROOFLINE_MONOTONE
                                           : SAMPLES_TO_ROOFLINE) /
                        (double)run->sides->train.n_samples;
    start_at_estimate(run);
}

int train_net(struct model *model, struct net_sides *sides,
              const struct train_options *options, double begin_ms,
              struct arena *arena, struct err *err)
{
    struct training_run run = {.options = options,
                               .sides = sides,
                               .begin_ms = begin_ms,
                               .weight_decay = WEIGHT_DECAY};
    unsigned n_threads = (unsigned)min_u64(options->n_threads, MLP_PARTS);
    struct arena scratch = {0};
    int rc;

    if (gemm_reserve(&n_threads, err))
        return -1;
    choose_sizes(&run);
    make_net(&run, model, &scratch);
    mlp_init(&model->mlp, &run.mlp.shape, arena);
    if (n_threads > 1)
        run.pool = pool_open(n_threads);
    rc = run_epochs(&run, model, err);
    pool_close(run.pool);
    if (!rc)
        scale_answer(model, &run);
    arena_release(&scratch);
    return rc;
}
