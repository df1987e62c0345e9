/* SPDX-License-Identifier: MIT */
#include "exec/exec_train.h"

#include "base/hash.h"
#include "base/stats.h"
#include "exec/placement_load.h"
#include "exec/placement_need.h"
#include "exec/rank_caches.h"
#include "exec/train_step.h"
#include "exec/train_times.h"
#include "exec/values.h"

#include <string.h>

/* --- checks before a training --- */

/* Fails if the executor cannot train the dense part. */
static int check_dense(const struct exec_train_options *options,
                       const struct device *device, struct err *err)
{
    const struct dense *dense = options->dense;

    if (dense_is_mixed(dense))
        return err_input(err,
                         "a dense part of dtype %s is not executed yet, only "
                         "fp32 and, on a GPU, tf32",
                         dense_type_names[dense->type]);
    if (dense->type == DENSE_TYPE_TF32 && device_is_host(device))
        return err_input(err, "a dense part of dtype tf32 is executed on GPUs "
                              "only; give --dense with dtype:fp32");
    if (dense->gradients != DENSE_TYPE_FP32)
        return err_input(err,
                         "gradients of the dense part in %s (grads) are not "
                         "executed yet, only fp32",
                         dense_type_names[dense->gradients]);
    if (options->dense_optimizer != OPTIMIZER_SGD &&
        options->dense_optimizer != OPTIMIZER_ADAGRAD &&
        options->dense_optimizer != OPTIMIZER_ADAM)
        return err_input(err,
                         "a dense part with optimizer %s is not executed yet",
                         optimizer_names[options->dense_optimizer]);
    return 0;
}

static int check_job(const struct plan *plan,
                     const struct exec_train_options *options,
                     const struct device *device, struct err *err)
{
    const struct job *job = &plan->problem.job;

    if (options->pipeline != PIPELINE_NONE && options->pipeline != PIPELINE_SDD)
        return err_input(err,
                         "pipeline %s is not executed, only none and sdd; give "
                         "--pipeline",
                         pipeline_names[options->pipeline]);
    if (options->pipeline == PIPELINE_SDD && !device_is_host(device))
        return err_input(err, "pipeline sdd is executed on CPUs only; give "
                              "--pipeline none");
    if (job_n_chunks(job) > 1)
        return err_input(err, "a training in chunks is not executed yet; give "
                              "--chunks 1");
    if (job->dedup != DEDUP_NONE)
        return err_input(err, "a training with de-duplicated input is not "
                              "executed yet");
    return check_dense(options, device, err);
}

/* --- memory --- */

/* Returns the number of batches that are drawn: enough that their rows are not
 * cached from one use to the next. All processes get the same number. */
static int count_batches(unsigned *n_batches, const struct train_state *run,
                         struct err *err)
{
    const struct placement *placement = &run->placement;
    double n = 1;

    for (uint32_t r = placement->here.begin; r < placement->here.end; r++)
        n = fmax(n, rank_work_n_cold_sets(placement, r));
    if (world_largest(placement->comm->world, &n, 1, err))
        return -1;
    *n_batches = (unsigned)fmin(n, run->options->n_steps);
    return 0;
}

static uint32_t n_samples_of(const struct placement *placement, uint32_t rank)
{
    return placement_sample(placement, rank + 1) -
           placement_sample(placement, rank);
}

/* Fails if the weights of all ranks do not fit together. */
static int fit_memory(struct train_state *run, unsigned n_batches,
                      struct err *err)
{
    struct placement *placement = &run->placement;
    const struct exec_train_options *options = run->options;
    double bytes = n_batches * placement_input_bytes(placement);

    for (uint32_t r = placement->here.begin; r < placement->here.end; r++)
        bytes +=
            (double)dense_net_bytes(options->dense, n_samples_of(placement, r),
                                    options->dense_optimizer) +
            (double)options->dense->n_parameters * sizeof(float);
    if (placement_share_memory(placement, options->memory_bytes, bytes, err))
        return -1;
    if (placement->n_turns > 1)
        return err_set(err, ERR_DEVICE,
                       "the weights of all GPUs do not fit in memory together, "
                       "which a training needs; use a smaller --scale-rows, or "
                       "one machine per rank");
    return 0;
}

