/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_MODELFILE_MODEL_H
#define NEUROSHARD_COSTMODEL_MODELFILE_MODEL_H

#include "costmodel/formulas/comm_curves.h"
#include "costmodel/formulas/estimate.h"
#include "costmodel/formulas/interval.h"
#include "costmodel/formulas/mlp.h"
#include "costmodel/formulas/product_times.h"

/*
 * A trained cost model: the setting and environments of its measurements, its
 * features, its estimate, its net, and its errors.
 */

/* Largest number of embedding lanes in an oracle's vector. */
#define MODEL_MAX_EMBED 64
#define MODEL_MAX_ERRORS 8
#define MODEL_MAX_RANGES (N_PRECISIONS * N_OPTIMIZERS)

/* Errors of one predictor on one set of samples. */
struct errors {
    /* predictor: "net", "sum of measured singles" ... */
    const char *name;
    double mse;              /* mean squared error in ms^2 */
    double mape, median_ape; /* mean and median relative error, as fractions */
    double p90_ape;          /* 90th percentile, a fraction; NAN if unknown */
    double kendall_tau;      /* NAN with fewer than two samples */
    /* Number of samples that the errors are computed on. */
    size_t n;
};

struct error_list {
    struct errors items[MODEL_MAX_ERRORS];
    size_t n;
};

/* Kinds of models, by the parts that they consist of. */
enum model_kind {
    MODEL_ROOFLINE,     /* the fitted roofline of a GPU */
    MODEL_NET,          /* a net on an estimate by rates, or on no estimate */
    MODEL_ROOFLINE_NET, /* a net on a fitted roofline */
    MODEL_MONOTONE,     /* a monotone net on a fitted roofline */
    N_MODEL_KINDS
};
extern const char *const model_kind_names[];

struct model_training {
    const char *version; /* version of the program */
    const char *build;   /* build id of the program, or NULL: unknown */
    const char *loss;    /* "relative" or "squared" */
    uint64_t seed;
    /* Number of epochs that were run, and the epoch that the weights come
     * from. */
    uint64_t epochs, best_epoch;
    /* Numbers of samples on two sides of the split. */
    uint64_t n_train, n_validation;
    uint64_t n_held_out; /* number of fused held-out samples */
    /* Number of folds of the cross-validation that chose the kind of model. 1:
     * the validation side of the split was used instead; 0: no choice was
     * made. */
    uint64_t n_folds;
    /* UTC of the first and of the last sample; "" if unknown. */
    const char *measured_from, *measured_to;
};

/* Training settings: the range of batches at one precision and one optimizer. A
 * list has one range for each pair of a precision and an optimizer. */
struct model_range {
    enum precision precision;
    enum optimizer optimizer;
    uint32_t batch_min, batch_max; /* 1 <= min <= max */
    /* Training and validation samples; 0: unknown. */
    uint64_t n_samples;
};

struct range_list {
    struct model_range items[MODEL_MAX_RANGES];
    size_t n;
};

/* Host and software of the measurements of training samples. A text is "" if it
 * is unknown. At least one of the three texts is known. */
struct model_environment {
    const char *driver, *cuda, *host; /* texts of struct sample_setting */
    uint64_t n_samples;
};
#define MODEL_MAX_ENVIRONMENTS 16

struct model {
    /* Setting of the measurements. Only the members device, threads and isa are
     * used; the other members are zero. */
    struct sample_setting setting;
    struct range_list ranges; /* training ranges, at least one */
    struct model_environment environments[MODEL_MAX_ENVIRONMENTS];
    /* Number of environments. If there are more than MODEL_MAX_ENVIRONMENTS,
     * only the first ones are kept. */
    size_t n_environments;
    /* Version of the file that the model was read from; 0 if it was not read
     * from a file. */
    uint32_t format;
    enum cost_basis basis; /* BASIS_MEASURED or BASIS_MODELLED */
    const char *source;    /* origin of the model, one phrase for people */
    struct feature_set features;
    struct estimate estimate;
    /* The net. It maps standardised features and totals to the ratio of
     * measured to estimated time, or to ms. It has no parameters if the model
     * consists of an estimate only. */
    struct mlp mlp;
    /* Errors by which the kind of the model was chosen. There is one entry for
     * each kind, with its name, on samples that the model of this kind had not
     * seen. The list is empty if the caller gave the kind. */
    struct error_list choice;
    struct model_training training;
    struct error_list errors; /* errors on held-out fused samples */
    /* Prediction intervals. The list is empty if there were too few samples, or
     * if an older program wrote the file. */
    struct interval_list intervals;
    bool has_comm;
    struct comm_curves comm;
    /* Measured matrix products, by which dense parts are priced; may be
     * empty. */
    struct product_times products;
    double floor_gbps; /* bandwidth that no step exceeds; 0: unknown */
    uint64_t hash;     /* hash of the file; 0 before it is written */
};

enum model_kind model_kind(const struct model *model);
/* Returns a text such as "fitted roofline of h100" or "net", in the arena. */
const char *model_kind_text(const struct model *model, struct arena *arena);

/* Adds a sample with this setting to a list of ranges. Widens the range with
 * its precision and optimizer, or appends a new range. */
void range_list_add(struct range_list *ranges,
                    const struct sample_setting *setting);
/* Returns the index of the range with this precision and optimizer, or
 * ranges->n if there is no such range. */
size_t range_list_find(const struct range_list *ranges,
                       enum precision precision, enum optimizer optimizer);
/* Adds a training sample to the environments of the model. If the environment
 * of the sample is new, its texts are copied. */
void model_add_environment(struct model *model,
                           const struct sample_setting *setting,
                           struct arena *arena);
/* Returns a text such as "host box, driver 570.86.15, CUDA 12.8", in the
 * arena. */
const char *environment_text(const struct model_environment *environment,
                             struct arena *arena);
/* Returns true if the training samples include this precision and optimizer,
 * and the batch lies between the smallest and the largest batch of these
 * samples. */
bool model_covers(const struct model *model, enum precision precision,
                  enum optimizer optimizer, double batch);

/* Returns a text such as "cpu:AMD EPYC 9575F, 2 threads, avx512", in the
 * arena. */
const char *device_text(const struct sample_setting *setting,
                        struct arena *arena);
/* Returns a text such as "cpu:AMD EPYC 9575F, 2 threads, avx512, fp32,
 * rowwise_adagrad, batch 4096", in the arena. */
const char *setting_text(const struct sample_setting *setting,
                         struct arena *arena);
/* Returns a text with all training settings of a model, in the arena, such as
 * "cuda:NVIDIA H200, sm_90, fp32|fp16, sgd|rowwise_adagrad, batch 1024 to
 * 65536". */
const char *model_setting_text(const struct model *model, struct arena *arena);

/* Returns the first layer of the net's head with the scaling of its inputs
 * folded into its weights, so that the layer takes unscaled logarithms. It
 * lives in the arena. */
struct mlp_layer model_head_layer(const struct model *model,
                                  struct arena *arena);

/* Returns a text such as ", judged by 10-fold cross-validation on 18 samples",
 * in the arena. The text is "" if the caller gave the kind of model. */
const char *choice_text(const struct model *model, struct arena *arena);

#endif
