/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_MODEL_FILE_H
#define NEUROSHARD_COSTMODEL_MODEL_FILE_H

#include "base/json.h"
#include "costmodel/estimate.h"
#include "costmodel/interval.h"
#include "costmodel/mlp.h"

/*
 * A trained cost model, and the file it lives in (neuroshard-model(5)). All
 * numbers are little-endian:
 *
 *     offset    bytes
 *          0        8   89 4E 53 48 41 52 44 0A ("\x89NSHARD\n")
 *          8        4   format version, 3
 *         12        4   H, length of the header
 *         16        8   N, number of weights
 *         24        H   header: one JSON object, padded with blanks so that
 *                       24 + H is a multiple of 64
 *     24 + H       4N   weights, float32: w1 b1 w2 b2 w3 b3 w4 b4 of
 *                       costmodel/mlp.h, matrices row by row
 *  24 + H + 4N      8   XXH3 (64 bits, seed 0) of everything before
 *
 * The header says what was measured, the features with their scaling, the
 * estimate that the net corrects, the shape of the net, where there is one, how
 * it was trained and how well it did on held-out samples, how far it was off on
 * each class of device, what communication cost, and the physical floor. A file
 * of version 1 has one setting and no estimate, one of version 2 a net and no
 * roofline.
 */

#define MODEL_VERSION 3
#define MODEL_OLDEST_VERSION 1
#define MODEL_MAX_HEADER (1u << 20)
#define MODEL_MAX_EMBED 64 /* lanes an oracle vector has room for */
#define MODEL_MAX_ERRORS 8
#define MODEL_MAX_RANGES (N_PRECISIONS * N_OPTIMIZERS)

/* Errors of one predictor on one set of samples. */
struct errors {
    const char *name;        /* "net", "sum of measured singles" ... */
    double mse;              /* ms^2 */
    double mape, median_ape; /* fractions */
    double p90_ape;          /* NAN where it is not known */
    double kendall_tau;      /* NAN for fewer than two samples */
    size_t n;                /* samples it could predict */
};

struct error_list {
    struct errors at[MODEL_MAX_ERRORS];
    size_t n;
};

/* What a model is made of. */
enum model_kind {
    MODEL_ROOFLINE,     /* the roofline of a GPU, fitted */
    MODEL_NET,          /* a net on an estimate of rates, or on none */
    MODEL_ROOFLINE_NET, /* a net on a fitted roofline */
    N_MODEL_KINDS
};
extern const char *const model_kind_names[];

struct model_training {
    const char *version; /* of the program */
    const char *build;   /* build id of the program; NULL: unknown */
    const char *loss;    /* "relative" or "squared" */
    uint64_t seed;
    uint64_t epochs, best_epoch; /* run, and the one whose weights these are */
    uint64_t n_train, n_validation; /* samples */
    uint64_t n_held_out;            /* fused ones */
    uint64_t n_folds; /* of the cross-validation that chose; 1: the validation
                         side of the split; 0: none */
    const char *measured_from, *measured_to; /* UTC of the samples, or "" */
};

/* Settings of samples, as those that were trained on: the batches at one
 * precision and optimizer. A list has one range for each of those pairs. */
struct model_range {
    enum precision precision;
    enum optimizer optimizer;
    uint32_t batch_min, batch_max; /* 1 <= min <= max */
    uint64_t n_samples;            /* for training and validation; 0: unknown */
};

struct range_list {
    struct model_range at[MODEL_MAX_RANGES];
    size_t n;
};

/* Where samples to train on were measured, and with what; "" where it is not
 * known, but not all of them. */
struct model_environment {
    const char *driver, *cuda, *host; /* as in struct sample_setting */
    uint64_t n_samples;
};
#define MODEL_MAX_ENVIRONMENTS 16