/* Makes the initial parameters of a net; they are the same on every rank. */
static int load_parameters(struct train_state *run, struct dense_net *net,
                           struct err *err)
{
    const struct dense *dense = run->options->dense;
    float *values = mem_alloc((size_t)dense->n_parameters, sizeof(*values));
    int rc;

    values_parameters(values, run->options->seed, dense);
    rc = device_upload(net->device, net->d_parameters, values,
                       (size_t)dense->n_parameters * sizeof(*values), err);
    mem_free(values);
    return rc;
}

static int open_nets(struct train_state *run, struct arena *arena,
                     struct err *err)
{
    const struct placement *placement = &run->placement;
    const struct exec_train_options *options = run->options;
    struct device *device = placement->device;

    run->nets = ARENA_NEW(arena, struct dense_net, placement->n_ranks);
    run->d_scratch = ARENA_NEW(arena, float *, placement->n_ranks);
    run->own_losses = ARENA_NEW(arena, double, placement->n_ranks);
    if (gemm_open(&run->blas, device, err))
        return -1;
    for (uint32_t r = placement->here.begin; r < placement->here.end; r++) {
        struct dense_net *net = &run->nets[r];

        if (dense_net_open(net, options->dense, n_samples_of(placement, r),
                           options->dense_optimizer, STEP_RATE, device,
                           run->blas, err) ||
            load_parameters(run, net, err) ||
            device_alloc(device, (void **)&run->d_scratch[r],
                         (size_t)comm_sum_scratch(
                             placement->comm, options->dense->n_parameters) *
                             sizeof(float),
                         err))
            return -1;
    }
    return 0;
}

static int open_training(struct train_state *run, struct arena *arena,
                         struct err *err)
{
    struct placement *placement = &run->placement;
    struct world *world = placement->comm->world;
    unsigned *numbers, n_batches;

    if (count_batches(&n_batches, run, err) || fit_memory(run, n_batches, err))
        return -1;
    if (run->options->pipeline == PIPELINE_SDD &&
        world_open_second(&run->second, world, err))
        return -1;
    if (placement_open(placement, err) ||
        exchange_open(&run->set, placement, arena, err) ||
        placement_load(placement, 0, err) ||
        (run->syncs_ms && sync_open(&run->sync, placement, arena, err)) ||
        open_nets(run, arena, err) ||
        feed_open(&run->feed, placement, run->options->dense, n_batches,
                  run->second ? run->second : world, err))
        return -1;
    numbers = ARENA_NEW(arena, unsigned, n_batches);
    for (unsigned b = 0; b < n_batches; b++)
        numbers[b] = run->feed.inputs[b].number;
    return run->options->check
               ? train_reference_open(
                     &run->reference, placement, run->options->dense,
                     run->options->dense_optimizer, numbers, n_batches, err)
               : 0;
}

static void close_training(struct train_state *run)
{
    const struct placement *placement = &run->placement;

    train_reference_close(run->reference);
    feed_close(&run->feed);
    for (uint32_t r = 0; run->nets && r < placement->n_ranks; r++) {
        dense_net_close(&run->nets[r]);
        device_free(placement->device, run->d_scratch[r]);
    }
    gemm_close(run->blas);
    exchange_close(&run->set);
    sync_close(&run->sync);
    placement_release(&run->placement);
    world_close(run->second);
}

/* --- results of a step --- */

/* Adds up the losses of the ranks of this process, and stores the mean over the
 * global batch. The sums of all ranks are added in the order of ranks. */
