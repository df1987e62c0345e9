/* SPDX-License-Identifier: MIT */
/*
 * A trained model as an oracle. The vector of a shard has these lanes, in
 * order:
 *
 * - the outputs of the table MLP, weighted by the estimated time of the shard
 *   (if there is no estimate, by 1);
 * - the contributions of the shard to the totals and lanes of the estimate;
 * - the physical floor in ms;
 * - extra time of the update, if no training sample had the optimizer;
 * - the lanes of a job, for replicas (costmodel/formulas/roofline.h) and
 *   communication.
 *
 * Batch, precision and optimizer are inputs of the net, which are only valid
 * inside the training range. A plan for a batch outside this range is priced at
 * the nearest batch inside it, with the same lookups per sample, and the time
 * is scaled. If no training sample had the precision and optimizer of a table,
 * the table is priced at the most similar pair that occurred in training; the
 * roofline adds the difference of the optimizers' updates. These prices are
 * better than a net's answer to inputs that it never saw. The basis of a price
 * outside the training range is modelled, not measured.
 */
#include "costmodel/models/learned.h"

#include "base/cpu.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "core/sharding_groups.h"
#include "costmodel/formulas/comm_busy.h"
#include "costmodel/formulas/comm_curves.h"
#include "costmodel/formulas/comm_tiers.h"
#include "costmodel/formulas/dense_cost.h"
#include "costmodel/formulas/fast_mlp.h"
#include "costmodel/formulas/features.h"
#include "costmodel/formulas/roofline.h"
#include "costmodel/modelfile/gpu_file.h"
#include "costmodel/modelfile/model_file.h"
#include "costmodel/models/extrapolation.h"
#include "costmodel/models/oracles.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CHUNK 16 /* rows converted and evaluated at a time */
#define US_PER_MS 1000

struct learned {
    struct comm_oracle priced;
    struct model model;
    struct fast_mlp table, head;
    /* [n_tables]: training range that is used to price each table. */
    struct model_range *ranges;
    double batch;   /* batch that the net is evaluated at */
    bool has_state; /* true if an optimizer in `ranges` has a state */
    /* [n_tables]: reuse of rows at the net's batch. */
    const struct table_use *as_trained;
    /* [n_tables]: reuse of rows at the problem's batch. */
    const struct table_use *as_planned;
    double batch_ratio; /* problem's batch over the net's batch */
    double floor_gbps;  /* bandwidth of the floor; 0: unknown */
    /* Figures of the GPU, for all times that the model does not cover. */
    const struct gpu_spec *spec;
    const struct gpu_spec *measured; /* GPU of the samples; NULL: unknown */
    /* True if the plan is for another GPU than `measured`. */
    bool is_elsewhere;
    /* Number of embedding lanes, 0 without a net. The lanes of the estimate
     * follow the embedding lanes, totals first. */
    uint32_t n_embed;
    /* Number of lanes of net and estimate together. The lanes from LANE_FLOOR
     * on follow them. */
    uint32_t n_sums;
};

/* Lanes that follow the lanes of the net and the estimate. */
enum {
    LANE_FLOOR,
    LANE_UPDATE, /* extra ms if training lacks the optimizer */
    LANE_JOB,
    N_LANES = LANE_JOB + JOB_LANES
};

static double clamp(double x, double least, double most)
{
    return x < least ? least : x > most ? most : x;
}

/* Fills the net's input for a shard that is not a replica. The batch is the
 * problem's batch divided by `ratio`. A row piece has the lookups that fall
 * into its rows. */
static void fill_input(struct feature_input *input,
                       const struct learned *learned, const struct shard *shard,
                       const struct table_use *whole, double ratio)
{
    const struct problem *problem = learned->priced.base.problem;
    const struct model_range *range = &learned->ranges[shard->table];

    feature_input_of_shard(input, problem, shard, whole,
                           (double)problem->batch / ratio);
    input->batch = clamp(input->batch, range->batch_min, range->batch_max);
    input->precision = range->precision;
    input->optimizer = range->optimizer;
    input->n_lookups /= ratio;
    input->n_outputs /= ratio;
    input->pooling_factor = input->n_lookups / input->batch;
}

