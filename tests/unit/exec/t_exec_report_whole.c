/* SPDX-License-Identifier: MIT */
/* Complete reports, as text and as JSON. Their lines depend on the measurements
 * that exist, and every line has its figures. */
#include "exec/exec_report.h"

#include "exec/exec_options.h"
#include "exec_fixture.h"
#include "tests/tap.h"

static struct fixture fixture;
static struct exec_options options;
static struct exec_rank ranks[2];
static struct device_cost measured[2], predicted[2];
static struct exec_result result;

/* Fills in figures that are all different. */
static void set_figures(void)
{
    for (unsigned r = 0; r < 2; r++) {
        for (unsigned k = 0; k < N_STEP_PARTS; k++) {
            measured[r].parts_ms[k] = 1 + r + 0.1 * k;
            predicted[r].parts_ms[k] = 2 + r + 0.1 * k;
        }
        measured[r].compute_ms = 4 + r;
        measured[r].fwd_comm_ms = 3.5 - r;
        measured[r].bwd_comm_ms = 0.5 + 0.25 * r;
        measured[r].total_ms = 8;
        predicted[r].compute_ms = 6 - r;
        predicted[r].fwd_comm_ms = 2.5 + r;
        predicted[r].bwd_comm_ms = 1.5 + 0.25 * r;
        predicted[r].total_ms = 10;
        ranks[r].forward = (struct timing){1.5 + r, 1.25 + r, 1.75 + r};
        ranks[r].backward = (struct timing){2.5 + r, 2.25 + r, 2.75 + r};
        ranks[r].compute = (struct timing){4 + r, 3.5 + r, 4.5 + r};
        ranks[r].disturbed = r == 1;
    }
    result = (struct exec_result){
        .ranks = ranks,
        .costs = measured,
        .total_ms = 8,
        .slowest = 1,
        .step = {9, 8.5, 9.5},
        .in_chunks = {{4, 3, 5}, {3, 2, 4}},
        .exchanges[PHASE_INPUT] = {0.5, 0.25, 0.75},
        .comm = EXEC_COMM_ABSENT,
        .comm_kind = "copy",
        .comm_basis = "copies between ranks",
        .n_processes = 1,
        .n_hosts = 1,
        .n_turns = 1,
        .outputs = {2e-7, 1500},
        .weights = {3e-7, 20},
        .output_hash = 0x12,
        .weight_hash = 0x34,
        .scale_rows = 1,
    };
}

static void begin(void)
{
    struct device_facts *facts;

    fixture_init(&fixture, 2, 128);
    add_table(&fixture, "a", 100, 8, 1);
    add_whole(&fixture, 0);
    plan_derive_kinds(&fixture.plan);
    fixture.plan.total_ms = fixture.plan.bound_ms = NAN;
    facts = &fixture.device->facts;
    snprintf(facts->name, sizeof(facts->name), "cpu:Some CPU");
    snprintf(facts->isa, sizeof(facts->isa), "avx2");
    facts->n_threads = 2;
    fixture.world->local_size = 1;
    exec_options_init(&options);
    options.n_iterations = 15;
    options.seed = 77;
    set_figures();
}

static void predict(void)
{
    fixture.plan.devices = predicted;
    fixture.plan.total_ms = 10;
    fixture.plan.cost.name = "plain";
}

static void same(const char *got, const char *want, const char *name)
{
    if (!ok(!strcmp(got, want), "%s", name))
        printf("---\n%s---\n", got);
}

/* Compares both texts of the report, then ends it. */
static void says(const char *name, const char *text, const char *json)
{
    const struct exec_report now = {&fixture.plan,  fixture.world,
                                    fixture.device, &options,
                                    &result,        &fixture.arena};
    struct buf out = {0};
    json_t *all;
    char *dump;

    exec_report_print(&now, &out);
    buf_add(&out, "", 1);
    same(out.data, text, name);
    buf_release(&out);
    all = exec_report_to_json(&now);
    dump =
        json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(9));
    same(dump ? dump : "none", json, "... and as JSON");
    free(dump);
    json_decref(all);
    fixture.device->kind = DEVICE_CPU;
    fixture_release(&fixture);
}