static int find_loss(struct train_state *run, unsigned step, struct err *err)
{
    const struct placement *placement = &run->placement;
    const struct rank_range here = placement->here;
    const struct dense *dense = run->options->dense;
    const uint64_t n_last = dense_n_outputs(dense);
    double *all = mem_alloc(placement->n_ranks, sizeof(*all)), sum = 0;
    int rc = 0;

    for (uint32_t r = here.begin; !rc && r < here.end; r++) {
        const uint64_t n = run->nets[r].n_samples * n_last;
        float *losses = mem_alloc((size_t)n, sizeof(*losses));

        rc = device_download(placement->device, losses, run->nets[r].d_losses,
                             (size_t)n * sizeof(*losses), err);
        run->own_losses[r] = 0;
        for (uint64_t i = 0; i < n; i++)
            run->own_losses[r] += (double)losses[i];
        mem_free(losses);
    }
    rc = rc ||
         world_all_gather(placement->comm->world, run->own_losses + here.begin,
                          (here.end - here.begin) * sizeof(double), all, err);
    for (uint32_t r = 0; r < placement->n_ranks; r++)
        sum += all[r];
    run->result->losses[step] =
        sum / ((double)placement->batch * (double)n_last);
    mem_free(all);
    return rc ? -1 : 0;
}

/* Downloads the gradients of the pooled vectors, [own samples][pooled]. */
static int download_pooled(struct train_state *run, float *out, struct err *err)
{
    const struct rank_range here = run->placement.here;
    const uint64_t n_cols = run->options->dense->pooled;

    for (uint32_t r = here.begin; r < here.end; r++) {
        const struct dense_net *net = &run->nets[r];
        const uint64_t stride = net->pooled_gradient.stride;
        const uint64_t n = net->n_samples;
        float *rows = mem_alloc((size_t)(n * stride), sizeof(*rows));
        int rc =
            n ? device_download(
                    run->placement.device, rows, net->pooled_gradient.d_at,
                    (size_t)((n - 1) * stride + n_cols) * sizeof(*rows), err)
              : 0;

        for (uint64_t i = 0; !rc && i < n; i++, out += n_cols)
            memcpy(out, rows + i * stride, (size_t)n_cols * sizeof(*out));
        mem_free(rows);
        if (rc)
            return -1;
    }
    return 0;
}

/* Downloads the outputs of a layer, [own samples][out]. */
static int download_outputs(struct train_state *run, uint32_t product,
                            float *out, struct err *err)
{
    const struct rank_range here = run->placement.here;

    for (uint32_t r = here.begin; r < here.end; r++) {
        const struct dense_net *net = &run->nets[r];
        const size_t n = (size_t)(net->n_samples *
                                  run->options->dense->products[product].out);

        if (n && device_download(net->device, out, net->layers[product].d_out,
                                 n * sizeof(*out), err))
            return -1;
        out += n;
    }
    return 0;
}

/* Downloads everything that a stepwise comparison reads, into the arena. */
static int download_step(struct train_state *run, struct executed_step *step,
                         struct arena *arena, struct err *err)
{
    const struct placement *placement = &run->placement;
    const struct dense *dense = run->options->dense;
    const struct dense_net *net = &run->nets[placement->here.begin];
    const size_t n = (size_t)dense->n_parameters;
    const size_t n_own = placement_sample(placement, placement->here.end) -
                         placement_sample(placement, placement->here.begin);
    float *gradients = ARENA_NEW(arena, float, n);
    float *parameters = ARENA_NEW(arena, float, n);
    float *pooled = ARENA_NEW(arena, float, n_own * dense->pooled);
    const float **outputs = ARENA_NEW(arena, const float *, dense->n_products);

    for (uint32_t p = 0; p < dense->n_products; p++) {
        float *own;

        if (!dense->products[p].has_relu)
            continue;
        outputs[p] = own =
            ARENA_NEW(arena, float, n_own * dense->products[p].out);
        if (download_outputs(run, p, own, err))
            return -1;
    }
    step->gradients = gradients;
    step->parameters = parameters;
    step->pooled_gradients = pooled;
    step->relu_outputs = outputs;
    return device_download(net->device, gradients, net->d_gradients,
                           n * sizeof(float), err) ||
                   device_download(net->device, parameters, net->d_parameters,
                                   n * sizeof(float), err) ||
                   download_pooled(run, pooled, err)
               ? -1
               : 0;
}

