/* SPDX-License-Identifier: MIT */
#include "base/cli_answer.h"
#include "base/text.h"
#include "cli/planning.h"
#include "core/sharding_groups.h"
#include "costmodel/modelfile/gpu_file.h"
#include "costmodel/models/oracle_open.h"
#include "device/world_fork.h"
#include "exec/exec.h"
#include "exec/exec_report.h"
#include "exec/exec_train.h"
#include "exec/train_report.h"
#include "io/plan_json.h"
#include "io/store.h"
#include "io/store_rows.h"

#include <stdio.h>
#include <string.h>

struct run_request {
    struct cli *cli;
    struct world *world; /* owned */
    struct plan plan;
    struct device *device; /* owned */
    /* cost database; owned; NULL except in process 0 with --db */
    struct store *store;
    struct exec_options options;
    struct exec_result result;
    struct exec_train_options training; /* n_steps is 0 without --steps */
    struct train_result trained;
};

static const struct option_spec own_options[] = {
    OPTIONS_HEADED("machine"),
    {"device", 0, OPTION_CHOICE, "KIND", "cpu", 0, 0, DEVICE_KIND_NAMES,
     "device to run on"},
    {"threads", 0, OPTION_U64, "N", NULL, 1, 1024, NULL,
     "CPU threads; default: all"},
    {"ranks", 0, OPTION_U64, "N", NULL, 2, WORLD_MAX_FORKS, NULL,
     "processes to start, one per GPU; default: one process runs all ranks"},
    {"scale-rows", 0, OPTION_DOUBLE, "F", "1", 1e-12, 1, NULL,
     "scale the rows of each table by this factor, to use less memory"},
    {"memory", 0, OPTION_BYTES, "SIZE", NULL, 1, 0, NULL,
     "device memory to use; default: all that is free"},
    OPTIONS_HEADED("training"),
    {"steps", 0, OPTION_U64, "N", NULL, 1, 1000000, NULL,
     "train tables and dense part for N steps, in place of the timing"},
    {"dense-optimizer", 0, OPTION_CHOICE, "NAME", NULL, 0, 0,
     "table|sgd|adagrad|adam",
     "optimizer of the dense part with --steps; default: the plan's"},
    {"sync-every", 0, OPTION_U64, "K", NULL, 1, GROUPS_MAX_SYNC_EVERY, NULL,
     "steps from one average of the sharding groups to the next; default: the "
     "plan's"},
    OPTIONS_HEADED("measurement"),
    {"iterations", 'n', OPTION_U64, "N", "20", 12, 100000, NULL,
     "timed iterations, after warm-up"},
    {"no-check", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "only measure times, without comparing with the unsharded reference"},
    {"seed", 0, OPTION_U64, "K", "0", 0, 9e15, NULL,
     "seed of weights, indices and gradients"},
    {"db", 0, OPTION_DATABASE, "FILE", NULL, 0, 0, NULL,
     "cost database to add a sample of each GPU's work to"},
    {0},
};

static void read_options(struct exec_options *options, const struct cli *cli)
{
    exec_options_init(options);
    options->scale_rows = cli_double(cli, "scale-rows");
    options->n_iterations = (unsigned)cli_u64(cli, "iterations");
    options->seed = cli_u64(cli, "seed");
    options->check = !cli_given(cli, "no-check");
    options->memory_bytes = cli_u64(cli, "memory");
}

/* Sets the options of --steps. Call it after load_plan. */
static int read_training(struct run_request *run, struct err *err)
{
    const struct cli *cli = run->cli;
    struct problem *problem = &run->plan.problem;

    if (!cli_given(cli, "steps"))
        return cli_given(cli, "dense-optimizer")
                   ? err_usage(err, "option '--dense-optimizer' needs --steps")
                   : 0;
    if (cli_given(cli, "db") || cli_given(cli, "iterations"))
        return err_usage(err,
                         "option '--%s' cannot be used with --steps, "
                         "which times its steps and stores no samples",
                         cli_given(cli, "db") ? "db" : "iterations");
    if (!problem->job.dense)
        return err_usage(err, "option '--steps' needs the layers of the dense "
                              "part; give --dense, or plan with it");
    if (cli_given(cli, "dense-optimizer"))
        problem->dense_optimizer =
            (enum dense_optimizer)cli_choice(cli, "dense-optimizer");
    run->training = (struct exec_train_options){
        .n_steps = (unsigned)cli_u64(cli, "steps"),
        .sync_every = run->options.sync_every,
        .pipeline = problem->job.pipeline,
        .dense = problem->job.dense,
        .dense_optimizer = problem_dense_optimizer(problem),
        .scale_rows = run->options.scale_rows,
        .seed = run->options.seed,
        .memory_bytes = run->options.memory_bytes,
        .check = run->options.check,
    };
    return 0;
}

