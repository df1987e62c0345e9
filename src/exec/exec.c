/* SPDX-License-Identifier: MIT */
#include "exec/exec.h"

#include "base/hash.h"
#include "base/interrupt.h"
#include "exec/cache_findings.h"
#include "exec/exec_samples.h"
#include "exec/placement_load.h"
#include "exec/placement_need.h"
#include "exec/sequences.h"
#include "exec/sync.h"
#include "exec/timing.h"
#include "exec/verify_outputs.h"
#include "exec/verify_sequences.h"
#include "exec/verify_weights.h"

#include <string.h>

/* State of one execution of a plan in this process. */
struct execution {
    struct exec_result *result;
    const struct exec_options *options;
    struct placement *placement;
    struct exchange_set set;
    struct sync sync;       /* opened only if can_sync */
    struct input_link link; /* opened only in time_together, like the input */
    struct input input;
    struct verify verify;
    /* [n_caches]; 0 for ranks of other processes */
    struct cache_findings *caches;
    /* NULL unless the option wait_for_quiet is set */
    struct interference_probe *interference;
    struct buf records;   /* records of the samples of this process's ranks */
    bool keeps_samples;   /* true if process 0 has a sink for samples */
    uint64_t plan_number; /* set if keeps_samples is true */
};

/* Runs `work` alone on this host: processes take turns, so that each process
 * has the whole machine, like a single process. Processes with GPUs do not take
 * turns, because each process has a GPU of its own. */
static int run_alone(struct execution *run,
                     int (*work)(struct execution *run, struct err *err),
                     struct err *err)
{
    const struct placement *placement = run->placement;
    struct world *world = placement->comm->world;
    double n_turns = world->local_size;

    if (!device_is_host(placement->device))
        return work(run, err);
    if (world_largest(world, &n_turns, 1, err))
        return -1;
    for (uint32_t turn = 0; turn < n_turns; turn++) {
        if ((turn == world->local_rank && work(run, err)) ||
            world_rest(world, err))
            return -1;
    }
    return 0;
}

static int open_interference_probe(struct execution *run, struct err *err)
{
    struct device *device = run->placement->device;
    const struct sample_setting setting =
        device_setting(&device->facts, PRECISION_FP32, OPTIMIZER_SGD, 1);

    if (interference_probe_open(&run->interference, device, err))
        return -1;
    return run->options->sink
               ? interference_probe_learn(run->interference, run->options->sink,
                                          &setting, err)
               : 0;
}

/* Adds the sample of a rank to the records, if it is a rank of the first
 * sharding group; the other groups do the same work. A single process moves the
 * sample to the sink immediately. */
static int keep_sample(struct execution *run, const struct rank_work *work,
                       const struct exec_rank *timing, struct err *err)
{
    if (!run->keeps_samples || placement_copy_of(work->placement, work->rank))
        return 0;
    exec_samples_add(&run->records, work, timing);
    if (run->placement->comm->world->size > 1)
        return 0;
    if (exec_samples_put(run->options, run->plan_number, &run->records,
                         &run->result->n_stored, err))
        return -1;
    buf_release(&run->records);
    return 0;
}

/* Keeps the uses of the caches of a rank that has been timed. If the pipeline
 * fills caches ahead of time, makes this a phase of its own. */
static void keep_fill(struct execution *run, uint32_t rank)
{
    const struct exec_rank *timing = &run->result->ranks[rank];
    double *phases_ms = run->result->ranks[rank].phases_ms;

    cache_findings_keep(run->caches, run->placement, rank);
    if (run->options->step.pipeline != PIPELINE_PREFETCH)
        return;
    phases_ms[PHASE_CACHE] = timing->fill.median_ms;
    phases_ms[PHASE_FORWARD] =
        fmax(phases_ms[PHASE_FORWARD] - phases_ms[PHASE_CACHE], 0);
}

static int time_rank(struct execution *run, uint32_t rank, struct err *err)
{
    const struct placement *placement = run->placement;
    struct exec_rank *timing = &run->result->ranks[rank];
    struct rank_work work, others;
    int rc;

    if (interrupt_requested())
        return err_set(err, ERR_INTERRUPTED, "interrupted");
    if (placement->rank_groups[rank] == placement->rank_groups[rank + 1])
        return 0; /* the rank holds no piece with lookups */
    work = others = rank_work_timed(placement, rank, 0, 1);
    rc = rank_work_open(&work, WORK_ALL, err) ||
         rank_work_open(&others, WORK_OTHERS, err) ||
         timing_rank(timing, &work, &others, run->interference,
                     run->options->n_iterations, err) ||
         keep_sample(run, &work, timing, err);
    if (!rc)
        keep_fill(run, rank);
    rank_work_close(&work);
    rank_work_close(&others);
    return rc ? -1 : 0;
}