/* One process, a plan without costs, and no exchanges. */
static void test_bare(void)
{
    begin();
    says("bare",
         "1 tables on 2 GPUs, batch 128, rows x 1, seed 77\n"
         "measured on cpu:Some CPU, avx2, 2 threads: medians of 15 iterations, "
         "each GPU's work alone\n"
         "ranks: all in one process, exchange by copy\n"
         "the plan has no predicted costs; 'neuroshard cost' adds them\n\n"
         " GPU ms           input  forward   output gradient backward replicas "
         " waiting     step   compute      p10      p90\n"
         "   0 measured     1.000    1.100    1.200    1.300    1.400    1.500 "
         "   1.250    8.000     4.000    3.500    4.500\n"
         "   1 measured     2.000    2.100    2.200    2.300    2.400    2.500 "
         "   0.000    8.000     5.000    4.500    5.500\n\n"
         "slowest GPU: 1, 5.000 ms of compute measured\n"
         "communication: copies between ranks\n"
         "step: pipeline sdd, dense part not known; phases were measured one "
         "after the other, and their overlap is predicted\n"
         "against the unsharded reference, largest error: 2e-07 of 1,500 "
         "outputs, 3e-07 of 20 updated weights\n"
         "hashes: outputs 0000000000000012, updated weights and states "
         "0000000000000034\n",
         "{\"check\":{\"n_outputs\":1500,\"n_weights\":20,\"output_error\":2"
         "e-7,\"output_hash\":\"0000000000000012\",\"passed\":true,\"weight_"
         "error\":3e-7,\"weight_hash\":\"0000000000000034\"},\"comm\":{\"fig"
         "ures\":null,\"kind\":\"copy\"},\"comm_basis\":\"copies between ran"
         "ks\",\"cost_model\":null,\"devices\":[{\"device\":0,\"measured\":{"
         "\"backward\":{\"median_ms\":2.5,\"p10_ms\":2.25,\"p90_ms\":2.75},"
         "\"bwd_comm_ms\":0.5,\"compute\":{\"median_ms\":4.0,\"p10_ms\":3.5,"
         "\"p90_ms\":4.5},\"disturbed\":false,\"forward\":{\"median_ms\":1.5"
         ",\"p10_ms\":1.25,\"p90_ms\":1.75},\"fwd_comm_ms\":3.5,\"total_ms\""
         ":8.0},\"phases_ms\":{\"backward\":1.4,\"forward\":1.1,\"gradient\""
         ":1.3,\"input\":1.0,\"output\":1.2,\"replicas\":1.5},\"predicted\":"
         "null},{\"device\":1,\"measured\":{\"backward\":{\"median_ms\":3.5,"
         "\"p10_ms\":3.25,\"p90_ms\":3.75},\"bwd_comm_ms\":0.75,\"compute\":"
         "{\"median_ms\":5.0,\"p10_ms\":4.5,\"p90_ms\":5.5},\"disturbed\":tr"
         "ue,\"forward\":{\"median_ms\":2.5,\"p10_ms\":2.25,\"p90_ms\":2.75}"
         ",\"fwd_comm_ms\":2.5,\"total_ms\":8.0},\"phases_ms\":{\"backward\""
         ":2.4,\"forward\":2.1,\"gradient\":2.3,\"input\":2.0,\"output\":2.2"
         ",\"replicas\":2.5},\"predicted\":null}],\"iterations\":15,\"machin"
         "e\":{\"isa\":\"avx2\",\"name\":\"cpu:Some CPU\",\"threads\":2},\"s"
         "cale_rows\":1.0,\"seed\":77,\"slowest\":1,\"total_ms\":8.0,\"world"
         "\":{\"chunks\":null,\"hosts\":1,\"ids\":null,\"processes\":1,\"ste"
         "p\":null,\"turns\":1}}");
}

/* Two processes on one host, costs with all optional members, and predicted
 * exchanges. */
