/* SPDX-License-Identifier: MIT */
/*
 * A trained model as an oracle. A vector is the outputs of the table MLP, the
 * physical floor in ms, and the lanes of communication.
 *
 * A net answers for the batch it was trained at. A plan for another batch is
 * priced there, at the same look-ups a sample, and scaled: a net's answer to
 * inputs it never saw is worth less. Such a plan, or one of another precision
 * or optimizer, is called modelled, not measured.
 */
#include "costmodel/oracles.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/hash.h"
#include "costmodel/fast_mlp.h"
#include "costmodel/features.h"
#include "costmodel/model_file.h"

#define CHUNK 16 /* rows converted and evaluated at a time */

/* Reuse of a whole table over a batch. */
struct table_use {
    double n_unique;
    double bins[REUSE_BINS];
};

struct learned {
    struct oracle base;
    struct model model;
    struct fast_mlp table, head;
    struct comm_model comm;
    struct table_use *as_trained; /* [n_tables] at the model's batch */
    struct table_use *as_planned; /* [n_tables] at the problem's batch */
    double batch_ratio;           /* problem's batch over the model's */
    double floor_gbps;            /* 0: no floor is known */
    uint32_t n_embed;             /* lane of the floor; then those of comm */
};

static const struct learned *learned_of(const struct oracle *oracle)
{
    return (const struct learned *)(const void *)oracle;
}

/* What a net sees of a shard at `batch` samples: a row piece serves its share
 * of the table's look-ups and unique rows, with the table's bins; a replica
 * looks up less and so has a reuse of its own. */
static void fill_input(struct feature_input *input,
                       const struct problem *problem, const struct shard *shard,
                       const struct table_use *use, double batch)
{
    const struct table *table = &problem->tables[shard->table];
    const double per_sample = 1 / (double)problem->batch;

    input->n_rows = (double)(shard->row_end - shard->row_begin);
    input->dim = shard->col_end - shard->col_begin;
    input->pooling_factor = shard_lookups(problem, shard) * per_sample;
    input->n_lookups = input->pooling_factor * batch;
    input->n_outputs =
        shard_output_vectors(problem, shard) * per_sample * batch;
    input->row_bytes = input->dim * precision_bytes(table->precision);
    if (shard->kind == SHARD_REPLICATE) {
        input->n_unique = table_reuse(table, input->n_lookups, input->bins);
    } else {
        input->n_unique =
            use->n_unique * input->n_rows / (double)table->num_embeddings;
        memcpy(input->bins, use->bins, sizeof(input->bins));
    }
}

/* Standardised features of a shard. */
static void fill_features(const struct learned *learned,
                          const struct shard *shard, float *out)
{
    const struct model *model = &learned->model;
    double features[MAX_FEATURES];
    struct feature_input input;

    fill_input(&input, learned->base.problem, shard,
               &learned->as_trained[shard->table], model->setting.batch);
    feature_set_fill(&model->features, &input, features);
    for (unsigned f = 0; f < model->features.n; f++)
        out[f] = (float)((features[f] - model->mean[f]) / model->std[f]);
}

static double floor_ms(const struct learned *learned, const struct shard *shard)
{
    const struct problem *problem = learned->base.problem;
    struct feature_input input;

    if (!(learned->floor_gbps > 0))
        return 0;
    fill_input(&input, problem, shard, &learned->as_planned[shard->table],
               (double)problem->batch);
    return feature_floor_bytes(&input) / (learned->floor_gbps * 1e6);
}