/* Times those ranks of this process whose weights are in memory. */
static int time_loaded(struct execution *run, struct err *err)
{
    const struct placement *placement = run->placement;
    struct rank_range ranks = placement->turns[placement->loaded];

    for (uint32_t r = ranks.begin; r < ranks.end; r++) {
        if (time_rank(run, r, err))
            return -1;
        progress_update(run->options->progress, r + 1 - placement->here.begin);
    }
    return 0;
}

/*
 * Communication figures of an execution are defined as those of a plan: the
 * part of a step that is not the compute of a rank is its communication. If all
 * ranks share one GPU, exchanges are copies within the GPU, and their times do
 * not describe a network. In this case exchanges and input get the times that
 * the plan's cost model predicts. The input is replaced as a whole.
 */

/* Returns true if the exchanges of a placement are worth timing. Only copies
 * within one GPU are not worth timing. */
static bool comm_is_real(const struct placement *placement)
{
    return device_is_host(placement->device) ||
           strcmp(placement->comm->kind, "copy") != 0;
}

/* Stores the predicted times of a rank's exchanges, from the plan's cost model.
 * PHASE_INPUT gets the time of the whole input. If the plan predicts only
 * totals, the exchange of outputs gets the predicted forward communication
 * minus the waiting time. The waiting time follows from the predicted times of
 * all ranks. */
static void predict_exchanges(const struct plan *plan, uint32_t rank,
                              double phases_ms[N_PHASES])
{
    const uint32_t n = plan->problem.cluster.n_devices;
    const struct device_cost *own = &plan->devices[rank % n];
    double latest_ms = 0, waiting_ms;

    phases_ms[PHASE_GRADIENT] = own->bwd_comm_ms;
    if (plan_has_parts(plan)) {
        phases_ms[PHASE_INPUT] = own->parts_ms[STEP_INPUT];
        phases_ms[PHASE_OUTPUT] = own->parts_ms[STEP_OUTPUT];
        phases_ms[PHASE_GRADIENT] = own->parts_ms[STEP_GRADIENT];
        phases_ms[PHASE_REDUCE] =
            fmax(own->bwd_comm_ms - own->parts_ms[STEP_GRADIENT], 0);
        return;
    }
    for (uint32_t r = 0; r < n; r++)
        latest_ms = fmax(latest_ms, plan->devices[r].compute_ms +
                                        plan->devices[r].bwd_comm_ms);
    waiting_ms = latest_ms - own->compute_ms - own->bwd_comm_ms;
    phases_ms[PHASE_OUTPUT] = fmax(own->fwd_comm_ms - waiting_ms, 0);
}

/* Computes the time of the whole step from the phases of all ranks. From both
 * it computes the costs of each rank. */
static void fill_totals(struct exec_result *result, uint32_t n_ranks,
                        const struct step *step)
{
    double(*phases_ms)[N_PHASES] = mem_alloc(n_ranks, sizeof(*phases_ms));

    for (uint32_t r = 0; r < n_ranks; r++)
        memcpy(phases_ms[r], result->ranks[r].phases_ms, sizeof(*phases_ms));
    result->total_ms =
        result->comm == EXEC_COMM_ABSENT
            ? NAN
            : step_of_ranks(step, n_ranks,
                            (const double(*)[N_PHASES])phases_ms);
    mem_free(phases_ms);
    result->slowest = 0;
    for (uint32_t r = 0; r < n_ranks; r++) {
        const struct exec_rank *rank = &result->ranks[r];
        struct device_cost *cost = &result->costs[r];

        cost->compute_ms = rank->compute.median_ms;
        cost->bwd_comm_ms =
            rank->phases_ms[PHASE_GRADIENT] + rank->phases_ms[PHASE_REDUCE];
        cost->total_ms = result->total_ms;
        cost->fwd_comm_ms =
            cost->total_ms - cost->compute_ms - cost->bwd_comm_ms;
        step_parts(rank->phases_ms, cost->parts_ms);
        if (cost->compute_ms > result->costs[result->slowest].compute_ms)
            result->slowest = r;
    }
}

