/* SPDX-License-Identifier: MIT */
#include "exec/train_report.h"

#include "base/figures.h"
#include "base/hash.h"
#include "base/text.h"
#include "exec/sync_report.h"

#include <string.h>

static struct sync_report syncs_of(const struct train_report *run)
{
    return (struct sync_report){run->plan, &run->result->sync,
                                run->options->sync_every,
                                run->result->scale_rows};
}

/* --- predictions --- */

static bool has_prices(const struct train_report *run)
{
    return run->plan->devices && plan_is_priced(run->plan) &&
           plan_has_parts(run->plan);
}

static bool has_dense_price(const struct train_report *run)
{
    return has_prices(run) && run->plan->dense.forward_ms > 0;
}

/* Returns the largest predicted time of a part of the step over the ranks. */
static double part_ms(const struct train_report *run, enum step_part part)
{
    double ms = 0;

    for (uint32_t r = 0; r < run->plan->problem.cluster.n_devices; r++)
        ms = fmax(ms, run->plan->devices[r].parts_ms[part]);
    return ms;
}

double train_predicted_ms(const struct train_report *run,
                          enum train_phase phase)
{
    const struct dense_cost *dense = &run->plan->dense;
    const bool is_dense = phase == TRAIN_DENSE || phase == TRAIN_DENSE_REDUCE ||
                          phase == TRAIN_DENSE_UPDATE;

    if (is_dense ? !has_dense_price(run) : !has_prices(run))
        return NAN;
    switch (phase) {
    case TRAIN_INPUT:
        return part_ms(run, STEP_INPUT);
    case TRAIN_FORWARD:
        return part_ms(run, STEP_FORWARD);
    case TRAIN_OUTPUT:
        return part_ms(run, STEP_OUTPUT);
    case TRAIN_DENSE:
        return dense->forward_ms + dense->backward_ms;
    case TRAIN_GRADIENT:
        return part_ms(run, STEP_GRADIENT);
    case TRAIN_DENSE_REDUCE:
        return dense->reduce_ms;
    case TRAIN_BACKWARD:
        return part_ms(run, STEP_BACKWARD);
    case TRAIN_REPLICAS:
        return part_ms(run, STEP_REPLICAS);
    case TRAIN_DENSE_UPDATE:
    case N_TRAIN_PHASES:
    default:
        return dense->update_ms;
    }
}

double train_predicted_step_ms(const struct train_report *run)
{
    const uint32_t n = run->plan->problem.cluster.n_devices;
    const struct dense_cost *dense = &run->plan->dense;
    double(*phases_ms)[N_PHASES] =
        arena_alloc(run->arena, n, sizeof(*phases_ms));
    struct step step = run->step;

    if (!has_dense_price(run) || !run->plan->devices)
        return NAN;
    /* The dense gradients and weights come after the gradients of outputs. */
    step.dense_ms = dense->forward_ms + dense->backward_ms;
    step.dense_reduce_ms = 0;
    for (uint32_t r = 0; r < n; r++) {
        const double *parts_ms = run->plan->devices[r].parts_ms;

        memset(phases_ms[r], 0, sizeof(phases_ms[r]));
        phases_ms[r][PHASE_INPUT] = parts_ms[STEP_INPUT];
        phases_ms[r][PHASE_FORWARD] = parts_ms[STEP_FORWARD];
        phases_ms[r][PHASE_OUTPUT] = parts_ms[STEP_OUTPUT];
        phases_ms[r][PHASE_GRADIENT] = parts_ms[STEP_GRADIENT];
        phases_ms[r][PHASE_BACKWARD] = parts_ms[STEP_BACKWARD];
        phases_ms[r][PHASE_REDUCE] =
            parts_ms[STEP_REPLICAS] + dense->reduce_ms + dense->update_ms;
    }
    return step_of_ranks(&step, n, (const double(*)[N_PHASES])phases_ms);
}

/* --- text --- */

