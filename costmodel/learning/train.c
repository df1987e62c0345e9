/* SPDX-License-Identifier: MIT */
#include "costmodel/learning/train.h"

#include "base/clock.h"
#include "base/stats.h"
#include "base/version.h"
#include "costmodel/learning/dataset.h"
#include "costmodel/learning/estimate_fit.h"
#include "costmodel/learning/mlp_train.h"
#include "costmodel/learning/pseudo_labels.h"
#include "costmodel/learning/roofline_fit.h"
#include "costmodel/modelfile/gpu_file.h"
#include "device/gemm.h"

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
/*
 * Number of pseudo-labels for a net on a roofline, and the largest number of
 * measured samples at which pseudo-labels are used. Results with 200 samples of
 * a simulated GPU:
 *
 *                            without  with
 *   mean error               3.5 %    3.1 %
 *   excess cost of plans     3.3 %    2.3 %
 */
#define N_PSEUDO_LABELS 1000
#define MOST_WITH_PSEUDO_LABELS 2000
/* Largest number of samples to which a roofline is fitted. */
#define MOST_FIT 2000
/* Largest number of samples by which the nearest GPU is chosen. */
#define MOST_TRIED 200

void train_options_init(struct train_options *options)
{
    *options = (struct train_options){.kind = MODEL_NET,
                                      .learning_rate = 4e-3,
                                      .decay = true,
                                      .average = 0.998,
                                      .loss = LOSS_RELATIVE};
    feature_set_init(&options->features, FEATURES_STANDARD);
    feature_set_init(&options->totals, TOTALS_ALL);
}

/* State of one training. */
struct training_run {
    const struct train_options *options;
    double begin_ms; /* start of train_fit, on clock_ms() */
    unsigned epochs, batch_size;
    /* Number of measured samples, without pseudo-labels. */
    size_t n_known;
    struct dataset train, validation; /* sides of the split */
    /* Constant that is added to the output of a net that is not monotone, 0 or
     * 1. It is the net's prediction at the start of training. */
    double start;
    double weight_decay;
    /* Unit of the net's output. With an estimate it is 1, times the estimate of
     * a sample. Without an estimate it is the mean training time in ms. */
    double scale;
    struct mlp_work work;
    struct mlp mlp, grad;
    /* Running average of the weights; it is validated and kept. */
    struct mlp average;
    struct adam adam;
    struct rng rng;
    uint64_t step, n_steps;
};

static bool keep_validation(const struct sample *sample)
{
    return sample_trains(sample) && sample_split(sample) == SPLIT_VALIDATION;
}

/* Returns the filter that selects training samples for a kind of model. A
 * roofline needs no validation side. A net on a roofline needs none either,
 * because it begins at the roofline and is pulled to it. Both learn from all
 * samples that are not held out. */
static bool (*train_side(enum model_kind kind))(const struct sample *)
{
    return kind == MODEL_NET ? sample_is_train : sample_is_known;
}

static int check_numbers(enum model_kind kind, const struct sample *samples,
                         size_t n, struct err *err)
{
    size_t n_train = 0, n_validation = 0, n_disturbed = 0;

    for (size_t i = 0; i < n; i++) {
        n_train += train_side(kind)(&samples[i]);
        n_validation += keep_validation(&samples[i]);
        n_disturbed += (samples[i].flags & SAMPLE_THROTTLED) != 0;
    }
    if (kind == MODEL_ROOFLINE && n_train < TRAIN_MIN_FIT)
        return err_input(
            err,
            "too few samples to fit a roofline to: %zu are not held out, but "
            "at least %d are needed; %zu of a disturbed machine were left out",
            n_train, TRAIN_MIN_FIT, n_disturbed);
    if (kind == MODEL_ROOFLINE ||
        (n_train >= TRAIN_MIN_SAMPLES &&
         (n_validation >= TRAIN_MIN_VALIDATION || kind != MODEL_NET)))
        return 0;
    return err_input(err,
                     "too few samples to train on: %zu for training and %zu "
                     "for validation, but at least %d and %d are needed; %zu "
                     "of a disturbed machine were left out",
                     n_train, n_validation, TRAIN_MIN_SAMPLES,
                     TRAIN_MIN_VALIDATION, n_disturbed);
}

