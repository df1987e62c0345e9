/* SPDX-License-Identifier: MIT */
/* Price of the dense part with the shipped GPUs. Published products are in
 * tests/prop/t_dense_published.c. */
#include "costmodel/formulas/dense_cost.h"

#include "tests/shipped_gpu.h"
#include "tests/tap.h"

#define N_TABLES 26

static struct arena arena;
static struct err err;

/* Makes a problem of 26 tables of width 128. */
static void make_problem(struct problem *problem, uint32_t n_gpus,
                         uint64_t batch, const char *dense)
{
    *problem = (struct problem){
        .tables = ARENA_NEW(&arena, struct table, N_TABLES),
        .n_tables = N_TABLES,
        .cluster = {.n_devices = n_gpus, .devices_per_host = 8},
        .batch = batch,
        .dense_optimizer = DENSE_ADAM,
    };
    for (size_t t = 0; t < N_TABLES; t++) {
        table_init(&problem->tables[t]);
        problem->tables[t].name = "t";
        problem->tables[t].num_embeddings = 1000;
        problem->tables[t].dim = 128;
    }
    err = (struct err){0};
    if (dense && dense_read(&problem->job.dense, dense, strlen(dense),
                            problem->tables, N_TABLES, &arena, &err))
        ok(0, "%s", err.msg);
}

static void compute(const struct oracle *oracle, const double *sums, size_t n,
                    double *compute_ms)
{
    (void)oracle;
    memset(compute_ms, 0, n * sizeof(*compute_ms));
    (void)sums;
}

/* Prices the dense part of a problem by measured products; returns the result
 * of dense_cost_add. */
static int price_by(const struct product_times *times,
                    struct comm_oracle *oracle, const struct problem *problem,
                    const char *gpu)
{
    static const struct oracle_ops ops = {.compute = compute};
    const struct gpu_spec *spec = shipped_gpu(gpu, &arena);

    *oracle = (struct comm_oracle){
        .base = {.problem = problem, .width = COMM_LANES, .floor_lane = -1},
        .comm = gpu_spec_comm(spec, &problem->cluster)};
    comm_oracle_init(oracle, &ops);
    err = (struct err){0};
    return dense_cost_add(oracle, spec, times, &err);
}

static int price(struct comm_oracle *oracle, const struct problem *problem,
                 const char *gpu)
{
    return price_by(NULL, oracle, problem, gpu);
}

static struct dense_cost cost_of(const char *dense, const char *gpu,
                                 uint32_t n_gpus, uint64_t batch)
{
    struct comm_oracle oracle;
    struct problem problem;

    make_problem(&problem, n_gpus, batch, dense);
    if (price(&oracle, &problem, gpu))
        ok(0, "%s", err.msg);
    return oracle.dense;
}

static void test_products(void)
{
    const struct gpu_spec *h100 = shipped_gpu("h100", &arena);
    const double big =
        dense_product_ms(h100, DENSE_TYPE_BF16, 8192, 8192, 8192);
    const double thin =
        dense_product_ms(h100, DENSE_TYPE_BF16, 1 << 20, 1, 1024);

    is_near(2 * 8192. * 8192 * 8192 / (big * 1e9), 0.745 * 989.4, 5,
            "a large product: TFLOPS");
    is_near(thin, 0.006 + 2. * ((1 << 20) * 1025. + 1024) / 2900e6, 1e-6,
            "a thin product takes its bytes");
    is_near(dense_product_ms(h100, DENSE_TYPE_FP32, 1, 1, 1), 0.006, 1e-4,
            "the smallest takes two launches");
    is_near(dense_efficiency(h100, 256, 256, 8192),
            dense_efficiency(h100, 512, 256, 4096), 1e-12,
            "a long sum counts as two sums");
    is_near(dense_efficiency(h100, 256, 256, 4096),
            dense_efficiency(h100, 256, 256, 256), 0, "a short one does not");
}

