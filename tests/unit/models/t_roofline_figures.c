/* SPDX-License-Identifier: MIT */
/* Roofline times of single loads, in ms. Each figure of a GPU and each constant
 * of costmodel/formulas/roofline.c affects some of them. The constants were
 * fitted to measurements (tests/prop/t_measured, tests/prop/t_anchors). If you
 * fit them again, write the new times here. */
#include "costmodel/modelfile/gpu_file.h"
#include "costmodel/models/oracles.h"
#include "tests/shipped_gpu.h"
#include "tests/tap.h"

#define MAX_TABLES 12

struct load {
    const char *gpu;
    uint32_t n_tables, dim;
    uint64_t n_rows;
    double pooling, alpha;
    enum precision precision;
    enum optimizer optimizer;
    enum shard_kind kind;
    double want_ms;
};

static double load_ms(const struct load *load)
{
    struct table tables[MAX_TABLES];
    struct shard shards[MAX_TABLES];
    struct problem problem = {
        .tables = tables,
        .n_tables = load->n_tables,
        .batch = 65536,
        .kinds = SHARD_ALL_KINDS,
        .cluster = {.n_devices = 4, .devices_per_host = 4}};
    struct oracle *oracle = NULL;
    struct arena arena = {0};
    struct err err = {0};
    double *vectors, *sums, ms = NAN;

    for (uint32_t t = 0; t < load->n_tables; t++) {
        table_init(&tables[t]);
        tables[t].name = arena_printf(&arena, "t%u", t);
        tables[t].num_embeddings = load->n_rows * (t + 1);
        tables[t].dim = load->dim;
        tables[t].pooling_factor = load->pooling;
        tables[t].zipf_alpha = load->alpha;
        tables[t].precision = load->precision;
        tables[t].optimizer = load->optimizer;
        shards[t] = shard_whole(&problem, t, 0);
        shards[t].kind = load->kind;
        if (load->kind == SHARD_ROW)
            shards[t].row_end /= 4;
    }
    problem_find_hot_rows(&problem, &arena);
    if (oracle_roofline_open(&oracle, load->gpu, &problem, &arena, &err)) {
        printf("# %s\n", err.msg);
    } else {
        vectors =
            ARENA_NEW(&arena, double, (load->n_tables + 1) * oracle->width);
        sums = vectors + load->n_tables * oracle->width;
        oracle->ops->embed(oracle, shards, load->n_tables, vectors);
        for (size_t i = 0; i < load->n_tables * oracle->width; i++)
            sums[i % oracle->width] += vectors[i];
        oracle->ops->compute(oracle, sums, 1, &ms);
    }
    arena_release(&arena);
    return ms;
}

