/* SPDX-License-Identifier: MIT */
/* Lines of a report, depending on the measurements and predictions that
 * exist. */
#include "exec/exec_report.h"

#include "exec/exec_options.h"
#include "exec_fixture.h"
#include "tests/tap.h"

struct report {
    struct fixture fixture;
    struct exec_options options;
    struct exec_rank ranks[2];
    struct device_cost costs[2], predicted[2];
    struct exec_result result;
    struct exec_report report;
};

/* Makes a report in which GPU 1 is the slower one: 5 ms in total, including 3
 * ms of compute. */
static void report_init(struct report *of)
{
    memset(of, 0, sizeof(*of));
    fixture_init(&of->fixture, 2, 128);
    add_table(&of->fixture, "a", 100, 8, 1);
    add_whole(&of->fixture, 0);
    plan_derive_kinds(&of->fixture.plan);
    of->fixture.plan.total_ms = of->fixture.plan.bound_ms = NAN;
    exec_options_init(&of->options);
    for (unsigned r = 0; r < 2; r++) {
        of->costs[r] = (struct device_cost){.compute_ms = 2 + r,
                                            .bwd_comm_ms = 0.5,
                                            .fwd_comm_ms = 2.5 - r,
                                            .total_ms = 5};
        for (unsigned k = 0; k < N_STEP_PARTS; k++)
            of->costs[r].parts_ms[k] = 1;
    }
    of->result = (struct exec_result){.ranks = of->ranks,
                                      .costs = of->costs,
                                      .total_ms = 5,
                                      .slowest = 1,
                                      .comm_kind = "copy",
                                      .comm_basis = "copies between ranks",
                                      .n_processes = 1,
                                      .n_hosts = 1,
                                      .n_turns = 1,
                                      .scale_rows = 1};
    of->report = (struct exec_report){&of->fixture.plan,  of->fixture.world,
                                      of->fixture.device, &of->options,
                                      &of->result,        &of->fixture.arena};
}

/* Adds predicted costs to the plan: 4 ms on GPU 1. */
static void add_prediction(struct report *of)
{
    memcpy(of->predicted, of->costs, sizeof(of->predicted));
    of->predicted[1].total_ms = 4;
    of->fixture.plan.devices = of->predicted;
    of->fixture.plan.total_ms = 5;
    of->fixture.plan.cost.name = "plain";
}

/* Tests that the report contains `want` but not `not`; then ends the report. */
static void says(struct report *of, const char *want, const char * not )
{
    struct buf out = {0};

    exec_report_print(&of->report, &out);
    buf_add(&out, "", 1);
    if (!ok(strstr(out.data, want) && !strstr(out.data, not ), "says '%s'",
            want))
        printf("# %s\n", out.data);
    buf_release(&out);
    fixture_release(&of->fixture);
}

static void test_slowest(void)
{
    struct report of;

    report_init(&of);
    of.result.comm = EXEC_COMM_ABSENT;
    says(&of, "slowest GPU: 1, 3.000 ms of compute measured\ncommunication: ",
         "predicted (");
    report_init(&of);
    of.result.comm = EXEC_COMM_MEASURED;
    says(&of, "slowest GPU: 1, 5.000 ms measured\ncommunication measured: ",
         "of compute");
    report_init(&of);
    add_prediction(&of);
    of.result.comm = EXEC_COMM_MEASURED;
    says(&of,
         "slowest GPU: 1, 5.000 ms measured, 4.000 ms predicted (-20.0 %)\n",
         "with communication");
    report_init(&of);
    add_prediction(&of);
    of.result.comm = EXEC_COMM_MODELLED;
    says(&of,
         "slowest GPU: 1, 5.000 ms with communication as predicted, 4.000 ms "
         "predicted (-20.0 %)\ncommunication: ",
         "communication measured");
    report_init(&of);
    says(&of, "the plan has no predicted costs", "predicted by");
    report_init(&of);
    add_prediction(&of);
    says(&of, "predicted by plain (analytic)", "no predicted costs");
}

static void test_world(void)
{
    struct report of;

    report_init(&of);
    says(&of, "ranks: all in one process, exchange by copy\n", "turns");
    report_init(&of);
    of.result.n_turns = 2;
    says(&of, "weights were loaded in 2 turns", "whole steps");
    report_init(&of);
    of.result.n_processes = 2;
    of.result.step = (struct timing){3, 2, 4};
    says(&of, "ranks: 2 processes on 1 host, exchange by copy\n", "hosts,");
    report_init(&of);
    of.result.n_processes = of.result.n_hosts = 2;
    of.result.step = (struct timing){3, 2, 4};
    says(&of, "ranks: 2 processes on 2 hosts, ", "host, ");
    report_init(&of);
    of.result.n_processes = 2;
    of.result.step = (struct timing){3, 2, 4};
    says(&of,
         "whole steps of all processes together: 3.000 ms (p10 2.000, p90 "
         "4.000)",
         "all in one process");
}

static void test_chunks(void)
{
    struct report of;

    report_init(&of);
    of.options.step.n_chunks = 1;
    says(&of, "step: ", "in 1 chunks");
    report_init(&of);
    of.options.step.n_chunks = 2;
    says(&of, "in 2 chunks, which are timed only with several processes\n",
         ", gain");
    report_init(&of);
    of.options.step.n_chunks = 2;
    of.result.n_processes = 2;
    of.result.in_chunks[0].median_ms = 4;
    of.result.in_chunks[1].median_ms = 3;
    says(&of, "4.000 ms in one part, 3.000 ms in 2 chunks, gain 25.0 %\n",
         "% predicted");
    report_init(&of);
    add_prediction(&of);
    of.options.step.n_chunks = 2;
    of.result.n_processes = 2;
    of.result.in_chunks[0].median_ms = 4;
    of.result.in_chunks[1].median_ms = 3;
    says(&of, "gain 25.0 %, 25.0 % predicted\n", "does not time");
}

static void test_check(void)
{
    struct report of;

    report_init(&of);
    of.options.check = false;
    says(&of, "not compared with the unsharded reference\n", "hashes");
    report_init(&of);
    of.options.check = true;
    of.result.outputs = (struct tally){2e-7, 1500};
    of.result.weights = (struct tally){3e-7, 20};
    of.result.output_hash = 0x12;
    says(&of,
         "against the unsharded reference, largest error: 2e-07 of 1,500 "
         "outputs, 3e-07 of 20 updated weights\nhashes: outputs "
         "0000000000000012, ",
         "not compared");
}

int main(void)
{
    test_slowest();
    test_world();
    test_chunks();
    test_check();
    return tap_done();
}
