/* SPDX-License-Identifier: MIT */
#include "exec/exec_comm.h"

#include <math.h>
#include <string.h>

bool exec_comm_is_real(const struct placement *placement)
{
    return device_is_host(placement->device) ||
           strcmp(comm_kind(placement->comm), "copy") != 0;
}

/* What the plan's cost model says of a rank's forward exchange: its forward
 * communication without the waiting that follows from predicted times. */
static double predicted_exchange(const struct plan *plan, uint32_t rank)
{
    const struct device_cost *own = &plan->devices[rank];
    double latest_ms = 0, waiting_ms;

    for (uint32_t r = 0; r < plan->problem.cluster.n_devices; r++)
        latest_ms = fmax(latest_ms, plan->devices[r].compute_ms +
                                        plan->devices[r].bwd_comm_ms);
    waiting_ms = latest_ms - own->compute_ms - own->bwd_comm_ms;
    return fmax(own->fwd_comm_ms - waiting_ms, 0);
}

/* bwd_comm_ms of all ranks is there, fwd_comm_ms is that of the exchange
 * alone: adds the waiting, and totals. */
static void add_waiting(struct exec_result *result, uint32_t n_ranks)
{
    double latest_ms = 0;

    for (uint32_t r = 0; r < n_ranks; r++)
        latest_ms = fmax(latest_ms, result->ranks[r].compute.median_ms +
                                        result->ranks[r].bwd_comm_ms);
    result->total_ms = 0;
    for (uint32_t r = 0; r < n_ranks; r++) {
        struct exec_rank *rank = &result->ranks[r];
        double start_ms = rank->compute.median_ms + rank->bwd_comm_ms;

        rank->fwd_comm_ms += latest_ms - start_ms;
        rank->total_ms = start_ms + rank->fwd_comm_ms;
        result->total_ms = fmax(result->total_ms, rank->total_ms);
    }
}

static void fill_measured(struct exec_result *result, struct arena *arena)
{
    result->comm = EXEC_COMM_MEASURED;
    if (result->n_processes == 1)
        result->comm_basis = "copies between rank buffers of one process; "
                             "waiting computed from the ranks' own times";
    else
        result->comm_basis = arena_printf(
            arena,
            "exchanges of %u processes on %u %s over %s, all together; waiting "
            "computed from the ranks' own times",
            result->n_processes, result->n_hosts,
            result->n_hosts == 1 ? "host" : "hosts",
            strcmp(result->comm_kind, "mpi") ? "NCCL" : "MPI");
}

static void fill_modelled(struct exec_result *result, const struct plan *plan,
                          struct arena *arena)
{
    result->comm = EXEC_COMM_MODELLED;
    result->comm_basis = arena_printf(
        arena,
        "modelled, not measured: one GPU is every rank, so exchanges take what "
        "%s predicts (%s); waiting computed from the ranks' own times",
        plan->cost.name ? plan->cost.name : "the plan",
        plan->cost.comm ? plan->cost.comm : "of unknown origin");
}

void exec_comm_fill(struct exec_result *result,
                    const struct placement *placement, struct arena *arena)
{
    const struct plan *plan = placement->plan;
    bool is_real = exec_comm_is_real(placement);

    if (!is_real && (!plan->devices || isnan(plan->total_ms))) {
        result->comm = EXEC_COMM_ABSENT;
        result->comm_basis = "none: one GPU is every rank, and the plan has no "
                             "predicted costs";
        result->total_ms = NAN;
        for (uint32_t r = 0; r < placement->n_ranks; r++)
            result->ranks[r].bwd_comm_ms = result->ranks[r].fwd_comm_ms =
                result->ranks[r].total_ms = NAN;
        return;
    }
    if (is_real)
        fill_measured(result, arena);
    else
        fill_modelled(result, plan, arena);
    for (uint32_t r = 0; r < placement->n_ranks; r++) {
        struct exec_rank *rank = &result->ranks[r];

        rank->bwd_comm_ms = is_real ? result->bwd_exchange.median_ms
                                    : plan->devices[r].bwd_comm_ms;
        rank->fwd_comm_ms = is_real ? result->fwd_exchange.median_ms
                                    : predicted_exchange(plan, r);
    }
    add_waiting(result, placement->n_ranks);
}

/* An exchange is one sample: several in a row have several latencies. */
int exec_comm_put(const struct exec_result *result,
                  const struct exchange_set *set,
                  const struct exec_options *options, struct err *err)
{
    const struct placement *placement = set->placement;
    const struct table *table = placement->plan->problem.tables;
    struct sample_setting setting = device_setting(placement->device);
    struct comm_sample sample;

    setting.precision = table->precision;
    setting.optimizer = table->optimizer;
    setting.batch = placement->batch;
    if (!options->sink || !options->sink->put_comm || set->n != 1)
        return 0;
    sample = alltoall_sample(placement->comm, &set->exchanges[0].alltoall);
    sample.time = result->fwd_exchange;
    sample.n_iterations = options->n_iterations;
    return options->sink->put_comm(options->sink->ctx, &setting, &sample, err);
}