/* Fits the roofline of a GPU to the samples that are not held out. If there are
 * more than `most` of these samples, only every n-th sample is used. Returns
 * the loss of the fit. */
static double fit_gpu(struct estimate *estimate, const struct gpu_spec *gpu,
                      const struct sample *samples, size_t n, size_t most)
{
    struct sample *some;
    const struct feature_set none = {0};
    struct dataset dataset;
    struct arena arena = {0};
    size_t n_some = 0, nth;
    double loss;

    some = ARENA_NEW(&arena, struct sample, n);
    for (size_t i = 0; i < n; i++)
        if (sample_is_known(&samples[i]))
            some[n_some++] = samples[i];
    nth = n_some > most ? (n_some + most - 1) / most : 1;
    n_some /= nth;
    for (size_t i = 0; i < n_some; i++)
        some[i] = some[i * nth];
    estimate->gpu = *gpu;
    dataset_init(&dataset, &none, estimate, some, n_some, sample_trains,
                 &arena);
    loss = roofline_fit(estimate, dataset.sums, dataset.ms, n_some);
    arena_release(&arena);
    return loss;
}

int train_gpu(const struct gpu_spec **out, const struct sample *samples,
              size_t n, const struct train_options *options,
              struct arena *arena, struct err *err)
{
    double least = INFINITY;

    if (gpu_spec_of_device(out, samples[0].setting->device, arena, err))
        return -1;
    if (*out)
        return 0;
    for (const char *const *name = gpu_names(arena); *name; name++) {
        struct estimate tried = {.totals = options->totals};
        const struct gpu_spec *gpu;
        double loss;

        if (gpu_spec_get(&gpu, *name, arena, err))
            return -1;
        if (gpu->comm_form == COMM_TOTAL) /* the GPU is a CPU host */
            continue;
        /* a GPU is a less reliable reference if nobody measured its lookups */
        loss = fit_gpu(&tried, gpu, samples, n, MOST_TRIED) *
               (1 + gpu->lookup_error.frac);
        if (loss < least) {
            least = loss;
            *out = gpu;
        }
    }
    return *out ? 0
                : err_input(err,
                            "the data hold no GPU whose roofline could be "
                            "fitted to samples of '%s'",
                            samples[0].setting->device);
}

static void split(struct training_run *run, const struct model *model,
                  const struct sample *samples, size_t n, struct arena *arena)
{
    dataset_init(&run->train, &model->features, &model->estimate, samples, n,
                 train_side(run->options->kind), arena);
    dataset_init(&run->validation, &model->features, &model->estimate, samples,
                 run->options->kind == MODEL_NET ? n : 0, keep_validation,
                 arena);
    run->n_known = run->train.n_samples;
    run->scale =
        model->estimate.totals.n ? 1 : stats_mean(run->train.ms, run->n_known);
}

/* Chooses the batch size and the number of epochs if the caller gives none.
 * Pseudo-labels do not change the number of steps. */
