/* SPDX-License-Identifier: MIT */
#include "exec/exec_report.h"

#include "base/cpu.h"
#include "base/figures.h"
#include "base/hash.h"
#include "base/text.h"
#include "core/plan_error.h"
#include "core/sharding_groups.h"
#include "device/world.h"
#include "exec/cache_report.h"
#include "exec/sync_report.h"

/* Returns the costs of a rank that the plan predicts. All sharding groups have
 * the same plan. */
static const struct device_cost *predicted_cost(const struct exec_report *run,
                                                uint32_t rank)
{
    return &run->plan->devices[rank % run->plan->problem.cluster.n_devices];
}

static uint32_t rank_in_job(const struct exec_report *run, uint32_t rank)
{
    return sharding_groups_rank_at(&run->plan->problem, rank);
}

static struct sync_report syncs_of(const struct exec_report *run)
{
    return (struct sync_report){run->plan, &run->result->sync,
                                run->options->sync_every,
                                run->result->scale_rows};
}

/* Relative error of the plan's prediction: (predicted - measured) /
 * measured. */
static double slowest_error(const struct exec_report *run)
{
    const uint32_t r = run->result->slowest;
    const double measured_ms = run->result->costs[r].total_ms;

    return (predicted_cost(run, r)->total_ms - measured_ms) / measured_ms;
}

static void print_cost_source(const struct exec_report *run, struct buf *out)
{
    const struct plan *plan = run->plan;
    const struct cost_source *cost = &plan->cost;

    buf_printf(out, "predicted by %s (%s", cost->name ? cost->name : "hand",
               cost_basis_names[cost->basis]);
    if (cost->device)
        buf_printf(out, " on %s", cost->device);
    if (cost->hash)
        buf_printf(out, ", hash %s", cost->hash);
    buf_printf(out, ")");
    plan_print_error(plan, out);
    buf_printf(out, "\n");
    cost_print_outside(cost, out);
}

static void print_world(const struct exec_report *run, struct buf *out)
{
    const struct exec_result *result = run->result;

    if (result->n_processes == 1)
        buf_printf(out, "ranks: all in one process, exchange by %s\n",
                   result->comm_kind);
    else
        buf_printf(out, "ranks: %u processes on %u %s, exchange by %s\n",
                   result->n_processes, result->n_hosts,
                   result->n_hosts == 1 ? "host" : "hosts", result->comm_kind);
    if (result->n_turns > 1)
        buf_printf(out,
                   "weights were loaded in %u turns: they do not fit in memory "
                   "together\n",
                   result->n_turns);
}

static void print_heading(const struct exec_report *run, struct buf *out)
{
    const struct problem *problem = &run->plan->problem;

    buf_printf(out, "%zu tables on %u GPUs", problem->n_tables,
               problem_all_devices(problem));
    sync_report_groups(run->plan, out);
    buf_printf(out, ", batch %llu, rows x %g, seed %llu\n",
               (unsigned long long)problem_all_samples(problem),
               run->result->scale_rows, (unsigned long long)run->options->seed);
    buf_printf(out, "measured on %s, %s, ", run->device->facts.name,
               run->device->facts.isa);
    if (run->device->facts.n_threads)
        buf_printf(out, "%u threads: ", run->device->facts.n_threads);
    buf_printf(out, "medians of %u iterations, each GPU's work alone\n",
               run->options->n_iterations);
    print_world(run, out);
    if (plan_is_priced(run->plan))
        print_cost_source(run, out);
    else
        buf_printf(out, "the plan has no predicted costs; 'neuroshard cost' "
                        "adds them\n");
}

/* Row of the table of ranks, in which each rank has two rows: measured and
 * predicted times. A figure is NAN if it is missing. */
struct rank_row {
    const char *gpu, *what;
    struct device_cost cost;
    /* time until the last rank is ready for the exchange of outputs */
    double waiting_ms;
    struct timing compute;
};
#define ROW(member) MEMBER_OF(struct rank_row, member)
#define PART(name, part)                                         \
    {                                                            \
        NULL, name, 8, 3, FIGURE_PLAIN, ROW(cost.parts_ms[part]) \
    }
static const struct figure rank_figures[] = {
    {NULL, "GPU", 4, 0, FIGURE_PLAIN, ROW(gpu)},
    {NULL, "ms", -9, 0, FIGURE_PLAIN, ROW(what)},
    PART("input", STEP_INPUT),
    PART("forward", STEP_FORWARD),
    PART("output", STEP_OUTPUT),
    PART("gradient", STEP_GRADIENT),
    PART("backward", STEP_BACKWARD),
    PART("replicas", STEP_REPLICAS),
    {NULL, "waiting", 8, 3, FIGURE_PLAIN, ROW(waiting_ms)},
    {NULL, "step", 8, 3, FIGURE_PLAIN, ROW(cost.total_ms)},
    {NULL, "compute", 9, 3, FIGURE_PLAIN, ROW(cost.compute_ms)},
    {NULL, "p10", 8, 3, FIGURE_PLAIN, ROW(compute.p10_ms)},
    {NULL, "p90", 8, 3, FIGURE_PLAIN, ROW(compute.p90_ms)},
    {0},
};

