/* SPDX-License-Identifier: MIT */
/* One model for all settings of a GPU. The net is evaluated with the plan's
 * batch, precision and optimizer. If these are outside the training range,
 * the nearest trained setting is used, and the plan is no longer called
 * measured. */
#include "costmodel/models/oracle_open.h"

#include <sys/stat.h>
#include <unistd.h>

#include "costmodel/learning/evaluate.h"
#include "costmodel/learning/train.h"
#include "costmodel/modelfile/model_file.h"
#include "tests/predict_samples.h"
#include "tests/shipped_gpu.h"
#include "tests/simulated_gpu.h"
#include "tests/tap.h"
#include "tests/unit/learning/learned_fixture.h"

#define N_TABLES 4
#define N_DEVICES 4

static char folder[] = "/tmp/t_learned_settings_XXXXXX";
static char model_path[64];

/* Fills a problem with tables like those of the samples. */
static void fill_problem(struct problem *problem, uint64_t batch,
                         enum precision precision, enum optimizer optimizer,
                         struct arena *arena)
{
    *problem = (struct problem){
        .tables = ARENA_NEW(arena, struct table, N_TABLES),
        .n_tables = N_TABLES,
        .cluster = {.n_devices = N_DEVICES, .devices_per_host = N_DEVICES},
        .batch = batch,
        .kinds = SHARD_ALL_KINDS};
    for (uint32_t i = 0; i < N_TABLES; i++) {
        struct table *table = &problem->tables[i];

        table_init(table);
        table->name = "t";
        table->num_embeddings = 100000u << (2 * i);
        table->dim = 32u << (i % 3);
        table->pooling_factor = 2 + 7 * i;
        table->zipf_alpha = 0.8 + 0.1 * i;
        table->precision = precision;
        table->optimizer = optimizer;
    }
}

/* Returns the oracle's price of all whole tables on one device, in ms. */
static double whole_ms(const struct problem *problem, struct arena *arena)
{
    const struct oracle *oracle = open_model(model_path, problem, arena);
    struct shard shards[N_TABLES];

    for (uint32_t i = 0; i < N_TABLES; i++)
        shards[i] = shard_whole(problem, i, 0);
    return device_ms(oracle, shards, N_TABLES);
}

/* Predicts the first n tables as one sample with the model's own prediction
 * function. */
static double sample_ms(const struct model *model,
                        const struct problem *problem, uint32_t n,
                        uint32_t batch)
{
    const struct sample_setting setting = {
        .precision = problem->tables[0].precision,
        .optimizer = problem->tables[0].optimizer,
        .batch = batch};
    struct sample_table tables[N_TABLES];
    const struct sample sample = {
        .setting = &setting, .tables = tables, .n_tables = n};
    double ms;

    for (uint32_t i = 0; i < n; i++) {
        const struct table *table = &problem->tables[i];

        tables[i].n_rows = table->num_embeddings;
        tables[i].dim = table->dim;
        tables[i].pooling_factor = table->pooling_factor;
        tables[i].n_unique =
            table_reuse(table, table->pooling_factor * batch, tables[i].bins);
    }
    predict_samples(model, &sample, 1, &ms);
    return ms;
}

static enum cost_basis basis_of(const struct problem *problem,
                                struct arena *arena)
{
    return open_model(model_path, problem, arena)->cost.basis;
}

/* A trained setting is evaluated without changes. */
static void test_inside(const struct model *model, struct arena *arena)
{
    double seen[4];
    struct problem problem;
    int n = 0;

    for (int fp16 = 0; fp16 < 2; fp16++)
        for (int adagrad = 0; adagrad < 2; adagrad++) {
            double want;

            fill_problem(&problem, 3000 + 20000 * (uint32_t)n,
                         fp16 ? PRECISION_FP16 : PRECISION_FP32,
                         adagrad ? OPTIMIZER_ROWWISE_ADAGRAD : OPTIMIZER_SGD,
                         arena);
            want =
                sample_ms(model, &problem, N_TABLES, (uint32_t)problem.batch);
            is_near(whole_ms(&problem, arena), want, 1e-4 * want,
                    "as the model predicts such a sample");
            is_i64(basis_of(&problem, arena), BASIS_MEASURED, "measured");
            problem.batch = 16384;
            seen[n++] = whole_ms(&problem, arena);
        }
    ok(seen[0] != seen[1] && seen[0] != seen[2] && seen[1] != seen[3],
       "precision and optimizer count: %.4f %.4f %.4f %.4f ms", seen[0],
       seen[1], seen[2], seen[3]);
    problem.tables[1].precision = PRECISION_FP32;
    problem.tables[2].optimizer = OPTIMIZER_SGD;
    is_i64(basis_of(&problem, arena), BASIS_MEASURED,
           "each table may have its own");
}