static void test_rates(void)
{
    const struct gpu_spec *v100 = shipped_gpu("v100-32gb", &arena);
    struct gpu_spec none = *v100;
    double tflops;

    ok(!dense_rate(&tflops, v100, DENSE_TYPE_TF32, &err) &&
           tflops == v100->tflops[DENSE_TYPE_FP32],
       "without units for tf32, products are fp32");
    ok(dense_rate(&tflops, v100, DENSE_TYPE_BF16, &err), "no bf16");
    is_str(err.msg,
           "GPU 'v100-32gb' has no rate of bf16 products (bf16_tflops of its "
           "file), so a dense part of this type has no price",
           "its message");
    memset(none.tflops, 0, sizeof(none.tflops));
    ok(dense_rate(&tflops, &none, DENSE_TYPE_TF32, &err), "no rates at all");
    is_str(err.msg,
           "GPU 'v100-32gb' has no rate of tf32 products (fp32_tflops of its "
           "file), so a dense part of this type has no price",
           "its message");
}

static void test_step(void)
{
    struct comm_oracle oracle;
    struct problem problem;

    make_problem(&problem, 8, 65536, "dcnv2;dtype:bf16");
    ok(!price(&oracle, &problem, "h100"), "priced %s", err.msg);
    ok(oracle.base.dense == &oracle.dense, "the oracle has the price");
    is_near(oracle.step.dense_ms, dense_cost_ms(&oracle.dense), 1e-12,
            "which is in its step");
    is_near(oracle.step.dense_reduce_ms, oracle.dense.reduce_ms, 0,
            "and on its links");
    ok(oracle.dense.exposed_ms > 0 &&
           oracle.dense.exposed_ms < oracle.dense.reduce_ms,
       "most of the all-reduce is hidden");
    problem.job.dense_ms[0] = 3;
    ok(!price(&oracle, &problem, "h100") && !oracle.base.dense &&
           oracle.step.dense_ms == 3,
       "a given time takes its place");
    make_problem(&problem, 8, 65536, NULL);
    ok(!price(&oracle, &problem, "h100") && !oracle.base.dense &&
           oracle.step.dense_ms == 0,
       "without a dense part there is no price");
    make_problem(&problem, 8, 65536, "dlrm;dtype:bf16");
    ok(price(&oracle, &problem, "t4") && err.code == ERR_INPUT,
       "a T4 has no bf16");
}

/* Fills times[] with the products of the problem's dense part, 1 ms each; with
 * operations on elements, too, if has_elements is set. */
static struct product_times measured(const struct problem *problem,
                                     bool has_elements)
{
    struct product_times times = {
        .items = ARENA_NEW(&arena, struct product_time, DENSE_MAX_SHAPES),
        .error_frac = 0.125};
    struct product *products =
        ARENA_NEW(&arena, struct product, DENSE_MAX_SHAPES);
    const size_t n =
        dense_products(products, problem->job.dense, (uint32_t)problem->batch);

    for (size_t i = 0; i < n; i++)
        if (products[i].form < PRODUCT_RELU || has_elements)
            times.items[times.n++] = (struct product_time){products[i], 1};
    return times;
}

/* Measured products take the place of the figures. */
static void test_measured(void)
{
    struct comm_oracle oracle, figured;
    struct product_times times;
    struct problem problem;

    make_problem(&problem, 1, 4096,
                 "bottom:13-512-128;interaction:cat;top:1024-1;kernels:fused");
    times = measured(&problem, false);
    ok(!price(&figured, &problem, "h100") && !figured.dense.is_measured,
       "by the figures");
    ok(!price_by(&times, &oracle, &problem, "h100") &&
           oracle.dense.is_measured && oracle.dense.error_frac == 0.125,
       "by measured products, with their error");
    /* 4 layers, of which the first has no gradient of its input, and the copies
     * of the interaction */
    ok(oracle.dense.forward_ms > 4 && oracle.dense.forward_ms < 4.1 &&
           oracle.dense.backward_ms > 7 && oracle.dense.backward_ms < 7.1,
       "forward %.3f, backward %.3f", oracle.dense.forward_ms,
       oracle.dense.backward_ms);
    times.n = 3;
    ok(!price_by(&times, &oracle, &problem, "h100") &&
           !oracle.dense.is_measured &&
           oracle.dense.forward_ms == figured.dense.forward_ms,
       "too few of them do not count");
    make_problem(&problem, 1, 4096, "dlrm;dtype:bf16");
    times = measured(&problem, false);
    ok(!price_by(&times, &oracle, &problem, "t4") && oracle.dense.is_measured,
       "a GPU of unknown rate has a price if it was measured");
}