static void learned_embed(const struct oracle *oracle,
                          const struct shard *shards, size_t n, double *out)
{
    const struct learned *learned = learned_of(oracle);
    const uint32_t n_in = learned->table.n_in, n_embed = learned->n_embed;
    float in[CHUNK * MAX_FEATURES], embedded[CHUNK * MODEL_MAX_EMBED];

    for (size_t begin = 0, m; begin < n; begin += m) {
        m = n - begin < CHUNK ? n - begin : CHUNK;
        for (size_t i = 0; i < m; i++)
            fill_features(learned, &shards[begin + i], in + i * n_in);
        fast_mlp_eval(&learned->table, in, m, embedded);
        for (size_t i = 0; i < m; i++, out += oracle->width) {
            const struct shard *shard = &shards[begin + i];

            for (uint32_t k = 0; k < n_embed; k++)
                out[k] = (double)embedded[i * n_embed + k];
            out[n_embed] = floor_ms(learned, shard);
            comm_embed(oracle->problem, shard, out + n_embed + 1);
        }
    }
}

/* A vector of zeros: a device that holds nothing, and does nothing. */
static bool is_empty(const double *sums, uint32_t width)
{
    for (uint32_t k = width; k-- > 0;)
        if (sums[k] != 0)
            return false;
    return true;
}

static void learned_compute(const struct oracle *oracle, const double *sums,
                            size_t n, double *compute_ms)
{
    const struct learned *learned = learned_of(oracle);
    const uint32_t n_embed = learned->n_embed, width = oracle->width;
    float in[CHUNK * MODEL_MAX_EMBED], out[CHUNK];

    for (size_t begin = 0, m; begin < n; begin += m) {
        m = n - begin < CHUNK ? n - begin : CHUNK;
        for (size_t i = 0; i < m; i++)
            for (uint32_t k = 0; k < n_embed; k++)
                in[i * n_embed + k] = (float)sums[i * width + k];
        fast_mlp_eval(&learned->head, in, m, out);
        for (size_t i = 0; i < m; i++, sums += width) {
            double ms = (double)out[i] * learned->batch_ratio;

            /* a comparison that lets NaN through, to be reported */
            if (ms < sums[n_embed])
                ms = sums[n_embed];
            compute_ms[begin + i] = is_empty(sums, width) ? 0 : ms;
        }
    }
}

static void learned_comm(const struct oracle *oracle, size_t n,
                         const double *sums, const double *compute_ms,
                         double *fwd_ms, double *bwd_ms)
{
    const struct learned *learned = learned_of(oracle);

    comm_price(&learned->comm, oracle->problem, n, sums, oracle->width,
               learned->n_embed + 1, compute_ms, fwd_ms, bwd_ms);
}

static bool contains(const char *text, const char *word, size_t len)
{
    for (; *text; text++)
        if (!strncasecmp(text, word, len))
            return true;
    return false;
}

/* The published figures of what was measured: the GPU whose name, as far as
 * the '-', is part of the device's ("h200" of "cuda:NVIDIA H200"); the CPU
 * host for a CPU; NULL for a GPU that is not known. */
static const struct gpu_spec *spec_of_device(const char *device)
{
    if (!strncmp(device, "cpu:", 4))
        return gpu_spec_find("cpu");
    for (const struct gpu_spec *spec = gpu_specs(); spec->name; spec++)
        if (contains(device, spec->name, strcspn(spec->name, "-")))
            return spec;
    return NULL;
}

/* What the net cannot know: communication that was not measured, and for a GPU
 * the bandwidth of its memory. */
static void choose_constants(struct learned *learned, struct arena *arena)
{
    const struct model *model = &learned->model;
    const struct gpu_spec *spec = spec_of_device(model->setting.device);
    const bool known = spec != NULL;

    if (!spec)
        spec = gpu_spec_find("h100");
    learned->comm = gpu_spec_comm(spec);
    if (model->has_comm) {
        learned->comm.form = model->comm.form;
        learned->comm.alpha_us = model->comm.alpha_us;
        learned->comm.intra_gbps = model->comm.intra_gbps;
        learned->comm.source = model->comm.source;
    } else {
        learned->comm.source = arena_printf(
            arena, "published figures of %s%s (the model measured none)",
            spec->name, known ? "" : ", in the place of an unknown device");
    }
    learned->floor_gbps = model->floor_gbps;
    if (model->floor_gbps > 0 && known &&
        !strncmp(model->setting.device, "cuda:", 5))
        learned->floor_gbps = fmax(model->floor_gbps, spec->dram_gbps);
}