static const char *basis_of(const struct exec_result *result,
                            const struct plan *plan, struct arena *arena)
{
    if (result->comm == EXEC_COMM_ABSENT)
        return "none: one GPU runs all ranks, and the plan has no predicted "
               "costs";
    if (result->comm == EXEC_COMM_MODELLED)
        return arena_printf(
            arena,
            "predicted, not measured: one GPU runs all ranks, so input and "
            "exchanges take the time that %s predicts (%s); waiting computed "
            "from the ranks' own times",
            plan->cost.name ? plan->cost.name : "the plan",
            plan->cost.comm ? plan->cost.comm : "of unknown origin");
    if (result->n_processes == 1)
        return "copies between rank buffers of one process; waiting computed "
               "from the ranks' own times";
    return arena_printf(
        arena,
        "exchanges of %u processes on %u %s over %s, all together; waiting "
        "computed from the ranks' own times",
        result->n_processes, result->n_hosts,
        result->n_hosts == 1 ? "host" : "hosts",
        !strcmp(result->comm_kind, "mpi")   ? "MPI"
        : !strcmp(result->comm_kind, "shm") ? "shared memory"
                                            : "NCCL");
}

/*
 * Fills in the communication times of all ranks, and the totals.
 *
 * Exchanges that are worth timing get their measured times. On GPUs the input
 * gets its predicted time, if there is one, because a measured time is not
 * complete: the exchange of ids is only a part of the input, and the executor
 * permutes ids on the host and not on the GPU.
 */
static void fill_comm(struct exec_result *result,
                      const struct placement *placement,
                      const struct step *step, struct arena *arena)
{
    const struct timing *exchanges = result->exchanges;
    const struct plan *plan = placement->plan;
    bool is_priced = plan_is_priced(plan);

    result->comm = comm_is_real(placement) ? EXEC_COMM_MEASURED
                   : is_priced             ? EXEC_COMM_MODELLED
                                           : EXEC_COMM_ABSENT;
    result->comm_basis = basis_of(result, plan, arena);
    for (uint32_t r = 0; r < placement->n_ranks; r++) {
        double *phases_ms = result->ranks[r].phases_ms;

        if (is_priced && !device_is_host(placement->device))
            predict_exchanges(plan, r, phases_ms);
        if (result->comm == EXEC_COMM_ABSENT)
            phases_ms[PHASE_INPUT] = phases_ms[PHASE_OUTPUT] =
                phases_ms[PHASE_GRADIENT] = phases_ms[PHASE_REDUCE] = NAN;
        if (result->comm != EXEC_COMM_MEASURED)
            continue;
        if (device_is_host(placement->device) || !is_priced ||
            !plan_has_parts(plan))
            phases_ms[PHASE_INPUT] = exchanges[PHASE_INPUT].median_ms;
        phases_ms[PHASE_OUTPUT] = exchanges[PHASE_OUTPUT].median_ms;
        phases_ms[PHASE_GRADIENT] = exchanges[PHASE_GRADIENT].median_ms;
        phases_ms[PHASE_REDUCE] = exchanges[PHASE_REDUCE].median_ms;
    }
    fill_totals(result, placement->n_ranks, step);
}

/* Stores the measured forward exchange as a sample. Skips it if forward
 * consists of several exchanges in a row, because their total time contains
 * several latencies. */
static int put_comm(const struct exec_result *result,
                    const struct exchange_set *set,
                    const struct exec_options *options, struct err *err)
{
    const struct placement *placement = set->placement;
    const struct problem *problem = &placement->plan->problem;
    const struct table *table = problem->tables;
    struct sample_setting setting =
        device_setting(&placement->device->facts, table->precision,
                       table->optimizer, placement->batch);
    struct comm_sample sample;

    if (!options->sink || !options->sink->put_comm || set->n != 1 ||
        set->sequences.n)
        return 0;
    sample = alltoall_sample(
        placement->comm, &set->exchanges[0].alltoall,
        (uint32_t)max_u64(problem->cluster.hosts_per_domain, 1));
    sample.time = result->exchanges[PHASE_OUTPUT];
    sample.n_iterations = options->n_iterations;
    return options->sink->put_comm(options->sink->ctx, &setting, &sample, err);
}

static int time_ids(struct execution *run, struct err *err)
{
    struct rank_range here = run->placement->here;

    for (uint32_t r = here.begin; r < here.end; r++)
        if (timing_ids(&run->result->ranks[r].phases_ms[PHASE_PERMUTE],
                       &run->input, r, run->options->n_iterations, err))
            return -1;
    return 0;
}

/* --- syncs of sharding groups --- */

/* Number of timed syncs. */
#define N_SYNCS 5

/* Returns true if there are several sharding groups and all their weights are
 * in memory together. */
static bool can_sync(const struct placement *placement)
{
    return placement->n_copies > 1 && placement->n_turns == 1;
}

/* Runs a sync after the compared step, counts its bytes and compares the
 * averages with the reference. */