/* Fills the standardised features of a shard, and its contributions to the
 * estimate's totals and lanes. */
static void fill_features(const struct learned *learned,
                          const struct shard *shard, float *out, double *adds)
{
    const struct model *model = &learned->model;
    const struct feature *pos = model->features.items;
    double features[MAX_FEATURES];
    struct feature_input input;

    fill_input(&input, learned, shard, &learned->as_trained[shard->table],
               learned->batch_ratio);
    estimate_describe(&model->estimate, &model->features, &input, features,
                      adds);
    if (!learned->n_embed)
        return;
    for (unsigned f = 0; f < model->features.n; f++)
        out[f] = (float)((features[f] - pos[f].mean) / pos[f].std);
}

/* Returns the extra time of the update: the time with the shard's own optimizer
 * minus the time with input->optimizer, which the net priced. Sets
 * input->optimizer to the shard's own optimizer. */
static double update_ms(const struct learned *learned,
                        const struct shard *shard, struct feature_input *input)
{
    const struct problem *problem = learned->priced.base.problem;
    const enum optimizer own = problem->tables[shard->table].optimizer;
    double by_other[FUSED_LANES], by_own[FUSED_LANES];

    if (input->optimizer == own)
        return 0;
    fused_fill(learned->spec, input, false, by_other);
    input->optimizer = own;
    fused_fill(learned->spec, input, false, by_own);
    return fused_added_ms(learned->spec, by_own) -
           fused_added_ms(learned->spec, by_other);
}

/* Fills the lanes that follow the lanes of the net and the estimate. For a
 * replica, sets the lanes of the net and the estimate to 0. */
static void fill_lanes(const struct learned *learned, const struct shard *shard,
                       double *out)
{
    const struct table_use *use = &learned->as_planned[shard->table];
    double *lanes = out + learned->n_sums;
    struct feature_input input;

    lanes[LANE_FLOOR] = lanes[LANE_UPDATE] = 0;
    if (shard_is_replica(shard->kind)) {
        memset(out, 0, learned->n_sums * sizeof(*out));
    } else {
        fill_input(&input, learned, shard, use, 1);
        if (learned->floor_gbps > 0)
            lanes[LANE_FLOOR] =
                feature_floor_bytes(&input) / (learned->floor_gbps * 1e6);
        lanes[LANE_UPDATE] = update_ms(learned, shard, &input);
    }
    job_embed(learned->spec, learned->priced.base.problem, shard, use,
              lanes + LANE_JOB);
}

static void learned_embed(const struct oracle *oracle,
                          const struct shard *shards, size_t n, double *out)
{
    const struct learned *learned = (const void *)oracle;
    const struct estimate *estimate = &learned->model.estimate;
    const uint32_t n_in = learned->table.n_in, n_embed = learned->n_embed;
    float in[CHUNK * MAX_FEATURES], embedded[CHUNK * MODEL_MAX_EMBED];

    for (size_t begin = 0, m; begin < n; begin += m) {
        m = n - begin < CHUNK ? n - begin : CHUNK;
        for (size_t i = 0; i < m; i++)
            fill_features(learned, &shards[begin + i], in + i * n_in,
                          out + i * oracle->width + n_embed);
        if (n_embed)
            learned->table.eval(&learned->table, in, m, embedded);
        for (size_t i = 0; i < m; i++, out += oracle->width) {
            const struct shard *shard = &shards[begin + i];
            const double weight =
                n_embed ? estimate_weight(
                              estimate,
                              estimate_added_ms(estimate, out + n_embed), 1)
                        : 0;

            for (uint32_t k = 0; k < n_embed; k++)
                out[k] = weight * (double)embedded[i * n_embed + k];
            fill_lanes(learned, shard, out);
        }
    }
}

/* Fills the input of the net's head from the sums of a device, if there is a
 * head (costmodel/formulas/estimate.h). Returns the estimate in ms. */