/* Prints the measured or predicted times of a rank's step. */
static void print_row(const struct exec_report *run, const char *gpu,
                      bool is_measured, uint32_t r, struct buf *out)
{
    const struct device_cost *own =
        is_measured ? &run->result->costs[r] : predicted_cost(run, r);
    struct rank_row row = {gpu,
                           is_measured ? "measured" : "predicted",
                           *own,
                           NAN,
                           {NAN, NAN, NAN}};

    for (uint32_t q = 0; q < problem_all_devices(&run->plan->problem); q++) {
        const struct device_cost *other =
            is_measured ? &run->result->costs[q] : predicted_cost(run, q);

        row.waiting_ms =
            fmax(row.waiting_ms, other->compute_ms + other->bwd_comm_ms);
    }
    row.waiting_ms -= own->compute_ms + own->bwd_comm_ms;
    if (is_measured)
        row.compute = run->result->ranks[r].compute;
    figures_row(rank_figures, &row, out);
}

static void print_ranks(const struct exec_report *run, struct buf *out)
{
    const bool is_priced = plan_is_priced(run->plan);

    buf_printf(out, "\n");
    figures_heading(rank_figures, out);
    for (uint32_t r = 0; r < problem_all_devices(&run->plan->problem); r++) {
        const char *gpu = text_say(run->arena, "%u", rank_in_job(run, r));

        if (is_priced)
            print_row(run, gpu, false, r, out);
        print_row(run, is_priced ? "" : gpu, true, r, out);
    }
}

/* Returns true if the processes of this host have more threads than the host
 * has processors, so that threads compete. */
static bool is_oversubscribed(const struct exec_report *run)
{
    return run->world->local_size * run->device->facts.n_threads > cpu_count();
}

/* Predicted time of the lookups and their exchange if the batch is divided into
 * n_chunks chunks. */
static double predicted_ms(const struct exec_report *run, uint32_t n_chunks)
{
    uint32_t n = problem_all_devices(&run->plan->problem);
    double(*phases_ms)[N_PHASES] =
        arena_alloc(run->arena, n, sizeof(*phases_ms));
    struct step step = run->options->step;

    step.pipeline = PIPELINE_NONE;
    step.n_chunks = n_chunks;
    step.dense_ms = step.dense_reduce_ms = 0;
    for (uint32_t r = 0; r < n; r++) {
        const double *parts_ms = predicted_cost(run, r)->parts_ms;

        phases_ms[r][PHASE_FORWARD] = parts_ms[STEP_FORWARD];
        phases_ms[r][PHASE_OUTPUT] = parts_ms[STEP_OUTPUT];
    }
    return step_of_ranks(&step, n, (const double(*)[N_PHASES])phases_ms);
}

/* Predicted gain if the batch is divided into chunks, as a fraction of the time
 * without chunks; NAN if the plan does not predict the gain. */
static double predicted_gain(const struct exec_report *run)
{
    if (!plan_is_priced(run->plan) || !plan_has_parts(run->plan))
        return NAN;
    return 1 - predicted_ms(run, run->options->step.n_chunks) /
                   predicted_ms(run, 1);
}

static double measured_gain(const struct exec_report *run)
{
    const struct timing *in_chunks = run->result->in_chunks;

    return 1 - in_chunks[1].median_ms / in_chunks[0].median_ms;
}

static void print_chunks(const struct exec_report *run, struct buf *out)
{
    const struct timing *in_chunks = run->result->in_chunks;
    uint32_t n = run->options->step.n_chunks;

    if (n == 1)
        return;
    if (run->result->n_processes == 1) {
        buf_printf(out,
                   "lookups and their exchange: in %u chunks, which are timed "
                   "only with several processes\n",
                   n);
        return;
    }
    buf_printf(out,
               "lookups and their exchange: %.3f ms in one part, %.3f ms in %u "
               "chunks, gain %.1f %%",
               in_chunks[0].median_ms, in_chunks[1].median_ms, n,
               100 * measured_gain(run));
    if (!isnan(predicted_gain(run)))
        buf_printf(out, ", %.1f %% predicted", 100 * predicted_gain(run));
    buf_printf(out, "\n");
}

static void print_job(const struct exec_report *run, struct buf *out)
{
    const struct job *job = &run->plan->problem.job;

    buf_printf(out, "step: ");
    job_describe(job, out);
    if (job->pipeline != PIPELINE_NONE)
        buf_printf(out, "; phases were measured one after the other, and their "
                        "overlap is predicted");
    buf_printf(out, "\n");
}