static int check_sync(struct execution *run, struct err *err)
{
    const struct placement *placement = run->placement;
    uint64_t *before = mem_alloc(placement->n_ranks, sizeof(*before));
    uint64_t *after = mem_alloc(placement->n_ranks, sizeof(*after));
    int rc = sync_count(placement, before, err) || sync_run(&run->sync, err) ||
             sync_count(placement, after, err) ||
             (run->options->check &&
              verify_weights(&run->verify, VERIFY_AVERAGES, placement, err));

    run->result->sync.sent_bytes = sync_most_sent(placement, before, after);
    mem_free(before);
    mem_free(after);
    return rc ? -1 : 0;
}

static int sync_once(void *ctx, unsigned number, double *ms, struct err *err)
{
    (void)number;
    return sync_time(ctx, ms, err);
}

static int time_syncs(struct execution *run, struct err *err)
{
    struct repetitions syncs = {.once = sync_once,
                                .ctx = &run->sync,
                                .n_parts = 1,
                                .n_warm_up = 1,
                                .n = N_SYNCS,
                                .world = run->placement->comm->world};

    run->result->sync.n = N_SYNCS;
    return repetitions_time(&run->result->sync.time, &syncs, err);
}

static int time_together(struct execution *run, struct err *err)
{
    const struct placement *placement = run->placement;
    struct exec_result *result = run->result;
    struct rank_range here = placement->here;
    unsigned n = run->options->n_iterations;

    /* Input of the step that is compared with the reference. */
    if (input_link_open(&run->link, placement, placement->comm->world, err) ||
        input_open(&run->input, placement, &run->link, STEP_BATCH, err))
        return -1;
    for (uint32_t r = here.begin; run->options->check && r < here.end; r++)
        input_permute(&run->input, r, &run->verify);
    if (comm_is_real(placement) &&
        ((device_is_host(placement->device) && run_alone(run, time_ids, err)) ||
         timing_exchanges(result->exchanges, &run->set, &run->input, n, err)))
        return -1;
    input_close(&run->input);
    input_link_close(&run->link);
    if (can_sync(placement) && comm_is_real(placement) && time_syncs(run, err))
        return -1;
    if (result->n_processes == 1)
        return 0;
    return timing_together(&result->step, result->in_chunks, &run->set, n, err);
}

/* Findings of one process of several. Process p then runs rank p and no other
 * rank. */
struct process_findings {
    struct exec_rank rank;
    uint32_t n_turns;
    struct verify_findings verify;
};

/* Gathers the findings of all processes and merges them. */
static int collect_findings(struct execution *run, struct arena *arena,
                            struct err *err)
{
    const struct placement *placement = run->placement;
    struct world *world = placement->comm->world;
    struct exec_result *result = run->result;
    struct process_findings own = {result->ranks[placement->here.begin],
                                   placement->n_turns, run->verify.found};
    struct process_findings *all = mem_alloc(world->size, sizeof(*all));
    int rc = world_all_gather(world, &own, sizeof(own), all, err);

    for (uint32_t p = 0; !rc && p < world->size; p++) {
        const struct verify_findings *found = &all[p].verify;

        /* With a single process this copies rank 0 to itself. */
        result->ranks[p] = all[p].rank;
        result->n_turns = (uint32_t)max_u64(result->n_turns, all[p].n_turns);
        tally_add(&result->outputs, &found->tallies[VERIFY_OUTPUTS]);
        tally_add(&result->weights, &found->tallies[VERIFY_WEIGHTS]);
        tally_add(&result->averages, &found->tallies[VERIFY_AVERAGES]);
        if (found->failure[0] && !result->failure)
            result->failure = arena_strdup(arena, found->failure);
    }
    mem_free(all);
    return rc;
}

/* Computes the sums over all ranks. The results of all ranks must be
 * complete. */
static void sum_up_ranks(struct exec_result *result, uint32_t n,
                         bool is_checked)
{
    uint64_t *hashes = mem_alloc(n, sizeof(*hashes));
    uint64_t *const sums[] = {&result->output_hash, &result->weight_hash};

    for (uint32_t r = 0; r < n; r++)
        result->n_disturbed += result->ranks[r].disturbed;
    for (unsigned what = 0; is_checked && what <= VERIFY_WEIGHTS; what++) {
        for (uint32_t r = 0; r < n; r++)
            hashes[r] = result->ranks[r].hashes[what];
        *sums[what] = hash_bytes(hashes, n * sizeof(*hashes), 0);
    }
    mem_free(hashes);
}