/* Compares a step with the reference. */
static int check_step(struct train_state *run, unsigned step, struct err *err)
{
    struct executed_step executed = {
        .number = run->feed.inputs[step % run->feed.n_batches].number,
        .loss = run->result->losses[step]};
    struct arena arena = {0};
    int rc;

    rank_caches_write_back(&run->placement);
    rc = (!train_reference_is_free(run->reference) &&
          download_step(run, &executed, &arena, err)) ||
         train_reference_step(run->reference, &executed, err);

    arena_release(&arena);
    return rc ? -1 : 0;
}

/* Runs the sync after a step, if one is due, and compares the averages with the
 * reference. */
static int sync_groups(struct train_state *run, unsigned step, struct err *err)
{
    if (!run->syncs_ms || (step + (uint64_t)1) % run->options->sync_every)
        return 0;
    return train_sync_run(run, err) ||
                   (run->reference && train_reference_sync(run->reference, err))
               ? -1
               : 0;
}

static int run_steps(struct train_state *run, struct err *err)
{
    const struct exec_train_options *options = run->options;

    for (unsigned step = 0; step < options->n_steps; step++) {
        if (train_step_run(run, step, err) || find_loss(run, step, err) ||
            (run->reference && check_step(run, step, err)) ||
            sync_groups(run, step, err) ||
            (options->observe &&
             options->observe(options->observe_ctx, run, step, err)))
            return -1;
        progress_update(options->progress, step + 1);
    }
    rank_caches_write_back(&run->placement);
    return 0;
}

/* --- results of the training --- */

/* Number of bytes that are hashed at a time. */
#define HASH_BYTES ((size_t)4 << 20)

/* Adds n_bytes of device memory to a hash. */
static int hash_memory(uint64_t *hash, struct device *device, const void *d_at,
                       size_t n_bytes, struct err *err)
{
    const size_t n_most = n_bytes < HASH_BYTES ? n_bytes : HASH_BYTES;
    char *window = mem_alloc(n_most, 1);
    int rc = 0;

    for (size_t pos = 0; !rc && pos < n_bytes; pos += n_most) {
        const size_t n = n_bytes - pos < n_most ? n_bytes - pos : n_most;

        rc = device_download(device, window, (const char *)d_at + pos, n, err);
        if (!rc)
            *hash = hash_bytes(window, n, *hash);
    }
    mem_free(window);
    return rc;
}

/* Hashes of a rank after the training. */
struct rank_hashes {
    uint64_t dense, replicas, weights;
};

static int hash_rank(struct train_state *run, uint32_t rank,
                     struct rank_hashes *hashes, struct err *err)
{
    const struct placement *placement = &run->placement;
    struct device *device = placement->device;

    for (size_t i = 0; i < placement->n_pieces; i++) {
        const struct piece *piece = &placement->pieces[i];
        uint64_t *hash = piece->replica ? &hashes->replicas : &hashes->weights;

        if (piece->rank != rank)
            continue;
        if (hash_memory(hash, device, piece->d_weight,
                        piece->n_rows * piece->width *
                            precision_bytes(piece->table->precision),
                        err) ||
            (piece->d_state && hash_memory(hash, device, piece->d_state,
                                           piece->n_rows * sizeof(float), err)))
            return -1;
    }
    return hash_memory(
        &hashes->dense, device, run->nets[rank].d_parameters,
        (size_t)run->options->dense->n_parameters * sizeof(float), err);
}

/* Computes the hashes of the result, and checks that all ranks have the same
 * dense parameters and replicas. */