/* Three ReLUs. Copies by the interaction, and the bias of the last layer, take
 * the time of a gradient of fewer outputs. */
static void test_measured_elements(void)
{
    struct comm_oracle oracle;
    struct product_times times;
    struct problem problem;

    make_problem(&problem, 1, 4096,
                 "bottom:13-512-128;interaction:cat;top:1024-1");
    times = measured(&problem, true);
    ok(!price_by(&times, &oracle, &problem, "h100"), "%s", err.msg);
    ok(oracle.dense.forward_ms > 4 + 3 && oracle.dense.forward_ms < 4 + 3 + 1.5,
       "4 products, 3 ReLUs and a copy: %.3f", oracle.dense.forward_ms);
    ok(oracle.dense.backward_ms > 7 + 3 &&
           oracle.dense.backward_ms < 7 + 3 + 2.5,
       "7 products, 3 gradients, a copy, and a bias: %.3f",
       oracle.dense.backward_ms);
}

/* The products of all pairs of vectors, whose batches were measured. */
static void test_measured_pairs(void)
{
    struct comm_oracle with, without;
    struct product_times times;
    struct problem problem;

    make_problem(&problem, 1, 4096, "dlrm");
    times = measured(&problem, false);
    ok(!price_by(&times, &without, &problem, "h100"), "too few batches");
    for (uint32_t i = 1; i < PRODUCT_TIMES_LEAST; i++)
        for (int form = PRODUCT_NN; form <= PRODUCT_NT; form++)
            times.items[times.n++] = (struct product_time){
                {DENSE_TYPE_FP32, (enum product_form)form, 8, 8, 8, 1 + i}, 1};
    ok(!price_by(&times, &with, &problem, "h100"), "enough batches");
    ok(with.dense.forward_ms > without.dense.forward_ms + 0.8 &&
           with.dense.forward_ms < without.dense.forward_ms + 1 &&
           with.dense.backward_ms > without.dense.backward_ms + 1.6 &&
           with.dense.backward_ms < without.dense.backward_ms + 2,
       "one in the forward, two in the backward, less their bytes");
}

/* NCCL issues 1244 and 1469: 46 us for small messages among 2 x 8 H20, and a
 * bus bandwidth of 150 GB/s for 64 MiB among 16 x 8 H100. */
static void test_published_all_reduces(void)
{
    const double ms = 2 * 127. / 128 * (64 << 20) / 150e6;
    struct comm_oracle oracle;
    struct problem problem;

    make_problem(&problem, 16, 65536, "dlrm");
    ok(!price(&oracle, &problem, "h20"), "two hosts %s", err.msg);
    is_near(comm_allreduce_ms(&oracle, 1), 0.046, 0.003, "latency");
    is_near(comm_allreduce_ms(&oracle, 0), 0, 0, "no bytes, no latency");
    make_problem(&problem, 128, 65536, "dlrm");
    ok(!price(&oracle, &problem, "h100"), "16 hosts %s", err.msg);
    is_near(comm_allreduce_ms(&oracle, 64 << 20) / ms, 1, 0.3,
            "a large message");
}

