/* SPDX-License-Identifier: MIT */
/* The learned oracle: its sums equal the net's predictions for fused tables,
 * pieces get the features that their definition gives, and no price falls below
 * the floor. */
#include "costmodel/formulas/roofline.h"
#include "costmodel/models/oracle_open.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/file.h"
#include "base/file_write.h"
#include "costmodel/learning/evaluate.h"
#include "costmodel/learning/train.h"
#include "costmodel/modelfile/model_file.h"
#include "tests/predict_samples.h"
#include "tests/shipped_gpu.h"
#include "tests/synthetic_samples.h"
#include "tests/tap.h"
#include "tests/unit/learning/learned_fixture.h"

#define N_TABLES 6
#define N_DEVICES 4

static char model_path[] = "/tmp/t_learned_XXXXXX";

/* Fills a problem with synthetic tables and the batch size of the samples. */
static void fill_problem(struct problem *problem, struct sample_table *tables,
                         struct arena *arena)
{
    struct rng rng;

    rng_init(&rng, 77, 0);
    *problem = (struct problem){
        .tables = ARENA_NEW(arena, struct table, N_TABLES),
        .n_tables = N_TABLES,
        .cluster = {.n_devices = N_DEVICES, .devices_per_host = N_DEVICES},
        .batch = synthetic_setting.batch,
        .kinds = SHARD_ALL_KINDS};
    for (size_t i = 0; i < N_TABLES; i++) {
        struct table *table = &problem->tables[i];

        synthetic_table(&tables[i], &rng);
        tables[i].dim = 64;
        table_init(table);
        table->name = "t";
        table->num_embeddings = tables[i].n_rows;
        table->dim = tables[i].dim;
        table->pooling_factor = tables[i].pooling_factor;
        table->zipf_alpha = tables[i].zipf_alpha;
    }
}

/* Predicts the time of these tables with the model's own prediction function,
 * in ms. */
static double sample_ms(const struct model *model, struct sample_table *tables,
                        uint32_t n)
{
    const struct sample sample =
        synthetic_sample(SAMPLE_FUSED, 0, 0, tables, n);
    double ms;

    predict_samples(model, &sample, 1, &ms);
    return ms;
}

static void test_shards(const struct model *model, struct arena *arena)
{
    struct sample_table tables[N_TABLES], piece;
    struct shard shards[N_TABLES], shard;
    struct problem problem;
    const struct oracle *oracle;
    double want, job[JOB_LANES];

    fill_problem(&problem, tables, arena);
    oracle = open_model(model_path, &problem, arena);
    for (uint32_t i = 0; i < N_TABLES; i++)
        shards[i] = shard_whole(&problem, i, 0);
    for (uint32_t n = 1; n <= N_TABLES; n++) {
        want = sample_ms(model, tables, n);
        is_near(device_ms(oracle, shards, n), want, 1e-4 * want,
                "whole tables, fused");
    }
    shard = shards[0];
    shard.kind = SHARD_COLUMN;
    shard.col_end = 16;
    piece = tables[0];
    piece.dim = 16;
    want = sample_ms(model, &piece, 1);
    is_near(device_ms(oracle, &shard, 1), want, 1e-4 * want,
            "a column piece is a narrower table");
    shard = shards[1];
    shard.kind = SHARD_ROW;
    shard.row_end = problem.tables[1].num_embeddings / 4;
    piece = tables[1];
    piece.n_unique *= (double)shard.row_end / (double)piece.n_rows;
    piece.pooling_factor *= (double)shard.row_end / (double)piece.n_rows;
    piece.n_rows = shard.row_end;
    want = sample_ms(model, &piece, 1);
    is_near(device_ms(oracle, &shard, 1), want, 1e-4 * want,
            "a row piece has its share of look-ups, and the table's bins");
    shards[2].kind = SHARD_REPLICATE;
    want = device_ms(oracle, shards, 2) + device_ms(oracle, &shards[2], 1);
    is_near(device_ms(oracle, shards, 3), want, 1e-12 * want,
            "a replica is looked up separately from fused tables");
    job_embed(shipped_gpu("cpu", arena), &problem, &shards[2],
              problem_use_all(&problem, (double)problem.batch, arena) + 2, job);
    want = job[JOB_REPLICAS] + job_added_ms(shipped_gpu("cpu", arena), job);
    is_near(device_ms(oracle, &shards[2], 1), want, 1e-12 * want,
            "and takes what formulas say");
}