/* A setting outside the training range is clamped to it, and the time is
 * scaled. */
static void test_outside(struct arena *arena)
{
    struct problem problem, other;
    double want;

    fill_problem(&problem, 65536, PRECISION_FP32, OPTIMIZER_SGD, arena);
    want = whole_ms(&problem, arena);
    problem.batch *= 4;
    is_near(whole_ms(&problem, arena), 4 * want, 1e-9 * want,
            "a batch four times the largest: four times its time");
    is_i64(basis_of(&problem, arena), BASIS_MODELLED, "no longer measured");
    problem.batch = 1024;
    want = whole_ms(&problem, arena);
    problem.batch = 256;
    is_near(whole_ms(&problem, arena), want / 4, 1e-9 * want,
            "a quarter of the smallest: a quarter of its time");
    is_i64(basis_of(&problem, arena), BASIS_MODELLED, "neither measured");

    fill_problem(&problem, 8192, PRECISION_FP16, OPTIMIZER_ADAM, arena);
    fill_problem(&other, 8192, PRECISION_FP16, OPTIMIZER_ROWWISE_ADAGRAD,
                 arena);
    want = whole_ms(&other, arena);
    ok(whole_ms(&problem, arena) > 1.02 * want &&
           whole_ms(&problem, arena) < 4 * want,
       "Adam is priced as another optimizer with state, plus the roofline's "
       "update: %.3f ms of %.3f",
       whole_ms(&problem, arena), want);
    is_i64(basis_of(&problem, arena), BASIS_MODELLED, "and modelled");
    fill_problem(&problem, 8192, PRECISION_BF16, OPTIMIZER_SGD, arena);
    fill_problem(&other, 8192, PRECISION_FP16, OPTIMIZER_SGD, arena);
    is_near(whole_ms(&problem, arena), whole_ms(&other, arena), 0,
            "bf16 as the other precision of two bytes");
    is_i64(basis_of(&problem, arena), BASIS_MODELLED, "and modelled");
}

/* 0 < cost, and the cost grows with the number of tables, even far beyond all
 * samples. */
static void test_large_devices(struct arena *arena)
{
    struct problem problem;
    const struct oracle *oracle;
    double sum[96] = {0}, one[96], ms, before = 0;
    int grows = 1;

    fill_problem(&problem, 65536, PRECISION_FP32, OPTIMIZER_SGD, arena);
    oracle = open_model(model_path, &problem, arena);
    ok(oracle->width <= 96, "a vector of %u lanes", oracle->width);
    for (uint32_t n = 1; n <= 1024; n++) {
        const struct shard shard = shard_whole(&problem, n % N_TABLES, 0);

        oracle->ops->embed(oracle, &shard, 1, one);
        for (uint32_t k = 0; k < oracle->width; k++)
            sum[k] += one[k];
        if (n & (n - 1))
            continue;
        oracle->ops->compute(oracle, sum, 1, &ms);
        grows = grows && ms > 1.3 * before;
        before = ms;
    }
    ok(grows, "twice the tables cost more, up to 1,024: %.1f ms", before);
}