static void test_priced(void)
{
    begin();
    predict();
    fixture.plan.cost.device = "cuda:Some GPU, sm_90";
    fixture.plan.cost.hash = "0123456789abcdef";
    fixture.plan.cost.comm = "alpha-beta";
    fixture.plan.problem.job.pipeline = PIPELINE_SDD;
    options.step.n_chunks = 4;
    options.check = false;
    fixture.world->local_size = 100000;
    result.comm = EXEC_COMM_MODELLED;
    result.n_processes = 2;
    result.n_turns = 3;
    result.n_disturbed = 1;
    result.scale_rows = 0.5;
    says("priced",
         "1 tables on 2 GPUs, batch 128, rows x 0.5, seed 77\n"
         "measured on cpu:Some CPU, avx2, 2 threads: medians of 15 iterations, "
         "each GPU's work alone\n"
         "ranks: 2 processes on 1 host, exchange by copy\n"
         "weights were loaded in 3 turns: they do not fit in memory together\n"
         "predicted by plain (analytic on cuda:Some GPU, sm_90, hash "
         "0123456789abcdef)\n\n"
         " GPU ms           input  forward   output gradient backward replicas "
         " waiting     step   compute      p10      p90\n"
         "   0 predicted    2.000    2.100    2.200    2.300    2.400    2.500 "
         "   0.000   10.000     6.000        -        -\n"
         "     measured     1.000    1.100    1.200    1.300    1.400    1.500 "
         "   1.250    8.000     4.000    3.500    4.500\n"
         "   1 predicted    3.000    3.100    3.200    3.300    3.400    3.500 "
         "   0.750   10.000     5.000        -        -\n"
         "     measured     2.000    2.100    2.200    2.300    2.400    2.500 "
         "   0.000    8.000     5.000    4.500    5.500\n\n"
         "slowest GPU: 1, 8.000 ms with communication as predicted, 10.000 ms "
         "predicted (+25.0 %)\n"
         "communication: copies between ranks\n"
         "step: pipeline sdd, dense part not known; phases were measured one "
         "after the other, and their overlap is predicted\n"
         "whole steps of all processes together: 9.000 ms (p10 8.500, p90 "
         "9.500); they have more threads than there are processors\n"
         "lookups and their exchange: 4.000 ms in one part, 3.000 ms in 4 "
         "chunks, gain 25.0 %, 36.9 % predicted\n"
         "communication predicted: alpha-beta\n"
         "1 of 2 GPUs was timed while something else disturbed the machine\n"
         "the tables were smaller than the plan's: caches hold more of them\n"
         "not compared with the unsharded reference\n",
         "{\"check\":null,\"comm\":{\"figures\":\"modelled\",\"kind\":\"copy"
         "\"},\"comm_basis\":\"copies between ranks\",\"cost_model\":{\"basi"
         "s\":\"analytic\",\"comm\":\"alpha-beta\",\"error_frac\":0.0,\"hash"
         "\":\"0123456789abcdef\",\"name\":\"plain\",\"outside\":[]},\"devic"
         "es\":[{\"device\":0,\"measured\":{\"backward\":{\"median_ms\":2.5,"
         "\"p10_ms\":2.25,\"p90_ms\":2.75},\"bwd_comm_ms\":0.5,\"compute\":{"
         "\"median_ms\":4.0,\"p10_ms\":3.5,\"p90_ms\":4.5},\"disturbed\":fal"
         "se,\"forward\":{\"median_ms\":1.5,\"p10_ms\":1.25,\"p90_ms\":1.75}"
         ",\"fwd_comm_ms\":3.5,\"total_ms\":8.0},\"phases_ms\":{\"backward\""
         ":1.4,\"forward\":1.1,\"gradient\":1.3,\"input\":1.0,\"output\":1.2"
         ",\"replicas\":1.5},\"predicted\":{\"bwd_comm_ms\":1.5,\"compute_ms"
         "\":6.0,\"fwd_comm_ms\":2.5,\"phases_ms\":{\"backward\":2.4,\"forwa"
         "rd\":2.1,\"gradient\":2.3,\"input\":2.0,\"output\":2.2,\"replicas"
         "\":2.5},\"total_ms\":10.0}},{\"device\":1,\"measured\":{\"backward"
         "\":{\"median_ms\":3.5,\"p10_ms\":3.25,\"p90_ms\":3.75},\"bwd_comm_"
         "ms\":0.75,\"compute\":{\"median_ms\":5.0,\"p10_ms\":4.5,\"p90_ms\""
         ":5.5},\"disturbed\":true,\"forward\":{\"median_ms\":2.5,\"p10_ms\""
         ":2.25,\"p90_ms\":2.75},\"fwd_comm_ms\":2.5,\"total_ms\":8.0},\"pha"
         "ses_ms\":{\"backward\":2.4,\"forward\":2.1,\"gradient\":2.3,\"inpu"
         "t\":2.0,\"output\":2.2,\"replicas\":2.5},\"predicted\":{\"bwd_comm"
         "_ms\":1.75,\"compute_ms\":5.0,\"fwd_comm_ms\":3.5,\"phases_ms\":{"
         "\"backward\":3.4,\"forward\":3.1,\"gradient\":3.3,\"input\":3.0,\""
         "output\":3.2,\"replicas\":3.5},\"total_ms\":10.0}}],\"iterations\""
         ":15,\"machine\":{\"isa\":\"avx2\",\"name\":\"cpu:Some CPU\",\"thre"
         "ads\":2},\"scale_rows\":0.5,\"seed\":77,\"slowest\":1,\"slowest_er"
         "ror_frac\":0.25,\"total_ms\":8.0,\"world\":{\"chunks\":{\"gain_fra"
         "c\":0.25,\"in_chunks\":{\"median_ms\":3.0,\"p10_ms\":2.0,\"p90_ms"
         "\":4.0},\"n\":4,\"one_part\":{\"median_ms\":4.0,\"p10_ms\":3.0,\"p"
         "90_ms\":5.0},\"predicted_gain_frac\":0.369047619},\"hosts\":1,\"id"
         "s\":null,\"processes\":2,\"step\":{\"median_ms\":9.0,\"oversubscri"
         "bed\":true,\"p10_ms\":8.5,\"p90_ms\":9.5},\"turns\":3}}");
}

