/* SPDX-License-Identifier: MIT */
/* One GPU that plays all ranks: which phases are measured, which are
 * predicted by the plan, and the totals. The device reports times that the
 * test prepared. */
#include "exec/exec.h"

#include "exec_fixture.h"
#include "tests/tap.h"
#include "tests/unit/device/recorded_device.h"

static const double times[] = {1};
static struct recorded device;
static struct fixture fixture;
static struct device_cost predicted[2];

/*
 * Makes a plan of two ranks. Their predicted times are, in ms:
 *
 *         compute  backward comm.  forward comm. with waiting
 *     0      10          3                   5
 *     1       8          2                   8
 */
static void begin(bool is_priced, bool has_parts)
{
    struct err err = {0};

    memset(&fixture, 0, sizeof(fixture));
    recorded_init(&device, DEVICE_CUDA, times, 1);
    device.free_bytes = 1 << 30;
    device.marked_ms[0][1] = 2;
    device.marked_ms[2][3] = 5;
    fixture.plan.problem.tables = fixture.tables;
    fixture.plan.problem.cluster.n_devices = 2;
    fixture.plan.problem.batch = 8;
    fixture.plan.shards = fixture.shards;
    if (world_open(&fixture.world, &err))
        fixture_bail(&err);
    add_table(&fixture, "a", 100, 8, 1);
    add_whole(&fixture, 0);
    add_table(&fixture, "b", 100, 8, 1);
    add_whole(&fixture, 1);
    plan_derive_kinds(&fixture.plan);
    fixture.plan.total_ms = is_priced ? 20 : NAN;
    for (uint32_t r = 0; r < 2; r++) {
        predicted[r] = (struct device_cost){.compute_ms = 10 - 2 * r,
                                            .bwd_comm_ms = 3 - r,
                                            .fwd_comm_ms = 5 + 3 * r,
                                            .total_ms = 20};
        for (unsigned k = 0; k < N_STEP_PARTS; k++)
            predicted[r].parts_ms[k] = has_parts ? 0.5 + k + 0.25 * r : NAN;
        predicted[r].parts_ms[STEP_GRADIENT] = has_parts ? r ? 2.5 : 1.25 : NAN;
    }
    if (is_priced)
        fixture.plan.devices = predicted;
}

static struct exec_result run(void)
{
    struct exec_options options;
    struct exec_result result;
    struct err err = {0};

    exec_options_init(&options);
    options.n_iterations = 3;
    options.check = options.wait_for_quiet = false;
    if (exec_run(&result, &fixture.plan, fixture.world, &device.device,
                 &options, &fixture.arena, &err))
        fixture_bail(&err);
    return result;
}

static void leave(void)
{
    world_close(fixture.world);
    arena_release(&fixture.arena);
    recorded_release(&device);
}

static void test_absent(void)
{
    struct exec_result result;

    begin(false, false);
    result = run();
    is_i64(result.comm, EXEC_COMM_ABSENT, "nothing to go by");
    is_str(result.comm_basis,
           "none: one GPU runs all ranks, and the plan has no predicted costs",
           "is said");
    ok(isnan(result.total_ms) &&
           isnan(result.ranks[0].phases_ms[PHASE_INPUT]) &&
           isnan(result.ranks[0].phases_ms[PHASE_OUTPUT]) &&
           isnan(result.ranks[1].phases_ms[PHASE_GRADIENT]) &&
           isnan(result.ranks[1].phases_ms[PHASE_REDUCE]),
       "no exchange has a time");
    ok(result.ranks[0].compute.median_ms == 7 &&
           result.costs[1].compute_ms == 7 && result.slowest == 0,
       "compute has");
    leave();
}

static void test_parts(void)
{
    struct exec_result result;

    begin(true, true);
    result = run();
    is_i64(result.comm, EXEC_COMM_MODELLED, "as the plan has it");
    is_str(result.comm_basis,
           "predicted, not measured: one GPU runs all ranks, so input and "
           "exchanges take the time that the plan predicts (of unknown "
           "origin); waiting computed from the ranks' own times",
           "is said");
    for (uint32_t r = 0; r < 2; r++) {
        const double *phases_ms = result.ranks[r].phases_ms;
        const double *parts_ms = predicted[r].parts_ms;

        ok(phases_ms[PHASE_INPUT] == parts_ms[STEP_INPUT] &&
               phases_ms[PHASE_OUTPUT] == parts_ms[STEP_OUTPUT] &&
               phases_ms[PHASE_GRADIENT] == parts_ms[STEP_GRADIENT],
           "exchanges of GPU %u", r);
        is_near(phases_ms[PHASE_REDUCE], r ? 0 : 1.75, 1e-12,
                "the rest of the backward communication reduces replicas");
        ok(phases_ms[PHASE_FORWARD] == 2 && phases_ms[PHASE_BACKWARD] == 5,
           "look-ups are measured");
        is_near(result.costs[r].bwd_comm_ms,
                phases_ms[PHASE_GRADIENT] + phases_ms[PHASE_REDUCE], 1e-12,
                "both are backward communication");
        is_near(result.costs[r].fwd_comm_ms,
                result.total_ms - 7 - result.costs[r].bwd_comm_ms, 1e-12,
                "and the rest of the step forward");
    }
    leave();
}

/* Without predicted parts, the forward exchange is the forward communication
 * less waiting. The last GPU is ready after 13 ms; GPU 1 waits 3 ms for it, and
 * GPU 0 waits for none of its 5 ms. */
static void test_no_parts(void)
{
    struct exec_result result;

    begin(true, false);
    fixture.plan.cost.name = "plain";
    fixture.plan.cost.comm = "made up";
    result = run();
    ok(strstr(result.comm_basis, "that plain predicts (made up)") != NULL,
       "says whose: %s", result.comm_basis);
    is_near(result.ranks[0].phases_ms[PHASE_OUTPUT], 5, 1e-12, "GPU 0");
    is_near(result.ranks[1].phases_ms[PHASE_OUTPUT], 8 - 3, 1e-12, "GPU 1");
    is_near(result.ranks[0].phases_ms[PHASE_GRADIENT], 3, 1e-12,
            "all backward communication is gradients");
    is_near(result.ranks[0].phases_ms[PHASE_REDUCE], 0, 1e-12, "no replicas");
    leave();
    begin(true, false);
    predicted[1].fwd_comm_ms = 1;
    result = run();
    is_near(result.ranks[1].phases_ms[PHASE_OUTPUT], 0, 1e-12,
            "it is never less than nothing");
    leave();
}

/* The slowest GPU is the first one of those with most compute. */
static void test_slowest(void)
{
    static const double ms[] = {1, 1, 1, 1, 1, 1, 1, 4, 4, 4, 4, 4, 4, 4};
    struct exec_result result;

    begin(true, true);
    /* seven repetitions of each rank, timed by ms[] */
    device.marked_ms[0][1] = 0;
    device.ms = ms;
    device.n_ms = 14;
    result = run();
    is_i64(device.n_elapsed, 14, "four laps that warm up, and three");
    is_i64(result.slowest, 1, "the slowest");
    is_near(result.costs[1].compute_ms, 9, 1e-12, "by its compute");
    leave();
}

/* The default options. */
static void test_options(void)
{
    struct exec_options options;

    exec_options_init(&options);
    ok(options.scale_rows == 1 && options.n_iterations == 20 && options.check &&
           options.wait_for_quiet && !options.seed && !options.memory_bytes &&
           !options.sink,
       "the usual options");
}

int main(void)
{
    test_options();
    test_absent();
    test_parts();
    test_no_parts();
    test_slowest();
    return tap_done();
}