static void print_step(const struct exec_report *run, struct buf *out)
{
    const struct timing *step = &run->result->step;

    if (run->result->n_processes > 1)
        buf_printf(out,
                   "whole steps of all processes together: %.3f ms (p10 "
                   "%.3f, p90 %.3f)%s\n",
                   step->median_ms, step->p10_ms, step->p90_ms,
                   is_oversubscribed(run)
                       ? "; they have more threads than there are processors"
                       : "");
}

/* Returns true if ids are exchanged between GPUs. In this case the input of the
 * step has the predicted time, which includes permuting. If the plan predicts
 * no time, the input has the measured time of the exchange of ids. */
static bool has_gpu_ids(const struct exec_report *run)
{
    return run->result->comm == EXEC_COMM_MEASURED &&
           !device_is_host(run->device);
}

static void print_ids(const struct exec_report *run, struct buf *out)
{
    const struct timing *ids = &run->result->exchanges[PHASE_INPUT];

    if (has_gpu_ids(run))
        buf_printf(out,
                   "exchange of ids alone: %.3f ms measured (p10 %.3f, p90 "
                   "%.3f); the input above is %s\n",
                   ids->median_ms, ids->p10_ms, ids->p90_ms,
                   plan_is_priced(run->plan) && plan_has_parts(run->plan)
                       ? "as predicted"
                       : "this exchange, as none was predicted");
}

static void print_check(const struct exec_report *run, struct buf *out)
{
    const struct exec_result *result = run->result;

    if (!run->options->check) {
        buf_printf(out, "not compared with the unsharded reference\n");
        return;
    }
    buf_printf(out,
               "against the unsharded reference, largest error: %.2g of "
               "%s outputs, %.2g of %s updated weights",
               result->outputs.error, TEXT_COUNT(result->outputs.n),
               result->weights.error, TEXT_COUNT(result->weights.n));
    if (result->averages.n)
        buf_printf(out, ", %.2g of %s averages", result->averages.error,
                   TEXT_COUNT(result->averages.n));
    buf_printf(out, "\n");
    buf_printf(out, "hashes: outputs %s, updated weights and states %s\n",
               HASH_TEXT(result->output_hash), HASH_TEXT(result->weight_hash));
}

void exec_report_print(const struct exec_report *run, struct buf *out)
{
    const struct exec_result *result = run->result;
    const struct device_cost *cost = &result->costs[result->slowest];
    const bool is_measured = result->comm == EXEC_COMM_MEASURED;
    const struct sync_report syncs = syncs_of(run);

    print_heading(run, out);
    print_ranks(run, out);
    cache_report_print(run->plan, result, run->arena, out);
    buf_printf(out, "\nslowest GPU: %u, ", rank_in_job(run, result->slowest));
    if (result->comm == EXEC_COMM_ABSENT)
        buf_printf(out, "%.3f ms of compute measured\n", cost->compute_ms);
    else if (!plan_is_priced(run->plan))
        buf_printf(out, "%.3f ms measured\n", cost->total_ms);
    else
        buf_printf(out, "%.3f ms %s, %.3f ms predicted (%+.1f %%)\n",
                   cost->total_ms,
                   is_measured ? "measured" : "with communication as predicted",
                   predicted_cost(run, result->slowest)->total_ms,
                   100 * slowest_error(run));
    buf_printf(out, "communication%s: %s\n", is_measured ? " measured" : "",
               result->comm_basis);
    print_job(run, out);
    print_ids(run, out);
    print_step(run, out);
    sync_report_print(&syncs, out);
    print_chunks(run, out);
    if (plan_is_priced(run->plan) && run->plan->cost.comm)
        buf_printf(out, "communication predicted: %s\n", run->plan->cost.comm);
    if (result->n_disturbed)
        buf_printf(out,
                   "%u of %u GPUs %s timed while something else "
                   "disturbed the machine\n",
                   result->n_disturbed,
                   problem_all_devices(&run->plan->problem),
                   result->n_disturbed == 1 ? "was" : "were");
    if (result->scale_rows < 1)
        buf_printf(out, "the tables were smaller than the plan's: caches hold "
                        "more of them\n");
    print_check(run, out);
}

static json_t *timing_to_json(const struct timing *timing)
{
    return json_pack("{s:f, s:f, s:f}", "median_ms", timing->median_ms,
                     "p10_ms", timing->p10_ms, "p90_ms", timing->p90_ms);
}