/* Combines the findings of all processes into the result. */
static int collect(struct execution *run, struct arena *arena, struct err *err)
{
    const struct placement *placement = run->placement;
    struct world *world = placement->comm->world;
    struct exec_result *result = run->result;
    struct buf all = {0};
    int rc;

    if (collect_findings(run, arena, err) ||
        cache_findings_collect(run->result, placement, run->caches, arena, err))
        return -1;
    sum_up_ranks(result, placement->n_ranks, run->options->check);
    fill_comm(result, placement, &run->options->step, arena);
    rc = world_collect(world, run->records.data, run->records.len, &all, err);
    if (!rc && world->rank == 0 && run->keeps_samples) {
        rc = exec_samples_put(run->options, run->plan_number, &all,
                              &result->n_stored, err);
        if (!rc && result->comm == EXEC_COMM_MEASURED)
            rc = put_comm(result, &run->set, run->options, err);
    }
    buf_release(&all);
    return rc;
}

static int execute(struct execution *run, struct arena *arena, struct err *err)
{
    struct placement *placement = run->placement;

    run->keeps_samples = run->options->sink != NULL;
    if (world_broadcast(placement->comm->world, &run->keeps_samples,
                        sizeof(run->keeps_samples), err))
        return -1;
    if (run->keeps_samples)
        run->plan_number = exec_samples_plan_number(placement);
    /* Opens the interference probe first, so that the probe sees the quiet
     * machine for as long as possible. */
    if ((run->options->wait_for_quiet &&
         run_alone(run, open_interference_probe, err)) ||
        placement_open(placement, err) ||
        exchange_open(&run->set, placement, arena, err) ||
        (can_sync(placement) && sync_open(&run->sync, placement, arena, err)))
        return -1;
    run->verify.ranks = run->result->ranks;
    if (run->options->check &&
        (step_forward(placement, &run->set, err) ||
         verify_outputs(&run->verify, &run->set, err) ||
         verify_sequences(&run->verify, &run->set, err) ||
         step_gradients(&run->set, err)))
        return -1;
    /* Second half of the step that is compared with the reference, and
     * timing. */
    for (uint32_t turn = 0; turn < placement->n_turns; turn++)
        if (placement_load(placement, turn, err) ||
            (run->options->check &&
             (step_update(placement, turn, err) ||
              verify_weights(&run->verify, VERIFY_WEIGHTS, placement, err))) ||
            (can_sync(placement) && check_sync(run, err)) ||
            run_alone(run, time_loaded, err))
            return -1;
    return time_together(run, err) || collect(run, arena, err) ? -1 : 0;
}

/* Counts the vectors of sequences, sets the number of chunks, and divides the
 * ranks of this process into turns. */
static int divide(struct placement *placement,
                  const struct exec_options *options, struct arena *arena,
                  struct err *err)
{
    if (placement->n_caches && options->step.n_chunks > 1)
        return err_input(err, "cached tables are not run in chunks yet; give "
                              "--chunks 1");
    sequences_count(placement, arena);
    placement->n_chunks = options->step.n_chunks;
    return placement_share_memory(placement, options->memory_bytes, 0, err);
}

int exec_run(struct exec_result *result, const struct plan *plan,
             struct world *world, struct device *device,
             const struct exec_options *options, struct arena *arena,
             struct err *err)
{
    uint32_t n_ranks = problem_all_devices(&plan->problem);
    struct placement placement = {0};
    struct execution run = {
        .result = result, .options = options, .placement = &placement};
    struct comm *comm = NULL;
    int rc = comm_open(&comm, world, device, n_ranks, err) ||
             placement_init(&placement, plan, comm, options->scale_rows,
                            options->seed, arena, err) ||
             divide(&placement, options, arena, err);

    if (!rc) {
        *result = (struct exec_result){
            .ranks = ARENA_NEW(arena, struct exec_rank, n_ranks),
            .costs = ARENA_NEW(arena, struct device_cost, n_ranks),
            .comm_kind = comm->kind,
            .n_processes = world->size,
            .n_hosts = world->n_hosts,
            .scale_rows = options->scale_rows,
        };
        run.caches =
            ARENA_NEW(arena, struct cache_findings, placement.n_caches);
        rc = execute(&run, arena, err);
    }
    /* A pending transfer may still access device memory until the other side
     * arrives, which may never happen. So nothing is released. */
    if (rc && world->size > 1)
        return -1;
    buf_release(&run.records);
    input_close(&run.input);
    input_link_close(&run.link);
    exchange_close(&run.set);
    sync_close(&run.sync);
    interference_probe_close(run.interference);
    placement_release(&placement);
    comm_close(comm);
    return rc ? -1 : 0;
}