static double fill_head(const struct learned *learned, const double *sums,
                        float *in)
{
    const uint32_t n_embed = learned->n_embed;
    const struct estimate *estimate = &learned->model.estimate;
    const double unit_ms = estimate_ms(estimate, sums + n_embed);
    const double scale = estimate->is_monotone ? 1 : 1 / unit_ms;

    for (uint32_t k = 0; k < n_embed; k++)
        in[k] = (float)(sums[k] * scale);
    for (uint32_t k = n_embed; k < n_embed + estimate->totals.n; k++)
        in[k] = (float)sums[k];
    if (estimate->is_monotone && n_embed) {
        float *last = in + learned->head.n_in - HEAD_CONTEXT;

        last[HEAD_ESTIMATE] = (float)(US_PER_MS * unit_ms);
        last[HEAD_BATCH] = (float)learned->batch;
        last[HEAD_STATE] = learned->has_state ? 1 : 0;
    }
    return unit_ms;
}

static void learned_compute(const struct oracle *oracle, const double *sums,
                            size_t n, double *compute_ms)
{
    const struct learned *learned = (const void *)oracle;
    const uint32_t n_in = learned->head.n_in, width = oracle->width;
    const uint32_t n_embed = learned->n_embed;
    float in[CHUNK * (MODEL_MAX_EMBED + MAX_TOTALS + HEAD_CONTEXT)], out[CHUNK];
    double unit_ms[CHUNK];

    for (size_t begin = 0, m; begin < n; begin += m) {
        m = n - begin < CHUNK ? n - begin : CHUNK;
        for (size_t i = 0; i < m; i++)
            unit_ms[i] = fill_head(learned, sums + i * width, in + i * n_in);
        if (n_embed)
            learned->head.eval(&learned->head, in, m, out);
        for (size_t i = 0; i < m; i++, sums += width) {
            const double *lanes = sums + learned->n_sums;
            const double *job = lanes + LANE_JOB;
            const double ratio =
                n_embed ? estimate_ratio(&learned->model.estimate,
                                         (double)out[i], unit_ms[i])
                        : 1;
            double ms =
                ratio * unit_ms[i] * learned->batch_ratio + lanes[LANE_UPDATE];

            /* the comparison is false for NaN, so NaN stays and is reported */
            if (ms < lanes[LANE_FLOOR])
                ms = lanes[LANE_FLOOR];
            /* JOB_SHARDS is a whole number, so it is exactly 0 without
             * shards. */
            if (!(job[JOB_SHARDS] > 0))
                ms = 0;
            ms += job[JOB_REPLICAS] + job_added_ms(learned->spec, job);
            compute_ms[begin + i] = ms;
        }
    }
}

static size_t learned_judge(const struct oracle *oracle,
                            const struct shard *shards, size_t n,
                            const double *compute_ms, struct cost_error *error,
                            struct cost_outside **outside, struct arena *arena)
{
    const struct learned *learned = (const void *)oracle;
    struct feature_input *inputs = mem_alloc(n, sizeof(*inputs));
    size_t n_outside;

    for (size_t i = 0; i < n; i++)
        if (!shard_is_replica(shards[i].kind))
            fill_input(&inputs[i], learned, &shards[i],
                       &learned->as_trained[shards[i].table],
                       learned->batch_ratio);
    n_outside =
        extrapolation_judge(&learned->model, oracle->problem, shards, inputs, n,
                            compute_ms, error, outside, arena);
    mem_free(inputs);
    return n_outside;
}

/* Returns the published figures of a GPU, in which figures that were fitted to
 * measurements replace the published ones. skips_checks is set for this
 * program's lookups and cleared for FBGEMM's lookups. */
static const struct gpu_spec *model_spec(const struct gpu_spec *published,
                                         const struct model *model,
                                         struct arena *arena)
{
    const struct gpu_spec *fitted = &model->estimate.gpu;
    struct gpu_spec *spec = ARENA_NEW(arena, struct gpu_spec, 1);