/* Sets the model of a training step, with the costs of phases that overlap.
 * These costs depend only on the kind of device: they are the same for all
 * GPUs. */
static int find_step(struct step *step, const struct run_request *run,
                     struct err *err)
{
    const struct problem *problem = &run->plan.problem;
    const struct gpu_spec *spec;
    struct comm_model model;

    if (gpu_spec_get(&spec, device_is_host(run->device) ? "cpu" : "h100",
                     run->cli->arena, err))
        return -1;
    model = gpu_spec_comm(spec, &problem->cluster);
    *step = comm_model_step(&model, problem);
    return 0;
}

/* Orders the processes of a plan of several sharding groups by group, and reads
 * the steps from one sync to the next. Prices the plan without syncs, because
 * they are timed apart from the steps. */
static int take_groups(struct run_request *run, struct err *err)
{
    const struct cli *cli = run->cli;
    struct plan *plan = &run->plan;
    struct sharding_groups *groups = &plan->problem.groups;
    const uint32_t n = problem_n_groups(&plan->problem);
    const uint32_t rank = run->world->rank;

    if (n == 1)
        return cli_given(cli, "sync-every")
                   ? err_usage(err, "option '--sync-every' needs a plan with "
                                    "--groups")
                   : 0;
    if (groups->layout == GROUPS_STRIDED &&
        run->world->size == problem_all_devices(&plan->problem) &&
        world_renumber(run->world, sharding_groups_place(&plan->problem, rank),
                       err))
        return -1;
    run->options.sync_every = cli_given(cli, "sync-every")
                                  ? cli_u64(cli, "sync-every")
                                  : groups->sync_every;
    groups->sync_every = 0;
    return plan_is_priced(plan) && plan->cost.name
               ? oracle_price_plan(plan, plan->cost.name, cli->arena, err)
               : 0;
}

/* Reads the plan. If the options change the job of the plan, prices the plan
 * again. */
static int load_plan(struct run_request *run, struct err *err)
{
    struct plan *plan = &run->plan;
    struct job job;

    if (plan_load(plan, run->cli->args[0], run->cli->arena, err))
        return -1;
    if (take_groups(run, err))
        return -1;
    memcpy(&job, &plan->problem.job, sizeof(job));
    if (planning_set_job(&plan->problem, run->cli, err) ||
        (cli_given(run->cli, "dense") &&
         planning_set_dense(&plan->problem, run->cli, err)))
        return -1;
    if (!plan_is_priced(plan) || !plan_has_parts(plan))
        return 0;
    if (memcmp(&job, &plan->problem.job, sizeof(job)) != 0) {
        if (!plan->cost.name)
            return err_input(err,
                             "%s: the plan names no cost model, so it cannot "
                             "be priced for another job",
                             run->cli->args[0]);
        if (oracle_price_plan(plan, plan->cost.name, run->cli->arena, err))
            return -1;
    }
    /* no host of a training job queues these kernels */
    plan->cost.host = HOST_NONE;
    return 0;
}

/* Opens the device of this process and, in process 0 with --db, the database.
 * Each process of a host has its own GPU. Its index is the index of the process
 * on the host; if the launcher makes only one GPU visible, the process takes
 * this GPU. Process 0 stores, prints and shows the progress. */