static void test_facts(struct arena *arena)
{
    struct sample_table tables[N_TABLES];
    struct problem problem;
    const struct oracle *oracle;
    struct shard shard;
    double at_batch, zeros[96] = {0}, vector[96], ms = -1;

    fill_problem(&problem, tables, arena);
    shard = shard_whole(&problem, 3, 0);
    for (size_t i = 0; i < N_TABLES; i++)
        problem.tables[i].optimizer = OPTIMIZER_ROWWISE_ADAGRAD;
    oracle = open_model(model_path, &problem, arena);
    is_i64(oracle->cost.basis, BASIS_MEASURED, "planned as it was measured");
    ok(strstr(oracle->cost.device, "cpu:imaginary") != NULL, "device: %s",
       oracle->cost.device);
    ok(strstr(oracle->cost.comm, "cpu") != NULL, "communication: %s",
       oracle->cost.comm);
    ok(!strncmp(oracle->cost.name, "model:/tmp/", 11), "name: %s",
       oracle->cost.name);
    oracle->ops->compute(oracle, zeros, 1, &ms);
    is_near(ms, 0, 0, "an empty device does nothing");
    oracle->ops->embed(oracle, &shard, 1, vector);
    ok(vector[oracle->floor_lane] > 0, "floor of a table: %.4f ms",
       vector[oracle->floor_lane]);
    vector[oracle->floor_lane] = 1e6;
    oracle->ops->compute(oracle, vector, 1, &ms);
    is_near(ms, 1e6, 0, "an answer below the floor is raised to it");
    at_batch = device_ms(oracle, &shard, 1);
    problem.batch *= 3;
    oracle = open_model(model_path, &problem, arena);
    is_near(device_ms(oracle, &shard, 1), 3 * at_batch, 1e-9 * at_batch,
            "three times the batch, three times the time");
    is_i64(oracle->cost.basis, BASIS_MODELLED, "and no longer measured");
    problem.batch /= 3;
    problem.tables[5].precision = PRECISION_FP16;
    oracle = open_model(model_path, &problem, arena);
    is_i64(oracle->cost.basis, BASIS_MODELLED,
           "another precision is modelled, too");
}

/* n random sums: embed and compute give the same bits for any batch size and on
 * any instruction set. */
static void test_bits(struct arena *arena)
{
    static const char *const isas[] = {"portable", "avx2", "avx512"};
    enum { N = 37 };
    struct sample_table tables[N_TABLES];
    struct shard shards[N];
    struct problem problem;
    double *first = NULL, *vectors, ms[N], first_ms[N];
    struct rng rng;

    fill_problem(&problem, tables, arena);
    rng_init(&rng, 9, 0);
    for (size_t i = 0; i < N; i++) {
        shards[i] =
            shard_whole(&problem, (uint32_t)rng_below(&rng, N_TABLES), 0);
        shards[i].kind = SHARD_COLUMN;
        shards[i].col_end = 4 * (uint32_t)(1 + rng_below(&rng, 16));
    }
    for (int isa = 0; isa <= (int)cpu_isa_best(); isa++) {
        const struct oracle *oracle;
        int same = 1;

        setenv("NEUROSHARD_ISA", isas[isa], 1);
        oracle = open_model(model_path, &problem, arena);
        vectors = ARENA_NEW(arena, double, N * oracle->width);
        oracle->ops->embed(oracle, shards, N, vectors);
        oracle->ops->compute(oracle, vectors, N, ms);
        if (!first) {
            first = vectors;
            memcpy(first_ms, ms, sizeof(ms));
        }
        ok(!memcmp(first, vectors, sizeof(*first) * N * oracle->width) &&
               !memcmp(first_ms, ms, sizeof(ms)),
           "%s: the portable bits", isas[isa]);
        for (size_t i = 0; i < N; i++) {
            double one;

            oracle->ops->compute(oracle, vectors + i * oracle->width, 1, &one);
            same = same && one == ms[i];
        }
        ok(same, "%s: one by one or together", isas[isa]);
        unsetenv("NEUROSHARD_ISA");
    }
}