    *spec = *published;
    spec->skips_checks =
        strncmp(model->setting.device, "fbgemm:", strlen("fbgemm:")) != 0;
    if (!fitted->name)
        return spec;
    spec->launch_us = fitted->launch_us;
    spec->row_cycles = fitted->row_cycles;
    spec->bag_row_us = fitted->bag_row_us;
    spec->hot_rows = fitted->hot_rows;
    spec->dram_gbps = fitted->dram_gbps;
    spec->l2_gbps = fitted->l2_gbps;
    spec->l2_bytes = fitted->l2_bytes;
    spec->clock_ghz = fitted->clock_ghz;
    spec->n_sms = fitted->n_sms;
    return spec;
}

/* Returns the communication over a cluster. `whose` is the source of the
 * figures that the model did not measure. */
static struct comm_model comm_of(const struct model *model,
                                 const struct gpu_spec *spec,
                                 const struct cluster *cluster,
                                 const char *whose, struct arena *arena)
{
    struct comm_model comm = job_comm(spec, cluster);

    comm.source = whose;
    if (model->has_comm &&
        comm_curves_apply(&model->comm, cluster, arena, &comm))
        comm.error = (struct cost_error){0};
    comm_model_ask(&comm, cluster, arena);
    return comm;
}

/* Sets the constants that the net does not cover: communication that was not
 * measured, and, for a GPU, its memory bandwidth. The constants are those of
 * the measured GPU. If the figures of the measured GPU are unknown, the
 * constants are those of the GPU that the plan is for. */
static int choose_constants(struct learned *learned,
                            const struct problem *problem, struct arena *arena,
                            struct err *err)
{
    const struct model *model = &learned->model;
    const char *gpu = problem->cluster.gpu, *whose;
    const struct gpu_spec *spec, *planned;
    const struct cluster whole = sharding_groups_cluster(problem);
    struct comm_model *comm = &learned->priced.comm;
    struct err ignored = {0};

    if (gpu_spec_of_device(&spec, model->setting.device, arena, err))
        return -1;
    /* In the plan, the measured GPU may have another name, or figures from a
     * file of the user. */
    if (spec && gpu && strcmp(spec->name, gpu) != 0 &&
        !gpu_spec_get(&planned, gpu, arena, &ignored) &&
        !strcmp(planned->full_name, spec->full_name))
        spec = planned;
    learned->measured = spec;
    learned->is_elsewhere = gpu && (!spec || strcmp(spec->name, gpu) != 0);
    if (!spec && gpu_spec_get(&spec, gpu ? gpu : "h100", arena, err))
        return -1;
    whose = arena_printf(
        arena, "published figures of %s%s%s", spec->name,
        learned->measured ? "" : ", in the place of an unknown device",
        model->has_comm ? "" : " (the model measured none)");
    learned->floor_gbps = model->floor_gbps;
    if (model->floor_gbps > 0 && learned->measured &&
        strncmp(model->setting.device, "cpu:", 4) != 0)
        learned->floor_gbps = fmax(model->floor_gbps, spec->dram_gbps);
    learned->spec = spec = model_spec(spec, model, arena);
    learned->priced.all = comm_of(model, spec, &whole, whose, arena);
    *comm = comm_of(model, spec, &problem->cluster, whose, arena);
    comm->source = arena_printf(
        arena, "%s; forward and backward are told apart by roofline:%s",
        comm->source, spec->name);
    return 0;
}

/* Returns a warning of one sentence, or NULL if there is no cause for one. The
 * causes are:
 * - the samples are of another GPU than the problem's;
 * - the samples are of another processor or instruction set than those of
 *   this machine;
 * - the net is slow on this machine. */
static const char *doubt(const struct learned *learned, const char *file,
                         const struct problem *problem, struct arena *arena)
{
    const struct model *model = &learned->model;
    const struct gpu_spec *spec = learned->measured;
    const char *isa = cpu_isa_name(cpu_isa_best());
    char name[128], cpu[sizeof name + 4];

    if (learned->is_elsewhere)
        return text_say(arena,
                        "cost model '%s' was measured on '%s', but the "
                        "plan is for '%s'",
                        file, model->setting.device, problem->cluster.gpu);
    if (!spec || strcmp(spec->name, "cpu") != 0)
        return fast_mlp_warning(cpu_isa_best());
    snprintf(cpu, sizeof cpu, "cpu:%s", cpu_model_name(name, sizeof name));
    if (!strcmp(cpu, model->setting.device) && !strcmp(isa, model->setting.isa))
        return fast_mlp_warning(cpu_isa_best());
    return text_say(arena,
                    "cost model '%s' was measured on '%s' with %s, and "
                    "this machine is '%s' with %s",
                    file, model->setting.device, model->setting.isa, cpu, isa);
}