#define FP32 PRECISION_FP32
#define FP16 PRECISION_FP16
#define SGD OPTIMIZER_SGD
#define ROWWISE OPTIMIZER_ROWWISE_ADAGRAD
#define ADAGRAD OPTIMIZER_ADAGRAD
#define WHOLE SHARD_TABLE
int main(void)
{
    static const struct load loads[] = {
        {"h100", 1, 8, 1000000, 10, 1.05, FP32, ROWWISE, WHOLE, 0.260936581},
        {"h100", 1, 32, 1000000, 10, 1.05, FP32, ROWWISE, WHOLE, 0.272932991},
        {"h100", 1, 48, 1000000, 10, 1.05, FP32, ROWWISE, WHOLE, 0.306632271},
        {"h100", 1, 64, 1000000, 10, 1.05, FP32, ROWWISE, WHOLE, 0.318049835},
        {"h100", 1, 96, 1000000, 10, 1.05, FP32, ROWWISE, WHOLE, 0.39384135},
        {"h100", 1, 128, 1000000, 10, 1.05, FP32, ROWWISE, WHOLE, 0.420758259},
        {"h100", 1, 160, 1000000, 10, 1.05, FP32, ROWWISE, WHOLE, 0.489408511},
        {"h100", 1, 256, 1000000, 10, 1.05, FP32, ROWWISE, WHOLE, 0.650892651},
        {"h100", 1, 384, 1000000, 10, 1.05, FP32, ROWWISE, WHOLE, 0.914291292},
        {"h100", 1, 128, 100, 10, 0, FP32, SGD, WHOLE, 0.280766573},
        {"h100", 1, 128, 5000, 10, 0, FP32, SGD, WHOLE, 0.422950053},
        {"h100", 1, 128, 200000, 10, 0, FP32, SGD, WHOLE, 0.483236985},
        {"h100", 1, 128, 40000000, 10, 0, FP32, SGD, WHOLE, 0.787783938},
        {"h100", 1, 64, 10000000, 20, 0.6, FP16, ADAGRAD, WHOLE, 0.758496137},
        {"h100", 1, 64, 10000000, 20, 1.2, FP16, ADAGRAD, WHOLE, 0.38731888},
        {"h100", 1, 64, 10000000, 20, 1.8, FP16, ADAGRAD, WHOLE, 0.331816792},
        {"h100", 1, 64, 1000000, 0, 1.05, FP32, ROWWISE, WHOLE, 0.016117833},
        {"h100", 1, 64, 1000000, 0.001, 1.05, FP32, ROWWISE, WHOLE,
         0.119926703},
        {"h100", 1, 64, 1000000, 0.5, 1.05, FP32, ROWWISE, WHOLE, 0.172404244},
        {"h100", 1, 64, 1000000, 1, 1.05, FP32, ROWWISE, WHOLE, 0.184921067},
        {"h100", 1, 64, 1000000, 100, 1.05, FP32, ROWWISE, WHOLE, 1.28393511},
        {"h100", 2, 64, 1000000, 4, 1.05, FP32, ROWWISE, WHOLE, 0.33104952},
        {"h100", 5, 64, 1000000, 4, 1.05, FP32, ROWWISE, WHOLE, 0.611587553},
        {"h100", 12, 64, 1000000, 4, 1.05, FP32, ROWWISE, WHOLE, 1.32700924},
        {"h100", 2, 64, 3000000, 4, 1.05, FP16, OPTIMIZER_ADAM, WHOLE,
         0.512619441},
        {"h100", 2, 64, 3000000, 4, 1.05, FP16, OPTIMIZER_LAMB, WHOLE,
         0.533314713},
        {"h100", 2, 64, 3000000, 4, 1.05, FP16, OPTIMIZER_PARTIAL_ROWWISE_ADAM,
         WHOLE, 0.352871392},
        {"h100", 1, 64, 300000, 4, 1.05, FP32, ADAGRAD, SHARD_REPLICATE,
         0.524853971},
        {"h100", 3, 64, 30000, 4, 1.05, FP16, SGD, SHARD_REPLICATE,
         0.271182985},
        {"h100", 3, 64, 3000000, 8, 1.05, FP32, ROWWISE, SHARD_ROW,
         0.328718524},
        {"cpu", 1, 8, 1000000, 10, 1.05, FP32, ROWWISE, WHOLE, 5.51879813},
        {"cpu", 1, 32, 1000000, 10, 1.05, FP32, ROWWISE, WHOLE, 6.22853107},
        {"cpu", 1, 48, 1000000, 10, 1.05, FP32, ROWWISE, WHOLE, 6.89926049},
        {"cpu", 1, 64, 1000000, 10, 1.05, FP32, ROWWISE, WHOLE, 7.58909336},
        {"cpu", 1, 96, 1000000, 10, 1.05, FP32, ROWWISE, WHOLE, 9.24145678},
        {"cpu", 1, 128, 1000000, 10, 1.05, FP32, ROWWISE, WHOLE, 11.2008948},
        {"cpu", 1, 160, 1000000, 10, 1.05, FP32, ROWWISE, WHOLE, 13.2063146},
        {"cpu", 1, 256, 1000000, 10, 1.05, FP32, ROWWISE, WHOLE, 19.4235064},
        {"cpu", 1, 384, 1000000, 10, 1.05, FP32, ROWWISE, WHOLE, 28.0419544},
        {"cpu", 1, 128, 100, 10, 0, FP32, SGD, WHOLE, 3.47942999},
        {"cpu", 1, 128, 5000, 10, 0, FP32, SGD, WHOLE, 7.8108308},
        {"cpu", 1, 128, 200000, 10, 0, FP32, SGD, WHOLE, 17.4413608},
        {"cpu", 1, 128, 40000000, 10, 0, FP32, SGD, WHOLE, 31.1463574},
        {"cpu", 1, 64, 10000000, 20, 0.6, FP16, ADAGRAD, WHOLE, 33.5509684},
        {"cpu", 1, 64, 10000000, 20, 1.2, FP16, ADAGRAD, WHOLE, 9.66449423},
        {"cpu", 1, 64, 10000000, 20, 1.8, FP16, ADAGRAD, WHOLE, 6.62594837},
        {"cpu", 1, 64, 1000000, 0, 1.05, FP32, ROWWISE, WHOLE, 0.121149677},
        {"cpu", 1, 64, 1000000, 0.001, 1.05, FP32, ROWWISE, WHOLE, 0.208217563},
        {"cpu", 1, 64, 1000000, 0.5, 1.05, FP32, ROWWISE, WHOLE, 0.708242285},
        {"cpu", 1, 64, 1000000, 1, 1.05, FP32, ROWWISE, WHOLE, 1.14197583},
        {"cpu", 1, 64, 1000000, 100, 1.05, FP32, ROWWISE, WHOLE, 58.2019999},
        {"cpu", 2, 64, 1000000, 4, 1.05, FP32, ROWWISE, WHOLE, 7.12576597},
        {"cpu", 5, 64, 1000000, 4, 1.05, FP32, ROWWISE, WHOLE, 18.5768013},
        {"cpu", 12, 64, 1000000, 4, 1.05, FP32, ROWWISE, WHOLE, 49.027737},
        {"cpu", 2, 64, 3000000, 4, 1.05, FP16, OPTIMIZER_ADAM, WHOLE,
         13.8662955},
        {"cpu", 2, 64, 3000000, 4, 1.05, FP16, OPTIMIZER_LAMB, WHOLE,
         14.6062233},
        {"cpu", 2, 64, 3000000, 4, 1.05, FP16, OPTIMIZER_PARTIAL_ROWWISE_ADAM,
         WHOLE, 7.21141524},
        {"cpu", 1, 64, 300000, 4, 1.05, FP32, ADAGRAD, SHARD_REPLICATE,
         6.15823027},
        {"cpu", 3, 64, 30000, 4, 1.05, FP16, SGD, SHARD_REPLICATE, 3.17874525},
        {"cpu", 3, 64, 3000000, 8, 1.05, FP32, ROWWISE, SHARD_ROW, 5.66053823},
        {"mi300x", 4, 128, 3000000, 8, 1.05, FP32, ROWWISE, WHOLE, 0.866059878},
        {"t4", 4, 128, 3000000, 8, 1.05, FP32, ROWWISE, WHOLE, 11.9835761}};

    for (size_t i = 0; i < sizeof(loads) / sizeof(*loads); i++) {
        const double ms = load_ms(&loads[i]);

        if (!ok(fabs(ms - loads[i].want_ms) <= 1e-6 * loads[i].want_ms,
                "%s: %u of %u columns, %s", loads[i].gpu, loads[i].n_tables,
                loads[i].dim, optimizer_names[loads[i].optimizer]))
            printf("# got %.9g, want %.9g\n", ms, loads[i].want_ms);
    }
    return tap_done();
}