static void test_comm(const struct model *trained, struct arena *arena)
{
    struct sample_table tables[N_TABLES];
    struct model model = *trained;
    struct problem problem;
    const struct oracle *oracle;
    struct err err = {0};
    double *sums, ms[N_DEVICES] = {1, 1, 1, 1}, fwd[N_DEVICES], bwd[N_DEVICES];
    double phases[N_DEVICES][N_PHASES];
    double total_bytes = 0;

    fill_problem(&problem, tables, arena);
    model.has_comm = true;
    model.comm = (struct comm_curves){.rules.form = COMM_TOTAL,
                                      .curves = {comm_line(50, 2)},
                                      .n_curves = 1,
                                      .source = "copies, measured"};
    ok(!model_save(&model, model_path, &err), "saved with communication");
    oracle = open_model(model_path, &problem, arena);
    is_str(oracle->cost.comm,
           "copies, measured; forward and backward are told apart by "
           "roofline:cpu",
           "the source is named");
    sums = ARENA_NEW(arena, double, N_DEVICES * oracle->width);
    for (uint32_t r = 0; r < N_DEVICES; r++) {
        const struct shard shard = shard_whole(&problem, r, r);

        oracle->ops->embed(oracle, &shard, 1, sums + r * oracle->width);
        total_bytes += 4.0 * problem.tables[r].dim * (double)problem.batch;
    }
    oracle->ops->comm(oracle, 1, sums, ms, fwd, bwd);
    is_near(bwd[0], 0.050 + total_bytes / 2e6, 1e-9,
            "latency and bytes over the measured bandwidth");
    oracle->ops->phases(oracle, sums, ms, phases);
    is_near(phases[3][PHASE_OUTPUT], bwd[3], 1e-9, "forward the same");
    is_near(phases[3][PHASE_FORWARD] + phases[3][PHASE_BACKWARD], ms[3], 1e-12,
            "the net's compute is split");
    ok(phases[3][PHASE_FORWARD] > 0 && phases[3][PHASE_BACKWARD] > 0,
       "into a forward and a backward");
    is_near(bwd[3] + fwd[3] + ms[3],
            step_of_ranks(oracle->step, N_DEVICES,
                          (const double(*)[N_PHASES])phases),
            1e-12, "phases give the step");
}

/* Error interval for all devices, before there is a plan (t_trust tests it with
 * a plan). */
static void test_error(const struct model *trained, struct arena *arena)
{
    struct sample_table tables[N_TABLES];
    struct model model = *trained;
    struct problem problem;
    struct cost_error error;
    struct err err = {0};

    fill_problem(&problem, tables, arena);
    model.setting.device = "cuda:NVIDIA H100";
    model.setting.isa = "sm_90";
    model.setting.n_threads = 0;
    model.intervals.n = 0;
    ok(!model_save(&model, model_path, &err), "saved: %s", err.msg);
    error = open_model(model_path, &problem, arena)->cost.lookup_error;
    ok(error.frac == 0, "nothing is known of a model without intervals");

    model.intervals.n = 2;
    model.intervals.items[0] =
        (struct interval){"all", "held-out samples", 20, 0.25, 0.375, 0};
    model.intervals.items[1] =
        (struct interval){"usual", "held-out samples", 15, 0.5, 0.5, 0};
    ok(!model_save(&model, model_path, &err), "saved: %s", err.msg);
    error = open_model(model_path, &problem, arena)->cost.lookup_error;
    is_near(error.frac, 0.25, 0, "error of the class 'all'");
    is_str(error.ground, "20 held-out samples (all)", "the samples are named");

    problem.cluster.gpu = "h200";
    error = open_model(model_path, &problem, arena)->cost.lookup_error;
    ok(error.frac == 0, "no error for another GPU");
    problem.cluster.gpu = NULL;
    problem.batch *= 4;
    error = open_model(model_path, &problem, arena)->cost.lookup_error;
    ok(error.frac == 0, "no error for a batch outside the training range");
}