/* Returns the model's error on samples that training did not see (held-out
 * samples, or cross-validation). The error is unknown (0) for another GPU than
 * the measured one, and for settings that have no training samples. */
static struct cost_error error_of(const struct model *model,
                                  const struct oracle *oracle,
                                  struct arena *arena)
{
    /* A warning that the net is slow here does not change the error. */
    if (oracle->warning != fast_mlp_warning(cpu_isa_best()) ||
        oracle->cost.basis != BASIS_MEASURED)
        return (struct cost_error){0};
    return interval_cost_error(&model->intervals, INTERVAL_ALL, arena);
}

/* Returns how much a training range differs from a table. The criteria,
 * beginning with the most important, are: width of the weights, whether the
 * optimizer has a state, names of optimizer and precision. */
static unsigned distance(const struct model_range *range,
                         const struct table *table)
{
    const unsigned want = precision_bytes(table->precision);
    const unsigned have = precision_bytes(range->precision);
    unsigned sum = 8 * (have > want ? have - want : want - have);

    if ((range->optimizer == OPTIMIZER_SGD) !=
        (table->optimizer == OPTIMIZER_SGD))
        sum += 4;
    if (range->optimizer != table->optimizer)
        sum += 2;
    if (range->precision != table->precision)
        sum += 1;
    return sum;
}

/* Widens a range to the batches of all precisions with its optimizer. For a
 * monotone net the precision is only a number of bytes. */
static void join_precisions(struct model_range *range,
                            const struct range_list *all)
{
    for (size_t r = 0; r < all->n; r++) {
        const struct model_range *other = &all->items[r];

        if (other->optimizer != range->optimizer)
            continue;
        range->batch_min =
            (uint32_t)min_u64(range->batch_min, other->batch_min);
        range->batch_max =
            (uint32_t)max_u64(range->batch_max, other->batch_max);
    }
}

/* Chooses the training range for each table, and a batch that is inside all
 * these ranges or near them. A model without a net prices every table with its
 * own precision and optimizer. Returns true if all tables are inside the
 * training set. */
static bool choose_ranges(struct learned *learned,
                          const struct problem *problem, struct arena *arena)
{
    const struct model *model = &learned->model;
    double least = 0, most = INFINITY;
    bool is_trained = true;

    learned->ranges = ARENA_NEW(arena, struct model_range, problem->n_tables);
    for (size_t i = 0; i < problem->n_tables; i++) {
        const struct table *table = &problem->tables[i];
        const struct model_range *best = model->ranges.items;

        is_trained &= model_covers(model, table->precision, table->optimizer,
                                   (double)problem->batch);
        if (!model->mlp.n_params) {
            learned->ranges[i] = (struct model_range){
                table->precision, table->optimizer, 1, UINT32_MAX, 0};
            continue;
        }
        for (size_t r = 1; r < model->ranges.n; r++)
            if (distance(&model->ranges.items[r], table) <
                distance(best, table))
                best = &model->ranges.items[r];
        learned->ranges[i] = *best;
        if (model->estimate.is_monotone)
            join_precisions(&learned->ranges[i], &model->ranges);
        learned->has_state |= best->optimizer != OPTIMIZER_SGD;
        least = fmax(least, learned->ranges[i].batch_min);
        most = fmin(most, learned->ranges[i].batch_max);
    }
    learned->batch = clamp((double)problem->batch, least, most);
    learned->batch_ratio = (double)problem->batch / learned->batch;
    return is_trained;
}

