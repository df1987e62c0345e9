/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/command.h"
#include "exec/exec.h"
#include "io/plan_json.h"
#include "io/store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct option_spec run_options[] = {
    {"device", 0, OPTION_CHOICE, "KIND", "cpu", 0, 0, "cpu|cuda",
     "what looks the embeddings up; cpu only in this version"},
    {"threads", 0, OPTION_U64, "N", NULL, 1, 1024, NULL,
     "CPU threads; without it all"},
    {"scale-rows", 0, OPTION_DOUBLE, "F", "1", 1e-12, 1, NULL,
     "rows of each table times this, where memory is short"},
    {"iterations", 'n', OPTION_U64, "N", "20", 12, 100000, NULL,
     "timed iterations, after warm-up"},
    {"no-check", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "only time: no comparison with the unsharded reference"},
    {"db", 0, OPTION_STRING, "FILE", NULL, 0, 0, NULL,
     "cost database that gets a sample of each GPU's work"},
    {"seed", 0, OPTION_U64, "K", "0", 0, 9e15, NULL,
     "seed of weights, indices and gradients"},
    {"json", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "print the result as JSON"},
    {0},
};

/* What a report is about. */
struct run {
    const struct plan *plan;
    const struct device *device;
    const struct exec_options *options;
    const struct exec_result *result;
    uint32_t slowest; /* rank with the largest measured total */
};

static bool is_priced(const struct plan *plan)
{
    return plan->devices && !isnan(plan->total_ms);
}

/* How far the plan was off for a rank: (predicted - measured) / measured. */
static double total_error(const struct run *run, uint32_t rank)
{
    double measured_ms = run->result->ranks[rank].total_ms;

    return (run->plan->devices[rank].total_ms - measured_ms) / measured_ms;
}

/* All ranks end together, so the slowest is the one that is ready last. */
static uint32_t find_slowest(const struct run *run)
{
    const struct exec_rank *ranks = run->result->ranks;
    uint32_t slowest = 0;

    for (uint32_t r = 1; r < run->plan->problem.cluster.n_devices; r++)
        if (ranks[r].compute.median_ms > ranks[slowest].compute.median_ms)
            slowest = r;
    return slowest;
}

static void print_cost_source(const struct cost_source *cost)
{
    printf("predicted by %s (%s", cost->name ? cost->name : "hand",
           cost_basis_name(cost->basis));
    if (cost->device)
        printf(" on %s", cost->device);
    if (cost->hash)
        printf(", hash %s", cost->hash);
    puts(")");
}

static void print_heading(const struct run *run)
{
    const struct problem *problem = &run->plan->problem;

    printf("%zu tables on %u GPUs, batch %llu, rows x %g, seed %llu\n",
           problem->n_tables, problem->cluster.n_devices,
           (unsigned long long)problem->batch, run->result->scale_rows,
           (unsigned long long)run->options->seed);
    printf("measured on %s, %s, %u threads: medians of %u iterations, each "
           "GPU's work alone\n",
           device_name(run->device), device_isa(run->device),
           device_n_threads(run->device), run->options->n_iterations);
    if (is_priced(run->plan))
        print_cost_source(&run->plan->cost);
    else
        puts("the plan has no predicted costs; 'neuroshard cost' adds them");
}

static void print_ranks(const struct run *run)
{
    printf("\n%4s  %-39s  %s\n", "", "predicted ms", "measured ms");
    printf("%4s", "GPU");
    for (int i = 0; i < 2; i++)
        printf("  %9s %9s %9s %9s", "compute", "bwd comm", "fwd comm", "total");
    printf("  %9s %9s\n", "comp. p10", "comp. p90");
    for (uint32_t r = 0; r < run->plan->problem.cluster.n_devices; r++) {
        const struct exec_rank *rank = &run->result->ranks[r];

        if (is_priced(run->plan)) {
            const struct device_cost *cost = &run->plan->devices[r];

            printf("%4u  %9.3f %9.3f %9.3f %9.3f", r, cost->compute_ms,
                   cost->bwd_comm_ms, cost->fwd_comm_ms, cost->total_ms);
        } else {
            printf("%4u  %9s %9s %9s %9s", r, "-", "-", "-", "-");
        }
        printf("  %9.3f %9.3f %9.3f %9.3f  %9.3f %9.3f\n",
               rank->compute.median_ms, rank->bwd_comm_ms, rank->fwd_comm_ms,
               rank->total_ms, rank->compute.p10_ms, rank->compute.p90_ms);
    }
}