/* Processes with GPUs on two hosts; the exchanges are measured. */
static void test_gpus(void)
{
    begin();
    predict();
    fixture.device->kind = DEVICE_CUDA;
    fixture.device->facts.n_threads = 0;
    fixture.plan.cost.name = NULL;
    fixture.plan.cost.basis = BASIS_MEASURED;
    result.comm = EXEC_COMM_MEASURED;
    result.n_processes = 2;
    result.n_hosts = 2;
    result.n_disturbed = 2;
    result.failure = "one table differs";
    says("GPUs",
         "1 tables on 2 GPUs, batch 128, rows x 1, seed 77\n"
         "measured on cpu:Some CPU, avx2, medians of 15 iterations, each GPU's "
         "work alone\n"
         "ranks: 2 processes on 2 hosts, exchange by copy\n"
         "predicted by hand (measured)\n\n"
         " GPU ms           input  forward   output gradient backward replicas "
         " waiting     step   compute      p10      p90\n"
         "   0 predicted    2.000    2.100    2.200    2.300    2.400    2.500 "
         "   0.000   10.000     6.000        -        -\n"
         "     measured     1.000    1.100    1.200    1.300    1.400    1.500 "
         "   1.250    8.000     4.000    3.500    4.500\n"
         "   1 predicted    3.000    3.100    3.200    3.300    3.400    3.500 "
         "   0.750   10.000     5.000        -        -\n"
         "     measured     2.000    2.100    2.200    2.300    2.400    2.500 "
         "   0.000    8.000     5.000    4.500    5.500\n\n"
         "slowest GPU: 1, 8.000 ms measured, 10.000 ms predicted (+25.0 %)\n"
         "communication measured: copies between ranks\n"
         "step: pipeline sdd, dense part not known; phases were measured one "
         "after the other, and their overlap is predicted\n"
         "exchange of ids alone: 0.500 ms measured (p10 0.250, p90 0.750); the "
         "input above is as predicted\n"
         "whole steps of all processes together: 9.000 ms (p10 8.500, p90 "
         "9.500)\n"
         "2 of 2 GPUs were timed while something else disturbed the machine\n"
         "against the unsharded reference, largest error: 2e-07 of 1,500 "
         "outputs, 3e-07 of 20 updated weights\n"
         "hashes: outputs 0000000000000012, updated weights and states "
         "0000000000000034\n",
         "{\"check\":{\"n_outputs\":1500,\"n_weights\":20,\"output_error\":2"
         "e-7,\"output_hash\":\"0000000000000012\",\"passed\":false,\"weight"
         "_error\":3e-7,\"weight_hash\":\"0000000000000034\"},\"comm\":{\"fi"
         "gures\":\"measured\",\"kind\":\"copy\"},\"comm_basis\":\"copies be"
         "tween ranks\",\"cost_model\":{\"basis\":\"measured\",\"comm\":null"
         ",\"error_frac\":0.0,\"hash\":null,\"name\":null,\"outside\":[]},\""
         "devices\":[{\"device\":0,\"measured\":{\"backward\":{\"median_ms\""
         ":2.5,\"p10_ms\":2.25,\"p90_ms\":2.75},\"bwd_comm_ms\":0.5,\"comput"
         "e\":{\"median_ms\":4.0,\"p10_ms\":3.5,\"p90_ms\":4.5},\"disturbed"
         "\":false,\"forward\":{\"median_ms\":1.5,\"p10_ms\":1.25,\"p90_ms\""
         ":1.75},\"fwd_comm_ms\":3.5,\"total_ms\":8.0},\"phases_ms\":{\"back"
         "ward\":1.4,\"forward\":1.1,\"gradient\":1.3,\"input\":1.0,\"output"
         "\":1.2,\"replicas\":1.5},\"predicted\":{\"bwd_comm_ms\":1.5,\"comp"
         "ute_ms\":6.0,\"fwd_comm_ms\":2.5,\"phases_ms\":{\"backward\":2.4,"
         "\"forward\":2.1,\"gradient\":2.3,\"input\":2.0,\"output\":2.2,\"re"
         "plicas\":2.5},\"total_ms\":10.0}},{\"device\":1,\"measured\":{\"ba"
         "ckward\":{\"median_ms\":3.5,\"p10_ms\":3.25,\"p90_ms\":3.75},\"bwd"
         "_comm_ms\":0.75,\"compute\":{\"median_ms\":5.0,\"p10_ms\":4.5,\"p9"
         "0_ms\":5.5},\"disturbed\":true,\"forward\":{\"median_ms\":2.5,\"p1"
         "0_ms\":2.25,\"p90_ms\":2.75},\"fwd_comm_ms\":2.5,\"total_ms\":8.0}"
         ",\"phases_ms\":{\"backward\":2.4,\"forward\":2.1,\"gradient\":2.3,"
         "\"input\":2.0,\"output\":2.2,\"replicas\":2.5},\"predicted\":{\"bw"
         "d_comm_ms\":1.75,\"compute_ms\":5.0,\"fwd_comm_ms\":3.5,\"phases_m"
         "s\":{\"backward\":3.4,\"forward\":3.1,\"gradient\":3.3,\"input\":3"
         ".0,\"output\":3.2,\"replicas\":3.5},\"total_ms\":10.0}}],\"iterati"
         "ons\":15,\"machine\":{\"isa\":\"avx2\",\"name\":\"cpu:Some CPU\","
         "\"threads\":0},\"scale_rows\":1.0,\"seed\":77,\"slowest\":1,\"slow"
         "est_error_frac\":0.25,\"total_ms\":8.0,\"world\":{\"chunks\":null,"
         "\"hosts\":2,\"ids\":{\"median_ms\":0.5,\"p10_ms\":0.25,\"p90_ms\":"
         "0.75},\"processes\":2,\"step\":{\"median_ms\":9.0,\"oversubscribed"
         "\":false,\"p10_ms\":8.5,\"p90_ms\":9.5},\"turns\":1}}");
}

int main(void)
{
    test_bare();
    test_priced();
    test_gpus();
    return tap_done();
}