/* Whether the plan runs as the samples did. */
static bool is_as_measured(const struct model *model,
                           const struct problem *problem)
{
    if (problem->batch != model->setting.batch)
        return false;
    for (size_t i = 0; i < problem->n_tables; i++)
        if (problem->tables[i].precision != model->setting.precision ||
            problem->tables[i].optimizer != model->setting.optimizer)
            return false;
    return true;
}

static struct table_use *use_tables(const struct problem *problem, double batch,
                                    struct arena *arena)
{
    struct table_use *use =
        ARENA_NEW(arena, struct table_use, problem->n_tables);

    for (size_t i = 0; i < problem->n_tables; i++) {
        const struct table *table = &problem->tables[i];

        use[i].n_unique =
            table_reuse(table, table->pooling_factor * batch, use[i].bins);
    }
    return use;
}

static void build_nets(struct learned *learned, struct arena *arena)
{
    const struct mlp *mlp = &learned->model.mlp;
    const struct mlp_shape *shape = &mlp->shape;
    const struct fast_mlp_layer table[] = {
        {shape->n_features, shape->n_hidden, mlp->w1, mlp->b1, true},
        {shape->n_hidden, shape->n_embed, mlp->w2, mlp->b2, true},
    };
    const struct fast_mlp_layer head[] = {
        {shape->n_embed, shape->n_head, mlp->w3, mlp->b3, true},
        {shape->n_head, 1, mlp->w4, mlp->b4, false},
    };

    fast_mlp_init(&learned->table, table, 2, NULL, NULL, cpu_isa_best(), arena);
    fast_mlp_init(&learned->head, head, 2, NULL, NULL, cpu_isa_best(), arena);
    learned->n_embed = shape->n_embed;
}

/* A bare name is a shipped model's, where there is one, whatever lies in the
 * current folder: so a plan that was priced by it finds it again anywhere. */
static const char *path_of_model(const char *file, struct arena *arena)
{
    const char *shipped =
        strchr(file, '/')
            ? NULL
            : file_find_data(arena_printf(arena, "models/%s", file), arena);

    return shipped ? shipped : file;
}

int oracle_learned_open(struct oracle **out, const char *file,
                        const struct problem *problem, struct arena *arena,
                        struct err *err)
{
    static const struct oracle_ops ops = {.embed = learned_embed,
                                          .compute = learned_compute,
                                          .comm = learned_comm};
    struct learned *learned = ARENA_NEW(arena, struct learned, 1);
    const struct model *model = &learned->model;
    enum cost_basis basis;

    if (model_load(&learned->model, path_of_model(file, arena), arena, err))
        return -1;
    build_nets(learned, arena);
    choose_constants(learned, arena);
    learned->batch_ratio =
        (double)problem->batch / (double)model->setting.batch;
    learned->as_trained = use_tables(problem, model->setting.batch, arena);
    learned->as_planned = use_tables(problem, (double)problem->batch, arena);
    basis = is_as_measured(model, problem) ? model->basis : BASIS_MODELLED;
    learned->base = (struct oracle){
        .ops = &ops,
        .problem = problem,
        .name = arena_printf(arena, "model:%s", file),
        .hash = hash_text(arena_alloc(arena, HASH_TEXT_MAX, 1), model->hash),
        .basis = basis,
        .comm = learned->comm.source,
        .device = setting_text(&model->setting, arena),
        .width = learned->n_embed + 1 + COMM_LANES,
        .kinds = SHARD_ALL_KINDS,
        .floor_lane = (int32_t)learned->n_embed,
    };
    *out = &learned->base;
    return 0;
}