/* A CPU model is valid only for the same CPU with the same instruction set. */
static void test_doubt(const struct model *trained, struct arena *arena)
{
    const char *isa = cpu_isa_name(cpu_isa_best());
    char name[128];
    const char *own =
        arena_printf(arena, "cpu:%s", cpu_model_name(name, sizeof(name)));
    const struct {
        const char *device, *isa;
        bool is_doubted;
    } cases[] = {{own, isa, false},
                 {"cpu:imaginary", isa, true},
                 {own, "none", true},
                 {"cpu:imaginary", "none", true}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct sample_table tables[N_TABLES];
        struct model model = *trained;
        struct problem problem;
        struct err err = {0};
        const char *warning;

        fill_problem(&problem, tables, arena);
        model.setting.device = cases[i].device;
        model.setting.isa = cases[i].isa;
        ok(!model_save(&model, model_path, &err), "saved: %s", err.msg);
        warning = open_model(model_path, &problem, arena)->warning;
        ok((warning && strstr(warning, "and this machine is")) ==
               cases[i].is_doubted,
           "%s with %s", cases[i].device, cases[i].isa);
    }
}

/* A name without a '/' means a shipped model, even if the current folder has a
 * file of that name. */
static void test_shipped(struct model *model, struct arena *arena)
{
    char folder[] = "/tmp/t_learned_folder_XXXXXX";
    struct sample_table tables[N_TABLES];
    struct problem problem;
    struct oracle *first = NULL, *again = NULL, *here = NULL;
    struct err err = {0};
    const char *shipped;

    fill_problem(&problem, tables, arena);
    if (!mkdtemp(folder) || chdir(folder) || mkdir("models", 0700) ||
        move_data(folder, arena)) {
        ok(0, "a folder of shipped models");
        return;
    }
    shipped = arena_printf(arena, "%s/models/cpu-x.nsm", folder);
    ok(!model_save(model, shipped, &err) &&
           !file_write("cpu-x.nsm", "no model", 8, &err),
       "one shipped, another file of that name here");
    if (ok(!oracle_open_for_gpu(&first, "cpu", &problem, arena, &err),
           "opens the shipped one: %s", err.msg)) {
        is_str(first->cost.name, "model:cpu-x.nsm", "named without its folder");
        ok(!chdir("models") &&
               !oracle_open(&again, first->cost.name, &problem, arena, &err),
           "its name opens it from another folder: %s", err.msg);
        ok(again && !strcmp(first->cost.hash, again->cost.hash),
           "it is the same model");
    }
    ok(!chdir("..") &&
           oracle_open(&here, "model:./cpu-x.nsm", &problem, arena, &err) &&
           err.code == ERR_INPUT,
       "a name with '/' is a path: %s", err.msg);
    if (ok(!oracle_open(&here, arena_printf(arena, "model:%s", model_path),
                        &problem, arena, &err),
           "a path is a path"))
        is_str(here->cost.name, arena_printf(arena, "model:%s", model_path),
               "named as typed");
    ok(!unlink(shipped) && !unlink("cpu-x.nsm") && !rmdir("models") &&
           !unlink("gpus") && !rmdir(folder),
       "the folder is gone");
}

int main(void)
{
    struct train_options options;
    struct model model;
    struct arena arena = {0};
    struct err err = {0};
    const struct sample *samples;
    int fd = mkstemp(model_path);
    size_t n;

    samples = synthetic_samples(&n, 100, 4, &arena);
    train_options_init(&options);
    options.epochs = 20;
    if (fd < 0 || close(fd) ||
        train_fit(&model, samples, n, &options, &arena, &err) ||
        model_save(&model, model_path, &err)) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }
    test_shards(&model, &arena);
    test_facts(&arena);
    test_bits(&arena);
    test_comm(&model, &arena);
    test_error(&model, &arena);
    test_doubt(&model, &arena);
    if (model_save(&model, model_path, &err))
        printf("Bail out! %s\n", err.msg);
    test_shipped(&model, &arena);
    unlink(model_path);
    arena_release(&arena);
    return tap_done();
}