/* Relations between prices that hold whatever the constants are. */
static void test_relations(void)
{
    static const char *const specs[] = {
        "dlrm",
        "dcnv2",
        "interaction:cat;top:512-1",
        "bottom:13-64;interaction:pool:4;top:256-1",
    };

    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        const char *tf32 = arena_printf(&arena, "%s;dtype:tf32", specs[i]);
        const char *half = arena_printf(&arena, "%s;dtype:fp16", specs[i]);
        const char *fused = arena_printf(&arena, "%s;kernels:fused", specs[i]);
        const char *compressed =
            arena_printf(&arena, "%s;grads:bf16", specs[i]);
        const struct dense_cost fp32 = cost_of(specs[i], "h100", 8, 65536);
        const struct dense_cost small = cost_of(specs[i], "h100", 8, 32768);
        const struct dense_cost one = cost_of(specs[i], "h100", 1, 8192);
        const struct dense_cost far = cost_of(specs[i], "h100", 64, 524288);
        struct dense_cost other = cost_of(tf32, "h100", 8, 65536);

        ok(other.forward_ms < fp32.forward_ms &&
               other.backward_ms < fp32.backward_ms,
           "%s: tf32 is faster than fp32", specs[i]);
        ok(cost_of(half, "h100", 8, 65536).forward_ms < other.forward_ms,
           "and fp16 than tf32");
        ok(small.forward_ms < fp32.forward_ms &&
               small.backward_ms < fp32.backward_ms &&
               small.reduce_ms == fp32.reduce_ms,
           "half of the batch takes less, and the same all-reduce");
        ok(one.forward_ms == fp32.forward_ms && one.reduce_ms == 0 &&
               one.exposed_ms == 0,
           "one GPU has no all-reduce");
        ok(far.forward_ms == fp32.forward_ms && far.reduce_ms > fp32.reduce_ms,
           "hosts have a longer one");
        other = cost_of(fused, "h100", 8, 65536);
        ok(other.forward_ms < fp32.forward_ms &&
               other.backward_ms < fp32.backward_ms &&
               other.update_ms < fp32.update_ms,
           "fused kernels are faster");
        ok(cost_of(compressed, "h100", 8, 65536).reduce_ms < fp32.reduce_ms,
           "and compressed gradients");
        ok(cost_of(specs[i], "a100", 8, 65536).forward_ms > fp32.forward_ms,
           "an A100 is slower");
        ok(fp32.backward_ms > 1.3 * fp32.forward_ms &&
               fp32.backward_ms < 3 * fp32.forward_ms,
           "the backward takes %.2f forwards",
           fp32.backward_ms / fp32.forward_ms);
    }
}

/* Returns by how much the exchange of a phase delays a step that hides it. */
static double overlap_of(const char *dense, const char *gpu, uint32_t n_gpus,
                         double inter_gbps, enum phase phase)
{
    struct problem problem;
    struct comm_model model;

    make_problem(&problem, n_gpus, 1024, dense);
    problem.cluster.inter_gbps = inter_gbps;
    model = gpu_spec_comm(shipped_gpu(gpu, &arena), &problem.cluster);
    if (inter_gbps > 0)
        comm_model_ask(&model, &problem.cluster, &arena);
    return comm_model_step(&model, &problem).overlap_cost[phase];
}

/* Two hosts exchange ids by the network, which leaves a CPU free for the dense
 * part. One host copies them. A CPU copies 20 GB/s. */
static void test_hidden_ids(void)
{
    static const char dense[] = "bottom:13-64;interaction:cat;top:64-1";

    is_near(overlap_of(dense, "cpu", 16, 0.5, PHASE_INPUT), 0.025, 1e-9,
            "between hosts a CPU only copies the ids");
    is_near(overlap_of(dense, "cpu", 16, 50, PHASE_INPUT), 1, 0,
            "a faster network costs no more than all of the time");
    is_near(overlap_of(dense, "cpu", 8, 0, PHASE_INPUT), 1, 0,
            "one host copies all the time");
    is_near(overlap_of(NULL, "cpu", 16, 0.5, PHASE_INPUT), 1, 0,
            "without a dense part nothing is hidden");
    is_near(overlap_of(dense, "cpu", 16, 0.5, PHASE_OUTPUT), 1, 0,
            "no thread waits for outputs");
    is_near(overlap_of(dense, "h100", 16, 0.5, PHASE_INPUT), 0.3, 0,
            "GPUs copy ids by their multiprocessors");
}

/* A step knows the dense part from its layers or from its time. */
static void test_known(void)
{
    static const char dense[] = "bottom:13-64;interaction:cat;top:64-1";
    struct problem problem;
    struct comm_model model;

    make_problem(&problem, 8, 1024, NULL);
    model = gpu_spec_comm(shipped_gpu("h100", &arena), &problem.cluster);
    ok(!comm_model_step(&model, &problem).knows_dense, "no dense part");
    problem.job.dense_ms[1] = 2;
    ok(comm_model_step(&model, &problem).knows_dense, "its time");
    make_problem(&problem, 8, 1024, dense);
    ok(comm_model_step(&model, &problem).knows_dense, "its layers");
}

int main(void)
{
    test_products();
    test_rates();
    test_step();
    test_measured();
    test_measured_elements();
    test_measured_pairs();
    test_published_all_reduces();
    test_relations();
    test_hidden_ids();
    test_known();
    arena_release(&arena);
    return tap_done();
}