static void print_heading(const struct train_report *run, struct buf *out)
{
    const struct train_result *result = run->result;
    const struct problem *problem = &run->plan->problem;

    buf_printf(out, "%zu tables on %u GPUs", problem->n_tables,
               problem_all_devices(problem));
    sync_report_groups(run->plan, out);
    buf_printf(out, ", batch %llu, rows x %g, seed %llu, pipeline %s\n",
               (unsigned long long)problem_all_samples(problem),
               result->scale_rows, (unsigned long long)run->options->seed,
               pipeline_names[run->options->pipeline]);
    buf_printf(out, "dense part ");
    dense_print(run->options->dense, out);
    buf_printf(out, ": %s parameters, optimizer %s\n",
               TEXT_COUNT(run->options->dense->n_parameters),
               optimizer_names[run->options->dense_optimizer]);
    buf_printf(out, "trained on %s, %s", run->device->facts.name,
               run->device->facts.isa);
    if (run->device->facts.n_threads)
        buf_printf(out, ", %u threads", run->device->facts.n_threads);
    if (result->n_processes == 1)
        buf_printf(out, "; all ranks in one process, exchange by %s\n",
                   result->comm_kind);
    else
        buf_printf(out, "; %u processes on %u %s, exchange by %s\n",
                   result->n_processes, result->n_hosts,
                   result->n_hosts == 1 ? "host" : "hosts", result->comm_kind);
    if (has_prices(run))
        buf_printf(out, "predicted by %s (%s)\n", run->plan->cost.name,
                   cost_basis_names[run->plan->cost.basis]);
    else
        buf_printf(out, "the plan has no predicted times of its phases\n");
}

/* Row of the table of phases. A figure is NAN if it is missing. */
struct phase_row {
    const char *name;
    struct timing timing;
    double predicted_ms;
};
#define ROW(member) MEMBER_OF(struct phase_row, member)
static const struct figure phase_figures[] = {
    {"phase", "ms per step", -12, 0, FIGURE_PLAIN, ROW(name)},
    {"median_ms", "median", 9, 3, FIGURE_PLAIN, ROW(timing.median_ms)},
    {"p10_ms", "p10", 9, 3, FIGURE_PLAIN, ROW(timing.p10_ms)},
    {"p90_ms", "p90", 9, 3, FIGURE_PLAIN, ROW(timing.p90_ms)},
    {"predicted_ms", "predicted", 9, 3, FIGURE_PLAIN, ROW(predicted_ms)},
    {0},
};

#define N_ROWS (N_TRAIN_PHASES + 2)
/* Fills rows[N_ROWS] with the phases, the wait and the step. */
static void fill_rows(const struct train_report *run, struct phase_row *rows)
{
    const struct train_result *result = run->result;

    for (unsigned i = 0; i < N_TRAIN_PHASES; i++)
        rows[i] =
            (struct phase_row){train_phase_names[i], result->phases[i],
                               train_predicted_ms(run, (enum train_phase)i)};
    rows[N_TRAIN_PHASES] = (struct phase_row){"input wait", result->wait, NAN};
    rows[N_TRAIN_PHASES + 1] =
        (struct phase_row){"step", result->step, train_predicted_step_ms(run)};
}

static void print_times(const struct train_report *run, struct buf *out)
{
    const struct train_result *result = run->result;
    const double predicted_ms = train_predicted_step_ms(run);
    struct phase_row rows[N_ROWS];

    fill_rows(run, rows);
    buf_printf(out, "\n");
    FIGURES_TABLE(phase_figures, rows, N_ROWS, out);
    buf_printf(out, "\n");
    if (!isnan(predicted_ms))
        buf_printf(out,
                   "step: %.3f ms measured, %.3f ms predicted (%+.1f %%)\n",
                   result->step.median_ms, predicted_ms,
                   100 * (predicted_ms / result->step.median_ms - 1));
    buf_printf(out, "times are medians of %u steps", result->n_timed);
    if (result->n_processes == 1)
        buf_printf(out, "; the ranks of one process take turns, so its step is "
                        "the sum of the phases, each of the slowest rank\n");
    else
        buf_printf(out, ", each phase of the slowest rank, each exchange from "
                        "the last arrival to the last end\n");
}

