/* SPDX-License-Identifier: MIT */
#include "exec/exec.h"

#include "base/clock.h"
#include "device/canary.h"
#include "exec/exec_samples.h"
#include "exec/rank_timing.h"
#include "exec/step.h"
#include "exec/verify.h"

#include <math.h>
#include <string.h>

/* The checked step is batch 0; timing draws others. */
#define FIRST_TIMED_BATCH (STEP_BATCH + 1)

void exec_options_init(struct exec_options *options)
{
    *options = (struct exec_options){
        .scale_rows = 1,
        .n_iterations = 20,
        .learning_rate = 0.01F,
        .check = 1,
        .wait_for_quiet = 1,
    };
}

/* A step of the plan, compared with the reference. */
static int check_step(struct exec_result *result,
                      const struct exchange_set *set, float learning_rate,
                      struct arena *arena, struct err *err)
{
    struct verify verify = {0};

    if (step_forward(set, err))
        return -1;
    verify_outputs(&verify, set);
    if (step_gradients(set, err) || step_update(set, learning_rate, err))
        return -1;
    verify_weights(&verify, set->placement, learning_rate);
    result->output_error = verify.output_error;
    result->weight_error = verify.weight_error;
    result->n_outputs_checked = verify.n_outputs;
    result->n_weights_checked = verify.n_weights;
    if (verify.failed)
        result->failure = arena_printf(
            arena,
            "table '%s': its %s differ from the unsharded reference by %.2g, "
            "more than %g",
            verify.failed->name,
            verify.failed_what == VERIFY_OUTPUTS ? "outputs"
                                                 : "updated weights",
            verify.failed_error, verify.failed_limit);
    return 0;
}

/* Once, or with a canary until the machine was quiet; where it stays disturbed
 * the last times are kept. */
static int time_work(struct exec_rank *timing, struct rank_work *work,
                     struct canary *canary, unsigned n_iterations,
                     struct err *err)
{
    enum canary_verdict verdict = CANARY_QUIET;

    do {
        double begin_ms = clock_ms();

        if (rank_timing_compute(&timing->forward, &timing->backward,
                                &timing->compute, work, n_iterations, err))
            return -1;
        if (canary && canary_judge(canary, begin_ms, &verdict, err))
            return -1;
    } while (verdict == CANARY_AGAIN);
    timing->disturbed = verdict == CANARY_DISTURBED;
    return 0;
}

static int time_rank(struct exec_result *result,
                     const struct placement *placement, uint32_t rank,
                     struct canary *canary, const struct exec_options *options,
                     struct err *err)
{
    struct exec_rank *timing = &result->ranks[rank];
    struct rank_work work;
    int rc = -1;

    if (interrupt_requested())
        return err_set(err, ERR_INTERRUPTED, "interrupted");
    if (placement->rank_groups[rank] == placement->rank_groups[rank + 1])
        return 0; /* it holds nothing, or nothing that is looked up */
    if (rank_work_open(&work, placement, rank, FIRST_TIMED_BATCH,
                       rank_work_n_cold_sets(placement, rank), err))
        return -1;
    if (time_work(timing, &work, canary, options->n_iterations, err))
        goto out;
    result->n_disturbed += timing->disturbed;
    if (exec_samples_put(options, &work, timing, &result->n_stored, err))
        goto out;
    rc = 0;
out:
    rank_work_close(&work);
    return rc;
}

/* A rank is ready for the forward exchange after its compute and backward
 * exchange; it waits there for the last one, and the copies follow. */
static void add_communication(struct exec_result *result, uint32_t n_ranks)
{
    double latest_ms = 0;

    for (uint32_t r = 0; r < n_ranks; r++) {
        struct exec_rank *rank = &result->ranks[r];

        rank->bwd_comm_ms = result->bwd_exchange.median_ms;
        latest_ms =
            fmax(latest_ms, rank->compute.median_ms + rank->bwd_comm_ms);
    }
    for (uint32_t r = 0; r < n_ranks; r++) {
        struct exec_rank *rank = &result->ranks[r];
        double start_ms = rank->compute.median_ms + rank->bwd_comm_ms;

        rank->fwd_comm_ms =
            latest_ms - start_ms + result->fwd_exchange.median_ms;
        rank->total_ms = start_ms + rank->fwd_comm_ms;
        result->total_ms = fmax(result->total_ms, rank->total_ms);
    }
}

static int time_plan(struct exec_result *result, const struct exchange_set *set,
                     struct canary *canary, const struct exec_options *options,
                     struct err *err)
{
    const struct placement *placement = set->placement;

    for (uint32_t r = 0; r < placement->n_ranks; r++) {
        if (time_rank(result, placement, r, canary, options, err))
            return -1;
        if (options->progress)
            options->progress(options->progress_ctx, r + (uint64_t)1,
                              placement->n_ranks);
    }
    if (rank_timing_exchange(&result->fwd_exchange, &result->bwd_exchange, set,
                             options->n_iterations, err))
        return -1;
    add_communication(result, placement->n_ranks);
    return 0;
}

static int run_placed(struct exec_result *result, struct placement *placement,
                      struct device *device, struct pool *pool,
                      const struct exec_options *options, struct arena *arena,
                      struct err *err)
{
    struct exchange_set set = {0};
    struct canary *canary = NULL;
    int rc = -1;

    /* The earlier it opens, the better it knows the quiet machine. */
    if (options->wait_for_quiet && canary_open(&canary, device, err))
        goto out;
    if (placement_load(placement, device, pool, err))
        goto out;
    if (exchange_open(&set, placement, arena, err))
        goto out;
    if (options->check &&
        check_step(result, &set, options->learning_rate, arena, err))
        goto out;
    if (time_plan(result, &set, canary, options, err))
        goto out;
    rc = 0;
out:
    exchange_close(&set);
    canary_close(canary);
    placement_release(placement);
    return rc;
}

int exec_run(struct exec_result *result, const struct plan *plan,
             struct device *device, const struct exec_options *options,
             struct arena *arena, struct err *err)
{
    struct placement placement;
    struct pool *pool;
    int rc;

    if (device_kind_of(device) != DEVICE_CPU)
        return err_set(err, ERR_DEVICE,
                       "plans are run on the CPU only in this version, not on "
                       "'%s'",
                       device_name(device));
    if (placement_init(&placement, plan, options->scale_rows, options->seed,
                       arena, err) ||
        placement_check_memory(&placement, device_free_bytes(device), err))
        return -1;
    *result = (struct exec_result){
        .ranks = ARENA_NEW(arena, struct exec_rank, placement.n_ranks),
        .comm_basis = "copies between rank buffers of one process; waiting "
                      "computed from the ranks' own times",
        .scale_rows = options->scale_rows,
    };
    pool = pool_open(device_n_threads(device));
    rc = run_placed(result, &placement, device, pool, options, arena, err);
    pool_close(pool);
    return rc;
}