struct model {
    struct sample_setting setting; /* device, threads and isa of what was
                                      measured; the rest is zero */
    struct range_list ranges;      /* >= 1 */
    struct model_environment environments[MODEL_MAX_ENVIRONMENTS];
    size_t n_environments; /* the first ones, where there are more */
    uint32_t format;       /* version of the file it was read from, or 0 */
    enum cost_basis basis; /* BASIS_MEASURED or BASIS_MODELLED */
    const char *source;    /* one phrase, for people */
    struct feature_set features;
    struct estimate estimate;
    struct mlp mlp; /* standardised features, totals -> ms over estimate, or
                       ms; without parameters where the estimate is all */
    /* By which the kind was chosen: of each kind, by its name, on samples that
     * it had not seen; none where it was given. */
    struct error_list choice;
    struct model_training training;
    struct error_list errors;       /* on held-out fused samples */
    struct interval_list intervals; /* none of too few samples, or of an older
                                       program */
    bool has_comm;
    struct comm_fit comm;
    double floor_gbps; /* bandwidth no step exceeds; 0: unknown */
    uint64_t hash;     /* of the file; 0 while it is not written */
};

enum model_kind model_kind(const struct model *model);
/* "fitted roofline of h100", "net": in the arena. */
const char *model_kind_text(const struct model *model, struct arena *arena);

/* Adds a sample of that setting. */
void range_list_add(struct range_list *ranges,
                    const struct sample_setting *setting);
/* Index of the range of that precision and optimizer; n where there is none. */
size_t range_list_find(const struct range_list *ranges,
                       enum precision precision, enum optimizer optimizer);
/* Adds a training sample to the environments; copies the texts of a new one. */
void model_add_environment(struct model *model,
                           const struct sample_setting *setting,
                           struct arena *arena);
/* "host box, driver 570.86.15, CUDA 12.8", in the arena. */
const char *environment_text(const struct model_environment *environment,
                             struct arena *arena);
/* Whether samples of that precision, optimizer and batch, or of smaller and
 * larger ones, were trained on. */
bool model_covers(const struct model *model, enum precision precision,
                  enum optimizer optimizer, double batch);

/* The whole file's bytes, in the arena; sets model->hash. The same model gives
 * the same bytes. */
void model_to_bytes(struct model *model, const char **data, size_t *len,
                    struct arena *arena);
/* The header of a model file; model_to_json is its counterpart. Fills all of
 * the model, which is zero, but of the net its shape alone. Copies what it
 * keeps into the arena. ERR_INPUT names the member. */
int model_from_json(struct model *model, const json_t *root, const char *where,
                    struct arena *arena, struct err *err) MUST_CHECK;

/* Everything but weights, as model_to_bytes puts it into the header; the
 * caller decrefs it. */
json_t *model_to_json(const struct model *model);

/* Reads data[len]; `where` is the name for messages. Everything lives in the
 * arena. ERR_INPUT says what is wrong: no model, another version, truncated,
 * damaged, a weight that is no number, a shape or a feature that this program
 * cannot use. */
int model_parse(struct model *model, const char *data, size_t len,
                const char *where, struct arena *arena,
                struct err *err) MUST_CHECK;

/* "cpu:AMD EPYC 9575F, 2 threads, avx512", in the arena. */
const char *device_text(const struct sample_setting *setting,
                        struct arena *arena);
/* "cpu:AMD EPYC 9575F, 2 threads, avx512, fp32, rowwise_adagrad, batch 4096",
 * in the arena. */
const char *setting_text(const struct sample_setting *setting,
                         struct arena *arena);
/* The same for all that a model was trained on: "cuda:NVIDIA H200, sm_90,
 * fp32|fp16, sgd|rowwise_adagrad, batch 1024 to 65536". */
const char *model_setting_text(const struct model *model, struct arena *arena);

int model_load(struct model *model, const char *path, struct arena *arena,
               struct err *err) MUST_CHECK;
/* Atomic: path is the old file or the new one, which model_load has taken: a
 * model that it would refuse is ERR_INPUT. Sets model->hash. */
int model_save(struct model *model, const char *path,
               struct err *err) MUST_CHECK;

/* The compute net of a folder of reference nets (DIR/net_compute.json) as a
 * model of the published features: modelled, at the published batch of 65,536
 * fp32 samples with exact SGD. Lives in the arena. ERR_IO, or ERR_INPUT where
 * it is no such net. */
int model_import(struct model *model, const char *dir, struct arena *arena,
                 struct err *err) MUST_CHECK;

#endif