static json_t *rank_to_json(const struct exec_report *run, uint32_t r)
{
    const struct exec_rank *rank = &run->result->ranks[r];
    const struct device_cost *cost = &run->result->costs[r];
    json_t *predicted = json_null();
    json_t *measured = json_pack(
        "{s:o, s:o, s:o, s:b}", "forward", timing_to_json(&rank->forward),
        "backward", timing_to_json(&rank->backward), "compute",
        timing_to_json(&rank->compute), "disturbed", rank->disturbed);

    place_set_fields(measured, cost, &device_cost_fields[1], N_COST_FIELDS - 1);
    if (plan_is_priced(run->plan)) {
        const struct device_cost *own = predicted_cost(run, r);

        predicted = PLACE_ROW(own, device_cost_fields);
        json_object_set_new(predicted, "phases_ms",
                            PLACE_ROW(own->parts_ms, step_part_fields));
    }
    return json_pack("{s:i, s:o, s:o, s:o}", "device", rank_in_job(run, r),
                     "predicted", predicted, "measured", measured, "phases_ms",
                     PLACE_ROW(cost->parts_ms, step_part_fields));
}

static json_t *check_to_json(const struct exec_report *run)
{
    const struct exec_result *result = run->result;
    json_t *check;

    if (!run->options->check)
        return json_null();
    check = json_pack("{s:b, s:o, s:I, s:s, s:o, s:I, s:s}", "passed",
                      !result->failure, "output_error",
                      json_real_or_null(result->outputs.error), "n_outputs",
                      (json_int_t)result->outputs.n, "output_hash",
                      HASH_TEXT(result->output_hash), "weight_error",
                      json_real_or_null(result->weights.error), "n_weights",
                      (json_int_t)result->weights.n, "weight_hash",
                      HASH_TEXT(result->weight_hash));
    if (result->averages.n) {
        json_object_set_new(check, "average_error",
                            json_real_or_null(result->averages.error));
        json_object_set_new(check, "n_averages",
                            json_whole(result->averages.n));
    }
    return check;
}

static json_t *world_to_json(const struct exec_report *run)
{
    const struct exec_result *result = run->result;
    json_t *step = json_null(), *chunks = json_null(), *ids = json_null();

    if (has_gpu_ids(run))
        ids = timing_to_json(&result->exchanges[PHASE_INPUT]);
    if (result->n_processes > 1 && run->options->step.n_chunks > 1)
        chunks = json_pack("{s:i, s:o, s:o, s:f, s:o}", "n",
                           run->options->step.n_chunks, "one_part",
                           timing_to_json(&result->in_chunks[0]), "in_chunks",
                           timing_to_json(&result->in_chunks[1]), "gain_frac",
                           measured_gain(run), "predicted_gain_frac",
                           json_real_or_null(predicted_gain(run)));
    if (result->n_processes > 1) {
        step = timing_to_json(&result->step);
        json_object_set_new(step, "oversubscribed",
                            json_boolean(is_oversubscribed(run)));
    }
    return json_pack("{s:i, s:i, s:i, s:o, s:o, s:o}", "processes",
                     result->n_processes, "hosts", result->n_hosts, "turns",
                     result->n_turns, "ids", ids, "step", step, "chunks",
                     chunks);
}

static json_t *cost_model_to_json(const struct exec_report *run)
{
    const struct cost_source *cost = &run->plan->cost;

    if (!plan_is_priced(run->plan))
        return json_null();
    return json_pack("{s:s?, s:s?, s:s, s:s?, s:f, s:o}", "name", cost->name,
                     "hash", cost->hash, "basis", cost_basis_names[cost->basis],
                     "comm", cost->comm, "error_frac",
                     plan_error_frac(run->plan), "outside",
                     cost_outside_to_json(cost));
}

json_t *exec_report_to_json(const struct exec_report *run)
{
    static const char *const figures[] = {"measured", "modelled", NULL};
    const struct exec_result *result = run->result;
    const struct sync_report syncs = syncs_of(run);
    json_t *ranks = json_array();

    for (uint32_t r = 0; r < problem_all_devices(&run->plan->problem); r++)
        json_array_append_new(ranks, rank_to_json(run, r));
    return json_pack(
        "{s:o, s:o, s:I, s:i, s:f, s:o, s:o, s:o*, s:i, s:o, s:{s:s, s:s?}, "
        "s:s, s:o, s:o*, s:o*}",
        "machine", device_to_json(run->device), "world", world_to_json(run),
        "seed", (json_int_t)run->options->seed, "iterations",
        run->options->n_iterations, "scale_rows", result->scale_rows,
        "cost_model", cost_model_to_json(run), "devices", ranks, "caches",
        cache_report_to_json(run->plan, result), "slowest",
        rank_in_job(run, run->result->slowest), "total_ms",
        json_real_or_null(result->total_ms), "comm", "kind", result->comm_kind,
        "figures", figures[result->comm], "comm_basis", result->comm_basis,
        "check", check_to_json(run), "groups", sync_report_to_json(&syncs),
        "slowest_error_frac",
        plan_is_priced(run->plan) ? json_real(slowest_error(run)) : NULL);
}