static void print_check(const struct run *run)
{
    const struct exec_result *result = run->result;
    char outputs[TEXT_BYTES_MAX], weights[TEXT_BYTES_MAX];

    if (!run->options->check) {
        puts("not compared with the unsharded reference");
        return;
    }
    printf("against the unsharded reference, largest error: %.2g of %s "
           "outputs, %.2g of %s updated weights\n",
           result->output_error,
           text_from_count(outputs, result->n_outputs_checked),
           result->weight_error,
           text_from_count(weights, result->n_weights_checked));
}

static void print_disturbed(const struct run *run)
{
    unsigned n = run->result->n_disturbed;

    if (n)
        printf("%u of %u GPUs %s timed while something else disturbed the "
               "machine\n",
               n, run->plan->problem.cluster.n_devices,
               n == 1 ? "was" : "were");
}

static void print_report(const struct run *run)
{
    const struct exec_rank *slowest = &run->result->ranks[run->slowest];

    print_heading(run);
    print_ranks(run);
    printf("\nslowest GPU: %u, %.3f ms measured", run->slowest,
           slowest->total_ms);
    if (is_priced(run->plan))
        printf(", %.3f ms predicted (%+.1f %%)",
               run->plan->devices[run->slowest].total_ms,
               100 * total_error(run, run->slowest));
    printf("\ncommunication measured: %s\n", run->result->comm_basis);
    if (is_priced(run->plan) && run->plan->cost.comm)
        printf("communication predicted: %s\n", run->plan->cost.comm);
    print_disturbed(run);
    if (run->result->scale_rows < 1)
        puts("the tables were smaller than the plan's: caches hold more of "
             "them");
    print_check(run);
}

static json_t *timing_to_json(const struct timing *timing)
{
    return json_pack("{s:f, s:f, s:f}", "median_ms", timing->median_ms,
                     "p10_ms", timing->p10_ms, "p90_ms", timing->p90_ms);
}

static json_t *rank_to_json(const struct run *run, uint32_t r)
{
    const struct exec_rank *rank = &run->result->ranks[r];
    json_t *measured = json_pack(
        "{s:o, s:o, s:o, s:f, s:f, s:f, s:b}", "forward",
        timing_to_json(&rank->forward), "backward",
        timing_to_json(&rank->backward), "compute",
        timing_to_json(&rank->compute), "bwd_comm_ms", rank->bwd_comm_ms,
        "fwd_comm_ms", rank->fwd_comm_ms, "total_ms", rank->total_ms,
        "disturbed", (int)rank->disturbed);
    json_t *predicted = json_null();

    if (is_priced(run->plan)) {
        const struct device_cost *cost = &run->plan->devices[r];

        predicted =
            json_pack("{s:f, s:f, s:f, s:f}", "compute_ms", cost->compute_ms,
                      "bwd_comm_ms", cost->bwd_comm_ms, "fwd_comm_ms",
                      cost->fwd_comm_ms, "total_ms", cost->total_ms);
    }
    return json_pack("{s:i, s:o, s:o}", "device", (int)r, "predicted",
                     predicted, "measured", measured);
}