static int compare_ranks(struct train_state *run, struct err *err)
{
    const struct placement *placement = &run->placement;
    const struct rank_range here = placement->here;
    const uint32_t n = placement->n_ranks;
    struct rank_hashes *own = mem_alloc(n, sizeof(*own));
    struct rank_hashes *all = mem_alloc(n, sizeof(*all));
    struct train_result *result = run->result;
    int rc = 0;

    for (uint32_t r = here.begin; !rc && r < here.end; r++)
        rc = hash_rank(run, r, &own[r], err);
    rc = rc ||
         world_all_gather(placement->comm->world, own + here.begin,
                          (here.end - here.begin) * sizeof(*own), all, err);
    for (uint32_t r = 1; !rc && r < n && !result->failure; r++)
        if (all[r].dense != all[0].dense || all[r].replicas != all[0].replicas)
            result->failure = all[r].dense != all[0].dense
                                  ? "the ranks have different dense parameters "
                                    "after the training"
                                  : "the ranks have different replicas after "
                                    "the training";
    result->dense_hash = all[0].dense;
    result->weight_hash = hash_bytes(all, n * sizeof(*all), 0);
    mem_free(own);
    mem_free(all);
    return rc ? -1 : 0;
}

/* Merges the findings of all processes into the result. */
static int collect_findings(struct train_state *run, struct arena *arena,
                            struct err *err)
{
    struct world *world = run->placement.comm->world;
    const float *parameters = NULL;
    struct train_result *result = run->result;
    struct train_findings own = {0};
    struct train_findings *all = mem_alloc(world->size, sizeof(*all));
    const struct dense_net *net = &run->nets[run->placement.here.begin];
    const size_t n_bytes =
        (size_t)run->options->dense->n_parameters * sizeof(float);
    float *copy = mem_alloc(n_bytes, 1);
    int rc =
        device_download(net->device, copy, net->d_parameters, n_bytes, err);

    parameters = copy;
    rc = rc || train_reference_finish(run->reference, parameters, &own, err) ||
         world_all_gather(world, &own, sizeof(own), all, err);
    for (uint32_t p = 0; !rc && p < world->size; p++) {
        /* Every process compares the same losses. */
        for (unsigned what = p ? REFERENCE_LOSSES + 1 : REFERENCE_LOSSES;
             what < N_REFERENCE_WHAT; what++)
            tally_add(&result->found.tallies[what], &all[p].tallies[what]);
        if (all[p].failure[0] && !result->failure)
            result->failure = arena_strdup(arena, all[p].failure);
    }
    mem_free(all);
    mem_free(copy);
    return rc ? -1 : 0;
}

static int train_all(struct train_state *run, struct arena *arena,
                     struct err *err)
{
    const size_t n_times =
        run->options->n_steps * (size_t)run->placement.n_ranks;

    run->times = arena_alloc(arena, n_times, sizeof(*run->times));
    memset(run->times, 0, n_times * sizeof(*run->times));
    if (run->placement.n_copies > 1 && run->options->sync_every)
        run->syncs_ms =
            ARENA_NEW(arena, double,
                      run->options->n_steps / run->options->sync_every + 1);
    if (open_training(run, arena, err) || run_steps(run, err) ||
        train_times_collect(run, err))
        return -1;
    if (run->reference && collect_findings(run, arena, err))
        return -1;
    return compare_ranks(run, err);
}

int exec_train(struct train_result *result, const struct plan *plan,
               struct world *world, struct device *device,
               const struct exec_train_options *options, struct arena *arena,
               struct err *err)
{
    const uint32_t n_ranks = problem_all_devices(&plan->problem);
    struct train_state run = {.options = options, .result = result};
    struct comm *comm = NULL;
    int rc;

    if (check_job(plan, options, device, err))
        return -1;
    rc = comm_open(&comm, world, device, n_ranks, err) ||
         placement_init(&run.placement, plan, comm, options->scale_rows,
                        options->seed, arena, err);
    if (!rc) {
        *result = (struct train_result){
            .losses = ARENA_NEW(arena, double, options->n_steps),
            .comm_kind = comm->kind,
            .n_processes = world->size,
            .n_hosts = world->n_hosts,
            .scale_rows = options->scale_rows,
        };
        rc = train_all(&run, arena, err);
    }
    /* A pending transfer may still access memory until the other side arrives,
     * which may never happen. So nothing is released. */
    if (rc && world->size > 1)
        return -1;
    close_training(&run);
    comm_close(comm);
    return rc ? -1 : 0;
}