static int open_all(struct run_request *run, struct err *err)
{
    const struct cli *cli = run->cli;
    enum device_kind kind = (enum device_kind)cli_choice(cli, "device");
    unsigned n = device_count(kind);

    read_options(&run->options, cli);
    if (load_plan(run, err) || read_training(run, err) ||
        device_open(&run->device, kind, n ? run->world->local_rank % n : 0,
                    (unsigned)cli_u64(cli, "threads"), err) ||
        find_step(&run->options.step, run, err))
        return -1;
    if (!cli_given(cli, "db") || run->world->rank != 0)
        return 0;
    return store_open(&run->store, cli_string(cli, "db"), STORE_WRITE, err);
}

/* Warns if the plan's cost model was measured on a device other than the one in
 * use. */
static void tell_other_device(const struct run_request *run)
{
    const char *measured = run->plan.cost.device;
    const char *name = run->device->facts.name, *isa = run->device->facts.isa;
    size_t len = strlen(name);

    if (!measured || (!strncmp(measured, name, len) && measured[len] == ',' &&
                      strstr(measured, isa)))
        return;
    cli_warn(NULL, text_say(run->cli->arena,
                            "the plan's cost model was measured on '%s', but "
                            "the plan runs on '%s' with %s",
                            measured, name, isa));
}

static int execute(struct run_request *run, struct err *err)
{
    struct sample_sink sink = store_sink(run->store);
    struct exec_options options = run->options;
    struct exec_train_options training = run->training;
    const bool trains = training.n_steps > 0;
    struct progress progress;
    bool is_first = !run->world->rank;
    int rc;

    if (is_first) {
        tell_other_device(run);
        progress_start(&progress, trains ? "steps trained" : "GPUs timed",
                       trains ? run->training.n_steps
                              : run->plan.problem.cluster.n_devices /
                                    run->world->size,
                       cli_given(run->cli, "verbose"));
        options.progress = training.progress = &progress;
    }
    if (run->store)
        options.sink = &sink;
    rc = trains ? exec_train(&run->trained, &run->plan, run->world, run->device,
                             &training, run->cli->arena, err)
                : exec_run(&run->result, &run->plan, run->world, run->device,
                           &options, run->cli->arena, err);
    if (is_first)
        progress_finish(&progress);
    if (!rc && run->store)
        fprintf(stderr, "stored %u samples\n", run->result.n_stored);
    return rc;
}

/* Prints the report of --steps. */
static int report_training(struct run_request *run, struct err *err)
{
    const struct train_report report = {&run->plan,        run->device,
                                        &run->training,    &run->trained,
                                        run->options.step, run->cli->arena};

    if (run->world->rank)
        return 0;
    if (cli_given(run->cli, "json"))
        cli_print_json(train_report_to_json(&report));
    else
        train_report_print(&report, cli_text());
    return run->trained.failure
               ? err_set(err, ERR_DEVICE, "%s", run->trained.failure)
               : 0;
}

static int report(struct run_request *run, struct err *err)
{
    const struct exec_report report = {&run->plan,   run->world,
                                       run->device,  &run->options,
                                       &run->result, run->cli->arena};

    if (run->world->rank)
        return 0;
    if (cli_given(run->cli, "json"))
        cli_print_json(exec_report_to_json(&report));
    else
        exec_report_print(&report, cli_text());
    if (!run->result.failure)
        return 0;
    return err_set(err, ERR_DEVICE, "%s", run->result.failure);
}

static int run_run(struct cli *cli, struct err *err)
{
    struct run_request run = {.cli = cli};
    int rc;

    if (command_open_world(&run.world, cli, err))
        return -1;
    if (!run.world)
        return 0;
    rc =
        open_all(&run, err) || execute(&run, err) ||
        (run.training.n_steps ? report_training(&run, err) : report(&run, err));
    store_close(run.store);
    if (rc)
        command_end_all(run.world, err);
    device_close(run.device);
    world_close(run.world);
    return rc ? -1 : 0;
}

const struct command command_run = {
    .name = "run",
    .synopsis = "PLAN [options]",
    .summary = "run a plan: compare it with an unsharded reference, time it",
    .example = "neuroshard run plan.json --scale-rows 0.01",
    .options = {own_options, job_options, progress_options},
    .n_args = {1, 1},
    .run = run_run,
};