static void print_check(const struct train_report *run, struct buf *out)
{
    static const char *const whats[N_REFERENCE_WHAT] = {
        [REFERENCE_LOSSES] = "losses",
        [REFERENCE_GRADIENTS] = "gradients",
        [REFERENCE_UPDATES] = "updates",
        [REFERENCE_AVERAGES] = "averages",
        [REFERENCE_WEIGHTS] = "weights"};
    const struct train_result *result = run->result;
    const char *comma = "";

    if (!run->options->check) {
        buf_printf(out, "not compared with the unsharded reference\n");
    } else {
        buf_printf(out, "against the unsharded reference, largest error: ");
        for (unsigned i = 0; i < N_REFERENCE_WHAT; i++) {
            const struct tally *tally = &result->found.tallies[i];

            if (!tally->n)
                continue;
            buf_printf(out, "%s%.2g of %s %s", comma, tally->error,
                       TEXT_COUNT(tally->n), whats[i]);
            comma = ", ";
        }
        buf_printf(out, "\n");
    }
    buf_printf(out, "hashes: dense parameters %s, weights and states %s\n",
               HASH_TEXT(result->dense_hash), HASH_TEXT(result->weight_hash));
}

void train_report_print(const struct train_report *run, struct buf *out)
{
    const struct train_result *result = run->result;
    const unsigned n = run->options->n_steps;
    const struct sync_report syncs = syncs_of(run);

    print_heading(run, out);
    print_times(run, out);
    sync_report_print(&syncs, out);
    buf_printf(out, "loss: %.6f in step 1, %.6f in step %u\n",
               result->losses[0], result->losses[n - 1], n);
    if (result->scale_rows < 1)
        buf_printf(out, "the tables were smaller than the plan's: caches hold "
                        "more of them\n");
    print_check(run, out);
}

/* --- JSON --- */

static json_t *check_to_json(const struct train_report *run)
{
    static const char *const keys[N_REFERENCE_WHAT] = {
        [REFERENCE_LOSSES] = "losses",
        [REFERENCE_GRADIENTS] = "gradients",
        [REFERENCE_UPDATES] = "updates",
        [REFERENCE_AVERAGES] = "averages",
        [REFERENCE_WEIGHTS] = "weights"};
    const struct train_result *result = run->result;
    json_t *check;

    if (!run->options->check)
        return json_null();
    check = json_pack("{s:b}", "passed", !result->failure);
    for (unsigned i = 0; i < N_REFERENCE_WHAT; i++) {
        const struct tally *tally = &result->found.tallies[i];

        if (i == REFERENCE_AVERAGES && !run->result->sync.n)
            continue;
        json_object_set_new(check, keys[i],
                            tally->n
                                ? json_pack("{s:o, s:I}", "error",
                                            json_real_or_null(tally->error),
                                            "n", (json_int_t)tally->n)
                                : json_null());
    }
    return check;
}

json_t *train_report_to_json(const struct train_report *run)
{
    const struct train_result *result = run->result;
    json_t *losses = json_array();
    const struct sync_report syncs = syncs_of(run);
    struct phase_row rows[N_ROWS];
    struct buf dense = {0};
    json_t *json;

    fill_rows(run, rows);
    for (unsigned i = 0; i < run->options->n_steps; i++)
        json_array_append_new(losses, json_real_or_null(result->losses[i]));
    dense_print(run->options->dense, &dense);
    json = json_pack(
        "{s:o, s:i, s:i, s:s, s:I, s:f, s:s, s:s, s:s, s:I, s:i, s:o, s:o, "
        "s:o, s:s, s:s, s:o*}",
        "machine", device_to_json(run->device), "processes",
        result->n_processes, "hosts", result->n_hosts, "comm",
        result->comm_kind, "seed", (json_int_t)run->options->seed, "scale_rows",
        result->scale_rows, "pipeline", pipeline_names[run->options->pipeline],
        "dense", dense.data, "dense_optimizer",
        optimizer_names[run->options->dense_optimizer], "n_parameters",
        (json_int_t)run->options->dense->n_parameters, "timed_steps",
        result->n_timed, "losses", losses, "times",
        FIGURES_LIST(phase_figures, rows, N_ROWS), "check", check_to_json(run),
        "dense_hash", HASH_TEXT(result->dense_hash), "weight_hash",
        HASH_TEXT(result->weight_hash), "groups", sync_report_to_json(&syncs));
    buf_release(&dense);
    return json;
}