static void choose_sizes(struct training_run *run)
{
    const size_t n_train = run->n_known;
    uint64_t steps, n_steps;

    run->batch_size = run->options->batch_size;
    if (!run->batch_size) {
        run->batch_size = 32;
        while (run->batch_size < 256 && n_train >= 72 * 2 * run->batch_size)
            run->batch_size *= 2;
    }
    steps = (n_train + run->batch_size - 1) / run->batch_size;
    n_steps = steps * min_u64(max_u64((20000 + steps - 1) / steps, 200), 1000);
    steps = (run->train.n_samples + run->batch_size - 1) / run->batch_size;
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

/* Runs the batch that starts at `begin` through a net. Returns the sum of the
 * losses of its samples. Stores the derivatives of the mean loss in the d_out
 * of the net's work buffers. */
static double batch_loss(struct training_run *run, const struct mlp *mlp,
                         const struct dataset *side, size_t begin)
{
    const struct mlp_batch *batch = &side->batch;
    const bool relative = run->options->loss == LOSS_RELATIVE;
    double sum = 0;

    mlp_forward(mlp, batch, &run->work);
    for (size_t i = 0; i < batch->n_samples; i++) {
        const uint32_t pos = side->order[begin + i];
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
            (float)(2 * slope * by_output / unit / (double)batch->n_samples);
    }
    return sum;
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

/* Takes one training step with the batch whose loss was computed last. */
static void learn(struct training_run *run)
{
    const double progress = (double)run->step / (double)run->n_steps;
    double rate = run->options->learning_rate;

    mlp_backward(&run->mlp, &run->train.batch, &run->work, &run->grad);
    if (run->options->decay)
        rate *= 0.5 + 0.5 * cos(PI * progress);
    adam_update(&run->adam, run->mlp.params, run->grad.params, rate,
                run->weight_decay);
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
    double loss = 0;

    for (size_t begin = 0; begin < n; begin += run->batch_size) {
        dataset_batch(side, begin);
        loss += batch_loss(run, mlp, side, begin);
        if (mlp == &run->mlp)
            learn(run);
    }
    return loss / (double)n;
}

/* Runs all epochs. The model gets the weights of the epoch with the least
 * validation loss or, without validation, the weights of the last epoch. */
static int run_epochs(struct training_run *run, struct model *model,
                      struct err *err)
{
    const struct train_options *options = run->options;
    const bool validates = run->validation.n_samples > 0;
    double best_loss = INFINITY;

    for (unsigned epoch = 1; epoch <= run->epochs; epoch++) {
        double train_loss, loss;

        rng_shuffle(&run->rng, run->train.order,
                    (uint32_t)run->train.n_samples);
        loss = train_loss = run_side(run, &run->train, &run->mlp);
        if (validates)
            loss = run_side(run, &run->validation, &run->average);
        if (loss < best_loss || !validates) {
            best_loss = loss;
            model->training.best_epoch = epoch;
            memcpy(model->mlp.params, run->average.params,
                   run->average.n_params * sizeof(float));
        }
        model->training.epochs = epoch;
        if ((options->on_epoch &&
             options->on_epoch(options->ctx, epoch, run->epochs, train_loss,
                               loss)) ||
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
    const double n = (double)run->n_known;
    const double doubted =
        run->options->kind == MODEL_NET ? 0 : SAMPLES_DOUBTED;
    const double kept = run->scale * n / (n + doubted);
    const struct mlp_layer *last = &model->mlp.layers[MLP_LAYERS - 1];

    for (uint32_t i = 0; i < last->n_in; i++)
        last->weight[i] = (float)((double)last->weight[i] * kept);
    if (model->mlp.shape.is_monotone)
        last->weight[START_UNIT] += (float)(1 - kept) * START_WEIGHT;
    last->bias[0] =
        (float)((double)last->bias[0] * kept + run->start * run->scale);
}

static void describe(struct model *model, const struct training_run *run,
                     const struct sample *samples, size_t n,
                     struct arena *arena)
{
    const struct sample_setting *first = run->train.samples[0]->setting;
    struct model_training *training = &model->training;
    const char *from = "", *to = "";

    for (size_t i = 0; i < n; i++) {
        const struct sample *sample = &samples[i];
        const char *pos = sample->started_at;

        if (!sample_trains(sample))
            continue;
        if (sample_split(sample) != SPLIT_HELD_OUT) {
            range_list_add(&model->ranges, sample->setting);
            model_add_environment(model, sample->setting, arena);
        } else {
            training->n_held_out += sample->kind == SAMPLE_FUSED;
        }
        if (!pos || !*pos)
            continue;
        if (!*from || strcmp(pos, from) < 0)
            from = pos;
        if (strcmp(pos, to) > 0)
            to = pos;
    }
    model->setting.device = arena_strdup(arena, first->device);
    model->setting.n_threads = first->n_threads;
    model->setting.isa = arena_strdup(arena, first->isa);
    model->basis = BASIS_MEASURED;
    model->source = model_kind(model) == MODEL_ROOFLINE
                        ? "fitted to measurements of the device"
                        : "trained on measurements of the device";
    training->version = NEUROSHARD_VERSION;
    training->build = build_id;
    training->loss =
        run->options->loss == LOSS_RELATIVE ? "relative" : "squared";
    training->seed = run->options->seed;
    training->n_train = run->n_known;
    training->n_validation = run->validation.n_samples;
    training->measured_from = arena_strdup(arena, from);
    training->measured_to = arena_strdup(arena, to);
}

/* Returns the highest rate at which any sample moved the least bytes that it
 * has to move. This rate is the physical floor of the net's predictions. */
static double highest_gbps(const struct sample *samples, size_t n)
{
    double highest = 0;

    for (size_t i = 0; i < n; i++) {
        struct feature_input input;
        double bytes = 0;

        if (!sample_trains(&samples[i]))
            continue;
        for (uint32_t j = 0; j < samples[i].n_tables; j++) {
            feature_input_of_sample(&input, samples[i].setting,
                                    &samples[i].tables[j]);
            bytes += feature_floor_bytes(&input);
        }
        highest = fmax(highest, bytes / (samples[i].total.median_ms * 1e6));
    }
    return highest;
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

    dataset_scale(&run->train, run->scale, run->batch_size, arena);
    dataset_scale(&run->validation, run->scale, run->batch_size, arena);
    if (run->n_known < run->train.n_samples)
        pseudo_labels_price(&run->train, run->n_known);
    mlp_init(&run->mlp, &shape, arena);
    mlp_work_init(&run->work, &run->mlp,
                  max_u64(run->train.max_rows, run->validation.max_rows),
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
                        (double)run->train.n_samples;
    start_at_estimate(run);
}

static int train_net(struct training_run *run, struct model *model,
                     struct arena *arena, struct arena *scratch,
                     struct err *err)
{
    if (gemm_init(err))
        return -1;
    choose_sizes(run);
    make_net(run, model, scratch);
    mlp_init(&model->mlp, &run->mlp.shape, arena);
    if (run_epochs(run, model, err))
        return -1;
    scale_answer(model, run);
    return 0;
}

int train_fit(struct model *model, const struct sample *samples, size_t n,
              const struct train_options *options, struct arena *arena,
              struct err *err)
{
    struct training_run run = {.options = options,
                               .begin_ms = clock_ms(),
                               .weight_decay = WEIGHT_DECAY};
    const struct dataset *train = &run.train;
    const struct gpu_spec *gpu = options->gpu;
    struct arena scratch = {0};
    int rc = -1;

    memset(model, 0, sizeof(*model));
    model->features = options->features;
    if (options->kind >= MODEL_ROOFLINE_NET)
        feature_set_init(&model->features, FEATURES_ROOFLINE);
    model->estimate.totals = options->totals;
    model->estimate.is_monotone = options->kind == MODEL_MONOTONE;
    if (check_numbers(options->kind, samples, n, err))
        goto out;
    if (options->kind != MODEL_NET) {
        if (!gpu && train_gpu(&gpu, samples, n, options, arena, err))
            goto out;
        fit_gpu(&model->estimate, gpu, samples, n, MOST_FIT);
    }
    split(&run, model, samples, n, &scratch);
    feature_set_scale(&model->features, train->rows,
                      train->first[train->n_samples], train->n_columns);
    if (options->kind != MODEL_NET)
        estimate_set_range(&model->estimate, train->sums, train->ms,
                           train->n_samples);
    else if (options->totals.n)
        estimate_fit(&model->estimate, train->sums, train->ms,
                     train->n_samples);
    if (options->kind >= MODEL_ROOFLINE_NET &&
        run.n_known <= MOST_WITH_PSEUDO_LABELS)
        pseudo_labels_add(&run.train, N_PSEUDO_LABELS, options->seed, &scratch);
    if (options->kind != MODEL_ROOFLINE &&
        train_net(&run, model, arena, &scratch, err))
        goto out;
    describe(model, &run, samples, n, arena);
    model->floor_gbps = highest_gbps(samples, n);
    rc = 0;
out:
    arena_release(&scratch);
    return rc;
}