/* An error may be infinite, and JSON has no such number. */
static json_t *number_or_null(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *check_to_json(const struct run *run)
{
    const struct exec_result *result = run->result;

    if (!run->options->check)
        return json_null();
    return json_pack("{s:b, s:o, s:I, s:o, s:I}", "passed", !result->failure,
                     "output_error", number_or_null(result->output_error),
                     "n_outputs", (json_int_t)result->n_outputs_checked,
                     "weight_error", number_or_null(result->weight_error),
                     "n_weights", (json_int_t)result->n_weights_checked);
}

static json_t *machine_to_json(const struct run *run)
{
    return json_pack("{s:s, s:s, s:i}", "name", device_name(run->device), "isa",
                     device_isa(run->device), "threads",
                     (int)device_n_threads(run->device));
}

static json_t *cost_model_to_json(const struct plan *plan)
{
    if (!is_priced(plan))
        return json_null();
    return json_pack("{s:s?, s:s?, s:s, s:s?}", "name", plan->cost.name, "hash",
                     plan->cost.hash, "basis",
                     cost_basis_name(plan->cost.basis), "comm",
                     plan->cost.comm);
}

static void print_json(const struct run *run)
{
    const struct exec_result *result = run->result;
    json_t *ranks = json_array();
    json_t *root = json_pack(
        "{s:o, s:I, s:i, s:f, s:o, s:o, s:i, s:f, s:s, s:o}", "machine",
        machine_to_json(run), "seed", (json_int_t)run->options->seed,
        "iterations", (int)run->options->n_iterations, "scale_rows",
        result->scale_rows, "cost_model", cost_model_to_json(run->plan),
        "devices", ranks, "slowest", (int)run->slowest, "total_ms",
        result->total_ms, "comm_basis", result->comm_basis, "check",
        check_to_json(run));
    char *text;

    for (uint32_t r = 0; r < run->plan->problem.cluster.n_devices; r++)
        json_array_append_new(ranks, rank_to_json(run, r));
    if (is_priced(run->plan))
        json_object_set_new(root, "slowest_error_frac",
                            json_real(total_error(run, run->slowest)));
    text = json_to_text(root);
    fputs(text, stdout);
    free(text);
    json_decref(root);
}

static void show_progress(void *ctx, uint64_t done, uint64_t total)
{
    (void)total;
    progress_update(ctx, done);
}

static void read_options(struct exec_options *options, const struct cli *cli)
{
    exec_options_init(options);
    options->scale_rows = cli_double(cli, "scale-rows");
    options->n_iterations = (unsigned)cli_u64(cli, "iterations");
    options->seed = cli_u64(cli, "seed");
    options->check = !cli_flag(cli, "no-check");
    options->progress = show_progress;
}

static int execute(struct exec_result *result, const struct plan *plan,
                   struct device *device, struct exec_options *options,
                   struct cli *cli, struct err *err)
{
    struct progress progress;
    int rc;

    progress_start(&progress, "GPUs timed", plan->problem.cluster.n_devices);
    options->progress_ctx = &progress;
    rc = exec_run(result, plan, device, options, cli_arena(cli), err);
    progress_finish(&progress);
    if (!rc && options->sink)
        fprintf(stderr, "stored %u samples\n", result->n_stored);
    return rc;
}

static void report(const struct plan *plan, const struct device *device,
                   const struct exec_options *options,
                   const struct exec_result *result, const struct cli *cli)
{
    struct run run = {plan, device, options, result, 0};

    run.slowest = find_slowest(&run);
    if (cli_flag(cli, "json"))
        print_json(&run);
    else
        print_report(&run);
}

static int run_run(struct cli *cli, struct err *err)
{
    struct plan plan = {0};
    struct device *device = NULL;
    struct store *store = NULL;
    struct exec_options options;
    struct exec_result result;
    struct sample_sink sink;
    int rc = -1;

    read_options(&options, cli);
    if (!strcmp(cli_string(cli, "device"), "cuda"))
        return err_set(err, ERR_USAGE,
                       "option '--device cuda': plans are run on the CPU only "
                       "in this version");
    if (plan_load(&plan, cli_arg(cli, 0), cli_arena(cli), err))
        goto out;
    if (device_open(
            &device, DEVICE_CPU, 0,
            cli_given(cli, "threads") ? (unsigned)cli_u64(cli, "threads") : 0,
            err))
        goto out;
    if (cli_given(cli, "db")) {
        if (store_open(&store, cli_string(cli, "db"), STORE_WRITE, err))
            goto out;
        sink = store_sink(store);
        options.sink = &sink;
    }
    if (execute(&result, &plan, device, &options, cli, err))
        goto out;
    report(&plan, device, &options, &result, cli);
    if (result.failure) {
        err_set(err, ERR_DEVICE, "%s", result.failure);
        goto out;
    }
    rc = 0;
out:
    store_close(store);
    device_close(device);
    return rc;
}

const struct command command_run = {
    .name = "run",
    .synopsis = "PLAN [options]",
    .summary = "run a plan: compare it with an unsharded reference, time it",
    .options = run_options,
    .min_args = 1,
    .max_args = 1,
    .run = run_run,
};