/* A model file with the name of a GPU prices the plans for that GPU. */
static void test_default(struct model *model, struct arena *arena)
{
    struct problem problem;
    struct oracle *oracle = NULL;
    struct err err = {0};

    fill_problem(&problem, 8192, PRECISION_FP32, OPTIMIZER_SGD, arena);
    model->setting.device = "cuda:NVIDIA H200";
    model->setting.isa = "sm_90";
    ok(!model_save(model, model_path, &err), "shipped for the H200%s", err.msg);
    if (!ok(!oracle_open_for_gpu(&oracle, "h200", &problem, arena, &err),
            "opens for it%s", err.msg))
        return;
    is_str(oracle->cost.name, "model:h200.nsm", "by its name");
    is_i64(oracle->cost.basis, BASIS_MEASURED, "measured");
    ok(!strncmp(oracle->cost.device, "cuda:NVIDIA H200, sm_90", 23),
       "on which: %s", oracle->cost.device);
    ok(strstr(oracle->cost.comm, "published figures of h200") != NULL,
       "communication: %s", oracle->cost.comm);
    ok(!oracle_open_for_gpu(&oracle, "h100", &problem, arena, &err) &&
           !strcmp(oracle->cost.name, "roofline:h100"),
       "another GPU has its roofline");
    model->setting.device = "cuda:NVIDIA H999";
    problem.cluster.gpu = "l40s";
    ok(!model_save(model, model_path, &err) &&
           !oracle_open(&oracle, "model:h200", &problem, arena, &err),
       "a model of a GPU without figures%s", err.msg);
    ok(!strncmp(oracle->cost.comm,
                "published figures of l40s, in the place of an unknown device",
                60),
       "communication: %s", oracle->cost.comm);
    is_str(oracle->warning,
           "cost model 'h200' was measured on 'cuda:NVIDIA H999', but the plan "
           "is for 'l40s'",
           "the message says so");
    is_i64(oracle->cost.basis, BASIS_MODELLED, "and it is not called measured");
}

/* A model file makes its own name usable as a GPU. The name then stands for the
 * GPU that the model was measured on. */
static void test_named(struct model *model, struct arena *arena)
{
    const char *path = arena_printf(arena, "%s/models/mybox.nsm", folder);
    const struct gpu_spec *spec = shipped_gpu("h200", arena), *mine = NULL;
    const uint64_t memory_bytes = spec->memory_bytes;
    struct oracle *oracle = NULL;
    struct problem problem;
    struct err err = {0};

    fill_problem(&problem, 8192, PRECISION_FP32, OPTIMIZER_SGD, arena);
    problem.cluster.gpu = "mybox";
    model->setting.device = "cuda:NVIDIA H200";
    ok(!model_save(model, path, &err) &&
           !gpu_spec_get(&mine, "mybox", arena, &err),
       "a model's name is a GPU's%s", err.msg);
    is_str(mine ? mine->name : "", "mybox", "as it is called");
    is_i64(mine ? (int64_t)mine->memory_bytes : 0, (int64_t)memory_bytes,
           "with the figures of the measured GPU");
    if (ok(!oracle_open_for_gpu(&oracle, "mybox", &problem, arena, &err),
           "which prices it%s", err.msg)) {
        is_str(oracle->cost.name, "model:mybox.nsm", "by that model");
        ok(!oracle->warning || !strstr(oracle->warning, "the plan is for"),
           "and is of no other GPU");
        ok(!strncmp(oracle->cost.comm, "published figures of mybox ", 27),
           "communication: %s", oracle->cost.comm);
    }
    model->setting.device = "cuda:NVIDIA H999";
    ok(!model_save(model, path, &err) &&
           gpu_spec_get(&mine, "mybox", arena, &err) && err.code == ERR_USAGE,
       "but not where that has none");
    is_str(err.msg,
           "no figures for a GPU 'mybox': its model was measured on "
           "'cuda:NVIDIA H999', which has no figures either",
           "the message says so");
    unlink(path);
}

int main(void)
{
    struct train_options options;
    struct model model;
    struct arena arena = {0};
    struct err err = {0};
    const struct sample *samples;

    samples = simulated_samples(400, 0, 5, &arena);
    train_options_init(&options);
    options.epochs = 20;
    if (!mkdtemp(folder) || move_data(folder, &arena) ||
        mkdir(arena_printf(&arena, "%s/models", folder), 0700) ||
        train_fit(&model, samples, 400, &options, &arena, &err)) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }
    snprintf(model_path, sizeof(model_path), "%s/models/h200.nsm", folder);
    if (!ok(!model_save(&model, model_path, &err), "a model%s", err.msg))
        return tap_done();
    is_i64((int64_t)model.ranges.n, 4,
           "it covers two precisions and two optimizers");
    test_inside(&model, &arena);
    test_outside(&arena);
    test_large_devices(&arena);
    test_default(&model, &arena);
    test_named(&model, &arena);
    unlink(model_path);
    rmdir(arena_printf(&arena, "%s/models", folder));
    unlink(arena_printf(&arena, "%s/gpus", folder));
    rmdir(folder);
    arena_release(&arena);
    return tap_done();
}