static void build_nets(struct learned *learned, struct arena *arena)
{
    const struct mlp *mlp = &learned->model.mlp;
    const struct mlp_layer head[] = {model_head_layer(&learned->model, arena),
                                     mlp->layers[3]};

    fast_mlp_init(&learned->table, mlp->layers, 2, cpu_isa_best(), arena);
    fast_mlp_init(&learned->head, head, 2, cpu_isa_best(), arena);
    learned->head.n_logs = mlp->shape.is_monotone
                               ? learned->head.n_in
                               : learned->model.estimate.totals.n;
    learned->n_embed = mlp->shape.n_embed;
}

/* Returns the path of a model. A bare name, with or without ".nsm", is first
 * looked up among the shipped models. A shipped model takes precedence over a
 * file of the same name in the current folder, so a plan that was priced by a
 * shipped model finds this model again from anywhere. */
static const char *path_of_model(const char *file, struct arena *arena)
{
    const char *name = arena_printf(arena, "models/%s.nsm", file), *path;

    if (strchr(file, '/'))
        return file;
    path = file_find_data(arena_strndup(arena, name, strlen(name) - 4), arena);
    if (!path)
        path = file_find_data(name, arena);
    return path ? path : file;
}

int oracle_learned_gpu(const char **gpu, const char *file, struct arena *arena,
                       struct err *err)
{
    const struct gpu_spec *spec;
    struct model model;

    if (model_load(&model, path_of_model(file, arena), arena, err) ||
        gpu_spec_of_device(&spec, model.setting.device, arena, err))
        return -1;
    *gpu = spec ? spec->name : NULL;
    return 0;
}

/* Returns a text with the training settings of a model, and with the kind of
 * the model unless it is a net without a roofline. */
static const char *device_of(const struct model *model, struct arena *arena)
{
    const char *setting = model_setting_text(model, arena);

    return model_kind(model) == MODEL_NET
               ? setting
               : arena_printf(arena, "%s; %s", setting,
                              model_kind_text(model, arena));
}

int oracle_learned_open(struct oracle **out, const char *file,
                        const struct problem *problem, struct arena *arena,
                        struct err *err)
{
    static const struct oracle_ops ops = {.embed = learned_embed,
                                          .compute = learned_compute,
                                          .judge = learned_judge};
    struct learned *learned = ARENA_NEW(arena, struct learned, 1);
    const struct model *model = &learned->model;
    bool is_as_measured;

    if (model_load(&learned->model, path_of_model(file, arena), arena, err))
        return -1;
    if (model->mlp.n_params)
        build_nets(learned, arena);
    learned->n_sums =
        learned->n_embed + (uint32_t)estimate_width(&model->estimate);
    if (choose_constants(learned, problem, arena, err))
        return -1;
    is_as_measured =
        choose_ranges(learned, problem, arena) && !learned->is_elsewhere;
    learned->as_planned =
        problem_use_all(problem, (double)problem->batch, arena);
    learned->as_trained = learned->batch_ratio == 1
                              ? learned->as_planned
                              : problem_use_all(problem, learned->batch, arena);
    learned->priced.base = (struct oracle){
        .problem = problem,
        .cost.name = arena_printf(arena, "model:%s", text_shown(file, arena)),
        .cost.hash = arena_strdup(arena, HASH_TEXT(model->hash)),
        .cost.basis = is_as_measured ? model->basis : BASIS_MODELLED,
        .cost.device = device_of(model, arena),
        .warning = doubt(learned, file, problem, arena),
        .width = learned->n_sums + N_LANES,
        .kinds = SHARD_ALL_KINDS,
        .floor_lane = (int32_t)learned->n_sums + LANE_FLOOR,
    };
    learned->priced.base.cost.lookup_error =
        error_of(model, &learned->priced.base, arena);
    comm_oracle_init(&learned->priced, &ops);
    comm_oracle_add_busy(&learned->priced, arena);
    comm_oracle_add_sync(&learned->priced);
    if (comm_oracle_add_tiers(&learned->priced, learned->spec, arena, err))
        return -1;
    if (dense_cost_add(&learned->priced, learned->spec,
                       learned->is_elsewhere ? NULL : &model->products, err))
        return -1;
    *out = &learned->priced.base;
    return 0;
}
